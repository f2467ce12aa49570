"""Intel MPI Benchmarks (IMB-MPI1 and its kin). Time is t_max, the slowest rank's, of which IMB makes its Mbytes/sec."""

import re
from dataclasses import dataclass, field, replace

from commbench.results.importers import notes
from commbench.results.importers.checks import flag_contradictions
from commbench.results.importers.lines import Line, clean_lines, decode, shown
from commbench.results.importers.mpi_names import find_test
from commbench.results.importers.numbers import read_printed, read_whole
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Printed, Source
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import UNKNOWN, Finding

_BENCHMARK = re.compile(r"#\s{0,4}Benchmarking (\w{2,40})")
_PROCESSES = re.compile(r"#\s{0,4}#processes = (\d{1,7})")
_GROUPS = re.compile(r"#\s{0,4}\(\s{0,2}(\d{1,6}) groups of")
_VERSION = re.compile(r"#\s{0,4}Intel\(R\) MPI Benchmarks (\d[^,\s]{0,20}(?: Update \d{1,3})?)")
_DATA_TYPE = re.compile(r"#\s{0,4}MPI_Datatype(?: for reductions)?\s{0,10}:")
_TIMES = ("t_max[usec]", "t[usec]", "t_ovrl[usec]")
_MEANS = "mean over calls back to back, of the slowest rank"


@dataclass(slots=True)
class _Block:
    name: str
    line: int
    ranks: int | None = None
    groups: int = 1
    header: list[str] = field(default_factory=list)
    rows: list[ForeignRow] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)
    stopped: str = ""


def recognises(text: str) -> bool:
    """Whether a title of IMB stands in the text."""
    return "# Benchmarking " in text and "#repetitions" in text


def read(source: Source) -> list[ForeignTable]:
    """A table for every benchmark and number of processes."""
    lines = list(clean_lines(decode(source.data)))
    version = next((match[1] for line in lines if (match := _VERSION.search(line.text))), UNKNOWN)
    return [_table(block, version, source) for block in _blocks(lines) if block.rows or block.lost]


def _blocks(lines: list[Line]) -> list[_Block]:
    blocks: list[_Block] = []
    for line in lines:
        if match := _BENCHMARK.search(line.text):
            blocks.append(_Block(match[1], line.number))
        elif blocks:
            _take(blocks[-1], line)
    return blocks


def _take(block: _Block, line: Line) -> None:
    text = line.text
    if match := _PROCESSES.search(text):
        block.ranks = int(match[1]) or None
    elif match := _GROUPS.search(text):
        block.groups = int(match[1]) or 1
    elif "#repetitions" in text:
        block.header = text.split()
    elif block.header and text.strip() and not text.lstrip().startswith("#"):
        cells = text.split()
        if read_whole(cells[0]) is None:
            return
        if "time-out" in text or "int-overflow" in text or "out-of-mem" in text:
            block.stopped = shown(" ".join(cells[1:]))
            block.rows.append(_stopped(block, line.number, cells))
        elif len(cells) < len(block.header):
            block.lost.append(LostLine(line.number, shown(text), "the row is cut off"))
        else:
            block.rows.append(_row(block, line.number, cells))


def _cell(block: _Block, cells: list[str], name: str) -> str:
    place = block.header.index(name) if name in block.header else len(cells)
    return cells[place] if place < len(cells) else ""


def _size(block: _Block, cells: list[str]) -> int | None:
    """S in bytes: all_gather, all_to_all, gather and scatter print one rank's block."""
    printed = read_whole(_cell(block, cells, "#bytes"))
    test = find_test(block.name)
    if printed is None or test is None or not test.per_rank:
        return printed if "#bytes" in block.header else 0
    return printed * block.ranks if block.ranks else None


def _row(block: _Block, line: int, cells: list[str]) -> ForeignRow:
    name = next((name for name in _TIMES if name in block.header), "")
    seconds = read_printed(_cell(block, cells, name), 1e-6)
    group = _cell(block, cells, "Group")
    row = ForeignRow(
        line, _size(block, cells), seconds, _rate(block, cells), variant=f"group {group}" if group else "",
        wrong=_wrong(block, cells),
    )  # fmt: skip
    if seconds is None:
        return replace(row, status="incomplete", reason=f"line {line}: it has no time")
    if row.wrong:
        return replace(row, status="wrong", reason=f"line {line}: {row.wrong} defects")
    return row


def _rate(block: _Block, cells: list[str]) -> Printed | None:
    """Mbytes/sec of one message: IMB counts both of Sendrecv and all four of Exchange."""
    messages = {"sendrecv": 2, "exchange": 4}.get(block.name.lower(), 1)
    return read_printed(_cell(block, cells, "Mbytes/sec"), 1e6 / messages)


def _wrong(block: _Block, cells: list[str]) -> int | None:
    printed = read_printed(_cell(block, cells, "defects"))
    return None if printed is None else int(printed.value > 0)


def _stopped(block: _Block, line: int, cells: list[str]) -> ForeignRow:
    reason = f"line {line}: IMB gave up: {block.stopped}"
    return ForeignRow(line, _size(block, cells), None, status="failed", reason=reason)


def _table(block: _Block, version: str, source: Source) -> ForeignTable:
    test = find_test(block.name)
    where = f"{source.name}:{block.line}"
    findings = []
    if test is None:
        findings.append(notes.no_counterpart(block.name, where))
    elif test.collective == POINT_TO_POINT:
        findings.append(notes.point_to_point(block.name, where))
    if block.groups > 1:
        findings.append(Finding("several-groups", block.name, "warn", f"{block.groups} groups ran at once", "", where,
                                "IMB prints the slowest group"))  # fmt: skip
    return ForeignTable(
        tool="imb", backend="mpi", mode="throughput", time_means=_MEANS, rows=flag_contradictions(block.rows),
        collective=test.collective if test else UNKNOWN, version=version, ranks=block.ranks or source.hints.ranks,
        nodes=source.hints.nodes, world_size=block.ranks * block.groups if block.ranks else None,
        concurrency="together" if block.groups > 1 else "alone",
        outcome="failed" if block.stopped else "complete", findings=tuple(findings), lost=tuple(block.lost),
    )  # fmt: skip
