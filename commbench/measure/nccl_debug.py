"""NCCL's debug log of one process, from its first communicator on, and the way of all of them to rank 0.

NCCL reads its settings with its first message (ncclDebugInit of its debug.cc), which the engines do not cause before
their first communicator. Of its subsystems those are on that speak of communicators and connections; TUNING, which has
said a line a call since 2.20, and COLL are not: nothing is written while calls are timed (exceptions: docs/gpu.md). The
file lies in memory, in this process alone: however that ends, nothing is left behind.
"""

import json
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress

from commbench.engines.base import Board
from commbench.machine.nccl_conf import parse_line, read_conf_files
from commbench.machine.tree import Tree

SETTINGS = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,NET"}
_FILE = "NCCL_DEBUG_FILE"
MOST_RANKS = 256  # whose logs are taken
MOST_NBYTES_A_RANK = 1 << 20  # a communicator of 8 ranks has some 20 kB
MOST_NBYTES = 8 << 20  # together: they are read at 1 MB/s
_LOOK_SECONDS = 0.4  # of one wait


class DebugLog:
    """NCCL's log of this process. Raises OSError where it cannot be kept, and then NCCL is left as it is."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("nccl-debug")
        path = f"/proc/self/fd/{self._descriptor}"
        try:
            with open(path, "wb"):  # as NCCL does: where it fails, it would write to our standard output
                pass
        except OSError:
            os.close(self._descriptor)
            raise
        self.settings = {**SETTINGS, _FILE: path}
        os.environ |= self.settings

    def head(self, limit: int) -> tuple[bytes, bool]:
        """The first `limit` bytes, whole lines of them where that is not all; and whether it is all."""
        size = os.fstat(self._descriptor).st_size
        data = os.pread(self._descriptor, limit, 0)
        if size <= limit:
            return data, True
        return data[: data.rfind(b"\n") + 1], False

    def close(self) -> None:
        """Let go of it. May be called again. NCCL may still write, which nobody will read."""
        for name in self.settings:
            os.environ.pop(name, None)
        with suppress(OSError):
            os.close(self._descriptor)


def open_debug_log() -> DebugLog | None:
    """NCCL's log of this process; None if the user has settings of that kind, or it cannot be kept."""
    files = read_conf_files(Tree(), os.environ)
    names = {*os.environ, *(pair[0] for file in files for line in file.lines if (pair := parse_line(line)))}
    if names & {*SETTINGS, _FILE}:
        return None
    try:
        return DebugLog()
    except OSError:
        return None


def give_log(board: Board, rank: int, log: DebugLog) -> None:
    """Give this rank's log to rank 0, when it asks for it."""
    _wait(board, f"nccl-log/ask/{rank}")
    (limit,) = board.get([f"nccl-log/ask/{rank}"])
    data, is_whole = log.head(int(limit))
    board.put(f"nccl-log/{rank}", json.dumps([b64encode(zlib.compress(data)).decode(), is_whole]))


def take_logs(board: Board, ranks: Sequence[int], own: DebugLog | None) -> Iterator[tuple[int, bytes, bool]]:
    """The logs of `ranks`, of which all but rank 0, whose `own` is here, give theirs: one after the other, and whether
    each is whole.
    """
    left = MOST_NBYTES
    for rank in ranks:
        limit = min(left, MOST_NBYTES_A_RANK)
        data, is_whole = own.head(limit) if own and rank == 0 else _ask(board, rank, limit)
        left -= len(data)
        yield rank, data, is_whole


def _ask(board: Board, rank: int, limit: int) -> tuple[bytes, bool]:
    board.put(f"nccl-log/ask/{rank}", str(limit))
    _wait(board, f"nccl-log/{rank}")
    (text,) = board.get([f"nccl-log/{rank}"])
    for key in (f"nccl-log/ask/{rank}", f"nccl-log/{rank}"):
        board.delete(key)
    packed, is_whole = json.loads(text)
    return zlib.decompress(b64decode(packed)), bool(is_whole)


def _wait(board: Board, key: str) -> None:
    while not board.wait(key, _LOOK_SECONDS):
        pass
