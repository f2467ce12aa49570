"""Three pictures of a panel: busbw over size, time over size, and what the fit leaves.

Markers are measured (the median group's, open where not plainly ok) with their interval as a band; the line is the fit,
with a tick where a regime starts; dashed is the planner's line, where it parts from the fit; dotted is theory; small
dots are the slowest group.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log2
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from commbench.report.series import Measured, Panel, Series, busbw_gbps
from commbench.report.svg import GRID, INK, MUTED, PAPER, SERIES, draw_svg
from commbench.units import GB, format_nbytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_MODEL_POINTS = 120
_PERCENTS = (5, 10, 100, 1000, 10_000)  # marks of what a fit leaves, far enough apart on its scale
_MOST_LABELS = 7  # on the size axis: they must not touch
_FAR_ABOVE = 5.0  # times the best measured rate: a nominal rate beyond would flatten the picture
_SLOW_ENOUGH = 1.05  # times the median group's time: below, the slowest group's dots would hide behind its markers

Value = Callable[[Series, float, float], float | None]  # of a size and a time: what the y axis shows


@dataclass(frozen=True, slots=True)
class PanelPlots:
    """The pictures of a panel; `residuals` is empty where nothing was fitted, `busbw` where there is no bus."""

    busbw: Markup
    time: Markup
    residuals: Markup


def draw_panel(panel: Panel) -> PanelPlots:
    """The three pictures of a panel."""
    has_bus = any(series.factor is not None for series in panel.series)
    has_fit = any(series.fit for series in panel.series)
    return PanelPlots(
        busbw=draw_svg(lambda axes: _draw_busbw(axes, panel), f"busbw over size: {panel.title}")
        if has_bus
        else Markup(),
        time=draw_svg(lambda axes: _draw_time(axes, panel), f"time over size: {panel.title}"),
        residuals=draw_svg(lambda axes: _draw_residuals(axes, panel), f"residuals: {panel.title}", height=2.6)
        if has_fit
        else Markup(),
    )


def nominal_rates(panel: Panel) -> dict[str, float]:
    """The nominal rate in bytes per second by link class; the least where its links differ."""
    rates: dict[str, float] = {}
    for series in panel.series:
        rate = series.nominal_bytes_per_second
        if rate:
            rates[series.link_class] = min(rate, rates.get(series.link_class, rate))
    return rates


def shown_rates(panel: Panel) -> dict[str, float]:
    """Those of `nominal_rates` that the busbw picture has room for."""
    busbw = [busbw_gbps(series, point.nbytes, point.seconds) for series in panel.series for point in series.points]
    best = max((value for value in busbw if value is not None), default=0.0)
    return {name: rate for name, rate in nominal_rates(panel).items() if rate / GB <= _FAR_ABOVE * best}


def _draw_busbw(axes: "Axes", panel: Panel) -> None:
    rates = shown_rates(panel)
    for series in panel.series:
        if series.factor is not None:
            _draw_series(axes, series, busbw_gbps, has_theory=series.link_class in rates)
    axes.set_ylim(bottom=0)
    for rate in sorted(set(rates.values())):
        axes.axhline(rate / GB, color=INK, linewidth=1, linestyle=(0, (6, 3)))
        place: dict[str, Any] = {"xy": (1, rate / GB), "xycoords": ("axes fraction", "data"), "ha": "right"}
        axes.annotate(f"nominal {rate / GB:.4g} GB/s", **place, xytext=(0, 3), textcoords="offset points", fontsize=8.5)
    axes.set_ylim(top=1.08 * axes.get_ylim()[1])
    axes.set_title("busbw (GB/s of 1e9 bytes)")
    _size_axis(axes, panel)


def _draw_time(axes: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for series in panel.series:
        _draw_series(axes, series, lambda _series, _nbytes, seconds: seconds, has_theory=True)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few_decades = high < 200 * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few_decades else (1,), numticks=12))
    axes.yaxis.set_major_formatter(lambda seconds, _: format_tick_seconds(seconds))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title("time per call")
    _size_axis(axes, panel)


def _draw_residuals(axes: "Axes", panel: Panel) -> None:
    """Measured over fitted, minus one: above zero a size takes longer than the fit says."""
    from matplotlib.ticker import FixedLocator, NullLocator

    for series in panel.series:
        if series.fit is None:
            continue
        colour, model = SERIES[series.colour], series.fit.regimes.model
        sizes = [point.nbytes for point in series.points]
        values = [100 * (point.seconds / model.seconds(point.nbytes) - 1) for point in series.points]
        axes.plot(sizes, values, color=colour, marker=MARKERS[series.colour], linewidth=0.8, markersize=4)
    axes.axhline(0, color=INK, linewidth=1)
    axes.axhspan(-10, 10, color=GRID, alpha=0.45, linewidth=0)
    reach = 1.2 * max(10.0, *(abs(edge) for edge in axes.dataLim.intervaly))
    axes.set_yscale("symlog", linthresh=10, linscale=1.5)  # an outlier must not flatten the rest
    axes.set_ylim(-reach, reach)
    axes.yaxis.set_major_locator(
        FixedLocator([0, *(sign * tick for tick in _PERCENTS if tick <= reach for sign in (-1, 1))])
    )
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda percent, _: f"{percent:+.0f} %" if percent else "0 %")
    axes.set_title("measured / fit − 1")
    _size_axis(axes, panel)


def _draw_series(axes: "Axes", series: Series, value: Value, *, has_theory: bool) -> None:
    colour = SERIES[series.colour]
    _draw_band(axes, series, value, colour)
    if has_theory:
        _draw_theory(axes, series, value, colour)
    if series.fit:
        _draw_fit(axes, series, value, colour)
    slowest = [
        (point.nbytes, value(series, point.nbytes, point.slowest_seconds))
        for point in series.points
        if point.slowest_seconds and point.slowest_seconds > _SLOW_ENOUGH * point.seconds
    ]
    _plot(axes, slowest, color=colour, marker=".", markersize=4, linewidth=0.8, linestyle=(0, (1, 2)))
    joined = 0 if series.fit else 0.8  # where there is no fit a thin line leads the eye
    for is_plain, fill in ((True, colour), (False, PAPER)):
        points = [point for point in series.points if point.is_plain is is_plain]
        _plot(axes, _values(series, points, value), color=colour, marker=MARKERS[series.colour], linewidth=0,
              markerfacecolor=fill, markeredgecolor=colour, zorder=4)  # fmt: skip
    _plot(axes, _values(series, series.points, value), color=colour, linewidth=joined)


def _draw_band(axes: "Axes", series: Series, value: Value, colour: str) -> None:
    bounded = [point for point in series.points if point.low and point.high and point.low > 0]
    edges = [
        (point.nbytes, value(series, point.nbytes, point.low or 0.0), value(series, point.nbytes, point.high or 0.0))
        for point in bounded
    ]
    if edges:
        sizes, low, high = zip(*edges, strict=True)
        axes.fill_between(sizes, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.vlines(sizes, low, high, color=colour, linewidth=1, alpha=0.7)  # one size alone has no band


def _draw_theory(axes: "Axes", series: Series, value: Value, colour: str) -> None:
    theory = [
        (point.nbytes, value(series, point.nbytes, point.theory_seconds))
        for point in series.points
        if point.theory_seconds
    ]
    _plot(axes, theory, color=colour, linewidth=1, linestyle=(0, (1.5, 1.5)))


def _draw_fit(axes: "Axes", series: Series, value: Value, colour: str) -> None:
    import numpy as np

    assert series.fit is not None
    model, line = series.fit.regimes.model, series.fit.line
    first, last = series.points[0].nbytes, series.points[-1].nbytes
    edges = [size for regime in model.regimes for size in (regime.first_nbytes, regime.last_nbytes)]
    sizes = sorted({*np.geomspace(first, last, _MODEL_POINTS).tolist(), *edges})
    _plot(axes, [(size, value(series, size, model.seconds(size))) for size in sizes], color=colour)
    starts = [regime.first_nbytes for regime in model.regimes[1:]]
    ticks = [(size, value(series, size, model.seconds(size))) for size in starts]
    _plot(axes, ticks, color=INK, marker="|", markersize=13, markeredgewidth=1.4, linewidth=0, zorder=5)
    if line and line.window.first_nbytes and line.window.last_nbytes:
        window = np.geomspace(line.window.first_nbytes, line.window.last_nbytes, _MODEL_POINTS).tolist()
        timed = [(size, value(series, size, line.line.seconds(series.fit.factor * size))) for size in window]
        _plot(
            axes, timed, color=INK, linewidth=1, linestyle=(0, (4, 2)), zorder=1.5
        )  # seen where it parts from the fit


def _values(series: Series, points: Iterable[Measured], value: Value) -> list[tuple[float, float | None]]:
    return [(point.nbytes, value(series, point.nbytes, point.seconds)) for point in points]


def _plot(axes: "Axes", points: Sequence[tuple[float, float | None]], **style: Any) -> None:
    known = [point for point in points if point[1] is not None]
    if known:
        axes.plot(*zip(*known, strict=True), **style)


def _size_axis(axes: "Axes", panel: Panel) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter

    sizes = [point.nbytes for series in panel.series for point in series.points]
    axes.set_xscale("log", base=2)
    if min(sizes) == max(sizes):  # a scale without an extent has no ticks
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    axes.xaxis.set_major_locator(FixedLocator(size_ticks(min(sizes), max(sizes))))
    axes.xaxis.set_major_formatter(lambda nbytes, _: format_nbytes(nbytes))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("size S (bytes, binary units)", color=MUTED)


def format_tick_seconds(seconds: float) -> str:
    """`10 us`, `1.5 ms`: as short as a tick can be."""
    return re.sub(r"(\.\d*?)0+ ", r"\1 ", format_seconds(seconds)).replace(". ", " ")


def size_ticks(first: int, last: int) -> list[float]:
    """At most _MOST_LABELS powers of two in the range, a round step apart; the ends where it holds none."""
    low, high = ceil(log2(first)), floor(log2(last))
    if low > high:
        return [float(first), float(last)]
    step = next(step for step in (1, 2, 5, 10, 20, 60) if (high - low) // step < _MOST_LABELS)
    anchor = -(-low // step) * step if high - low >= step else low
    return [2.0**power for power in range(anchor, high + 1, step)]
