"""Facts of all ranks to rank 0, over the board on which they met.

Whoever of a node comes first leads it: it sends the node's facts, the others what may differ between two processes of
a node. When all have put theirs, each leader reads its node's, judges them with its peers in view, and puts one report;
rank 0 reads one report a node. So the rules run side by side, and what rank 0 reads grows with the nodes and a little
with the ranks. Every text is taken off the board by the one that reads it.
"""

import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import msgspec

from commbench.checks.result import Placed
from commbench.engines.base import Board
from commbench.errors import InterruptedRunError
from commbench.machine.facts import ConfFile, Facts, LimitFacts, ProcessFacts, SoftwareFacts
from commbench.measure.watchdog import Watchdog

_POLL_SECONDS = 0.05
_ASKED_PER_SECOND = 4000  # that the board's host shall hear of while ranks wait
_READ_AT_ONCE = 64  # texts: the store answers for all of them within its time

T = TypeVar("T")
Judge = Callable[[Sequence[Facts], int], Sequence[Placed]]


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """The facts that may differ between two processes of one node; the names are those of `Facts`."""

    limits: LimitFacts
    software: SoftwareFacts
    process: ProcessFacts
    variables: dict[str, str]
    variable_sources: dict[str, str]
    conf_files: tuple[ConfFile, ...] | None
    readable_files: dict[str, bool]
    unseen: dict[str, str]


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What a node's leader says: the node's facts, the part of every rank on it by rank, and what its rules found."""

    node: Facts
    parts: tuple[ProcessPart, ...]
    findings: tuple[Placed, ...]

    @property
    def facts(self) -> tuple[Facts, ...]:
        """The facts of every rank on the node, by rank."""
        return tuple(_join(self.node, part) for part in self.parts)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks on the node."""
        return tuple(part.process.rank for part in self.parts)


def gather(board: Board, facts: Facts, judge: Judge, watchdog: Watchdog) -> tuple[NodeReport, ...] | None:
    """The reports of all nodes, by their first rank, on rank 0; None on the other ranks, which may leave.

    `judge` is called on one rank of each node, with the facts of all its ranks and the number of nodes. Raises
    RendezvousError if the board goes, InterruptedRunError after Ctrl-C; the watchdog ends the process if a rank keeps
    it waiting.
    """
    with watchdog.watching("the gathering of facts"):
        report_key, size = _put_part(board, facts), facts.process.world_size
        if report_key:
            _wait(board, "facts/all", size, watchdog)
            board.put(report_key, pack(_report(board, facts, judge)))
        return _read_reports(board, size, watchdog) if facts.process.rank == 0 else None


def _put_part(board: Board, facts: Facts) -> str:
    """Put this rank's part; the key of the node's report if this rank leads it, else an empty text."""
    node = _node_key(facts)
    turn = board.count(f"{node}/ranks", 1)
    report_key = f"facts/report/{board.count('facts/nodes', 1)}" if turn == 1 else ""
    board.put(f"{node}/{turn}", pack(part_of(facts)))
    if board.count("facts/here", 1) == facts.process.world_size:
        board.put("facts/all", "")
    return report_key


def _report(board: Board, facts: Facts, judge: Judge) -> NodeReport:
    node = _node_key(facts)
    ranks = board.count(f"{node}/ranks", 0)
    board.delete(f"{node}/ranks")
    parts = _take(board, [f"{node}/{turn + 1}" for turn in range(ranks)], ProcessPart)
    parts.sort(key=lambda part: part.process.rank)
    nodes = board.count("facts/nodes", 0)
    return NodeReport(facts, tuple(parts), tuple(judge([_join(facts, part) for part in parts], nodes)))


def _read_reports(board: Board, size: int, watchdog: Watchdog) -> tuple[NodeReport, ...]:
    _wait(board, "facts/all", size, watchdog)  # from now on the number of nodes stands
    keys = [f"facts/report/{number + 1}" for number in range(board.count("facts/nodes", 0))]
    for key in keys:
        _wait(board, key, size, watchdog)
    reports = _take(board, keys, NodeReport)
    for key in ("facts/all", "facts/here", "facts/nodes"):
        board.delete(key)
    return tuple(sorted(reports, key=lambda report: report.ranks))


def _node_key(facts: Facts) -> str:
    """The same on all ranks of one operating system image, another on every other node: see `node_identity`."""
    return f"facts/node/{facts.host.name}/{facts.host.boot_id_hash}"


def part_of(facts: Facts) -> ProcessPart:
    return ProcessPart(**{field.name: getattr(facts, field.name) for field in fields(ProcessPart)})


def _join(node: Facts, part: ProcessPart) -> Facts:
    own: dict[str, Any] = {field.name: getattr(part, field.name) for field in fields(ProcessPart)}
    return replace(node, **own)


def _wait(board: Board, key: str, size: int, watchdog: Watchdog) -> None:
    """Until the key is there: asking again and again, for the board's own wait would keep signs of life from it."""
    while not board.has(key):
        if watchdog.interrupted:
            raise InterruptedRunError("interrupted before all ranks had told their facts.")
        time.sleep(max(_POLL_SECONDS, size / _ASKED_PER_SECOND))


def _take(board: Board, keys: Sequence[str], kind: type[T]) -> list[T]:
    """What lies under `keys`, which are there; then they are not any more."""
    taken = []
    for start in range(0, len(keys), _READ_AT_ONCE):
        some = keys[start : start + _READ_AT_ONCE]
        taken += [unpack(text, kind) for text in board.get(some)]
        for key in some:
            board.delete(key)
    return taken


def pack(record: object) -> str:
    """A record as a short text."""
    return b64encode(zlib.compress(msgspec.json.encode(record), 6)).decode()


def unpack(text: str, kind: type[T]) -> T:
    """The record that `pack` made a text of."""
    return msgspec.json.decode(zlib.decompress(b64decode(text)), type=kind)
