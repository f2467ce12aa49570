"""Right data is found right and wrong data wrong, for every collective, type and operator, on numpy arrays."""

from collections.abc import Sequence
from functools import reduce
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from commbench.engines.base import Call
from commbench.measure import verify
from commbench.measure.verify import (
    PERIOD,
    POISON,
    Mismatch,
    find_mismatch,
    receive_tile,
    send_tile,
    write_pattern,
    write_steady,
)
from commbench.plan.collectives import COLLECTIVES, Blocks, Placement
from commbench.plan.dtypes import DTYPES, REDOPS
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from tests.factories import make_case

COUNT = 300  # elements a block: two chunks of the shortened 226, and no whole number of periods
REDUCED = [(name, redop) for name, spec in COLLECTIVES.items() if spec.reduces for redop in REDOPS]
MOVED = [(name, "none") for name, spec in COLLECTIVES.items() if not spec.reduces and name != "barrier"]
ADD = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum, "avg": np.add}
# The largest number up to which the type holds every whole number; independent of the table in plan/dtypes.py.
EXACT = {name: int(np.iinfo(name).max) for name in ("int8", "uint8", "int32", "int64")}
EXACT |= {name: 1 << np.finfo(name).nmant + 1 for name in ("float16", "float32", "float64")} | {"bfloat16": 1 << 8}
LARGEST = EXACT | {name: int(np.finfo(name).max) for name in ("float16", "float32", "float64")}
LARGEST |= {"bfloat16": LARGEST["float32"]}


class Arrays:
    """Numpy arrays as an engine's buffers."""

    def write(self, buffer: Any, start: int, values: Any) -> None:
        assert start + len(values) <= len(buffer)
        buffer[start : start + len(values)] = values

    def read(self, buffer: Any, start: int, stop: int) -> Any:
        return buffer[start:stop]


WHOLE_CHUNK = verify._CHUNK


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Two periods a chunk, so that small blocks have several."""
    monkeypatch.setattr(verify, "_REPEATS", 2)
    monkeypatch.setattr(verify, "_CHUNK", 2 * PERIOD)


def case_of(name: str, redop: str, dtype: str, ranks: int, count: int = COUNT, in_place: bool = False) -> Case:
    """A case on ranks 10, 11, …, so that a rank is not its index in the group."""
    blocks = ranks if COLLECTIVES[name].per_rank else 1
    group = Group("g", tuple(range(10, 10 + ranks)))
    nbytes = count * blocks * DTYPES[dtype].itemsize
    return make_case(name, nbytes, group, redop=redop, dtype=dtype, in_place=in_place)


def calls_of(case: Case) -> list[Call]:
    """The call of every rank, with arrays as buffers: in place they overlap."""
    group, spec = case.groups[0], case.spec
    count = case.count(group)
    calls = []
    for me in range(group.size):
        send, receive = (
            np.zeros(blocks.count(group.size) * count, "float32" if case.dtype == "bfloat16" else case.dtype)
            for blocks in (spec.send, spec.receive)
        )
        if case.in_place:
            own = slice(me * count, (me + 1) * count)
            if spec.placement is Placement.SAME_BUFFER:
                receive = send
            elif spec.send is Blocks.ONE:
                send = receive[own]
            else:
                receive = send[own]
        calls.append(
            Call(
                group,
                me,
                lambda: None,
                send if spec.sends(me) or case.in_place else None,
                receive if spec.receives(me) or case.in_place else None,
            )
        )
    return calls


def held(case: Case, values: Any) -> Any:
    """`values` as the type holds them: numpy has no bfloat16, so a float32 is rounded to its upper 16 bits."""
    if case.dtype != "bfloat16":
        return values
    bits = np.asarray(values, np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


def reduced(case: Case, arrays: Sequence[Any], scale_first: bool = False) -> Any:
    """The reduction in the type itself, one rank after another."""
    if case.redop == "avg" and scale_first:
        arrays = [held(case, array / array.dtype.type(len(arrays))) for array in arrays]
    total = reduce(lambda a, b: held(case, ADD[case.redop](a, b)), arrays)
    if case.redop != "avg" or scale_first:
        return total
    if case.element.kind == "float":
        return held(case, total / total.dtype.type(len(arrays)))
    return total // len(arrays)


def run(case: Case, calls: Sequence[Call], order: int = 1, scale_first: bool = False) -> None:
    """What a right library does, with the ranks added in the order `order`."""
    n, count = len(calls), case.count(case.groups[0])
    sent = [None if call.send is None else call.send.copy() for call in calls]

    def block(rank: int, index: int) -> Any:
        return sent[rank][index * count : (index + 1) * count]

    def total(index: int = 0) -> Any:
        return reduced(case, [block(rank, index) for rank in range(n)][::order], scale_first)

    everything = {
        "all_reduce": lambda me: total(),
        "reduce": lambda me: total(),
        "reduce_scatter": lambda me: total(me),
        "all_gather": lambda me: np.concatenate([block(rank, 0) for rank in range(n)]),
        "gather": lambda me: np.concatenate([block(rank, 0) for rank in range(n)]),
        "all_to_all": lambda me: np.concatenate([block(rank, me) for rank in range(n)]),
        "broadcast": lambda me: block(0, 0),
        "scatter": lambda me: block(0, me),
        "send_recv": lambda me: block(me - 1, 0),
    }
    for call in calls:
        if call.receive is not None and (case.collective not in ("reduce", "gather") or call.me == 0):
            call.receive[:] = everything[case.collective](call.me)


def started(case: Case) -> list[Call]:
    """Calls with the pattern written."""
    calls = calls_of(case)
    for call in calls:
        write_pattern(Arrays(), case, call)
    return calls


def mismatches(case: Case, calls: Sequence[Call]) -> list[Mismatch | None]:
    return [find_mismatch(Arrays(), case, call) for call in calls]


# -- right data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "redop"), REDUCED + MOVED)
def test_right_data_is_right(name, redop):
    in_place = [False, True] if COLLECTIVES[name].placement is not Placement.NEVER else [False]
    for dtype, ranks, place, order in product(DTYPES, range(1, 6), in_place, (1, -1)):
        case = case_of(name, redop, dtype, ranks, in_place=place)
        calls = started(case)
        run(case, calls, order)
        assert mismatches(case, calls) == [None] * ranks, (dtype, ranks, place)


@pytest.mark.parametrize("dtype", [name for name, dtype in DTYPES.items() if dtype.kind == "float"])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 7, 64])
def test_an_average_may_be_scaled_before_it_is_added(dtype, ranks):
    case = case_of("all_reduce", "avg", dtype, ranks)
    calls = started(case)
    run(case, calls, scale_first=True)
    assert mismatches(case, calls) == [None] * ranks


def test_a_barrier_has_nothing_to_check():
    case = make_case("barrier", 0)
    call = Call(case.groups[0], 0, lambda: None, None, None)
    write_pattern(Arrays(), case, call)
    write_steady(Arrays(), case, call)
    assert find_mismatch(Arrays(), case, call) is None


@pytest.mark.parametrize("name", ["reduce", "gather"])
def test_only_the_root_is_checked(name):
    case = case_of(name, "sum" if name == "reduce" else "none", "int32", 3, in_place=True)
    calls = started(case)
    run(case, calls)
    calls[2].receive[:] = 99
    assert mismatches(case, calls) == [None] * 3
    calls[0].receive[:] = 99
    assert [bad.rank if bad else None for bad in mismatches(case, calls)] == [10, None, None]


# -- wrong data --------------------------------------------------------------------------------------------------------

WORLDS = (("float32", 4), ("int8", 5))  # where a pattern has all its values, and where few


def expect(case: Case, call: Call, right: Any) -> Mismatch:
    """The mismatch of `call`, whose right data is `right`, by comparing the arrays."""
    bad = np.flatnonzero(call.receive != right)
    first = int(bad[0])
    expected, got = float(right[first]), float(call.receive[first])
    return Mismatch(case.groups[0].ranks[call.me], first, pytest.approx(expected, rel=1e-6), got, len(bad))


def finished(name: str, redop: str, dtype: str, ranks: int, me: int) -> tuple[Case, list[Call], Call, Any]:
    """A finished case, the call of one receiving rank, and a copy of its right data."""
    case = case_of(name, redop, dtype, ranks)
    calls = started(case)
    run(case, calls)
    call = calls[me if case.spec.receives(me) else 0]
    return case, calls, call, call.receive.copy()


def check(case: Case, calls: Sequence[Call], call: Call, right: Any) -> None:
    """Exactly `call` is wrong, as the arrays say."""
    assert mismatches(case, calls) == [expect(case, call, right) if other is call else None for other in calls]


@pytest.mark.parametrize(("name", "redop"), REDUCED + MOVED)
def test_one_wrong_element_is_found(name, redop):
    for (dtype, ranks), index in product(WORLDS, (0, PERIOD, 2 * PERIOD, COUNT - 1)):  # 2 * PERIOD begins a chunk
        case, calls, call, right = finished(name, redop, dtype, ranks, me=2)
        call.receive[index] += 1
        check(case, calls, call, right)
        expected = pytest.approx(float(right[index]), rel=1e-6)
        rank = 12 if call.me else 10
        assert find_mismatch(Arrays(), case, call) == Mismatch(rank, index, expected, float(right[index] + 1), 1)


@pytest.mark.parametrize(("name", "redop"), REDUCED + MOVED)
def test_a_shift_by_one_element_is_found(name, redop):
    for dtype, ranks in WORLDS:
        case, calls, call, right = finished(name, redop, dtype, ranks, me=1)
        call.receive[1:] = right[:-1]
        check(case, calls, call, right)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 3), (2, 3)])
@pytest.mark.parametrize("name", ["all_gather", "gather", "all_to_all"])
def test_swapped_blocks_are_found(name, one, other):
    case, calls, call, right = finished(name, "none", "uint8", 4, me=3)
    blocks = call.receive.reshape(4, COUNT)
    blocks[[one, other]] = blocks[[other, one]]
    check(case, calls, call, right)
    assert find_mismatch(Arrays(), case, call).wrong == 2 * COUNT


@pytest.mark.parametrize(("name", "redop"), REDUCED + MOVED)
def test_a_block_that_is_left_unwritten_is_found(name, redop):
    for dtype, ranks in WORLDS:
        case, _, call, right = finished(name, redop, dtype, ranks, me=1)
        write_pattern(Arrays(), case, call)  # the poison again
        last = len(right) - COUNT
        call.receive[:last] = right[:last]
        expected = pytest.approx(float(right[last]), rel=1e-6)
        assert find_mismatch(Arrays(), case, call) == Mismatch(10 + call.me, last, expected, POISON, COUNT)


@pytest.mark.parametrize(
    ("name", "redop"), [*((n, r) for n, r in REDUCED if n == "reduce_scatter"), ("scatter", "none")]
)
def test_a_neighbours_block_is_found(name, redop):
    case, calls, call, right = finished(name, redop, "float32", 4, me=1)
    call.receive[:] = calls[2].receive
    check(case, calls, call, right)


def test_blocks_of_the_wrong_rank_are_found():
    case, calls, call, right = finished("send_recv", "none", "float32", 4, me=1)
    call.receive[:] = calls[3].receive  # shifted the wrong way round
    check(case, calls, call, right)


@pytest.mark.parametrize("times", [0, 2], ids=["left out", "twice"])
@pytest.mark.parametrize("redop", ["sum", "prod", "avg"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint8"])
def test_a_rank_left_out_or_added_twice_is_found(dtype, redop, times):
    case = case_of("all_reduce", redop, dtype, 3)
    calls = started(case)
    sent = [calls[0].send, calls[1].send, *[calls[2].send] * times]
    total = reduce(ADD[redop], [values.astype(np.int64) for values in sent])
    calls[1].receive[:] = total / 3 if redop == "avg" and case.element.kind == "float" else total
    assert find_mismatch(Arrays(), case, calls[1]).rank == 11


@pytest.mark.parametrize("redop", REDOPS)
def test_not_a_number_is_wrong(redop):
    case, _, call, right = finished("all_reduce", redop, "float32", 4, me=0)
    call.receive[5] = np.nan
    found = find_mismatch(Arrays(), case, call)
    assert (found.index, found.wrong, found.expected) == (5, 1, pytest.approx(float(right[5]), rel=1e-6))
    assert np.isnan(found.got)


def test_long_blocks_are_compared_to_the_end(monkeypatch):
    monkeypatch.setattr(verify, "_REPEATS", WHOLE_CHUNK // PERIOD)
    monkeypatch.setattr(verify, "_CHUNK", WHOLE_CHUNK)
    count = WHOLE_CHUNK + 5
    case = case_of("all_gather", "none", "int8", 2, count)
    calls = started(case)
    run(case, calls)
    assert mismatches(case, calls) == [None, None]
    calls[1].receive[[2 * count - 1, count + 3]] = 0
    # Rank 0's block 1 is rank 1's block: 37 + position.
    assert find_mismatch(Arrays(), case, calls[1]) == Mismatch(11, count + 3, 40, 0, 2)


# -- the patterns ------------------------------------------------------------------------------------------------------


def tiles(case: Case, ranks: int, block: int = 0) -> Any:
    return np.stack([send_tile(case, ranks, rank, block) for rank in range(ranks)])


@pytest.mark.parametrize("ranks", [1, 2, 5, 16, 1000, 5000])
@pytest.mark.parametrize("dtype", ["int8", "float16", "bfloat16"])
@pytest.mark.parametrize("redop", ["sum", "prod"])
def test_partial_results_are_exact(dtype, redop, ranks):
    case = case_of("all_reduce", redop, dtype, ranks)
    sent = tiles(case, ranks)
    assert sent.min() >= 0
    assert sent.max() <= min(112, EXACT[dtype])
    if redop == "sum":  # no value is negative, so that every partial sum is at most the whole one
        assert sent.sum(axis=0).max() <= EXACT[dtype]
        assert (receive_tile(case, ranks, 0, 0) == sent.sum(axis=0)).all()
    if redop == "prod":  # powers of two are exact as far as the type reaches
        assert set(np.unique(sent)) <= {1, 2}
        twos = (sent == 2).sum(axis=0)
        assert 1 << int(twos.max()) <= LARGEST[dtype]
        assert receive_tile(case, ranks, 0, 0).tolist() == [1 << int(power) for power in twos]


@pytest.mark.parametrize("redop", ["sum", "prod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_results_depend_on_position_and_block(dtype, redop):
    for ranks in (1, 2, 3, 4, 8, 16, 24, 32, 64, 128):
        case = case_of("reduce_scatter", redop, dtype, ranks)
        first, second = receive_tile(case, ranks, 0, 0), receive_tile(case, ranks, 1, 0)
        assert np.mean(first != np.roll(first, 1)) > 0.3, ranks
        assert np.mean(first != second) > 0.3, ranks


@pytest.mark.parametrize("redop", ["sum", "prod"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_rank_counts(dtype, redop):
    for ranks in (2, 5, 8, 16, 32):
        case = case_of("all_reduce", redop, dtype, ranks)
        assert (tiles(case, ranks).max(axis=1) > (1 if redop == "prod" else 0)).all()


def test_no_pattern_holds_the_poison():
    assert POISON >= PERIOD
    case = case_of("all_to_all", "none", "int64", 8)
    assert all(tiles(case, 8, block).max() < POISON for block in range(8))


def test_blocks_and_ranks_differ_everywhere():
    case = case_of("all_to_all", "none", "int64", 5)
    values = [send_tile(case, 5, rank, block) for rank in range(5) for block in range(5)]
    assert all((one != other).all() for one, other in combinations(values, 2))
    assert all(len(set(tile.tolist())) == PERIOD for tile in values)


# -- before timing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "redop"), REDUCED)
def test_reductions_in_place_never_overflow(name, redop):
    for dtype in DTYPES:
        case = case_of(name, redop, dtype, 4, in_place=True)
        calls = started(case)
        for call in calls:
            write_steady(Arrays(), case, call)
        if redop in ("sum", "prod"):
            assert all((call.send == (redop == "prod")).all() for call in calls)
        with np.errstate(all="raise"):
            for _ in range(10):
                run(case, calls)
        assert max(float(call.send.max()) for call in calls) <= POISON


@pytest.mark.parametrize(
    ("name", "redop", "in_place"),
    [("all_reduce", "sum", False), ("all_reduce", "max", True), ("all_gather", "none", True)],
)
def test_other_buffers_are_left_as_they_are(name, redop, in_place):
    case = case_of(name, redop, "float32", 3, in_place=in_place)
    call = started(case)[1]
    before = call.send.copy()
    write_steady(Arrays(), case, call)
    assert (call.send == before).all()
    assert before.any()
