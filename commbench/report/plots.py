"""Two pictures of a run for every layout: busbw over size, and time over size with the interval as a band."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from commbench.report.table import Line, table_lines
from commbench.results.kinds import KINDS
from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from commbench.units import format_nbytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers too; markers tell them apart in print.
COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#8A6D3B",
    "#666666",
    "#7F3C8D",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_LEGEND_LINE = 0.08  # of the axis' height
_LONGEST_SUFFIX = 100  # of a file name, which may have 255 bytes
STYLE: Any = {
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.titlelocation": "left",
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
}


def draw_plots(run: Run) -> dict[str, bytes]:
    """PNG bytes by file name, for every layout that has at least one timed size; empty where there is none."""
    lines = [line for line in table_lines(run.rows) if line.row.seconds_median is not None and line.row.size_bytes]
    views: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        views.setdefault(_view(line.row), []).append(line)
    plots: dict[str, bytes] = {}
    for view, shown in views.items():
        suffix = "" if len(views) == 1 else "-" + re.sub(r"[^\w.=-]+", "_", "-".join(view))[:_LONGEST_SUFFIX]
        while f"busbw{suffix}.png" in plots:  # ranks:0,1/2 and ranks:0/1,2
            suffix += "_"
        plots[f"busbw{suffix}.png"] = _figure(run, view, shown, "Bus bandwidth over size", _draw_busbw)
        plots[f"time{suffix}.png"] = _figure(run, view, shown, "Time over size", _draw_time)
    return plots


def _view(row: SummaryRow) -> tuple[str, ...]:
    """What belongs into one picture: lines of the same layout; collectives and types are told apart inside it."""
    return (row.layout, row.concurrency)


def _figure(run: Run, view: tuple[str, ...], lines: Sequence[Line], title: str, draw: Callable[..., None]) -> bytes:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 5.4), dpi=150)
        # Fixed margins: a layout engine draws everything twice to find them.
        axes = figure.subplots(gridspec_kw={"left": 0.115, "right": 0.985, "bottom": 0.1, "top": 0.87})
        for index, (label, series) in enumerate(_series(lines)):
            draw(axes, series, label, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
        axes.set_title(title, pad=24)
        style: Any = {"transform": axes.transAxes, "color": "#555555", "fontsize": 9.5, "parse_math": False}
        axes.text(0, 1.02, _subtitle(run, view, lines), **style)
        axes.grid(True, which="major", color="#DDDDDD", linewidth=0.7)
        axes.set_axisbelow(True)
        size_axis(axes, sorted({line.row.size_bytes or 0 for line in lines}))
        if axes.get_yscale() == "linear":  # room for the legend above the lines; on a log axis the corner is free
            axes.set_ylim(top=axes.get_ylim()[1] * (1 + _LEGEND_LINE * len(axes.lines)))
        axes.legend(loc="upper left")
        png = BytesIO()
        figure.savefig(png, format="png")
    return png.getvalue()


def _series(lines: Sequence[Line]) -> list[tuple[str, list[SummaryRow]]]:
    """One line of the picture for each collective, and for each type and operator where there are several."""
    rows = [line.row for line in lines]
    redops = {row.redop for row in rows if KINDS[row.collective].reduces}
    several = len(redops) > 1 or len({row.dtype for row in rows}) > 1
    several_sizes = len({row.ranks for row in rows}) > 1
    both_places = {row.collective for row in rows if row.in_place} & {r.collective for r in rows if not r.in_place}

    series: dict[tuple[str, str, str, int | None, str, bool], list[SummaryRow]] = {}
    for row in rows:
        key = (row.collective, row.dtype, row.redop, row.ranks, row.variant, row.in_place)
        series.setdefault(key, []).append(row)
    found = []
    for (name, dtype, redop, ranks, variant, in_place), group in series.items():
        kind = f" {dtype}{'' if redop == 'none' else ' ' + redop}" if several else ""
        size = f" on {'?' if ranks is None else ranks} ranks" if several_sizes else ""
        place = (" in place" if in_place else " out of place") if name in both_places else ""
        label = f"{name}{kind}{size}{place}{' ' + variant if variant else ''}"
        found.append((f"{label}  ({_factor_text(name, ranks)})", _slowest_by_size(group)))
    return found


def _factor_text(name: str, ranks: int | None) -> str:
    factor = KINDS[name].bus_factor(ranks)
    if factor is not None:
        return f"factor {KINDS[name].factor_text} = {factor:.3g}"
    return "one rank" if ranks == 1 else "factor unknown"


def _slowest_by_size(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """One row a size: rounds of pairs, and groups that are timed alone, are cases of their own."""
    slowest = {row.size_bytes or 0: row for row in sorted(rows, key=lambda row: row.seconds_median or 0.0)}
    return [slowest[size] for size in sorted(slowest)]


def _draw_busbw(axes: "Axes", rows: Sequence[SummaryRow], label: str, colour: str, marker: str) -> None:
    timed = [row for row in rows if row.busbw_gbps is not None]
    axes.plot(
        [row.size_bytes or 0 for row in timed],
        [row.busbw_gbps or 0.0 for row in timed],
        label=label,
        color=colour,
        marker=marker,
    )
    axes.set_ylabel("busbw = algbw × factor  (GB/s, 1e9 bytes)")
    axes.set_ylim(bottom=0)


def _draw_time(axes: "Axes", rows: Sequence[SummaryRow], label: str, colour: str, marker: str) -> None:
    from matplotlib.ticker import LogLocator

    sizes = [row.size_bytes or 0 for row in rows]
    axes.plot(sizes, [row.seconds_median or 0.0 for row in rows], label=label, color=colour, marker=marker)
    bounded = [row for row in rows if row.seconds_ci_low is not None and row.seconds_ci_high is not None]
    low, high = (
        [row.seconds_ci_low or 0.0 for row in bounded],
        [row.seconds_ci_high or 0.0 for row in bounded],
    )
    axes.fill_between([row.size_bytes or 0 for row in bounded], low, high, color=colour, alpha=0.22, linewidth=0)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda seconds, _: format_seconds(seconds).replace(".00", "").replace(".0 ", " "))
    axes.set_ylabel("time per call, median with its 95 % interval")


def size_axis(axes: "Axes", sizes: Sequence[int]) -> None:
    """Sizes from left to right on a log axis, with labels that do not touch."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log", base=2)
    step = -(-len(sizes) // 12)  # at most twelve labels: they must not touch
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)[::step]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda nbytes, _: format_nbytes(nbytes))
    axes.set_xlabel("size S: the larger of one rank's buffers")


def _subtitle(run: Run, view: tuple[str, ...], lines: Sequence[Line]) -> str:
    layout, concurrency = view
    counted: Counter[tuple[Any, ...]] = Counter()
    for line in lines:
        row = line.row
        counted[row.collective, row.dtype, row.redop, row.ranks, row.size_bytes] += line.groups
    groups = max(counted.values())
    where = (
        f"{'?' if run.record.world_size is None else run.record.world_size} ranks"
        if layout == "world"
        else f"layout {layout}, {groups} groups {concurrency}, the slowest"
    )
    links = ", ".join(sorted({line.row.link_class for line in lines}))
    dtypes = ", ".join(sorted({line.row.dtype for line in lines}))
    return f"{where} over {links}; {run.record.backend}, {dtypes}, {lines[0].row.mode}; {run.record.created_utc[:10]}"
