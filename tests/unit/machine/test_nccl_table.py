"""The tables of names: they agree with each other, and with what is known of NCCL's history."""

import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from commbench.machine.nccl_table import meant_name, nccl_variables, newest_release, other_names, version_key

ROWS = nccl_variables()
KINDS = {
    "", "switch", "integer", "bytes", "bool", "level", "word", "exact", "words", "algo", "proto", "hcas", "interfaces",
    "path", "plugin", "text",
}  # fmt: skip


def test_every_row_can_be_used():
    for row in ROWS.values():
        assert row.name.startswith("NCCL_"), row
        assert version_key(row.first), row
        assert version_key(row.first) <= version_key(row.last), row
        assert row.kind in KINDS, row
        assert row.documented in ("", "system", "debugging"), row
        assert not row.deprecated or row.replacement, row


def test_numbers_have_ranges_of_numbers_and_words_have_words():
    for row in ROWS.values():
        if row.kind in ("switch", "integer", "bytes", "bool") and row.allowed:
            low, dots, high = row.allowed.partition("..")
            assert all(int(part) is not None for part in (low.split(",") if not dots else filter(None, (low, high))))
        if row.kind in ("word", "words", "exact", "level") and row.last == newest_release():
            assert row.allowed == row.allowed.upper(), row
            assert row.allowed, row


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("NCCL_CONF_FILE", "2.23.4", "newest"),  # the release notes of each
        ("NCCL_NVLS_ENABLE", "2.17.1", "newest"),
        ("NCCL_RAS_ENABLE", "2.24.3", "newest"),
        ("NCCL_IB_ADDR_FAMILY", "2.21.5", "newest"),
        ("NCCL_MNNVL", "2.20.5", "2.20.5"),
        ("NCCL_WORK_FIFO_DEPTH", "2.13.4", "2.21.5"),
        ("NCCL_SHM_USE_CUDA_MEMCPY", "2.13.4", "2.30.4"),
        ("NCCL_IB_CUDA_SUPPORT", "2.1", "2.3.7"),
        ("NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS", "2.14.3", "2.16.2"),  # a mistake of those releases
        ("NCCL_ALLOC_P2P_NET_LL_BUFFERS", "2.16.5", "newest"),
    ],
)
def test_the_table_has_the_releases_of_a_name(name, first, last):
    assert (ROWS[name].first, ROWS[name].last) == (first, newest_release() if last == "newest" else last)


def test_every_release_since_2_16_is_in_the_script_of_the_table():
    script = (Path(__file__).parents[3] / "scripts" / "generate_nccl_env").read_text()
    minors = {f"2.{minor}." for minor in range(16, version_key(newest_release())[1] + 1)}
    assert not [minor for minor in minors if f'"{minor}' not in script]


def test_names_that_are_not_nccls_are_in_no_release():
    others = other_names()
    assert not [name for name in (*others.invented, *others.elsewhere, *others.foreign) if name in ROWS]
    assert not set(others.invented) & set(others.elsewhere)


def test_what_replaces_an_invented_name_is_a_name_that_is_read():
    others = other_names()
    known = {*ROWS, *others.torch, *others.gloo}
    for name, instead in {**others.invented, **others.elsewhere}.items():
        words = {word.strip("(),.;:").partition("=")[0] for word in instead.split()}
        named = {word for word in words if word.startswith(("NCCL_", "TORCH_"))}
        assert all(word in known or others.owner(word) for word in named), (name, named - known)


def test_torchs_names_are_those_of_the_installed_torch():
    """As torch's header of its NCCL group declares them; torch itself is not imported."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    header = (Path(spec.origin).parent / "include/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp").read_text()
    declared = {part.partition('"')[0] for part in header.split('"TORCH_NCCL_')[1:]}
    assert declared
    assert {f"TORCH_NCCL_{name}" for name in declared} <= other_names().torch


def test_the_notes_name_only_names_of_the_table():
    notes = tomllib.loads((Path(__file__).parents[3] / "scripts" / "nccl_env_notes.toml").read_text())
    assert {f"NCCL_{name}" for name in notes["allowed"]} <= set(ROWS)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CCL_NET_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"),
        ("NCLL_DEBUG", "NCCL_DEBUG"),
        ("nccl_debug", "NCCL_DEBUG"),
        ("NCCL_DEBUG", ""),
        ("MY_DEBUG", ""),
        ("CCL_LOG_LEVEL", ""),  # of oneCCL
        ("DEBUG", ""),
    ],
)
def test_a_mistyped_prefix_is_seen(name, meant):
    assert meant_name(name) == meant


def test_versions_compare_as_numbers():
    assert version_key("2.9.9") < version_key("2.30.7-1+cuda12.8")
    assert version_key("unknown") == ()
