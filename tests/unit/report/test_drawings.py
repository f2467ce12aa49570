"""The drawings: SVG that belongs into a page, and axes that can be read."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from commbench.report.fit_plots import draw_panel, nominal_rates, shown_rates, size_ticks
from commbench.report.ladder_plot import draw_ladders
from commbench.report.series import make_panels
from commbench.report.svg import draw_svg
from commbench.units import format_nbytes
from tests.factories import make_group_record
from tests.unit.report.make import curve_rows, reported, unfitted
from tests.unit.test_scaling import ladder

SVG = "{http://www.w3.org/2000/svg}"


def words(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_an_svg_takes_the_colours_of_its_page_and_brings_nothing_else() -> None:
    svg = draw_svg(lambda axes: axes.plot([1, 2], [3, 4]), 'a "quoted" <b>')  # type: ignore[arg-type,return-value]
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == 'a "quoted" <b>'
    assert root.get("width") is None
    assert "var(--muted)" in svg
    assert "#f00d" not in svg
    assert "<metadata" not in svg
    assert "<style" not in svg
    assert set(re.findall(r'href="(.)', svg)) == {"#"}


def test_the_same_drawing_is_the_same_text() -> None:
    (panel,) = make_panels([reported(curve_rows())])
    assert draw_panel(panel) == draw_panel(panel)


def test_a_panel_has_three_pictures_with_units() -> None:
    (panel,) = make_panels([reported(curve_rows("all_reduce", "all_gather"))])
    plots = draw_panel(panel)
    assert "busbw (GB/s of 1e9 bytes)" in words(plots.busbw)
    assert {"1 KiB", "1 MiB", "32 MiB", "size S (bytes, binary units)"} <= set(words(plots.busbw))
    assert {"100 us", "1 ms", "10 ms"} <= set(words(plots.time))
    assert "+10 %" in words(plots.residuals)
    assert all(len(svg) < 60_000 for svg in (plots.busbw, plots.time, plots.residuals))


def test_what_cannot_be_drawn_is_left_out() -> None:
    (panel,) = make_panels([reported(curve_rows(sizes=[4096], ranks=None, busbw_gbps=None))])
    plots = draw_panel(panel)
    assert (plots.busbw, plots.residuals) == ("", "")
    assert "4 KiB" in words(plots.time)


@pytest.mark.parametrize(("rate", "is_shown"), [(1.2e9, True), (25e9, False)])
def test_a_nominal_rate_far_above_would_flatten_the_picture(rate: float, is_shown: bool) -> None:
    groups = (make_group_record(bytes_per_second=rate),)
    (panel,) = make_panels([reported(curve_rows(), groups=groups)])
    assert nominal_rates(panel) == {"loopback": rate}
    assert bool(shown_rates(panel)) is is_shown
    assert (f"nominal {rate / 1e9:g} GB/s" in words(draw_panel(panel).busbw)) is is_shown


@pytest.mark.parametrize(
    ("first", "last", "shown"),
    [
        (1 << 10, 1 << 26, "1 KiB, 32 KiB, 1 MiB, 32 MiB"),
        (1 << 10, 1 << 14, "1 KiB, 2 KiB, 4 KiB, 8 KiB, 16 KiB"),
        (8, 1 << 34, "32 B, 1 KiB, 32 KiB, 1 MiB, 32 MiB, 1 GiB"),
        (1000, 1000, "1000 B, 1000 B"),
        (1, 1 << 50, "1 B, 1 KiB, 1 MiB, 1 GiB, 1 TiB, 1024 TiB"),
    ],
)
def test_sizes_on_the_axis_are_round_and_few(first: int, last: int, shown: str) -> None:
    assert ", ".join(map(format_nbytes, size_ticks(first, last))) == shown


def test_a_ladder_is_two_pictures() -> None:
    run = ladder([45.0, 44.0, 9.5], [24e-6, 72e-6, 280e-6])
    busbw, time = draw_ladders([unfitted(run, "before"), unfitted(run, "after")])
    assert busbw.legend == (("before: all_reduce 1 MiB float32 sum", 0), ("after: all_reduce 1 MiB float32 sum", 1))
    assert {"ranks", "2", "4", "8", "busbw (GB/s of 1e9 bytes)"} <= set(words(busbw.svg))
    assert "time per call" in words(time.svg)
    assert "50 us" in words(time.svg)
    assert busbw.left_out == 0


def test_without_a_ladder_there_is_none() -> None:
    assert draw_ladders([reported(curve_rows())]) == []
