"""A table of cells as text for people."""

from collections.abc import Sequence

_WIDE = 1 << 20  # a table is never cut: people pipe it


def format_text_table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """The table with its first `left` columns to the left, the others to the right; empty columns are left out."""
    from io import StringIO

    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    shown = [index for index in range(len(headings)) if any(row[index] for row in rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for index in shown:
        table.add_column(headings[index], justify="left" if index < left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(row[index] for index in shown))
    text = StringIO()
    Console(file=text, width=_WIDE, color_system=None, markup=False, highlight=False).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")
