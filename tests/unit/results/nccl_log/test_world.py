"""The logs of a job by the ranks of its world, where every communicator counts anew."""

import pytest

from commbench.results.nccl_log.link_class import pair_classes
from commbench.results.nccl_log.world import WORLD, in_world
from tests.unit.results.nccl_log.samples import modern, read

WHOLE, EVEN, ODD = (0, 1, 2, 3), (0, 2), (1, 3)
_WORDS = ("START", "COMPLETE")
PROCESSES = {("n1", 100 + rank): rank for rank in WHOLE}


def head(rank: int, thread: int = 7) -> str:
    return f"n1:{100 + rank}:{thread} [{rank}] NCCL INFO "


def init(rank: int, ranks: tuple[int, ...], word: str) -> str:
    me = ranks.index(rank)
    key = "".join(map(str, ranks))
    return (
        f"{head(rank)}ncclCommInitRank comm 0x7f{key} rank {me} nranks {len(ranks)} cudaDev {rank} nvmlDev {rank} "
        f"busId {rank + 1}b000 commId 0xa{key} - Init {word}\n"
    )


def channel(rank: int, ranks: tuple[int, ...], peer: int, way: str = "P2P/CUMEM", *, gpus: bool = True) -> str:
    """A message of `rank`, which names no communicator, in a thread that has not spoken before."""
    numbers = [ranks.index(rank), ranks.index(peer)]
    one, other = (f"{number}[{at}]" if gpus else f"{number}" for number, at in zip(numbers, (rank, peer), strict=True))
    return f"{head(rank, 9000)}Channel 00/0 : {one} -> {other} via {way}\n"


def several(*messages: str) -> list[str]:
    """A file for each rank: all communicators are begun, the whole first; then `messages`, by who says them."""
    return [
        "".join(
            (
                "NCCL version 2.30.7+cuda12.4\n",
                *(init(rank, ranks, word) for ranks in (WHOLE, EVEN, ODD) if rank in ranks for word in _WORDS),
                *(message for message in messages if message.startswith(f"n1:{100 + rank}:")),
            )
        )
        for rank in WHOLE
    ]


def pairs(*messages: str) -> set[tuple[int, int]]:
    log = in_world(read(*several(*messages)), PROCESSES, 4).log
    assert {connection.comm for connection in log.connections} <= {WORLD}
    return {(connection.source, connection.target) for connection in log.connections}


def test_each_pair_is_found_whichever_communicator_came_last():
    """Of rank 2 the reader takes all for EVEN, the last one begun: there is no number 3 in it, and 1 is another GPU."""
    assert pairs(channel(2, WHOLE, 3), channel(2, EVEN, 0), channel(0, WHOLE, 1), channel(0, EVEN, 2)) == {
        (2, 3), (2, 0), (0, 1), (0, 2),
    }  # fmt: skip


def test_pci_addresses_in_brackets_tell_too():
    assert pairs(channel(0, WHOLE, 1).replace("[1] via", "[2b000] via")) == {(0, 1)}
    assert pairs(channel(0, EVEN, 2).replace("[2] via", "[3b000] via")) == {(0, 2)}


def test_what_fits_two_pairs_is_left_out_and_said():
    told = in_world(read(*several(channel(0, WHOLE, 1, gpus=False))), PROCESSES, 4)
    assert told.log.connections == ()
    assert told.unsure == {frozenset((0, 1)), frozenset((0, 2))}


def test_what_fits_nothing_leaves_its_rank_in_doubt():
    told = in_world(read(*several(channel(0, WHOLE, 1).replace("[1] via", "[7] via"))), PROCESSES, 4)
    assert told.log.connections == ()
    assert told.unsure == {frozenset((0,))}


def test_a_peer_without_a_log_is_no_pair():
    """Number 1 of WHOLE is nobody who is known: which GPU it has is not known either, and it may be the one of EVEN."""
    files = several(channel(0, WHOLE, 1), channel(0, WHOLE, 3), channel(0, EVEN, 2))
    told = in_world(read(files[0], *files[2:]), PROCESSES, 4)
    assert [(one.source, one.target) for one in told.log.connections] == [(0, 3)]
    assert told.unsure == {frozenset((0, 2))}


def test_who_is_not_of_the_job_is_left_out():
    files = several(channel(0, WHOLE, 1), channel(1, WHOLE, 2))
    told = in_world(read(*files), {place: rank for place, rank in PROCESSES.items() if rank != 1}, 4).log
    assert told.connections == ()
    assert [seen.rank for seen in told.ranks] == [0, 2, 3]


def test_a_received_connection_keeps_its_direction():
    way = "NET/IB/0/GDRDMA"
    message = f"{head(2)}Channel 00/0 : 0[0] -> 2[2] [receive] via {way}\n"
    assert pairs(message) == {(0, 2)}


def test_ranks_have_their_gpus_and_the_world_its_size():
    log = in_world(read(*several()), PROCESSES, 4).log
    assert [(seen.comm, seen.rank, seen.gpu, seen.bus_id) for seen in log.ranks] == [
        (WORLD, rank, rank, f"0000:{rank + 1}b:00.0") for rank in WHOLE
    ]
    assert (log.comms[-1].key, log.comms[-1].size, log.comms[-1].nodes) == (WORLD, 4, 1)


def test_communicators_without_an_id_are_not_told_apart():
    old = modern().replace(" commId 0xabc", "")
    places = {(f"n{rank // 2 + 1}", 100 + rank): rank for rank in range(4)}
    assert in_world(read(old), places, 4).log.connections == ()


def test_the_classes_of_a_whole_log_are_as_before():
    places = {(f"n{rank // 2 + 1}", 100 + rank): rank for rank in range(4)}
    log = read(modern())
    assert pair_classes(in_world(log, places, 4).log, WORLD) == pair_classes(log, "0xabc")


@pytest.mark.parametrize("size", [1, 4])
def test_a_log_without_a_communicator_is_a_world_of_nobody(size):
    told = in_world(read(f"{head(0)}Using network Socket\n"), PROCESSES, size)
    assert (told.log.ranks, told.log.connections, told.unsure) == ((), (), frozenset())


@pytest.mark.parametrize("keys", [(" commId 0xa0", " commId 0xb0"), ("", "")])
def test_parts_of_a_communicator_are_told_apart(keys):
    """Split by colour; to 2.30 without an id: number 0 of both is rank 0 in the one and rank 1 in the other."""
    files = several()
    for rank in WHOLE:
        color = rank % 2
        me, peer = rank // 2, rank ^ 2
        place = f"comm 0x9{color}{rank} rank {me} nranks 2 cudaDev {rank} nvmlDev {rank} busId {rank + 1}b000"
        part = f"parent 0x7f{''.join(map(str, WHOLE))} splitCount 1 color {color} key 0"
        line = f"{head(rank)}ncclCommSplit {place}{keys[color]} {part} - Init"
        files[rank] += f"{line} START\n{head(rank)}Channel 00/0 : {me}[{rank}] -> {1 - me}[{peer}] via P2P/CUMEM\n"
        files[rank] += f"{line} COMPLETE\n"
    files = [text.replace(" commId 0xa02", "").replace(" commId 0xa13", "") for text in files]  # EVEN and ODD: no id
    log = in_world(read(*files), PROCESSES, 4).log
    assert {(one.source, one.target) for one in log.connections} == {(0, 2), (2, 0), (1, 3), (3, 1)}
