"""Tables of a report as cells: what a page shows of them, and where the rest is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from commbench.report.fits import FitTable
from commbench.report.table import section_of, shown_columns, table_lines
from commbench.results.store import SUMMARY_FILE, Run

MOST_FIT_ROWS = 200


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
    """A table. `left_out` says how many rows it lacks and where they are; empty where it lacks none."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    left_out: str = ""


def case_grid(title: str, run: Run, most_rows: int) -> Grid:
    """The table of a run, of its first `most_rows` cases."""
    lines = table_lines(run.rows)
    columns = shown_columns(lines)
    rows = []
    for _, section in groupby(lines[:most_rows], key=section_of):
        for number, line in enumerate(section):
            cells = tuple(column.cell(line) for column in columns)
            rows.append(Row(cells, line.row.status, opens=number == 0))
    shown = tuple(Column(_heading(column.heading), column.right) for column in columns)
    more = len(lines) - most_rows
    left_out = f"{more} more of {len(lines)} cases are in {run.directory.name}/{SUMMARY_FILE}." if more > 0 else ""
    return Grid(title, shown, tuple(rows), left_out)


def fit_grid(table: FitTable) -> Grid:
    """A table of fits without its empty columns, of its first MOST_FIT_ROWS rows."""
    kept = [index for index in range(len(table.headings)) if any(row[index] for row in table.rows)]
    columns = tuple(Column(_heading(table.headings[index]), index >= table.left) for index in kept)
    rows = tuple(Row(tuple(row[index] for index in kept)) for row in table.rows[:MOST_FIT_ROWS])
    more = len(table.rows) - MOST_FIT_ROWS
    left_out = f"{more} more of {len(table.rows)} rows are printed by commbench fit." if more > 0 else ""
    return Grid(table.title, columns, rows, left_out)


def _heading(text: str) -> tuple[str, ...]:
    return tuple(text.strip().split("\n"))


def first_lines(lines: Sequence[str], most: int, where: str) -> list[str]:
    """The first `most` lines, and how many more there are and where."""
    more = len(lines) - most
    return [*lines[:most], f"and {more} more: {where}."] if more > 0 else list(lines)
