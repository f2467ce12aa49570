"""One row of nccl-tests' and rccl-tests' table, in every layout from 1.0 to 2.20.

A row is printed in three writes: what was asked, the out-of-place body, the in-place body. Log messages get between
them, so a row may come in pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from commbench.results.importers.checks import agrees
from commbench.results.importers.numbers import (
    DTYPES_BY_NAME,
    REDOPS_BY_NAME,
    read_dtype,
    read_printed,
    read_whole,
    read_wrong,
)
from commbench.results.importers.records import ForeignRow, Printed, Spread

_NAMES = {"bytes": "size", "n": "count", "op": "redop", "res": "error", "cputime": "time"}
_BODY = ("time", "algbw", "busbw", "#wrong")
_PER_ITERATION = ("i_min", "i_max", "i_p99", "i_cv%")  # -I, since 2.19.2
_WORDS = frozenset(("algo", "proto", "nchannels", "hipevt"))  # of rccl-tests


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a table. `redop`, `root`: whether it has them, None where no header says.

    `time_scale`: seconds in the unit of the time column.
    """

    redop: bool | None = None
    root: bool | None = None
    bodies: tuple[tuple[str, ...], ...] = (_BODY, _BODY)
    time_scale: float = 1e-6
    has_header: bool = False
    cpu_time: bool = False

    @property
    def counts_wrong(self) -> bool:
        """Whether the last column counts wrong elements; up to 2.12 it was the largest rounding error."""
        return any("#wrong" in body for body in self.bodies)


@dataclass(frozen=True, slots=True)
class Asked:
    """The first part of a row."""

    nbytes: int
    count: int
    dtype: str
    redop: str
    root: int | None


@dataclass(frozen=True, slots=True)
class Pieces:
    """A row as far as it is there: what was asked, and the cells of its bodies."""

    line: int
    asked: Asked
    cells: tuple[str, ...]


def read_header(cells: Sequence[str]) -> Layout | None:
    """The layout that a header line names; None if the line is none."""
    if len(cells) < 3:
        return None
    words = [word for cell in cells for word in cell.lower().lstrip("#").split() if word]
    names = [_NAMES.get(word, word) for word in words]
    if "size" not in names or "time" not in names or "algbw" not in names:
        return None
    # `#wrong` lost its mark with the line's own above
    names = ["#wrong" if name == "wrong" else name for name in names][names.index("size") :]
    first = names.index("time")
    starts = [place for place, name in enumerate(names) if name == "time"][:2]
    ends = [*starts[1:], len(names)]
    bodies = tuple(tuple(names[start:end]) for start, end in zip(starts, ends, strict=True))
    old = "bytes" in words  # 1.0 printed milliseconds
    return Layout(
        "redop" in names[:first], "root" in names[:first], bodies, 1e-3 if old else 1e-6, True, "cputime" in words
    )


def find_row(cells: Sequence[str], line: int, layout: Layout) -> Pieces | None:
    """The row in these cells, wherever it starts; None if there is no `size count type`."""
    for place in range(2, len(cells)):
        if cells[place].lower() in DTYPES_BY_NAME:
            nbytes, count = read_whole(cells[place - 2]), read_whole(cells[place - 1])
            if nbytes is not None and count is not None:
                return _pieces(nbytes, count, cells[place], cells[place + 1 :], line, layout)
    return None


def _pieces(nbytes: int, count: int, dtype: str, rest: Sequence[str], line: int, layout: Layout) -> Pieces:
    rest = _without_timestamp(rest)
    redop, root = "none", None
    if rest and rest[0].lower() in REDOPS_BY_NAME:
        redop, rest = rest[0].lower(), rest[1:]
    if rest and _has_root(rest, layout):
        root, rest = int(rest[0]), rest[1:]
    return Pieces(line, Asked(nbytes, count, read_dtype(dtype), redop, root), tuple(rest))


def _has_root(rest: Sequence[str], layout: Layout) -> bool:
    """Whether the next cell is a root. Without a header, bodies of four columns leave it over."""
    if not rest[0].lstrip("-").isdecimal() or len(rest[0]) > 6 or rest[0].startswith("--"):
        return False
    if layout.root is not None and layout.has_header:
        return layout.root
    return rest[0] == "-1" or len(rest) % 4 == 1


def _without_timestamp(cells: Sequence[str]) -> Sequence[str]:
    """-S, since 2.17.6, ends a row with a date and a time."""
    for place in range(len(cells) - 1, 0, -1):
        date = cells[place - 1]
        if len(date) == 10 and date[4] == "-" == date[7] and len(cells[place]) == 8 and cells[place][2] == ":":
            return cells[: place - 1]
    return cells


def is_body(cells: Sequence[str]) -> bool:
    """Whether a line holds nothing but the cells of a body or two: the rest of a torn row."""
    return 4 <= len(cells) <= 24 and all(_is_value(cell) for cell in cells) and any("." in cell for cell in cells)


def is_rest(cells: Sequence[str], layout: Layout) -> bool:
    """Whether a line is exactly the one body or the two that a row of this layout ends with."""
    width = body_width(layout, cells)
    return len(cells) in (width, 2 * width) and is_body(cells)


def _is_value(cell: str) -> bool:
    return cell == "N/A" or read_printed(cell.rstrip("*")) is not None


def body_width(layout: Layout, cells: Sequence[str]) -> int:
    """Columns of one body. Without a header, sixteen cells or more are the bodies of -I."""
    if layout.has_header:
        return len(layout.bodies[0])
    return 8 if len(cells) >= 16 else 4


def is_whole(pieces: Pieces, layout: Layout) -> bool:
    """Whether every body of the row is there."""
    width = body_width(layout, pieces.cells)
    return len(pieces.cells) >= width * len(layout.bodies)


def rows_of(pieces: Pieces, layout: Layout) -> list[ForeignRow]:
    """A row for each body: out of place, then in place. A body that is not all there is `incomplete`."""
    bodies: tuple[tuple[str, ...], ...] = layout.bodies
    width = body_width(layout, pieces.cells)
    if not layout.has_header:
        unnamed = _BODY + _PER_ITERATION if width == 8 else _BODY
        bodies = (unnamed,) if len(pieces.cells) == width else (unnamed, unnamed)
    rows = []
    for place, names in enumerate(bodies):
        cells = pieces.cells[place * width : place * width + len(names)]
        rows.append(_row(pieces, dict(zip(names, cells, strict=False)), len(cells) == len(names), place == 1, layout))
    return rows


def _row(pieces: Pieces, body: dict[str, str], is_there: bool, in_place: bool, layout: Layout) -> ForeignRow:
    asked = pieces.asked
    seconds = read_printed(body.get("time", ""), layout.time_scale) if is_there else None
    row = ForeignRow(
        pieces.line, asked.nbytes, seconds, count=asked.count, dtype=asked.dtype, redop=asked.redop, root=asked.root,
        in_place=in_place,
    )  # fmt: skip
    if seconds is None:
        why = "is cut off" if not is_there else "does not read as numbers"
        return replace(row, status="incomplete", reason=f"line {pieces.line}: this half of the row {why}")
    checked = body.get("#wrong", body.get("error", "N/A"))
    wrong = read_wrong(checked) if layout.counts_wrong else None
    if wrong or checked.endswith("*"):
        why = f"{wrong} wrong elements" if wrong else f"error {checked.rstrip('*')} above the tool's threshold"
        row = replace(row, status="wrong", reason=f"line {pieces.line}: {why}")
    elif asked.nbytes == 0:
        row = replace(row, status="skipped", reason="size 0: less than one element for each rank")
    return replace(
        row,
        wrong=wrong,
        algbw=_gigabytes(body.get("algbw", "")),
        busbw=_gigabytes(body.get("busbw", "")),
        spread=_spread(body),
        variant=_variant(body),
    )


def _gigabytes(cell: str) -> Printed | None:
    return read_printed(cell, 1e9)


def _spread(body: dict[str, str]) -> Spread:
    """The columns of -I: CUDA events, an iteration at a time, the slowest rank's."""
    found = [read_printed(body.get(name, ""), 1e-6) for name in ("i_min", "i_p99", "i_max")]
    minimum, p99, maximum = (printed.value if printed else None for printed in found)
    return Spread(None, minimum, None, p99, maximum)


def _variant(body: dict[str, str]) -> str:
    return " ".join(f"{name}={body[name]}" for name in ("algo", "proto", "nchannels") if body.get(name, "N/A") != "N/A")


def are_certain(rows: Sequence[ForeignRow]) -> bool:
    """Whether joined pieces belong together: the numbers are whole, and algbw = S/t where it has digits to tell."""
    return all(row.seconds is not None and agrees(row) is not False for row in rows)
