"""Which curves stand in which picture, by which name and colour."""

from typing import Any

import pytest

from commbench.report.series import COLOURS, MOST_CURVES, MOST_POINTS, busbw_gbps, make_panels
from tests.factories import make_group_record
from tests.unit.report.make import SIZES, curve_rows, reported


def test_one_run_has_a_picture_for_each_layout_and_a_colour_for_each_collective() -> None:
    rows = [
        *curve_rows("all_reduce", "all_gather"),
        *curve_rows("all_gather", first=100, layout="node", concurrency="together"),
    ]
    world, node = make_panels([reported(rows)])
    assert world.title == "2 collectives, layout world, alone"
    assert world.subtitle == "2 ranks over loopback; gloo, float32, throughput"
    assert [series.label for series in world.series] == ["all_reduce", "all_gather"]
    assert node.title == "all_gather, layout node, together"
    assert node.series[0].colour == world.series[1].colour != world.series[0].colour


def test_several_runs_have_a_picture_for_each_collective_and_a_colour_for_each_run() -> None:
    before = reported(curve_rows("all_reduce", "all_gather"), "before")
    after = reported(curve_rows("all_gather", scale=0.5), "after")
    reduce, gather = make_panels([before, after])
    assert [series.label for series in reduce.series] == ["before"]
    assert [series.label for series in gather.series] == ["before", "after"]
    assert [series.colour for series in gather.series] == [0, 1]


def test_the_median_group_is_drawn_and_the_slowest_beside_it() -> None:
    rows = [row for first, scale in ((0, 1.0), (50, 4.0), (100, 1.1)) for row in curve_rows(first=first, scale=scale)]
    ((series,),) = ([panel.series for panel in make_panels([reported(rows)])],)
    point = series[0].points[0]
    assert (point.nbytes, point.is_plain) == (1024, True)
    assert point.seconds == pytest.approx(1.1 * (1e-4 + 1024e-9))
    assert point.slowest_seconds == pytest.approx(4.0 * (1e-4 + 1024e-9))
    assert (point.low, point.high) == (pytest.approx(0.98 * point.seconds), pytest.approx(1.03 * point.seconds))


def test_of_two_groups_the_median_lies_between_as_in_the_fit() -> None:
    rows = [row for first, scale in ((0, 1.0), (50, 3.0)) for row in curve_rows(first=first, scale=scale)]
    one = reported(rows)
    (panel,) = make_panels([one])
    (series,) = panel.series
    assert series.fit is not None
    assert [point.seconds for point in series.points] == pytest.approx([point.seconds for point in series.fit.points])
    point = series.points[0]
    assert (point.low, point.high) == (pytest.approx(0.98 * point.seconds), pytest.approx(1.03 * point.seconds))


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        (({"link_class": "net", "nodes": 2}, {"link_class": "nvlink", "nodes": 1}), ["over net", "over nvlink"]),
        (({"nodes": 2}, {"nodes": 1}), ["2 nodes", "1 node"]),
        (({"in_place": True}, {"in_place": False}), ["in place", "out of place"]),
    ],
)
def test_curves_are_named_by_what_tells_them_apart(changes: tuple[dict[str, Any], ...], labels: list[str]) -> None:
    rows = [row for number, change in enumerate(changes) for row in curve_rows(first=100 * number, **change)]
    (panel,) = make_panels([reported(rows)])
    assert [series.label for series in panel.series] == labels


def test_each_curve_has_its_own_fit_and_a_short_one_none() -> None:
    rows = [*curve_rows("all_reduce"), *curve_rows("all_gather", sizes=SIZES[:2], first=100)]
    (panel,) = make_panels([reported(rows)])
    fitted, short = panel.series
    assert fitted.fit is not None
    assert fitted.fit.key.collective == "all_reduce"
    assert short.fit is None
    assert short.points[0].slowest_seconds is None


def test_the_nominal_rate_is_that_of_the_curves_groups() -> None:
    groups = (make_group_record(bytes_per_second=2e9), make_group_record(name="other", bytes_per_second=1.0))
    (panel,) = make_panels([reported(curve_rows(), groups=groups)])
    assert panel.series[0].nominal_bytes_per_second == 2e9


def test_a_crowded_layout_is_split_by_collective() -> None:
    rows = []
    for ranks in (2, 4, 8, 16):
        rows += curve_rows("all_reduce", "all_gather", sizes=SIZES[:2], first=len(rows), ranks=ranks)
    reduce, gather = make_panels([reported(rows)])
    assert reduce.title == "all_reduce, layout world, alone"
    assert [series.label for series in gather.series] == ["2 ranks", "4 ranks", "8 ranks", "16 ranks"]
    assert [series.colour for series in gather.series] == [0, 1, 2, 3]


def test_what_does_not_fit_is_counted() -> None:
    rows = [
        row for n in range(MOST_CURVES + 3) for row in curve_rows(sizes=[1024], first=n, variant=f"GPU {n}", ranks=None)
    ]
    (panel,) = make_panels([reported(rows)])
    assert len(panel.series) == MOST_CURVES
    assert panel.left_out == 3
    assert {series.colour for series in panel.series} == set(range(COLOURS))
    assert panel.series[0].label == "GPU 0"
    assert busbw_gbps(panel.series[0], 1024, 1e-4) is None


def test_many_sizes_are_thinned_and_the_ends_kept() -> None:
    sizes = [1024 * number for number in range(1, 3 * MOST_POINTS)]
    (panel,) = make_panels([reported(curve_rows(sizes=sizes, ranks=None))])
    drawn = [point.nbytes for point in panel.series[0].points]
    assert len(drawn) == MOST_POINTS
    assert (drawn[0], drawn[-1]) == (sizes[0], sizes[-1])
    assert drawn == sorted(set(drawn))


@pytest.mark.parametrize("changes", [{"seconds_median": None}, {"size_bytes": 0}, {"seconds_median": -1.0},
                                     {"size_bytes": -5}, {"seconds_median": 1e300}])  # fmt: skip
def test_what_cannot_be_drawn_is_not(changes: dict[str, float]) -> None:
    assert make_panels([reported(curve_rows(sizes=[1024], **changes))]) == []
