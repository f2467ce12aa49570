"""NCCL's own log as the witness of a sweep: kept by every rank, taken by rank 0, and read when all is measured.

Only an engine on NCCL has one: the others cost nothing, and what reads logs and machines is loaded where it is used.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from commbench.engines.base import Board, Engine
from commbench.errors import CommbenchError
from commbench.plan.groups import format_ranks, read_ranks
from commbench.results.finding import Finding
from commbench.results.schema import GroupRecord
from commbench.results.store import LOGS_DIR, RUN_FILE
from commbench.results.writer import write_log

if TYPE_CHECKING:
    from commbench.measure.nccl_debug import DebugLog
    from commbench.measure.wiring import Wiring
    from commbench.results.nccl_log import NcclLog
    from commbench.topology.graph import Topology

NCCL = "nccl"
_MOST_OWN_NBYTES = 16 << 20  # of a run that ended early
_READING_SECONDS = 120.0  # what ranks wait for rank 0, which takes and reads 8 MiB at 1 MB/s

# What a log says went wrong, given topologies with the hosts that are wired so.
Judge = Callable[["NcclLog", Sequence[tuple["Topology", frozenset[str]]]], Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the logs say: what was found, and the groups of the run with the links that they tell."""

    findings: tuple[Finding, ...]
    groups: tuple[GroupRecord, ...]


class Witness:
    """One rank's part in it. Make it on all ranks, before the first communicator."""

    def __init__(self, engine: Engine, board: Board | None) -> None:
        self.wiring: Wiring | None = None
        self._board = board
        self._rank = engine.ranks[0]
        self._log: DebugLog | None = None
        self._files: list[tuple[int, bytes]] = []
        self._cut: list[int] = []
        if engine.backend == NCCL and board is not None:
            from commbench.measure.nccl_debug import open_debug_log
            from commbench.measure.wiring import gather_wiring

            self._log = open_debug_log()
            self.wiring = gather_wiring(engine, keeps_log=self._log is not None)

    @property
    def settings(self) -> dict[str, str]:
        """The variables that were set for it in this process."""
        return dict(self._log.settings) if self._log else {}

    @property
    def waiting_seconds(self) -> float | None:
        """How long ranks shall wait for rank 0, which takes logs and reads them; None: as always."""
        return _READING_SECONDS if self._callers() else None

    def hand_over(self) -> None:
        """Call on all ranks when all is measured: their logs go to rank 0."""
        callers = self._callers()
        if self._board is None or not callers:
            return
        from commbench.measure.nccl_debug import MOST_RANKS, give_log, take_logs

        taken = callers[:MOST_RANKS]
        if self._rank:
            if self._log and self._rank in taken:
                give_log(self._board, self._rank, self._log)
            return
        self._cut = callers[MOST_RANKS:]
        for rank, data, is_whole in take_logs(self._board, taken, self._log):
            self._files.append((rank, data))
            self._cut += [] if is_whole else [rank]

    def testify(
        self, directory: Path, groups: Sequence[GroupRecord], link_rates: Mapping[str, float], judge: Judge
    ) -> Evidence | None:
        """On rank 0, after `hand_over`: write the logs beside the run in `directory`, and read them; None if there are
        none. `groups`: of the run; `link_rates`: what the user knows of link classes.

        Raises CommbenchError when the disk is full.
        """
        if self.wiring is None or not self._files:
            return None
        for rank, data in self._files:
            write_log(directory, rank, data)
        return read_evidence(self._files, sorted(self._cut), self.wiring, groups, link_rates, judge)

    def keep(self, directory: Path) -> str:
        """This rank's log, of a run that ends early, beside the run in `directory` if that can be seen from here; rank
        0 keeps it elsewhere if there is none yet. Says where it is; empty if nowhere.
        """
        data = self._log.head(_MOST_OWN_NBYTES)[0] if self._log else b""
        has_run = (directory / RUN_FILE).exists()
        if not data or not (has_run or self._rank == 0):
            return ""
        try:
            path = write_log(directory if has_run else Path(tempfile.mkdtemp(prefix="commbench-")), self._rank, data)
        except (CommbenchError, OSError):  # the run has ended for another reason, which is the one to be told
            return ""
        return f"NCCL's log of rank {self._rank} is {path}: commbench logs reads it."

    def close(self) -> None:
        """Let go of the log."""
        if self._log:
            self._log.close()
            self._log = None

    def _callers(self) -> list[int]:
        return [rank for rank, told in enumerate(self.wiring.ranks) if told.keeps_log] if self.wiring else []


def read_evidence(
    files: Sequence[tuple[int, bytes]], cut: Sequence[int], wiring: "Wiring", groups: Sequence[GroupRecord],
    link_rates: Mapping[str, float], judge: Judge,
) -> Evidence:  # fmt: skip
    """What the logs in `files`, by rank, say. Those of the ranks in `cut` are not whole, or not there."""
    from commbench.results.nccl_log import read_logs
    from commbench.results.nccl_log.world import in_world

    findings = [_left_out(cut)] if cut else []
    try:
        log = read_logs([(f"{LOGS_DIR}/rank{rank}.log", data) for rank, data in files])
    except CommbenchError as error:
        return Evidence((*findings, Finding("LOG-UNREAD", "NCCL's logs", "skip", str(error))), tuple(groups))
    places = [(told.host, told.pid) for told in wiring.ranks]
    counts = Counter(places)
    processes = {place: rank for rank, place in enumerate(places) if counts[place] == 1}
    told = in_world(log, processes, wiring.world.size)
    whole = {rank for rank, _ in files}.intersection(processes.values()).difference(cut)
    classes = _link_classes(told.log, told.unsure, whole, wiring, groups)
    relinked = (
        _relinked(group, classes[position], link_rates) if position in classes else group
        for position, group in enumerate(groups)
    )
    return Evidence((*findings, *judge(told.log, _wired(wiring))), tuple(relinked))


def _relinked(group: GroupRecord, link_class: str, link_rates: Mapping[str, float]) -> GroupRecord:
    """`group` with the link class that the log tells; the rate of another class is what the user said of it."""
    rate = group.bytes_per_second if link_class == group.link_class else link_rates.get(link_class)
    return replace(group, link_class=link_class, bytes_per_second=rate, link_source="log")


def _link_classes(
    log: "NcclLog", unsure: frozenset[frozenset[int]], whole: set[int], wiring: "Wiring", groups: Sequence[GroupRecord]
) -> dict[int, str]:  # fmt: skip
    """By position, of the groups of which every member's log is there and told of, and nothing is in doubt."""
    from commbench.results.nccl_log.link_class import link_class, pair_classes
    from commbench.results.nccl_log.world import WORLD

    pairs = pair_classes(log, WORLD, wiring.link_class)
    found = {}
    for position, group in enumerate(groups):
        ranks = read_ranks(group.ranks)
        is_certain = whole.issuperset(ranks) and not any(doubt.issubset(ranks) for doubt in unsure)
        told = link_class(pairs, ranks) if is_certain else "unknown"
        if told != "unknown":
            found[position] = told
    return found


def _wired(wiring: "Wiring") -> list[tuple["Topology", frozenset[str]]]:
    """Each topology once, with the hosts that are wired so."""
    found: list[tuple[Topology, set[str]]] = []
    for members, topology in zip(wiring.world.ranks_by_node(), wiring.topologies, strict=True):
        hosts = next((hosts for other, hosts in found if other == topology), None)
        if hosts is None:
            hosts = set()
            found.append((topology, hosts))
        hosts.add(wiring.ranks[members[0]].host)
    return [(topology, frozenset(hosts)) for topology, hosts in found if topology.gpus]


def _left_out(ranks: Sequence[int]) -> Finding:
    from commbench.measure.nccl_debug import MOST_NBYTES, MOST_NBYTES_A_RANK, MOST_RANKS
    from commbench.units import format_nbytes

    return Finding(
        "LOG-LEFT-OUT",
        f"ranks {format_ranks(ranks)}",
        "skip",
        f"NCCL's logs are cut or left out: of {MOST_RANKS} ranks {format_nbytes(MOST_NBYTES_A_RANK)} each and "
        f"{format_nbytes(MOST_NBYTES)} together are kept",
        action="NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log keeps all of them, on the nodes",
    )
