"""libnccl: its version from the file, and from the library once it is loaded."""

import _ctypes
import ctypes
import struct

import pytest

from commbench.machine.libraries import load_nccl, nccl_version
from commbench.machine.nccl_names import read_only_data
from commbench.machine.tree import Tree
from tests.trees import nccl_library

LIBRARY = nccl_library("2.21.5+cuda12.4")


def version_of(tmp_path, content):
    (tmp_path / "lib.so").write_bytes(content)
    return nccl_version(read_only_data(Tree(tmp_path), "lib.so"))


@pytest.mark.parametrize("version", ["2.21.5+cuda12.4", "2.18.1", "2.30.7+cuda13.0"])
def test_the_version_stands_in_the_read_only_data(tmp_path, version):
    assert version_of(tmp_path, nccl_library(version)) == version


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF",
        LIBRARY[:70],
        LIBRARY.replace(b"NCCL version", b"XCCL version"),
        LIBRARY[:40] + struct.pack("<Q", 1 << 60) + LIBRARY[48:],
        LIBRARY[:60] + b"\xff\xff\xff\xff" + LIBRARY[64:],
        b"NCCL version 2.21.5+cuda12.4",
    ],
)
def test_what_is_no_library_has_no_version(tmp_path, content):
    assert version_of(tmp_path, content) == ""


@pytest.mark.parametrize(("number", "version"), [(2804, "2.8.4"), (22105, "2.21.5"), (23007, "2.30.7")])
def test_the_version_of_a_library_that_is_loaded(monkeypatch, number, version):
    class Library:
        def __init__(self, path: str) -> None:
            assert path == "/usr/lib/libnccl.so.2"

        def ncclGetVersion(self, reference) -> int:
            reference._obj.value = number
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert load_nccl(Tree(), "usr/lib/libnccl.so.2") == version


def test_a_library_that_does_not_load_says_why(tmp_path):
    (tmp_path / "libnccl.so").write_bytes(b"no library")
    tree = Tree()
    assert load_nccl(tree, str(tmp_path / "libnccl.so").lstrip("/")) == ""
    assert "libnccl.so" in tree.unseen["software.nccl_loadable"]


def test_a_library_without_nccl_says_what_it_lacks():
    tree = Tree()
    assert load_nccl(tree, _ctypes.__file__.lstrip("/")) == ""
    assert "ncclGetVersion" in tree.unseen["software.nccl_loadable"]
