"""NCCL's log of one process, and its way to rank 0."""

import os
from pathlib import Path
from threading import Thread

import pytest

from commbench.measure import nccl_debug
from commbench.measure.nccl_debug import DebugLog, give_log, open_debug_log, take_logs
from tests.unit.boards import MemoryBoard

VARIABLES = ("NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (*VARIABLES, "NCCL_CONF_FILE"):
        monkeypatch.delenv(name, raising=False)


def write(text: str) -> None:
    """As NCCL does: it opens the file by its name, and holds it."""
    with open(os.environ["NCCL_DEBUG_FILE"], "w") as file:
        file.write(text)


def test_nccl_is_told_to_write_and_to_be_silent_while_calls_are_timed():
    log = open_debug_log()
    assert log is not None
    assert {name: os.environ[name] for name in VARIABLES} == log.settings
    assert os.environ["NCCL_DEBUG"] == "INFO"
    assert not {"TUNING", "COLL", "ALL", "CALL", "REG"} & set(os.environ["NCCL_DEBUG_SUBSYS"].split(","))
    log.close()
    log.close()
    assert not set(VARIABLES) & set(os.environ)


def test_what_nccl_writes_is_read_beside_it_and_leaves_no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    log = open_debug_log()
    with open(os.environ["NCCL_DEBUG_FILE"], "w", buffering=1) as file:
        file.write("one\ntwo\n")
        assert log.head(100) == (b"one\ntwo\n", True)
        file.write("three\n")
        assert log.head(14) == (b"one\ntwo\nthree\n", True)
        assert log.head(13) == (b"one\ntwo\n", False)
        assert log.head(0) == (b"", False)
    log.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", VARIABLES)
def test_the_user_has_the_say(monkeypatch, name):
    monkeypatch.setenv(name, "VERSION")
    before = dict(os.environ)
    assert open_debug_log() is None
    assert dict(os.environ) == before


def test_the_user_has_the_say_in_nccls_own_file_too(tmp_path):
    (tmp_path / ".nccl.conf").write_text("NCCL_SOCKET_IFNAME=eth0\n")
    log = open_debug_log()
    assert log is not None
    log.close()
    (tmp_path / ".nccl.conf").write_text("NCCL_SOCKET_IFNAME=eth0\nNCCL_DEBUG=WARN\n")
    assert open_debug_log() is None


def test_a_file_that_cannot_be_opened_leaves_nccl_as_it_is(monkeypatch):
    """NCCL would write to standard output, which is the result's."""

    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(nccl_debug, "open", refuse, raising=False)
    assert open_debug_log() is None
    assert not set(VARIABLES) & set(os.environ)


class Said:
    """A log with a given text."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    head = DebugLog.head

    @property
    def _descriptor(self) -> int:
        descriptor = os.memfd_create("said")
        os.write(descriptor, self.text)
        return descriptor


def taken(ranks: list[int], texts: dict[int, bytes]) -> tuple[list[tuple[int, bytes, bool]], MemoryBoard]:
    board = MemoryBoard()
    givers = [Thread(target=give_log, args=(board, rank, Said(texts[rank])), daemon=True) for rank in ranks if rank]
    for giver in givers:
        giver.start()
    found = list(take_logs(board, ranks, Said(texts[0]) if 0 in texts else None))
    for giver in givers:
        giver.join(5)
    return found, board


def test_logs_come_one_by_one_and_nothing_stays_on_the_board():
    texts = {rank: b"line of %d\n" % rank for rank in range(4)}
    found, board = taken([0, 1, 2, 3], texts)
    assert found == [(rank, texts[rank], True) for rank in range(4)]
    assert board.texts == {}


def test_rank_0_need_not_have_one():
    assert taken([2], {2: b"two\n"})[0] == [(2, b"two\n", True)]


def test_logs_are_bounded_one_by_one_and_together(monkeypatch):
    monkeypatch.setattr(nccl_debug, "MOST_NBYTES_A_RANK", 10)
    monkeypatch.setattr(nccl_debug, "MOST_NBYTES", 16)
    found, _ = taken([0, 1, 2], {0: b"12345\n78901\n", 1: b"1234567\n", 2: b"123\n"})
    assert found == [(0, b"12345\n", False), (1, b"1234567\n", True), (2, b"", False)]
