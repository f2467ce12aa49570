"""The logs of one job in the numbers of its world: NCCL counts ranks anew in every communicator.

A connection's message names no communicator, and threads come and go: which one it is of is found out from who says
so, the number that this process has there, and the GPU behind the other number. What fits two pairs is left out.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from commbench.results.nccl_log.channels import bus_id
from commbench.results.nccl_log.link_class import Pair
from commbench.results.nccl_log.records import CommSeen, Connection, NcclLog, RankSeen

WORLD = "world"


@dataclass(frozen=True, slots=True)
class WorldLog:
    """`log` has all connections in one communicator, WORLD, whose ranks are those of the job; faults name no ranks.

    `unsure`: the pairs of ranks that a connection which was left out may be of; one rank where any peer may be it.
    """

    log: NcclLog
    unsure: frozenset[Pair]


@dataclass(frozen=True, slots=True)
class _Seats:
    """For every communicator its size and the rank of the world behind each number; and the numbers of each rank."""

    sizes: dict[str, int]
    ranks: dict[str, dict[int, int]]
    by_rank: dict[tuple[int, int], list[str]]  # a rank of the world and its number: in which communicators
    sights: dict[int, RankSeen]


def in_world(log: NcclLog, processes: Mapping[tuple[str, int], int], size: int) -> WorldLog:
    """`log` by the ranks of a world of `size`; `processes`: host and id, as NCCL writes them, with the rank of each.

    Only communicators with an id (NCCL 2.17 and newer) are told apart; what is of others is left out.
    """
    seats = _find_seats(log, processes)
    connections, unsure = [], set[Pair]()
    for connection in log.connections:
        speaker = None if connection.pid is None else processes.get((connection.host, connection.pid))
        if speaker is None:
            continue
        peers = set(_peers(seats, connection, speaker))
        known = [peer for peer in peers if peer is not None]
        if len(peers) == len(known) == 1:
            connections.append(_between(connection, speaker, known[0]))
        elif peers:
            unsure |= {frozenset((speaker, peer)) for peer in known}
        else:
            unsure.add(frozenset((speaker,)))
    sights = tuple(seats.sights.values())
    told = replace(
        log,
        comms=(*log.comms, CommSeen(WORLD, size, len({seen.host for seen in sights}), members=sights)),
        ranks=sights,
        connections=tuple(connections),
        faults=tuple(replace(fault, ranks=()) for fault in log.faults),  # of a communicator; the file says who it is
        processes=(),
    )
    return WorldLog(told, frozenset(unsure))


def _find_seats(log: NcclLog, processes: Mapping[tuple[str, int], int]) -> _Seats:
    seats = _Seats({}, defaultdict(dict), defaultdict(list), {})
    for comm in (comm for comm in log.comms if comm.key.startswith("0x")):
        seats.sizes[comm.key] = comm.size
        for seen in comm.members:
            rank = None if seen.pid is None else processes.get((seen.host, seen.pid))
            if rank is not None:
                seats.ranks[comm.key][seen.rank] = rank
                seats.by_rank[rank, seen.rank].append(comm.key)
                seats.sights.setdefault(rank, replace(seen, comm=WORLD, rank=rank))
    return seats


def _peers(seats: _Seats, connection: Connection, speaker: int) -> Iterator[int | None]:
    """Whom a connection may lead to: a rank of the world in each communicator that fits; None for one without a log."""
    sends = connection.end == "send"
    own, other = (connection.source, connection.target) if sends else (connection.target, connection.source)
    for key in seats.by_rank.get((speaker, own), ()):
        peer = seats.ranks[key].get(other)
        if peer is None:
            if other < seats.sizes[key]:
                yield None
        elif _may_be(connection.gpus[1 if sends else 0], seats.sights[peer]):
            yield peer


def _may_be(gpu: str, seen: RankSeen) -> bool:
    """Whether what stands in brackets is the GPU of a rank: its index on the node, or its PCI address."""
    known = [text for text in ("" if seen.gpu is None else str(seen.gpu), seen.bus_id) if text]
    return not gpu or not known or gpu in known or bus_id(gpu) in known


def _between(connection: Connection, speaker: int, peer: int) -> Connection:
    source, target = (speaker, peer) if connection.end == "send" else (peer, speaker)
    return replace(connection, comm=WORLD, source=source, target=target)
