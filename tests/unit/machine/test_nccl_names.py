"""The names that a library reads, from its bytes."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.machine.nccl_names import names_in, read_only_data
from commbench.machine.tree import Tree


def library(rodata: bytes) -> bytes:
    """A 64-bit ELF file with the sections "", .rodata and .shstrtab, in that order."""
    names = b"\0.rodata\0.shstrtab\0"
    data_at, names_at = 64, 64 + len(rodata)
    table_at = names_at + len(names)
    head = b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + struct.pack("<Q", table_at) + bytes(10)
    head += struct.pack("<HHH", 64, 3, 2)
    sections = [(0, 0, 0, 0, 0, 0), (1, 1, 2, 0, data_at, len(rodata)), (9, 3, 0, 0, names_at, len(names))]
    table = b"".join(struct.pack("<IIQQQQ", *section).ljust(64, b"\0") for section in sections)
    return head + rodata + names + table


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b"\0NCCL_DEBUG\0", {"NCCL_DEBUG"}),
        (b"NCCL_DEBUG\0NCCL_IB_HCA\0", {"NCCL_DEBUG", "NCCL_IB_HCA"}),
        (b"\0RCCL_MSCCL_ENABLE\0", {"RCCL_MSCCL_ENABLE"}),
        (b"\0call ncclInit via NCCL_CONFIG_INITIALIZER\0", set()),  # the end of a sentence
        (b"\0NCCL_COMM_ID set by environment\0", set()),  # the beginning of one
        (b"virtual_switch_linksNCCL_NET_PLUGIN\0", {"NCCL_NET_PLUGIN"}),  # after a text without its zero byte
        (b"\0                NCCL_NTHREADS\0", {"NCCL_NTHREADS"}),  # after padding
        (b"00:00.0NCCL_SOCKET_MAGIC\0", {"NCCL_SOCKET_MAGIC"}),  # after a digit
        (b"0\0 NCCL_X\0", {"NCCL_X"}),
        (b"\0NCCL_DEBUG", set()),  # torn
        (b"CCL_DEBUG\0", set()),
        (b"", set()),
    ],
)
def test_names_stand_whole_and_end_with_a_zero_byte(data, names):
    assert names_in(data) == names


def names_of(folder, data: bytes) -> frozenset[str]:
    (folder / "libnccl.so.2").write_bytes(data)
    return names_in(read_only_data(Tree(folder), "libnccl.so.2"))


def test_only_the_read_only_data_of_a_library_counts(tmp_path):
    data = library(b"\0NCCL_DEBUG\0NCCL_NEW_NAME\0") + b"\0NCCL_OF_THE_DEBUGGER\0"
    assert names_of(tmp_path, data) == {"NCCL_DEBUG", "NCCL_NEW_NAME"}


@pytest.mark.parametrize(
    "data", [b"", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(100), b"\x7fELF\x02\x01" + bytes(100)]
)
def test_what_is_no_such_library_has_no_names(data, tmp_path):
    assert names_of(tmp_path, data) == frozenset()
    assert read_only_data(Tree(tmp_path), "missing") == b""


def test_a_damaged_library_has_names_or_none(tmp_path):
    rng, whole = random.Random(1), library(b"\0NCCL_DEBUG\0")
    for _ in range(100):
        damaged = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randrange(1, 8)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        assert all(name.startswith(("NCCL_", "RCCL_")) for name in names_of(tmp_path, bytes(damaged)))


@given(st.binary(max_size=200))
def test_any_bytes_have_names(data):
    assert all(name.startswith(("NCCL_", "RCCL_")) for name in names_in(data))
