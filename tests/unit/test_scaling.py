"""The lines below a ladder: how busbw and time develop, and where they bend."""

import pytest

from commbench.report.scaling import BEND, find_bend, scaling_lines
from commbench.results.store import Run
from tests.factories import UNMEASURED, make_case_record, make_row, make_run

LARGE = 1 << 20


def ladder(busbw: list[float | None], seconds: list[float] | None = None, **changes: object) -> Run:
    """An all_reduce on 2, 4, 8 … nodes of a rank: 1 MiB with these busbw in GB/s, and 1 KiB with these seconds."""
    rows = []
    for number, gbps in enumerate(busbw, start=1):
        rung = {"layout": "ladder", "group": f"{2**number} nodes", "ranks": 2**number}
        measured = UNMEASURED if gbps is None else {"busbw_gbps": gbps}
        rows.append(make_row(len(rows), **{**rung, "size_bytes": LARGE - number, **measured, **changes}))
        if seconds:
            rows.append(make_row(len(rows), **{**rung, "seconds_median": seconds[number - 1], **changes}))
    cases = [make_case_record(row.case, requested_nbytes=LARGE if row.size_bytes > 1024 else 1024) for row in rows]
    return make_run(*rows, cases=tuple(cases))


@pytest.mark.parametrize(
    ("speeds", "bend"),
    [
        ([], None),
        ([5.0], None),
        ([10, 10, 10], None),
        ([10, 8, 6.4], 2),  # each against the best before it, not against its neighbour
        ([10, 8.0, 8.0], None),  # not below the threshold
        ([10, 7.9, 10], 1),
        ([1, 10, 7], 2),
        ([1, 0.1, 0.01], 1),
    ],
)
def test_find_bend(speeds, bend):
    assert BEND == 0.8
    assert find_bend(speeds) == bend


def test_busbw_at_the_largest_size_and_time_at_the_smallest():
    # 2 (N-1) steps of 12 us, and at last of 20 us
    busbw, time, legend = scaling_lines(ladder([45.678, 44.0, 9.5], [24e-6, 72e-6, 280e-6]))
    assert busbw == ("scaling of all_reduce 1 MiB float32 sum: busbw 45.7 (2 nodes), 44 (4 nodes), 9.5 (8 nodes) "
                     "GB/s, bends at 8 nodes.")  # fmt: skip
    assert time == ("scaling of all_reduce 1 KiB float32 sum: time 24.0 us (2 nodes), 72.0 us (4 nodes), 280 us "
                    "(8 nodes), bends at 8 nodes.")  # fmt: skip
    assert legend.startswith("bends: at the first rung with less than 80 % of the best one before it")


def test_a_time_that_grows_with_the_steps_of_a_ring_does_not_bend():
    assert scaling_lines(ladder([40, 39, 38], [24e-6, 72e-6, 168e-6]))[1].endswith("does not bend.")


def test_one_size_is_told_once():
    lines = scaling_lines(ladder([1.23e-5, 1234.2]))
    assert len(lines) == 2
    assert "busbw 1.23e-05 (2 nodes), 1234 (4 nodes) GB/s, does not bend." in lines[0]


def test_a_barrier_has_a_time_only():
    run = ladder([1.0, 1.0], collective="barrier", size_bytes=0, busbw_gbps=None, redop="none")
    run = make_run(*run.rows, cases=tuple(make_case_record(row.case, requested_nbytes=0) for row in run.rows))
    (time, _) = scaling_lines(run)
    assert time.startswith("scaling of barrier: time 100 us (2 nodes), 100 us (4 nodes), ")


@pytest.mark.parametrize(
    "run",
    [ladder([40.0]), ladder([40.0, None]), ladder([]), ladder([40, 20], layout="halves")],
    ids=["one rung", "one measured rung", "nothing", "another layout"],
)
def test_without_two_rungs_nothing_is_said(run):
    assert scaling_lines(run) == []
