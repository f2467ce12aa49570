"""Tables of a report as cells: what a page shows of them, and where the rest is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from commbench.report.fits import LINE_SUMMARY_HEADINGS, FitTable, line_summary
from commbench.report.series import Panel
from commbench.report.table import Column as TableColumn
from commbench.report.table import Line, section_of, shown_columns, table_lines
from commbench.results.store import SUMMARY_FILE, Run

MOST_FIT_ROWS = 200
# Columns of the measured table that are left out where all cases agree.
_CONDITIONS = frozenset(
    {"type", "redop", "in place", "layout", "variant", "ranks", "groups", "concurrency", "link class"}
)


@dataclass(frozen=True, slots=True)
class Column:
    """The lines of a heading, and whether the cells are numbers."""

    heading: tuple[str, ...]
    is_number: bool


@dataclass(frozen=True, slots=True)
class Row:
    """`status`: of a measured case, else empty; `opens`: the first of those that belong together."""

    cells: tuple[str, ...]
    status: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `common`: what all rows share, said once; `left_out`: how many rows it lacks, and where they are."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    common: str = ""
    left_out: str = ""


def case_grid(title: str, run: Run, most_rows: int) -> Grid:
    """The table of a run, of its first `most_rows` cases."""
    lines = table_lines(run.rows)
    columns, common = _varying_columns(lines)
    rows = []
    for _, section in groupby(lines[:most_rows], key=section_of):
        for number, line in enumerate(section):
            cells = tuple(column.cell(line) for column in columns)
            rows.append(Row(cells, line.row.status, opens=number == 0))
    shown = tuple(Column(_heading(column.heading), column.right) for column in columns)
    more = len(lines) - most_rows
    left_out = f"{more} more of {len(lines)} cases are in {run.directory.name}/{SUMMARY_FILE}." if more > 0 else ""
    return Grid(title, shown, tuple(rows), common, left_out)


def _varying_columns(lines: Sequence[Line]) -> tuple[list[TableColumn], str]:
    """The columns without those conditions that all lines share, and these in words."""
    columns, common = [], []
    for column in shown_columns(lines):
        name = " ".join(_heading(column.heading))
        cells = {column.cell(line) for line in lines} if name in _CONDITIONS else set()
        if len(cells) == 1:
            common.append(f"{name} {cells.pop()}".strip())
        else:
            columns.append(column)
    return columns, ", ".join(common)


def fit_grid(table: FitTable) -> Grid:
    """A table of fits without its empty columns, of its first MOST_FIT_ROWS rows."""
    kept = [index for index in range(len(table.headings)) if any(row[index] for row in table.rows)]
    columns = tuple(Column(_heading(table.headings[index]), index >= table.left) for index in kept)
    rows = tuple(Row(tuple(row[index] for index in kept)) for row in table.rows[:MOST_FIT_ROWS])
    more = len(table.rows) - MOST_FIT_ROWS
    left_out = f"{more} more of {len(table.rows)} rows are printed by commbench fit." if more > 0 else ""
    return Grid(table.title, columns, rows, left_out=left_out)


def line_grid(panel: Panel, window: str) -> Grid:
    """The planner's lines of the curves of a panel; `window` in words."""
    headings = ("", *LINE_SUMMARY_HEADINGS)
    rows = tuple((series.label, *line_summary(series.fit)) for series in panel.series if series.fit)
    return fit_grid(FitTable(f"The planner's line on sizes {window}", headings, rows, 2))


def _heading(text: str) -> tuple[str, ...]:
    return tuple(text.strip().split("\n"))


def first_lines(lines: Sequence[str], most: int, where: str) -> list[str]:
    """The first `most` lines, and how many more there are and where."""
    more = len(lines) - most
    return [*lines[:most], f"and {more} more: {where}."] if more > 0 else list(lines)
