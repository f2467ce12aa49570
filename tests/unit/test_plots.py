"""The plots: which files there are, and what their lines show. Rendering is slow, so few tests really render."""

import re
import struct
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure

from commbench.report.plots import draw_plots
from commbench.results.schema import SummaryRow
from tests.factories import UNMEASURED, make_row, make_run

PNG = b"\x89PNG\r\n\x1a\n"
SIZES = (1024, 4096, 16384)


@pytest.fixture
def figures(monkeypatch):
    """The figures that were made, in the order of their files; nothing is rendered."""
    made: list[Figure] = []

    def keep(figure: Figure, file: Any, **_: Any) -> None:
        made.append(figure)
        file.write(PNG)

    monkeypatch.setattr(Figure, "savefig", keep)
    return made


def rows(*collectives: str, sizes: tuple[int, ...] = SIZES, first: int = 0, **changes: Any) -> list[SummaryRow]:
    """A row for each collective and size; the time grows with the size."""
    asked = [(name, size) for name in collectives or ("all_reduce",) for size in sizes]
    return [
        make_row(
            first + index,
            **{
                "collective": name,
                "size_bytes": size,
                "seconds_median": size * 1e-8,
                "seconds_ci_low": size * 0.9e-8,
                "seconds_ci_high": size * 1.1e-8,
                "busbw_gbps": size / 1e6,
                **changes,
            },
        )
        for index, (name, size) in enumerate(asked)
    ]


def lines(figure: Figure) -> dict[str, tuple[list[float], list[float]]]:
    """What is drawn: x and y by label."""
    return {str(line.get_label()): (list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines}


# -- really rendered ---------------------------------------------------------------------------------------------------


def one_size_on_one_rank() -> list[SummaryRow]:
    return rows(sizes=(1024,), ranks=1, busbw_gbps=None, seconds_ci_low=None, seconds_ci_high=None)


def formulas_in_names() -> list[SummaryRow]:
    return rows("all_reduce", "all_gather", layout="ranks:$0^{1", link_class="$\\frac")


@pytest.mark.parametrize("make", [one_size_on_one_rank, formulas_in_names])
def test_pictures_are_png(make: Callable[[], list[SummaryRow]]):
    plots = draw_plots(make_run(*make()))
    assert list(plots) == ["busbw.png", "time.png"]
    for png in plots.values():
        assert png.startswith(PNG)
        assert struct.unpack(">II", png[16:24]) == (1350, 810)
        assert len(png) > 10_000
    assert len(set(plots.values())) == 2


# -- which files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nothing",
    [
        [],
        [make_row(**UNMEASURED, status="missing")],
        [make_row(collective="barrier", size_bytes=0, count=0, algbw_gbps=None, busbw_gbps=None)],
    ],
    ids=["no rows", "nothing timed", "no sizes"],
)
def test_nothing_to_draw(nothing, figures):
    assert draw_plots(make_run(*nothing)) == {}
    assert figures == []


def test_every_layout_has_two_files(figures):
    run = make_run(
        *rows(),
        *rows(first=3, layout="node", concurrency="together"),
        *rows(first=6, layout="node", concurrency="alone"),
        *rows(first=9, layout="mesh:tp", concurrency="together"),
    )
    views = ("world-alone", "node-together", "node-alone", "mesh_tp-together")
    assert list(draw_plots(run)) == [f"{kind}-{view}.png" for view in views for kind in ("busbw", "time")]
    assert all(len(lines(figure)["all_reduce  (factor 2(N-1)/N = 1)"][0]) == 3 for figure in figures)


ODD_LAYOUTS = [
    "ranks:0,1/2",
    "ranks:0/1,2",
    "ranks:0/1/2",
    "../../etc/passwd",
    "a\0b\nc",
    "mesh:größe",
    "ranks:" + "1," * 500 + "7",
]
ODD_LAYOUTS += ["ranks:" + "1," * 500 + "8"]


def test_odd_layouts_give_safe_names_of_their_own(figures):
    run = make_run(*(make_row(case, layout=layout) for case, layout in enumerate(ODD_LAYOUTS)))
    plots = draw_plots(run)
    assert len(plots) == len(figures) == 2 * len(ODD_LAYOUTS)
    for name in plots:
        assert re.fullmatch(r"(busbw|time)-[\w.=-]+\.png", name)
        assert len(name.encode()) < 255


# -- what they show ----------------------------------------------------------------------------------------------------


def test_busbw_and_time_over_size(figures):
    draw_plots(make_run(*rows("all_reduce", "broadcast")))
    busbw, time = figures
    labels = ["all_reduce  (factor 2(N-1)/N = 1)", "broadcast  (factor 1 = 1)"]
    assert list(lines(busbw)) == list(lines(time)) == labels
    assert lines(busbw)[labels[0]] == ([1024, 4096, 16384], [1024 / 1e6, 4096 / 1e6, 16384 / 1e6])
    assert lines(time)[labels[0]] == ([1024, 4096, 16384], [1024e-8, 4096e-8, 16384e-8])
    assert busbw.axes[0].get_title("left") == "Bus bandwidth over size"
    assert (busbw.axes[0].get_xscale(), busbw.axes[0].get_yscale()) == ("log", "linear")
    assert (time.axes[0].get_xscale(), time.axes[0].get_yscale()) == ("log", "log")


def test_subtitle_says_where_and_when(figures):
    draw_plots(make_run(*rows(layout="node", concurrency="together"), backend="gloo"))
    (text,) = figures[0].axes[0].texts
    assert text.get_text() == (
        "layout node, 1 groups together, the slowest over loopback; gloo, float32, throughput; 2026-01-02"
    )


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ([{"dtype": "float32"}, {"dtype": "int8"}], ["all_reduce float32 sum", "all_reduce int8 sum"]),
        ([{"redop": "sum"}, {"redop": "max"}], ["all_reduce float32 sum", "all_reduce float32 max"]),
        ([{"ranks": 2}, {"ranks": 4}], ["all_reduce on 2 ranks", "all_reduce on 4 ranks"]),
        ([{"ranks": 1}, {"ranks": 2}, {"ranks": 1, "size_bytes": 9999}],
         ["all_reduce on 1 ranks", "all_reduce on 2 ranks"]),
        ([{}, {"collective": "all_gather", "redop": "none"}], ["all_reduce", "all_gather"]),
    ],
)  # fmt: skip
def test_lines_are_told_apart(figures, changes, labels):
    draw_plots(make_run(*(make_row(case, **change) for case, change in enumerate(changes))))
    assert [label.partition("  (")[0] for label in lines(figures[0])] == labels


def test_the_slowest_of_a_layout_is_drawn_once_a_size(figures):
    """Rounds of pairs are cases of their own, of one line."""
    slow = rows(first=3, layout="pairs", concurrency="together", seconds_median=0.5, busbw_gbps=7.0)
    fast = (rows(first=first, layout="pairs", concurrency="together") for first in (0, 6))
    run = make_run(*next(fast), *slow, *next(fast))
    draw_plots(run)
    (drawn,) = lines(figures[1]).values()
    assert drawn == (list(SIZES), [0.5, 0.5, 0.5])
    assert list(lines(figures[0]).values()) == [(list(SIZES), [7.0, 7.0, 7.0])]
    assert "3 groups together, the slowest" in figures[0].axes[0].texts[0].get_text()


def test_unmeasured_sizes_are_left_out(figures):
    run = make_run(*rows(), make_row(3, size_bytes=65536, **UNMEASURED))
    draw_plots(run)
    assert [x for x, _ in lines(figures[0]).values()] == [list(SIZES)]


def test_many_lines_differ_in_colour_and_marker(figures):
    draw_plots(make_run(*(make_row(index, ranks=2 + index) for index in range(10))))
    drawn = figures[0].axes[0].lines
    assert len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 10


@pytest.mark.parametrize(("count", "labels"), [(1, 1), (12, 12), (13, 7), (40, 10)])
def test_sizes_on_the_axis_never_touch(figures, count, labels):
    draw_plots(make_run(*(make_row(index, size_bytes=1 << index + 1) for index in range(count))))
    assert len(figures[0].axes[0].xaxis.get_major_locator()()) == labels
