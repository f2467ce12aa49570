"""The benchmark that comes with gloo: rank 0's distribution of single calls. What it calls GB/s is 2^30 bytes/s."""

import re
from dataclasses import dataclass, field, replace

from commbench.results.importers.lines import clean_lines, decode, shown
from commbench.results.importers.numbers import read_collective, read_printed, read_whole
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Source, Spread
from commbench.results.schema import UNKNOWN, Finding

_GIB = float(1 << 30)
_ALGORITHM = re.compile(r"^\s{0,20}Algorithm:\s{1,20}(\w{2,60})")
_PROCESSES = re.compile(r"\bprocesses=(\d{1,7})")
_DEVICE = re.compile(r"^\s{0,20}Device:\s{1,20}(\S.{0,120})")
_VARIANTS = ("_ring_chunked", "_halving_doubling", "_bcube", "_local", "_ring", "_v", "_one_to_all", "_all_to_all")
_MEANS = "median over single calls on rank 0"


@dataclass(slots=True)
class _Block:
    algorithm: str
    line: int
    ranks: int | None = None
    header: list[str] = field(default_factory=list)
    rows: list[ForeignRow] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)


def recognises(text: str) -> bool:
    """Whether the heading of gloo's benchmark stands in the text."""
    return "Algorithm:" in text and "processes=" in text and "elements" in text


def read(source: Source) -> list[ForeignTable]:
    """A table for every algorithm."""
    blocks: list[_Block] = []
    for line in clean_lines(decode(source.data)):
        if match := _ALGORITHM.search(line.text):
            blocks.append(_Block(match[1], line.number))
        elif blocks:
            _take(blocks[-1], line.number, line.text)
    return [_table(block, source) for block in blocks if block.rows or block.lost]


def _take(block: _Block, line: int, text: str) -> None:
    if match := _PROCESSES.search(text):
        block.ranks = int(match[1]) or None
    elif "elements" in text and "p50" in text:
        block.header = re.findall(r"\w+(?: \([\w/]{1,8}\))?", text)
    elif block.header and text.strip() and read_whole(text.split()[0]) is not None:
        cells = text.split()
        if len(cells) == len(block.header):
            block.rows.append(_row(line, dict(zip(block.header, cells, strict=True))))
        else:
            block.lost.append(LostLine(line, shown(text), "the row is cut off"))


def _row(line: int, cells: dict[str, str]) -> ForeignRow:
    """Old versions print no size: elements are float32 there."""
    elements = read_whole(cells.get("elements", ""))
    size = next((read_whole(text) for name, text in cells.items() if name.startswith("size")), None)
    nbytes = size if size is not None else None if elements is None else 4 * elements
    scale = 1e-9 if any("(ns)" in name for name in cells) else 1e-6
    times = {name.split()[0]: read_printed(text, scale) for name, text in cells.items()}
    samples = read_whole(cells.get("iterations", cells.get("samples", "")))
    rate = next(
        (read_printed(text, _GIB) for name, text in cells.items() if name.startswith(("bandwidth", "avg"))), None
    )
    minimum, p99, maximum = (one.value if (one := times.get(name)) else None for name in ("min", "p99", "max"))
    known = bool(elements and nbytes == 4 * elements)
    row = ForeignRow(
        line, nbytes, times.get("p50"), count=elements, dtype="float32" if known else UNKNOWN,
        spread=Spread(samples, minimum, None, p99, maximum),
    )  # fmt: skip
    if row.seconds is None or row.seconds.value <= 0:
        return replace(row, status="incomplete", reason=f"line {line}: its median is 0 at this resolution")
    if rate is not None and nbytes and rate.value > 20 * rate.half_unit and minimum and maximum:
        mean = nbytes / rate.value  # the printed rate is that of the mean, which lies between the extremes
        if not (minimum - scale) * 0.99 <= mean <= (maximum + scale) * 1.01:
            return replace(row, status="suspect", reason=f"line {line}: the rate's mean time is outside min and max")
    return row


def _table(block: _Block, source: Source) -> ForeignTable:
    name, variant = block.algorithm, ""
    for ending in _VARIANTS:
        if name.endswith(ending):
            name, variant = name.removesuffix(ending), ending.strip("_")
            break
    collective = read_collective(name) or UNKNOWN
    where = f"{source.name}:{block.line}"
    findings = [Finding("gib-labelled-gb", block.algorithm, "warn", "its GB/s are GiB/s", "1e9 bytes/s", where,
                        "bandwidths are recomputed from size and median time")]  # fmt: skip
    if collective == UNKNOWN:
        findings.append(Finding("collective-unknown", block.algorithm, "skip", "no counterpart", "", where))
    return ForeignTable(
        tool="gloo-benchmark", backend="gloo", mode="latency", time_means=_MEANS,
        rows=tuple(replace(row, variant=variant) for row in block.rows), collective=collective,
        ranks=block.ranks or source.hints.ranks, nodes=source.hints.nodes, findings=tuple(findings),
        lost=tuple(block.lost),
    )  # fmt: skip
