"""Scaling over a ladder: busbw at the largest size and time at the smallest, over the number of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from commbench.report.fit_plots import MARKERS, format_tick_seconds
from commbench.report.reported import Reported
from commbench.report.scaling import Climb, climb_ladders
from commbench.report.svg import INK, SERIES, draw_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_CLIMBS = len(SERIES)


@dataclass(frozen=True, slots=True)
class LadderPlot:
    """A picture with its legend: label and number of the colour. `left_out`: how many curves it lacks."""

    title: str
    svg: Markup
    legend: tuple[tuple[str, int], ...]
    left_out: int


def draw_ladders(reported: Sequence[Reported]) -> list[LadderPlot]:
    """At most two pictures: of busbw, and of times; [] without a ladder."""
    climbs = [(one, climb) for one in reported for climb in climb_ladders(one.run)]
    plots = []
    for by_time, title in ((False, "busbw at the largest size"), (True, "time at the smallest size")):
        found = [(one, climb) for one, climb in climbs if climb.by_time is by_time]
        if found:
            plots.append(_plot(title, found, len(reported) > 1))
    return plots


def _plot(title: str, climbs: Sequence[tuple[Reported, Climb]], several_runs: bool) -> LadderPlot:
    shown = [climb for _, climb in climbs[:MOST_CLIMBS]]
    labels = [
        f"{one.label + ': ' if several_runs else ''}{climb.question.words(climb.nbytes)}"
        for one, climb in climbs[:MOST_CLIMBS]
    ]
    svg = draw_svg(lambda axes: _draw(axes, shown), f"{title} over the number of ranks")
    legend = tuple((label, colour) for colour, label in enumerate(labels))
    return LadderPlot(title, svg, legend, len(climbs) - len(shown))


def _draw(axes: "Axes", climbs: Sequence[Climb]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    for colour, climb in enumerate(climbs):
        ranks = [row.ranks or 0 for row in climb.rungs]
        values = [row.seconds_median if climb.by_time else row.busbw_gbps for row in climb.rungs]
        axes.plot(ranks, [value or 0.0 for value in values], color=SERIES[colour], marker=MARKERS[colour])
        if climb.bend is not None:
            at = ranks[climb.bend], values[climb.bend] or 0.0
            axes.plot(*at, marker="o", markersize=13, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted({row.ranks or 0 for climb in climbs for row in climb.rungs})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda ranks, _: f"{ranks:.0f}")
    axes.set_xlabel("ranks")
    axes.set_ylim(bottom=0)
    if climbs[0].by_time:
        axes.yaxis.set_major_formatter(lambda seconds, _: format_tick_seconds(seconds) if seconds else "0")
    axes.set_title("time per call" if climbs[0].by_time else "busbw (GB/s of 1e9 bytes)")
