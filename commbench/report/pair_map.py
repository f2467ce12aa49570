"""The pairs as a square picture: rows send, columns receive, darker is slower, culprits are red at the edge."""

import warnings
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from commbench.analysis.localize import Diagnosis
from commbench.analysis.pair_levels import quantiles
from commbench.analysis.suspects import LINKS, Verdict
from commbench.results.pairs import PairTable
from commbench.units import format_nbytes, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 128  # more endpoints share a row, which shows the median of its pairs
_MOST_NAMES = 40
_DARKEST = 2.0  # times the usual time
_RED = "#D55E00"
_STYLE: Any = {"font.size": 9, "axes.titlelocation": "left", "axes.titlesize": 12, "axes.titleweight": "bold"}


def draw_pair_map(diagnosis: Diagnosis, table: PairTable, verdicts: Sequence[Verdict]) -> bytes:
    """PNG bytes. `table`: the first rounds' results, and the retests' if they are to be seen too."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    names, ratios, failed, rows_of = fold(diagnosis, table)
    with mpl.rc_context(_STYLE):
        side = min(12.0, max(5.0, 0.3 * min(len(names), _MOST_NAMES) + 2.5))
        figure = Figure(figsize=(side + 1.2, side), dpi=110, layout="constrained")
        axes = figure.add_subplot()
        colours = mpl.colormaps["cividis_r"].with_extremes(bad="#F1F1EF")
        image = axes.imshow(ratios, cmap=colours, vmin=1.0, vmax=_DARKEST, interpolation="nearest")
        figure.colorbar(image, ax=axes, shrink=0.8, extend="max", label="times the usual time")
        axes.plot(*np.argwhere(failed).T[::-1], "x", color=_RED, markersize=6, linestyle="none")
        culprits = [one for one in verdicts if one.state == "confirmed"]
        _mark(axes, names, rows_of, culprits)
        usual = diagnosis.usual_seconds
        shown = "" if usual is None else f", usual {format_seconds(usual)}"
        axes.set_title(f"{format_nbytes(diagnosis.nbytes)} between pairs{shown}")
        axes.set(xlabel=f"receives\n\n{_legend(diagnosis, len(names))}", ylabel="sends")
        png = BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font has not is drawn as boxes
            figure.savefig(png, format="png")
    return png.getvalue()


def fold(diagnosis: Diagnosis, table: PairTable) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Names of the rows; the square of ratios (NaN: not measured) and of failures; and the row of each endpoint."""
    endpoints = diagnosis.cluster.endpoints
    per_row = -(-endpoints // MOST_ROWS)
    rows_of = np.arange(endpoints) // per_row
    count = int(rows_of[-1]) + 1
    names = [diagnosis.cluster.name(row * per_row) + (" …" if per_row > 1 else "") for row in range(count)]
    usual = np.nan if diagnosis.usual_seconds is None else diagnosis.usual_seconds
    cells = rows_of[table.senders] * count + rows_of[table.receivers]
    is_failure = np.isnan(table.seconds)
    medians, _ = quantiles(table.seconds[~is_failure], cells[~is_failure], count * count, 0.5)
    failed = np.zeros(count * count, dtype=bool)
    failed[cells[is_failure]] = True
    return names, medians.reshape(count, count) / usual, failed.reshape(count, count), rows_of


def _mark(axes: "Axes", names: Sequence[str], rows_of: np.ndarray, culprits: Sequence[Verdict]) -> None:
    """Culprits' names in red, slow links in a frame; of many names only the culprits', and some between."""
    from matplotlib.patches import Rectangle

    ends = {end for one in culprits if one.suspect.kind not in LINKS for end in one.suspect.members}
    red = {int(rows_of[end]) for end in ends}
    step = -(-len(names) // _MOST_NAMES)
    near = {row + offset for row in red for offset in range(1 - step, step)}
    ticks = sorted({row for row in range(0, len(names), step) if row not in near} | red)
    labels = [names[row].replace("$", r"\$") for row in ticks]
    axes.set_xticks(ticks, labels, rotation=90)
    axes.set_yticks(ticks, labels)
    for row, *texts in zip(ticks, axes.get_xticklabels(), axes.get_yticklabels(), strict=True):
        for text in texts if row in red else []:
            text.set(color=_RED, fontweight="bold")
    for one in culprits:
        if one.suspect.kind in LINKS:
            a, b = (int(rows_of[end]) for end in one.suspect.members)
            for row, column in {(a, b), (b, a)} if one.suspect.side == "both" else {(a, b)}:
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=_RED, linewidth=2))


def _legend(diagnosis: Diagnosis, rows: int) -> str:
    folded = "" if rows == diagnosis.cluster.endpoints else "; rows hold several nodes, and show their median pair"
    return f"red: to blame; cross: failed; grey: not measured{folded}"
