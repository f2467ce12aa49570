"""commbench.plan.collectives: factors, sizes and steps from nccl-tests, and what every collective delivers."""

import pytest

from commbench.errors import UsageError
from commbench.plan.collectives import (
    COLLECTIVES,
    MAIN_COLLECTIVES,
    Blocks,
    Placement,
    find_collective,
    parse_collectives,
)

NAMES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send_recv",
    "barrier",
)
ALL_BUT_OWN = [0.5, 0.75, 0.875]
HOPS = [1, 3, 7]


def test_the_ten_collectives() -> None:
    assert tuple(COLLECTIVES) == NAMES
    assert NAMES[:4] == MAIN_COLLECTIVES


@pytest.mark.parametrize(
    ("name", "factors", "steps"),
    [
        ("all_reduce", [1.0, 1.5, 1.75], [2, 6, 14]),
        ("all_gather", ALL_BUT_OWN, HOPS),
        ("reduce_scatter", ALL_BUT_OWN, HOPS),
        ("all_to_all", ALL_BUT_OWN, HOPS),
        ("broadcast", [1, 1, 1], HOPS),
        ("reduce", [1, 1, 1], HOPS),
        ("gather", ALL_BUT_OWN, HOPS),
        ("scatter", ALL_BUT_OWN, HOPS),
        ("send_recv", [1, 1, 1], [1, 1, 1]),
        ("barrier", [None, None, None], HOPS),
    ],
)
def test_bus_factor_and_steps_of_2_4_and_8_ranks(name: str, factors: list[float | None], steps: list[int]) -> None:
    spec = COLLECTIVES[name]
    assert [spec.bus_factor(ranks) for ranks in (2, 4, 8)] == factors
    assert [spec.steps(ranks) for ranks in (2, 4, 8)] == steps
    assert spec.bus_factor(1) is None


@pytest.mark.parametrize("name", NAMES[:-1])
def test_factor_text_says_what_the_factor_computes(name: str) -> None:
    formula = {"2(N-1)/N": lambda n: 2 * (n - 1) / n, "(N-1)/N": lambda n: (n - 1) / n, "1": lambda n: 1}
    spec = COLLECTIVES[name]
    assert [spec.factor(n) for n in range(2, 20)] == [formula[spec.factor_text](n) for n in range(2, 20)]


# 1000 bytes of 4-byte elements: one block is 250 elements, a third of it 83, which is 996 bytes in all.
@pytest.mark.parametrize(
    ("name", "count", "nbytes"),
    [
        ("all_reduce", 250, 1000),
        ("all_gather", 83, 996),
        ("reduce_scatter", 83, 996),
        ("all_to_all", 83, 996),
        ("broadcast", 250, 1000),
        ("reduce", 250, 1000),
        ("gather", 83, 996),
        ("scatter", 83, 996),
        ("send_recv", 250, 1000),
    ],
)
def test_size_is_the_larger_buffer_in_whole_elements(name: str, count: int, nbytes: int) -> None:
    spec = COLLECTIVES[name]
    assert spec.count(1000, 4, 3) == count
    assert spec.nbytes(count, 4, 3) == nbytes
    assert spec.count(1000, 4, 1) == 250
    assert spec.count(3, 4, 3) == 0


def test_barrier_has_no_size() -> None:
    assert COLLECTIVES["barrier"].nbytes(250, 4, 3) == 0


@pytest.mark.parametrize(("blocks", "count"), [(Blocks.NONE, 0), (Blocks.ONE, 1), (Blocks.PER_RANK, 5)])
def test_blocks_of_five_ranks(blocks: Blocks, count: int) -> None:
    assert blocks.count(5) == count


@pytest.mark.parametrize(
    ("placement", "names"),
    [
        (Placement.SAME_BUFFER, {"all_reduce", "broadcast", "reduce"}),
        (Placement.OWN_BLOCK, {"all_gather", "reduce_scatter", "gather", "scatter"}),
        (Placement.NEVER, {"all_to_all", "send_recv", "barrier"}),
    ],
)
def test_placement(placement: Placement, names: set[str]) -> None:
    assert {name for name, spec in COLLECTIVES.items() if spec.placement is placement} == names


def test_which_collectives_reduce() -> None:
    assert {name for name, spec in COLLECTIVES.items() if spec.reduces} == {"all_reduce", "reduce_scatter", "reduce"}


Buffers = list[list[int] | None]  # by rank, its blocks; None where a rank has none


def _delivered(name: str, send: list[list[int]]) -> Buffers:
    """What every rank receives, from the definition of the collective."""
    ranks = len(send)
    sums = [sum(blocks) for blocks in zip(*send, strict=True)]
    joined = [block for blocks in send for block in blocks]
    nothing: Buffers = [None] * ranks
    return {
        "all_reduce": lambda: [sums] * ranks,
        "all_gather": lambda: [joined] * ranks,
        "reduce_scatter": lambda: [[part] for part in sums],
        "all_to_all": lambda: [list(column) for column in zip(*send, strict=True)],
        "broadcast": lambda: [send[0]] * ranks,
        "reduce": lambda: [sums, *nothing[1:]],
        "gather": lambda: [joined, *nothing[1:]],
        "scatter": lambda: [[part] for part in send[0]],
        "send_recv": lambda: [send[-1], *send[:-1]],
        "barrier": lambda: nothing,
    }[name]()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", NAMES)
def test_source_says_what_is_delivered(name: str, ranks: int) -> None:
    spec = COLLECTIVES[name]
    # Every block is a bit of its own, so a sum tells which blocks went into it.
    send = [[1 << (rank * ranks + block) for block in range(spec.send.count(ranks))] for rank in range(ranks)]

    def block_at(me: int, block: int) -> int:
        source, of = spec.source(me, block, ranks)
        givers = range(ranks) if source is None else [source]
        assert all(spec.sends(giver) for giver in givers)
        return sum(send[giver][of] for giver in givers)

    said = [
        [block_at(me, block) for block in range(spec.receive.count(ranks))] if spec.receives(me) else None
        for me in range(ranks)
    ]
    assert said == _delivered(name, send)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_root_sends_or_receives_where_there_is_one(name: str) -> None:
    spec = COLLECTIVES[name]
    alone = [True, False, False]
    everyone = [name != "barrier"] * 3
    assert [spec.sends(me) for me in range(3)] == (alone if name in {"broadcast", "scatter"} else everyone)
    assert [spec.receives(me) for me in range(3)] == (alone if name in {"reduce", "gather"} else everyone)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all_reduce", ("all_reduce",)),
        (" barrier , all_gather ", ("barrier", "all_gather")),
        ("reduce,reduce", ("reduce",)),
        ("main", NAMES[:4]),
        ("all", NAMES),
        ("scatter,main,all_reduce", ("scatter", *NAMES[:4])),
    ],
)
def test_reads_names(text: str, names: tuple[str, ...]) -> None:
    assert parse_collectives(text) == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("all_redcue", "unknown collective 'all_redcue': did you mean all_reduce?"),
        ("AllGather", "did you mean all_gather?"),
        ("alltoall", "did you mean all_to_all?"),
        ("sendrecv", "did you mean send_recv?"),
        ("xyzzy", "unknown collective 'xyzzy': known are all_reduce, all_gather"),
        ("", "unknown collective '': known are"),
    ],
)
def test_unknown_name_gives_the_nearest(name: str, message: str) -> None:
    for find in (find_collective, parse_collectives):
        with pytest.raises(UsageError) as caught:
            find(name)
        assert message in str(caught.value)
