"""A matrix with names above and beside it, as nvidia-smi prints it: cells found by position, torn rows said.

Cells are parted by tabs, by blanks, or by the bars of a markdown table. Names may be cut off, doubled or missing, so a
row finds its place by its own cell, `X`, and by its name only where that is unique.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown, split_lines, without_colours
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES

AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_AFFINITY = re.compile("|".join(words.replace(" ", r"[ \t]{1,8}") for words in AFFINITY), re.IGNORECASE)
_RULER = re.compile(r"[\s|:+-]{0,4096}")
_GPU = re.compile(r"GPU\d{1,4}")


@dataclass(slots=True)
class Header:
    """Where the matrix begins: names of its columns, those of the affinity columns, and how cells are parted.

    `before`: affinity columns that stand to the left of the row's name.
    """

    number: int
    names: list[str]
    affinity: list[str]
    before: int
    parting: str


@dataclass(slots=True)
class Row:
    """One row: which column it is, its cells as written, and its affinity cells by name."""

    number: int
    index: int
    label: str
    cells: list[str]
    affinity: dict[str, str]


@dataclass(slots=True)
class Matrix:
    """The matrix, and what of the text could not be read. `last_line`: the number of the last line with text."""

    header: Header
    rows: dict[int, Row] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    last_line: int = 0


def find_header(lines: list[str], is_cell: Callable[[str], bool]) -> Header | None:
    """The first line that names GPUs above columns; `is_cell` says what the inside of the matrix looks like."""
    for number, line in enumerate(lines, start=1):
        header = _read_header(number, line) if "GPU" in line else None
        if header is None or any(is_cell(name) for name in header.names):
            continue
        below = " ".join(lines[number : number + 4]).replace("|", " ").split()
        if any(is_cell(word) for word in below):
            return header
    return None


def plain_lines(text: str) -> list[str]:
    """The lines of `text` without colours."""
    return [without_colours(line) for line in split_lines(text)]


def read_matrix(text: str, source: str, is_cell: Callable[[str], bool]) -> Matrix:
    """The matrix in `text`. Raises CommbenchError if there is none, or no row of it can be read."""
    lines = plain_lines(text)
    header = find_header(lines, is_cell)
    if header is None:
        raise CommbenchError(f"{source} has no line that names GPU0 and its like above columns: give the whole output.")
    if len(header.names) > MAX_DEVICES:
        raise CommbenchError(f"{source} has a matrix of {len(header.names)} columns: {MAX_DEVICES} is the most.")
    matrix = Matrix(header)
    matrix.last_line = max((number for number, line in enumerate(lines, start=1) if line.strip()), default=0)
    for number, line in enumerate(lines[header.number :], start=header.number + 1):
        if not line.strip() or (line.strip() and _RULER.fullmatch(line)):
            continue
        if not _add_row(matrix, number, line, source, is_cell):
            break
    if not matrix.rows:
        reason = matrix.findings[0].observed if matrix.findings else "no row follows its head"
        raise CommbenchError(f"{source} has a matrix that cannot be read: {reason.removesuffix('.')}.")
    return matrix


def _read_header(number: int, line: str) -> Header | None:
    affinity = [" ".join(match[0].split()) for match in _AFFINITY.finditer(line)]
    affinity = [next(known for known in AFFINITY if known.lower() == name.lower()) for name in affinity]
    parting = "|" if line.count("|") > 1 else "\t" if "\t" in line.strip(" ") else " "
    head = _AFFINITY.sub(lambda match: "_".join(match[0].split()), line)
    cells = _split(head, parting)
    gpus = [place for place, cell in enumerate(cells) if _GPU.fullmatch(cell)]
    if not gpus:
        return None
    last = next((place for place in range(gpus[0], len(cells)) if _is_affinity(cells[place])), len(cells))
    names = cells[gpus[0] : last]
    if last == len(cells):
        while names and not names[-1]:
            names.pop()
    before = sum(1 for cell in cells[: gpus[0]] if _is_affinity(cell))
    others = [cell for cell in cells[: gpus[0]] if cell and not _is_affinity(cell)]
    if others or any(":" in name or "=" in name for name in names):
        return None
    return Header(number, names, affinity, before, parting)


def _is_affinity(cell: str) -> bool:
    return _AFFINITY.fullmatch(cell.replace("_", " ")) is not None


def _split(line: str, parting: str) -> list[str]:
    if parting == "|":
        return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
    return [cell.strip() for cell in line.split("\t")] if parting == "\t" else line.split()


def _add_row(matrix: Matrix, number: int, line: str, source: str, is_cell: Callable[[str], bool]) -> bool:
    """Read one line into the matrix; False where the matrix is over."""
    header = matrix.header
    cells = _split(line, header.parting)
    if not any(is_cell(cell) for cell in cells[1:]) or "=" in line or len(matrix.findings) >= MAX_DEVICES:
        return False
    left, rest = cells[: header.before], cells[header.before :] or [""]
    label, width = rest[0], len(header.names)
    if header.parting == " " and is_cell(label):  # the name is missing, and blanks hide it
        label, rest = "", ["", *rest]
    inside, right = rest[1 : 1 + width], rest[1 + width :]
    where = f"{source}:{number}"
    if len(inside) < width or (right and is_cell(right[0])) or not all(map(_may_stand_inside, inside)):
        found = sum(1 for cell in rest[1:] if is_cell(cell))
        _lose(matrix, label, where, f"row {shown(label)!r} has {found} cells that read, of {width}")
        return True
    index = _place(header.names, label, inside)
    if index is None or index in matrix.rows:
        what = "is there twice" if index in matrix.rows else "has no X in its own column"
        _lose(matrix, label, where, f"row {shown(label)!r} {what}")
        return True
    named = header.affinity[: header.before], header.affinity[header.before :]
    values = dict(zip(named[0], left, strict=False)) | _right(named[1], right)
    matrix.rows[index] = Row(number, index, label, inside, values)
    return True


def _may_stand_inside(cell: str) -> bool:
    """Whether a cell may stand inside the matrix: a CPU list there shows that the row lost another one."""
    return not re.fullmatch(r"\d{1,5}[-,][\d,-]{0,4096}", cell)


def _right(names: list[str], cells: list[str]) -> dict[str, str]:
    """Affinity cells by name; nvidia-smi may print an empty cell between its columns, which is passed over."""
    filled = [cell for cell in cells if cell]
    return dict(zip(names, filled if len(filled) == len(names) else cells, strict=False))


def _place(names: list[str], label: str, cells: list[str]) -> int | None:
    """Which column the row is: where its X stands, which its name must not contradict. None: not certain."""
    own = [index for index, cell in enumerate(cells) if cell == "X"]
    if len(own) != 1:
        return None
    if Counter(names)[label] == 1 and label:
        return own[0] if names.index(label) == own[0] else None
    return own[0] if names[own[0]] == label else None


def _lose(matrix: Matrix, label: str, where: str, observed: str) -> None:
    matrix.findings.append(
        Finding(
            "TOPO-TORN",
            shown(label) or "row",
            "warn",
            observed,
            "one cell a column, X in its own",
            where,
            "the pairs of this row are read from the other rows; print the matrix again",
        )
    )
