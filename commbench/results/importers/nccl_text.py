"""The text of nccl-tests and rccl-tests: cut into tables, torn rows put together where that is certain.

A table begins with its first line (version, configuration, header or row) and ends with its footer, or where the next
one begins. Several processes that were built without MPI print their tables into one another: they are read as one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from commbench.results.importers import nccl_marks, nccl_rows
from commbench.results.importers.lines import Line, clean_lines, columns, decode, shown
from commbench.results.importers.nccl_marks import Marks
from commbench.results.importers.nccl_rows import Layout, Pieces
from commbench.results.importers.nccl_table import Block, close_block
from commbench.results.importers.records import ForeignTable, LostLine, Source

_MAX_LOST = 1000  # lines that are kept to be shown


def recognises(text: str) -> bool:
    """Whether `text` may be nccl-tests' or rccl-tests': a line of theirs, or at least one row."""
    if any(mark in text for mark in ("nccl-tests version", "rccl-tests: ", "# nThread", "Avg bus bandwidth")):
        return True
    layout = Layout()
    for line in clean_lines(text):
        cells = columns(line.text)
        row = nccl_rows.find_row(cells, line.number, layout)
        if (row is not None and row.cells) or nccl_rows.read_header(cells) is not None:
            return True
    return False


def read(source: Source) -> list[ForeignTable]:
    """Every table of the text, in its order."""
    return [
        table
        for block in _Cutter(source.name).blocks(clean_lines(decode(source.data)))
        if (table := close_block(block, source)) is not None
    ]


@dataclass(slots=True)
class _Cutter:
    """Cuts lines into blocks, one a table."""

    name: str
    block: Block = field(default_factory=Block)
    layout: Layout = field(default_factory=Layout)
    pending: Pieces | None = None
    label: str = ""
    ahead: Marks = field(default_factory=Marks)  # of lines below a footer: they belong to what comes next

    def blocks(self, lines: Iterator[Line]) -> Iterator[Block]:
        for line in lines:
            if self._ends_block(line):
                yield self._next_block()
            self._take(line)
        yield self._next_block()

    def _ends_block(self, line: Line) -> bool:
        """Whether `line` is the first of another table."""
        block, marks, text = self.block, self.block.marks, line.text
        if not block.began:
            return False
        if nccl_marks.read_label(text) is not None and not self.pending:
            return bool(block.rows) or marks.footers > 0 or bool(self.label)
        if nccl_marks.starts_test(text):
            return bool(block.rows) or marks.config is not None or nccl_marks.repeats(text, marks)
        if "minBytes" in text and nccl_marks.read_config(text):
            return bool(block.rows) or self._is_over() or len(marks.devices) > marks.configs > 0
        if self._is_over():
            return (
                nccl_rows.read_header(columns(text)) is not None
                or nccl_rows.find_row(columns(text), line.number, self.layout) is not None
            )
        return block.rows != [] and marks.configs < 2 and nccl_rows.read_header(columns(text)) is not None

    def _is_over(self) -> bool:
        return self.block.marks.footers >= max(1, self.block.marks.configs)

    def _next_block(self) -> Block:
        self._drop_pending()
        done, marks, ahead = self.block, self.block.marks, self.ahead
        ahead.version, ahead.is_rccl = ahead.version or marks.version, ahead.is_rccl or marks.is_rccl
        self.block, self.ahead = Block(marks=ahead), Marks()
        if done.layout.has_header and not self.label:
            self.layout = Layout()
        if (
            not done.started and not ahead.named and marks.named_by == "the command"
        ):  # one command line above several tables
            self.block.marks.named, self.block.marks.named_by = marks.named, marks.named_by
        self.label = ""
        return done

    def _take(self, line: Line) -> None:
        cells = columns(line.text)
        layout = nccl_rows.read_header(cells)
        if layout is not None:
            self._drop_pending()
            self.layout = self.block.layout = layout
            self.block.began = self.block.began or line.number
            return
        pieces = nccl_rows.find_row(cells, line.number, self.layout)
        if pieces is not None:
            self._drop_pending()
            self.block.began = self.block.began or line.number
            self._keep_or_wait(pieces)
        elif self.pending is not None and nccl_rows.is_body(cells):
            self._continue(cells, line)
        elif self.block.rows_may_come and not self._is_over() and nccl_rows.is_rest(cells, self.layout):
            self._lose(line, "the first part of this row is not there")
        elif line.text:
            self._note(line)

    def _keep_or_wait(self, pieces: Pieces) -> None:
        if nccl_rows.is_whole(pieces, self.layout) or (
            not self.layout.has_header and pieces.cells and len(pieces.cells) % 4 == 0
        ):
            self.block.rows += nccl_rows.rows_of(pieces, self.layout)
        else:
            self.pending = pieces

    def _continue(self, cells: list[str], line: Line) -> None:
        """Join the rest of a torn row, if it is exactly what is missing and the numbers agree."""
        assert self.pending is not None
        joined = Pieces(self.pending.line, self.pending.asked, (*self.pending.cells, *cells))
        rows = nccl_rows.rows_of(joined, self.layout)
        width = nccl_rows.body_width(self.layout, joined.cells) * len(self.layout.bodies)
        if len(joined.cells) == width and nccl_rows.are_certain(rows):
            self.block.rows += rows
            self.block.joined += 1
            self.pending = None
        else:
            self._lose(line, f"it does not complete the row of line {self.pending.line} for certain")

    def _drop_pending(self) -> None:
        """A row whose rest never came: what is there of it."""
        if self.pending is not None:
            pieces, self.pending = self.pending, None
            if pieces.cells or self.block.rows or self.layout.has_header:
                self.block.rows += nccl_rows.rows_of(pieces, self.layout)

    def _lose(self, line: Line, reason: str) -> None:
        if len(self.block.lost) < _MAX_LOST:
            self.block.lost.append(LostLine(line.number, shown(line.text), reason))

    def _note(self, line: Line) -> None:
        block, marks, text = self.block, self.block.marks, line.text
        label = nccl_marks.read_label(text)
        if label is not None and not nccl_marks.starts_test(text):
            self.label = block.label = label
            block.began = block.began or line.number
            return
        nccl_marks.read_mark(text, line.number, self.ahead if self._is_over() else marks)
        if nccl_marks.starts_test(text):
            block.started = True
        if "minBytes" in text and (config := nccl_marks.read_config(text)):
            marks.config, marks.configs = config, marks.configs + 1
        elif " device " in text and (device := nccl_marks.read_device(text)):
            marks.devices.append(device)
        elif not (block.started or marks.footers or marks.failure):
            return
        block.began = block.began or line.number
