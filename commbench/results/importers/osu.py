"""OSU micro-benchmarks, versions 3 to 7: latencies and bandwidths of MPI, XCCL and one-sided tests.

The text does not say how many ranks there were. For all_gather, all_to_all, gather and scatter OSU's size is one rank's
block, so that S needs the number of ranks: from a command line above the table, or from the user.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commbench.results.importers import notes
from commbench.results.importers.lines import Line, clean_lines, decode, shown
from commbench.results.importers.mpi_names import MpiTest, find_test, processes_in
from commbench.results.importers.numbers import read_dtype, read_printed, read_whole
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Printed, Source, Spread
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import UNKNOWN, Finding

_TITLE = re.compile(
    r"# OSU (?:(MPI|XCCL|NCCL|RCCL|OpenSHMEM|UPC\+*)(?:-(\w{2,10}))?(_\w{1,30})?\s)?(.{1,80}?) Test\s{1,4}v(\S{1,20})"
)
_DATATYPE = re.compile(r"# Datatype: (\w{1,30})")
_PAIRS = re.compile(r"\[ pairs: (\d{1,7}) \]")
_HEADER = re.compile(r"#\s{0,4}(?:Size|Transmit Size|Avg Latency)\b")
_POINT_TO_POINT = {
    "bandwidth": MpiTest(POINT_TO_POINT, mode="throughput"),
    "bidirectionalbandwidth": MpiTest("send_recv", directions=2, mode="throughput"),
    "latency": MpiTest(POINT_TO_POINT),
    "multilatency": MpiTest(POINT_TO_POINT),
    "multiplebandwidthmessagerate": MpiTest(POINT_TO_POINT, mode="throughput"),
    "multithreadedlatency": MpiTest(POINT_TO_POINT),
    "multiprocesslatency": MpiTest(POINT_TO_POINT),
}
_MEANS_LATENCY = "mean over calls and over ranks"
_MEANS_MAX = "mean over calls of the slowest rank's"
_MEANS_RATE = "size over the printed rate of many messages"


@dataclass(slots=True)
class _Block:
    title: str
    kind: str
    version: str
    line: int
    variant: str = ""
    ranks: int | None = None
    dtype: str = UNKNOWN
    pairs: int = 1
    header: list[str] = field(default_factory=list)
    cells: list[tuple[int, list[str]]] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)
    failed: bool = False


def recognises(text: str) -> bool:
    """Whether a title of OSU stands in the text."""
    return "# OSU " in text


def read(source: Source) -> list[ForeignTable]:
    """A table for every title; a title that is repeated without rows between is one."""
    return [
        _table(block, source) for block in _blocks(list(clean_lines(decode(source.data)))) if block.cells or block.lost
    ]


def _blocks(lines: Sequence[Line]) -> list[_Block]:
    blocks: list[_Block] = []
    above: list[str] = []
    for line in lines:
        match = _TITLE.search(line.text)
        if match:
            if not blocks or blocks[-1].cells:
                kind = match[2] or ""
                variant = match[3].strip("_") if match[3] else ""
                blocks.append(_Block(match[4].strip(" -"), kind, match[5], line.number, variant, processes_in(above)))
                above = []
            continue
        above = [*above[-8:], line.text]
        if blocks:
            _take(blocks[-1], line)
    return blocks


def _take(block: _Block, line: Line) -> None:
    text = line.text
    if match := _DATATYPE.search(text):
        block.dtype = read_dtype(match[1])
    elif match := _PAIRS.search(text):
        block.pairs = int(match[1]) or 1
    elif _HEADER.search(text) and not block.cells:
        block.header = [name.strip() for name in re.split(r"\s{2,}|(?<=\))\s", text.lstrip("# ")) if name.strip()]
    elif "DATA VALIDATION ERROR" in text:
        block.failed = True
    elif block.header and text and not text.lstrip().startswith("#"):
        cells = text.split()
        if read_whole(cells[0]) is not None or (block.header[0] != "Size" and read_printed(cells[0])):
            if len(cells) >= len(block.header):
                block.cells.append((line.number, cells))
            else:
                block.lost.append(LostLine(line.number, shown(text), "the row is cut off"))


def _table(block: _Block, source: Source) -> ForeignTable:
    bare = re.sub(r"[^a-z]", "", block.title.lower())
    # What XCCL and one-sided titles call "Allreduce Latency", MPI_Get is one-sided
    test = _POINT_TO_POINT.get(bare) or find_test(re.sub(r"(latency|bandwidth)$", "", bare))
    one_sided = block.variant if block.variant in ("Get", "Put", "Accumulate") else ""
    test = test or (_POINT_TO_POINT["bandwidth" if bare.endswith("bandwidth") else "latency"] if one_sided else None)
    where = f"{source.name}:{block.line}"
    ranks = source.hints.ranks or block.ranks
    if test is not None and (test.collective == POINT_TO_POINT or bare in _POINT_TO_POINT):
        ranks = 2
    rows, lost, findings = [], list(block.lost), []
    for line, cells in block.cells:
        row = _row(block, test, line, cells, ranks)
        if row is None:
            reason = f"OSU's size of {block.title} is one rank's block, and the ranks are not known: give --ranks N"
            lost.append(LostLine(line, shown(" ".join(cells)), reason))
        else:
            rows.append(replace(row, variant=one_sided))
    if test is None:
        findings.append(notes.no_counterpart(block.title, where))
    elif test.collective == POINT_TO_POINT:
        findings.append(notes.point_to_point(block.title, where))
    if ranks is None:
        findings.append(
            Finding("ranks-unknown", block.title, "skip", "OSU does not print them", "", where, "give --ranks N")
        )
    bandwidth = _place(block.header, "MB/s") is not None
    slowest = _place(block.header, "Max Latency") is not None
    return ForeignTable(
        tool="osu",
        backend=f"mpi-{block.kind.lower()}" if block.kind else "mpi",
        mode=test.mode if test else "latency",
        time_means=_MEANS_RATE if bandwidth else _MEANS_MAX if slowest else _MEANS_LATENCY,
        rows=tuple(rows),
        collective=test.collective if test else UNKNOWN,
        version=block.version,
        ranks=ranks,
        nodes=source.hints.nodes,
        world_size=2 * block.pairs if block.pairs > 1 else ranks,
        concurrency="together" if block.pairs > 1 else "alone",
        outcome="failed" if block.failed else "complete",
        findings=tuple(findings),
        lost=tuple(lost),
    )


def _place(header: Sequence[str], word: str) -> int | None:
    return next((place for place, name in enumerate(header) if word in name), None)


def _row(block: _Block, test: MpiTest | None, line: int, cells: Sequence[str], ranks: int | None) -> ForeignRow | None:
    """The row of one line; None where S needs the number of ranks and it is not known."""
    header = block.header
    nbytes = read_whole(cells[0]) if header[0] in ("Size", "Transmit Size") else 0
    if test is not None and test.per_rank and nbytes is not None:
        if ranks is None:
            return None
        nbytes *= ranks
    seconds, algbw = _time(block, test, cells, nbytes)
    verdict = cells[place] if (place := _place(header, "Validation")) is not None else ""
    row = ForeignRow(
        line, nbytes, seconds, algbw, dtype=block.dtype, redop="none" if test and test.collective == POINT_TO_POINT else
        UNKNOWN, wrong=0 if verdict == "Pass" else None, spread=_spread(header, cells),
    )  # fmt: skip
    if verdict and verdict != "Pass":
        return replace(row, status="wrong", reason=f"line {line}: OSU's validation says {shown(verdict)}")
    return row if seconds is not None else replace(row, status="incomplete", reason=f"line {line}: it has no time")


def _time(
    block: _Block, test: MpiTest | None, cells: Sequence[str], nbytes: int | None
) -> tuple[Printed | None, Printed | None]:
    """Seconds a call, and bytes/s of one direction of one pair where a rate is printed."""
    header = block.header
    rate_place = _place(header, "MB/s")
    if rate_place is not None:
        rate = read_printed(cells[rate_place], 1e6 / (block.pairs * (test.directions if test else 1)))
        if rate is None or rate.value <= 0 or not nbytes:
            return None, rate
        seconds = nbytes / rate.value
        return Printed(seconds, seconds * rate.half_unit / rate.value), rate
    for word in ("Max Latency", "Avg Latency", "Latency", "Overall"):
        if (place := _place(header, word)) is not None:
            return read_printed(cells[place], 1e-6), None
    return None, None


def _spread(header: Sequence[str], cells: Sequence[str]) -> Spread:
    found = {}
    for name in ("P95", "P99"):
        place = _place(header, f"{name} Tail")
        printed = read_printed(cells[place], 1e-6) if place is not None else None
        found[name] = printed.value if printed else None
    return Spread(None, None, found["P95"], found["P99"], None)
