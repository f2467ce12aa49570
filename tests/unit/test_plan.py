"""commbench.plan.plan: which cases a request makes, in which order, and how a round shuffles them."""

import subprocess
import sys
from dataclasses import replace

import pytest

from commbench.errors import UsageError
from commbench.plan.groups import World
from commbench.plan.plan import Case, PlanRequest, build_plan, shuffled

TWO_BY_TWO = World((0, 0, 1, 1))
UNEVEN = World((0, 0, 0, 1))
BASE = PlanRequest(collectives=("all_reduce",), sizes_nbytes=(1024,), layouts=("world",))


def _plan(world: World = TWO_BY_TWO, one_buffer: frozenset[str] = frozenset(), **wanted: object) -> list[Case]:
    return build_plan(replace(BASE, **wanted), world, one_buffer)


def test_order_is_collective_dtype_redop_layout_concurrency_size() -> None:
    cases = _plan(
        collectives=("all_reduce", "all_gather"),
        dtypes=("float32", "int8"),
        redops=("sum", "max"),
        layouts=("world", "node"),
        sizes_nbytes=(64, 128),
    )
    reduced = [(dtype, redop) for dtype in ("float32", "int8") for redop in ("sum", "max")]
    kept = [("float32", "none"), ("int8", "none")]
    expected = [
        (name, dtype, redop, layout, nbytes)
        for name, variants in (("all_reduce", reduced), ("all_gather", kept))
        for dtype, redop in variants
        for layout in ("world", "node")
        for nbytes in (64, 128)
    ]
    assert [(c.collective, c.dtype, c.redop, c.layout, c.requested_nbytes) for c in cases] == expected
    assert [case.index for case in cases] == list(range(24))


@pytest.mark.parametrize(
    ("name", "redops"),
    [
        ("all_reduce", ["sum", "avg"]),
        ("reduce_scatter", ["sum", "avg"]),
        ("reduce", ["sum", "avg"]),
        *((name, ["none"]) for name in ("all_gather", "all_to_all", "broadcast", "gather", "scatter", "send_recv")),
    ],
)
def test_redops_multiply_what_reduces(name: str, redops: list[str]) -> None:
    assert [case.redop for case in _plan(collectives=(name,), redops=("sum", "avg"))] == redops


def test_barrier_comes_once_without_data() -> None:
    (case,) = _plan(collectives=("barrier",), sizes_nbytes=(1, 2, 3), dtypes=("int8", "int32"), redops=("sum", "max"))
    assert (case.requested_nbytes, case.dtype, case.redop, case.too_small) == (0, "int8", "none", None)
    assert case.nbytes(case.groups[0]) == 0


@pytest.mark.parametrize(
    ("name", "asked", "one_buffer", "in_place"),
    [
        ("all_reduce", False, set(), False),
        ("all_reduce", True, set(), True),
        ("all_reduce", False, {"all_reduce"}, True),
        ("all_gather", False, {"all_reduce"}, False),
        ("all_gather", True, {"all_reduce"}, True),
        ("all_to_all", True, set(), False),
        ("send_recv", True, set(), False),
        ("barrier", True, set(), False),
    ],
)
def test_in_place_where_defined_or_the_only_way(name: str, asked: bool, one_buffer: set[str], in_place: bool) -> None:
    (case,) = _plan(collectives=(name,), in_place=asked, one_buffer=frozenset(one_buffer))
    assert case.in_place is in_place


@pytest.mark.parametrize(
    ("layout", "concurrencies", "timed"),
    [
        ("node", ("together",), [("together", ["0-1", "2-3"])]),
        ("node", ("alone",), [("alone", ["0-1"]), ("alone", ["2-3"])]),
        ("node", ("alone", "together"), [("alone", ["0-1"]), ("alone", ["2-3"]), ("together", ["0-1", "2-3"])]),
        ("world", ("together",), [("alone", ["world"])]),
        ("world", ("alone", "together"), [("alone", ["world"])]),
        ("ladder", ("together",), [("alone", ["2 nodes"])]),
        ("mesh:a=2,b=2", ("together",), [("together", ["0,2", "1,3"]), ("together", ["0-1", "2-3"])]),
    ],
)
def test_who_is_timed_together(layout: str, concurrencies: tuple[str, ...], timed: list) -> None:
    cases = _plan(layouts=(layout,), concurrencies=concurrencies)
    assert [(case.concurrency, [group.name for group in case.groups]) for case in cases] == timed


def test_pairs_together_go_round_by_round() -> None:
    assert [len(case.groups) for case in _plan(layouts=("pairs",))] == [2, 2, 2]
    assert [len(case.groups) for case in _plan(layouts=("pairs",), concurrencies=("alone",))] == [1] * 6


@pytest.mark.parametrize(
    ("name", "dtype", "nbytes", "counts"),
    [
        ("all_reduce", "float32", 1000, [(250, 1000), (250, 1000)]),
        ("all_gather", "float32", 1000, [(83, 996), (250, 1000)]),
        ("reduce_scatter", "float64", 1000, [(41, 984), (125, 1000)]),
        ("all_to_all", "int8", 1000, [(333, 999), (1000, 1000)]),
        ("broadcast", "float16", 1001, [(500, 1000), (500, 1000)]),
    ],
)
def test_rounds_down_to_whole_elements_a_rank(name: str, dtype: str, nbytes: int, counts: list) -> None:
    (case,) = _plan(UNEVEN, collectives=(name,), dtypes=(dtype,), sizes_nbytes=(nbytes,), layouts=("node",))
    assert [group.size for group in case.groups] == [3, 1]
    assert [(case.count(group), case.nbytes(group)) for group in case.groups] == counts


@pytest.mark.parametrize(
    ("name", "nbytes", "reason"),
    [
        ("all_reduce", 3, "3 B is less than one float32"),
        ("all_reduce", 4, None),
        ("all_gather", 11, "11 B is less than one float32 for each of the 3 ranks"),
        ("all_gather", 12, None),
        ("send_recv", 1, "1 B is less than one float32"),
    ],
)
def test_too_small_says_why(name: str, nbytes: int, reason: str | None) -> None:
    (case,) = _plan(UNEVEN, collectives=(name,), sizes_nbytes=(nbytes,), layouts=("node",))
    assert case.too_small == reason


def test_mode_is_kept() -> None:
    assert [case.mode for case in (*_plan(), *_plan(mode="latency"))] == ["throughput", "latency"]


def test_layout_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="the world has 4"):
        _plan(layouts=("world", "mesh:a=3"))


def test_rounds_are_permutations_that_differ() -> None:
    cases = _plan(sizes_nbytes=tuple(range(4, 44)))
    rounds = [shuffled(cases, 7, number) for number in range(5)]
    assert rounds == [shuffled(cases, 7, number) for number in range(5)]
    for order in rounds:
        assert sorted(order, key=lambda case: case.index) == cases
    assert len({tuple(case.index for case in order) for order in rounds}) == 5
    assert shuffled(cases, 8, 0) != rounds[0]
    assert [case.index for case in cases] == list(range(40))


def test_processes_agree_on_the_order() -> None:
    program = "from commbench.plan.plan import shuffled; print(shuffled(range(30), 3, 1))"
    runs = [
        subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True)
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != b""
