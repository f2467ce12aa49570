"""A history as a picture: alpha and B of each link class over the runs, with the levels between steps."""

from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from commbench.analysis.history import History, Trend
from commbench.report.plots import COLOURS, STYLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_PANELS = 8
_MOST_LABELS = 8


def draw_history(history: History) -> bytes:
    """PNG bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = history.trends[:_MOST_PANELS]
    height = 2.3 * len(shown) + 1.2
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, height), dpi=150)
        grid: Any = {"left": 0.1, "right": 0.97, "bottom": 0.6 / height, "top": 1 - 0.85 / height, "hspace": 0.4}
        every = figure.subplots(len(shown), 1, squeeze=False, sharex=True, gridspec_kw=grid)
        figure.text(0.1, 1 - 0.36 / height, "alpha and B over the runs", fontsize=13, fontweight="bold")
        for index, (axes, trend) in enumerate(zip(every[:, 0], shown, strict=True)):
            _draw_trend(axes, trend, COLOURS[index % 2])
        _date_axis(every[-1, 0], history.created_utc)
        png = BytesIO()
        figure.savefig(png, format="png")
    return png.getvalue()


def _draw_trend(axes: "Axes", trend: Trend, colour: str) -> None:
    from matplotlib.ticker import FuncFormatter

    values = np.array([np.nan if value is None else 100 * (value - 1) for value in trend.values])
    axes.plot(range(len(values)), values, "o", color=colour, markersize=4)
    edges = [0, *(step.index for step in trend.steps), len(values)]
    for start, end in pairwise(edges):
        axes.plot([start - 0.4, end - 0.6], [np.nanmedian(values[start:end])] * 2, color="#333333", linewidth=1.6)
    for step in trend.steps:
        axes.axvline(step.index - 0.5, color="#D55E00" if step.is_worse else "#009E73", linestyle="--", linewidth=1.2)
        words = f" {100 * (step.ratio.value - 1):+.1f} %, {step.after_utc[:10]}"
        axes.text(step.index - 0.5, 1.0, words, transform=axes.get_xaxis_transform(), va="top", fontsize=9)
    axes.margins(y=0.25)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+.3g}%" if value else "0%"))
    better = "lower is better" if trend.coefficient == "alpha" else "higher is better"
    title = f"{trend.coefficient} of {trend.link_class}, against the median of all runs ({better})"
    axes.set_title(title, fontsize=10, fontweight="normal", parse_math=False)
    axes.grid(True, axis="y", color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)


def _date_axis(axes: "Axes", created_utc: Sequence[str]) -> None:
    """Runs at equal distances, as they follow each other; some of them with their dates."""
    every = -(-len(created_utc) // _MOST_LABELS)
    places = list(range(0, len(created_utc), every))
    axes.set_xticks(places, [created_utc[place][:10] for place in places])
    axes.set_xlabel("run, by the date it was measured")
