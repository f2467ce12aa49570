"""Matplotlib's drawings as SVG inside a page: they take the page's colours and font, so they read light, dark, printed.

A drawing is made in stand-in colours, which then become the page's CSS variables. No text of a run is put into one:
names stand in the page around it.
"""

import re
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIES = tuple(f"#f00d{number:02x}" for number in range(10))
INK, MUTED, GRID, PAPER = "#f00da0", "#f00da1", "#f00da2", "#f00da3"
_VARIABLES = {
    **{colour: f"--c{number}" for number, colour in enumerate(SERIES)},
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    PAPER: "--paper",
}
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: small, sharp, and found by a search
    "svg.hashsalt": "commbench",  # the same drawing, the same bytes
    "text.parse_math": False,
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",  # what the y axis shows stands above it, where it can be read and has room
    "axes.titlesize": 9.5,
    "axes.titlecolor": MUTED,
    "axes.titlepad": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.8,
}
_LEFT, _RIGHT, _BOTTOM, _TOP = 0.74, 0.12, 0.52, 0.3  # inches: a layout engine would draw everything twice


def draw_svg(draw: Callable[["Axes"], None], description: str, width: float = 5.6, height: float = 3.5) -> Markup:
    """The SVG element of what `draw` puts on the axes; sizes in inches. `description` is for who cannot see it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height))
        margins = {"left": _LEFT / width, "right": 1 - _RIGHT / width, "bottom": _BOTTOM / height}
        axes = figure.subplots(gridspec_kw={**margins, "top": 1 - _TOP / height})
        draw(axes)
        file = BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _embed(file.getvalue().decode(), description)


def _embed(document: str, description: str) -> Markup:
    """Without what a page must not have twice (ids that nothing names) or at all (a style for every element)."""
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub("|".join(_VARIABLES), lambda match: f"var({_VARIABLES[match[0]]})", svg)
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r"[ \t]*\n[ \t]*", "\n", svg)
    return Markup(svg.replace("<svg ", f'<svg class="plot" role="img" aria-label="{escape(description)}" ', 1))
