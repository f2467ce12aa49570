"""Snapshots: there and back, refused by name, and without identities."""

import re
from pathlib import Path

import pytest

from commbench.errors import CommbenchError
from commbench.machine.facts import FACTS_SCHEMA_VERSION
from commbench.machine.snapshot import format_snapshot, is_snapshot, load_snapshot, read_snapshot
from tests.trees import dgx_facts


@pytest.mark.parametrize("roce", [False, True])
def test_there_and_back(tmp_path, roce):
    facts = dgx_facts(roce=roce, environment={"NCCL_ALGO": "Ring"})
    (tmp_path / "host.json").write_text(format_snapshot(facts))
    assert load_snapshot(tmp_path / "host.json") == facts
    assert is_snapshot((tmp_path / "host.json").read_text())


def test_no_secret_and_no_identity():
    """Nothing of the boot id, the GPUs' UUIDs, GIDs, hardware addresses, or of variables that are not listed."""
    text = format_snapshot(dgx_facts(roce=True, environment={"AWS_SECRET_ACCESS_KEY": "s3cret", "NCCL_DEBUG": "INFO"}))
    for identity in ("s3cret", "6f0d7a42", "GPU-0000", "fe80", "a288:c2ff", "0d1b4a-11", "ffff:0a01"):
        assert identity not in text
    assert not re.search(r"(?:[0-9a-f]{2}:){5}", text)


def test_a_newer_schema_is_refused_by_name():
    text = format_snapshot(dgx_facts()).replace(
        '"schema_version": 1', f'"schema_version": {FACTS_SCHEMA_VERSION + 1}', 1
    )
    with pytest.raises(CommbenchError, match=r"host\.json has schema 2, this commbench reads up to 1: update"):
        read_snapshot(text.encode(), "host.json")


def test_what_a_snapshot_lacks_is_unseen():
    facts = read_snapshot(b'{"schema_version": 1, "taken_utc": "", "source": "/"}', "host.json")
    assert (facts.gpus, facts.limits.memlock_nbytes, facts.why_unseen("gpus")) == (
        None,
        None,
        "this machine does not say",
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema_version": "x"}', '{"schema_version": 1, "gpus": 3}', "\xff", "[" * 100_000],
)
def test_garbage_is_one_sentence(text):
    with pytest.raises(CommbenchError) as refusal:
        read_snapshot(text.encode("latin-1"), "host.json")
    assert str(refusal.value).startswith("host.json is not a snapshot of commbench: ")


def test_a_file_that_cannot_be_read_is_one_sentence():
    with pytest.raises(CommbenchError, match=r"cannot read /nowhere/host\.json: No such file"):
        load_snapshot(Path("/nowhere/host.json"))
