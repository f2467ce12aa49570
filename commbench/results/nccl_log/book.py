"""What has been read so far: the one mutable thing of this room. Handlers write into it, `close` makes the record."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from commbench.results.nccl_log.records import (
    Channels,
    CommSeen,
    Connection,
    FaultSeen,
    Interface,
    Message,
    Nic,
    Process,
    RankSeen,
    RasSeen,
    Ring,
    SettingSeen,
    TreeNode,
    TuningCell,
)

UNKNOWN_COMM = "unnamed"
_LATER = "later "
MAX_REMARKS = 20_000
MAX_RECORDS = 500_000  # of one kind; 1024 ranks with 32 channels of rings and trees have some 200,000 connections


@dataclass(slots=True)
class Comm:
    """A communicator while it is read."""

    size: int
    nodes: int | None = None
    started: dict[int, None] = field(default_factory=dict)
    completed: dict[int, None] = field(default_factory=dict)
    aborted: dict[int, None] = field(default_factory=dict)
    members: dict[int, RankSeen] = field(default_factory=dict)


@dataclass(slots=True)
class Book:
    """Everything read so far. `threads`: the communicator that a thread, or a device of a process, speaks of now."""

    library: str = ""
    versions: dict[str, set[str]] = field(default_factory=dict)  # with the hosts that say so
    comms: dict[str, Comm] = field(default_factory=dict)
    pointers: dict[tuple[str, int | None, str], str] = field(default_factory=dict)
    threads: dict[tuple[str, int | None, str, int | None], str] = field(default_factory=dict)
    later: dict[str, str] = field(default_factory=dict)
    claimed: dict[tuple[str, int | None, int | None], list[str]] = field(default_factory=lambda: defaultdict(list))
    inits: dict[tuple[str, int | None, int | None, int], int] = field(default_factory=lambda: defaultdict(int))
    ranks: dict[tuple[str, int], RankSeen] = field(default_factory=dict)
    rank_of: dict[tuple[str, int | None, int | None], int] = field(default_factory=dict)
    clashes: dict[int, set[tuple[str, int]]] = field(default_factory=lambda: defaultdict(set))
    connections: dict[tuple[object, ...], Connection] = field(default_factory=dict)
    rings: dict[tuple[str, int], Ring] = field(default_factory=dict)
    trees: dict[tuple[str, int, int], TreeNode] = field(default_factory=dict)
    channels: dict[str, Channels] = field(default_factory=dict)
    networks: dict[tuple[str, str], None] = field(default_factory=dict)
    nics: dict[tuple[str, int], Nic] = field(default_factory=dict)
    interfaces: dict[Interface, None] = field(default_factory=dict)
    settings: dict[tuple[str, str], tuple[set[str], str]] = field(default_factory=dict)
    remarks: dict[tuple[str, str], None] = field(default_factory=dict)
    tuning: dict[tuple[str, str, str], TuningCell] = field(default_factory=dict)
    tuning_columns: list[tuple[str, str]] = field(default_factory=list)
    intra_types: dict[str, None] = field(default_factory=dict)
    faults: dict[tuple[str, str], FaultSeen] = field(default_factory=dict)
    unplaced_crashes: set[str] = field(default_factory=set)  # names of faults that no backtrace has followed yet
    gpus: dict[tuple[str, int | None, int | None], int] = field(default_factory=dict)  # by the affinity line
    progress: dict[int, tuple[int, int]] = field(default_factory=dict)  # by rank: work enqueued and completed
    ras: list[RasSeen] = field(default_factory=list)
    tests: int = 0  # runs of nccl-tests
    last: str = ""

    def comm_of(self, process: Process) -> str:
        """The communicator that a process speaks of: its thread's, else its device's; else one that is named later."""
        for key in (("tid", process.tid), ("device", process.device)):
            found = self.threads.get((process.host, process.pid, *key))
            if found is not None:
                return found
        return self._later(process)

    def _later(self, process: Process) -> str:
        place = (process.host, process.pid, process.device)
        return f"{_LATER}{process.host}:{process.pid}:{process.device}:{len(self.claimed[place])}"

    def claim(self, process: Process, comm: str) -> None:
        """What this device of a process said since its last communicator was of `comm`."""
        self.later[self._later(process)] = comm
        self.claimed[process.host, process.pid, process.device].append(comm)

    def name_of(self, comm: str) -> str:
        """The communicator behind a name that was given before it was known: the one claimed, else the only one."""
        if not comm.startswith(_LATER):
            return comm
        if comm in self.later:
            return self.later[comm]
        host_pid_device = comm.removeprefix(_LATER).rpartition(":")[0]
        own = {name for place, names in self.claimed.items() for name in names if _join(place) == host_pid_device}
        if len(own) == 1:
            return own.pop()
        return next(iter(self.comms)) if len(self.comms) == 1 else UNKNOWN_COMM

    def speak_of(self, process: Process, comm: str) -> None:
        """From now on this thread and this device speak of `comm`."""
        for key in (("tid", process.tid), ("device", process.device)):
            self.threads[process.host, process.pid, *key] = comm

    def see_remark(self, message: Message) -> None:
        """Keep a message as it is, once a host."""
        if len(self.remarks) < MAX_REMARKS:
            self.remarks.setdefault((message.process.host, message.text))

    def see_rank(self, seen: RankSeen) -> None:
        """One more sight of a rank: what was not known of it is added."""
        key = (seen.comm, seen.rank)
        if seen.pid is not None:
            self.clashes[seen.rank].add((seen.host, seen.pid))
            self.rank_of.setdefault((seen.host, seen.pid, seen.cuda), seen.rank)
        old = self.ranks.get(key)
        if old is None:
            if len(self.ranks) < MAX_RECORDS:
                self.ranks[key] = seen
            return
        self.ranks[key] = RankSeen(
            seen.comm,
            seen.rank,
            old.host or seen.host,
            seen.pid if old.pid is None else old.pid,
            seen.cuda if old.cuda is None else old.cuda,
            seen.gpu if old.gpu is None else old.gpu,
            old.bus_id or seen.bus_id,
        )

    def see_fault(self, fault: FaultSeen) -> None:
        """One more fault; the same text of the same cause is counted."""
        key = (fault.name, fault.text if not fault.cause else "")
        old = self.faults.get(key)
        if old is None:
            if len(self.faults) < 2_000:
                self.faults[key] = fault
            return
        self.faults[key] = FaultSeen(
            old.kind,
            old.name,
            old.text,
            old.where,
            old.times + 1,
            tuple(dict.fromkeys((*old.hosts, *fault.hosts)))[:64],
            tuple(dict.fromkeys((*old.ranks, *fault.ranks)))[:4096],
            old.cause,
            old.cure,
            old.source,
            old.secondary,
        )

    def rename(self) -> None:
        """Give everything the name of its communicator, now that all are known."""
        _rename(self.connections, self.name_of)
        _rename(self.rings, self.name_of)
        _rename(self.trees, self.name_of)
        channels, self.channels = self.channels, {}
        for counts in channels.values():
            comm = self.name_of(counts.comm)
            self.channels.setdefault(comm, replace(counts, comm=comm))
        ranks, self.ranks = self.ranks, {}
        for seen in ranks.values():
            self.see_rank(replace(seen, comm=self.name_of(seen.comm)))

    def closed_comms(self) -> tuple[CommSeen, ...]:
        """The communicators as records."""
        return tuple(
            CommSeen(
                key,
                comm.size,
                comm.nodes,
                tuple(comm.started),
                tuple(comm.completed),
                tuple(comm.aborted),
                tuple(comm.members.values()),
            )
            for key, comm in self.comms.items()
        )

    def closed_settings(self) -> tuple[SettingSeen, ...]:
        """The settings as records."""
        return tuple(
            SettingSeen(name, value, tuple(sorted(hosts)), where)
            for (name, value), (hosts, where) in self.settings.items()
        )


def _join(place: tuple[str, int | None, int | None]) -> str:
    return ":".join(map(str, place))


def _rename(records: dict[Any, Any], name_of: Callable[[str], str]) -> None:
    """Records by keys that begin with the communicator, under its right name; those that are the same fall together."""
    old = list(records.items())
    records.clear()
    names: dict[str, str] = {}
    for key, record in old:
        name = names.setdefault(record.comm, "") or name_of(record.comm)
        names[record.comm] = name
        records.setdefault((name, *key[1:]), record if name == record.comm else replace(record, comm=name))
