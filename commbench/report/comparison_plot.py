"""A comparison as a picture: for each link class the ratio of times over size, with its interval."""

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from commbench.analysis.comparison import CaseChange, Comparison
from commbench.report.comparison_words import CHANGED, coefficients_line, verdict_line
from commbench.report.plots import COLOURS, MARKERS, STYLE, size_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 6
_SPREAD = 0.06  # of an octave, between the curves, so that their intervals do not hide each other
_FARTHEST = 2.5  # an interval that goes farther is cut at the edge


def draw_comparison(comparison: Comparison) -> bytes:
    """PNG bytes. There is at least one case with a size."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    panels: dict[str, list[CaseChange]] = {}
    for case in comparison.cases:
        if case.key.size_bytes:
            panels.setdefault(case.key.link_class, []).append(case)
    shown = list(panels.items())[:_MOST_PANELS]
    lines = {link.link_class: coefficients_line(link) for link in comparison.links}
    with mpl.rc_context(STYLE):
        height = 3.4 * len(shown) + 1.3
        figure = Figure(figsize=(9.5, height), dpi=150)
        grid: Any = {"left": 0.1, "right": 0.78, "bottom": 0.65 / height, "top": 1 - 0.95 / height, "hspace": 0.45}
        every = figure.subplots(len(shown), 1, squeeze=False, gridspec_kw=grid)
        figure.text(0.1, 1 - 0.35 / height, "Time of new over base", fontsize=13, fontweight="bold", parse_math=False)
        style: Any = {"fontsize": 9.5, "color": "#555555", "parse_math": False}
        figure.text(0.1, 1 - 0.58 / height, f"{verdict_line(comparison)} Full markers are claims.", **style)
        for axes, (link_class, cases) in zip(every[:, 0], shown, strict=True):
            _draw_panel(axes, cases, comparison.rules.least_effect)
            axes.text(0, 1.03, lines.get(link_class, link_class), transform=axes.transAxes, **style)
        png = BytesIO()
        figure.savefig(png, format="png")
    return png.getvalue()


def _draw_panel(axes: "Axes", cases: Sequence[CaseChange], least: float) -> None:
    from matplotlib.ticker import PercentFormatter

    curves: dict[tuple[object, ...], list[CaseChange]] = {}
    for case in cases:
        curves.setdefault(case.key.series, []).append(case)
    axes.axhspan(1 / (1 + least), 1 + least, color="#EEEEEE", zorder=0)
    axes.axhline(1, color="#888888", linewidth=1)
    for index, members in enumerate(curves.values()):
        shift = 2 ** (_SPREAD * 2 * (index - (len(curves) - 1) / 2))
        _draw_curve(axes, members, shift, COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)])
    size_axis(axes, sorted({case.key.size_bytes or 0 for case in cases}))
    bounds = [edge for case in cases for edge in (case.time.low, case.time.high) if 1 / _FARTHEST <= edge <= _FARTHEST]
    bounds += [min(max(case.time.value, 1 / _FARTHEST), _FARTHEST) for case in cases]
    axes.set_ylim(min([*bounds, 1 / (1 + 2 * least)]) * 0.97, max([*bounds, 1 + 2 * least]) * 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylabel("time, new / base")
    axes.grid(True, axis="y", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.03), fontsize=9, handlelength=1.2)


def _draw_curve(axes: "Axes", cases: Sequence[CaseChange], shift: float, colour: str, marker: str) -> None:
    """Full markers are claims, hollow ones are not."""
    label = _label(cases[0])
    for case in cases:
        arms = [[case.time.value - case.time.low], [min(case.time.high, 1e9) - case.time.value]]
        claimed = case.verdict in CHANGED
        axes.errorbar(
            [(case.key.size_bytes or 0) * shift], [case.time.value], yerr=arms, fmt=marker, color=colour, capsize=2.5,
            markerfacecolor=colour if claimed else "white", elinewidth=1.2, label=label,
        )  # fmt: skip
        label = "_nolegend_"


def _label(case: CaseChange) -> str:
    key = case.key
    words = [key.collective, key.dtype, *([key.layout] if key.layout != "world" else []), key.variant]
    return "\n".join([" ".join(word for word in words if word)[:40], f"  {key.ranks or '?'} ranks, {key.concurrency}"])
