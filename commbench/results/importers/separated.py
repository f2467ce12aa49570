"""Comma-separated tables: rccl-tests' own, whose header is one name short; and those that people make of a table.

The columns are known by name. Without a header they are found by what they do: a size, and three columns in a row that
are a time, S over that time, and a constant times that.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from commbench.results.importers import checks, notes
from commbench.results.importers.identify import Evidence, identify
from commbench.results.importers.lines import decode, shown, split_lines
from commbench.results.importers.nccl_table import TIME_MEANS
from commbench.results.importers.numbers import (
    REDOPS_BY_NAME,
    read_collective,
    read_collective_of_file,
    read_dtype,
    read_printed,
    read_whole,
    read_wrong,
)
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Printed, Source
from commbench.results.schema import UNKNOWN

_RCCL = ("numcycle", "collective")
_NAMES = {
    **dict.fromkeys(("size", "size_bytes", "bytes", "nbytes", "size_b", "message_size"), "size"),
    **dict.fromkeys(("count", "elements", "count_elements"), "count"),
    **dict.fromkeys(("type", "dtype", "datatype"), "type"),
    **dict.fromkeys(("redop", "op"), "redop"),
    **dict.fromkeys(("time", "time_us", "latency_us", "lat_us"), "time"),
    **dict.fromkeys(("algbw", "algbw_gbs", "algbw_gb_s", "algbw_gbps", "alg_bw", "algbw_gb/s"), "algbw"),
    **dict.fromkeys(("busbw", "busbw_gbs", "busbw_gb_s", "busbw_gbps", "bus_bw", "busbw_gb/s"), "busbw"),
    **dict.fromkeys(("#wrong", "wrong", "nwrong"), "wrong"),
    **dict.fromkeys(("inplace", "in_place"), "inplace"),
    **dict.fromkeys(("collective", "name", "test", "operation"), "collective"),
    **dict.fromkeys(("ranks", "nranks", "gpus", "num_gpus", "world_size"), "ranks"),
    "rankspernode": "group_ranks",
    "root": "root",
    "error": "error",
    "nodes": "nodes",
}
_NODES = re.compile(r"\b(\d{1,5})_nodes?\b")
_TELLING = ("busbw", "bus_bw", "algbw")
_MAX_GUESSED = 40  # columns of a table without a header


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where what stands: time, algbw, busbw, #wrong of each body; the rest by name; columns without a name."""

    bodies: tuple[dict[str, int], ...]
    shared: dict[str, int]
    others: tuple[int, ...] = ()


def recognises(text: str) -> bool:
    """Whether the first lines are comma-separated and have a size and a time, by name or by what they do."""
    records = _records(text, 200)
    if not records:
        return False
    if len(records[0][1]) >= 4 and any(word in ",".join(records[0][1]).lower() for word in _TELLING):
        return True  # if only to say what is missing
    return _named(records[0][1]) is not None or _guessed([cells for _, cells in records]) is not None


def read(source: Source) -> list[ForeignTable]:
    """The rows of the file, a table for each collective and number of ranks that it names."""
    records = _records(decode(source.data))
    named = _named(records[0][1]) if records else None
    found = named or _guessed([cells for _, cells in records])
    if found is None:
        names = ", ".join(records[0][1][:12]) if records else ""
        lost = LostLine(1, shown(names), f"its columns ({shown(names)}) have no size with a time or a bandwidth")
        return [ForeignTable("unknown", UNKNOWN, "throughput", TIME_MEANS, (), lost=(lost,))]
    body = records[1:] if named else records
    is_rccl = named is not None and [cell.strip().lower() for cell in records[0][1][:2]] == list(_RCCL)
    if is_rccl and body and len(body[0][1]) == len(records[0][1]) + 1:
        found = _shifted(found)
    return _tables(body, found, source, is_rccl)


def _records(text: str, limit: int | None = None) -> list[tuple[int, list[str]]]:
    """Numbered lines as cells, blank ones and remarks left out."""
    lines = split_lines(text)[:limit]
    rows = []
    for number, line in enumerate(lines, start=1):
        if "," not in line or line.lstrip().startswith("#"):
            continue
        try:
            cells = next(csv.reader([line], skipinitialspace=True))
        except csv.Error:
            continue
        rows.append((number, [cell.strip() for cell in cells]))
    return rows


def _named(header: Sequence[str]) -> _Columns | None:
    """The columns of a header; None if it has no size, or no time and no bandwidth."""
    names = [_NAMES.get(cell.lower().replace(" ", "_").replace("(", "").replace(")", "")) for cell in header]
    if "size" not in names or not {"time", "algbw"} & set(names):
        return None
    bodies: list[dict[str, int]] = []
    shared: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in ("time", "algbw", "busbw", "wrong", "error"):
            if not bodies or name in bodies[-1]:
                bodies.append({})
            bodies[-1][name] = place
        elif name is not None:
            shared.setdefault(name, place)
    return _Columns(tuple(bodies[:2]), shared)


def _shifted(found: _Columns) -> _Columns:
    """rccl-tests' MPI build writes `nodes` after `collective` but not into the header: all after it is one on."""

    def moved(places: dict[str, int]) -> dict[str, int]:
        return {name: place + (place > 1) for name, place in places.items()}

    return _Columns(tuple(moved(body) for body in found.bodies), moved(found.shared))


def _guessed(rows: Sequence[Sequence[str]]) -> _Columns | None:
    """Columns without names: a size, and time, algbw, busbw side by side for which algbw = S/t in nine rows of ten."""
    few = [row for row in rows[:200] if 4 <= len(row) <= _MAX_GUESSED]
    if len(few) < 3 or len({len(row) for row in few}) != 1:
        return None
    width = len(few[0])
    for size in range(width):
        if not all(read_whole(row[size]) for row in few):
            continue
        times = [place for place in range(size + 1, width - 2) if _obeys(few, size, place)]
        if times:
            bodies = tuple({"time": place, "algbw": place + 1, "busbw": place + 2} for place in times[:2])
            used = {size, *(place for body in bodies for place in body.values())}
            words = [place for place in range(width) if place not in used and place > size]
            return _Columns(bodies, {"size": size}, tuple(words))
    return None


def _obeys(rows: Sequence[Sequence[str]], size: int, time: int) -> bool:
    judged = [
        checks.agrees(
            ForeignRow(0, read_whole(row[size]), read_printed(row[time], 1e-6), read_printed(row[time + 1], 1e9))
        )
        for row in rows
    ]
    return all(read_printed(row[time + 2]) for row in rows) and judged.count(True) >= 0.9 * len(rows)


def _tables(
    records: Sequence[tuple[int, list[str]]], found: _Columns, source: Source, is_rccl: bool
) -> list[ForeignTable]:
    tables: dict[tuple[str | None, int | None, int | None], list[ForeignRow]] = {}
    lost = []
    for number, cells in records:
        rows = _rows(number, cells, found)
        if rows is None:
            lost.append(LostLine(number, shown(",".join(cells)), "it has no whole number as size, or too few cells"))
            continue
        name = read_collective(_cell(cells, found.shared, "collective"))
        # rccl-tests counts the groups of a split as nodes, and calls the ranks of one group ranks per node
        nodes = None if is_rccl else read_whole(_cell(cells, found.shared, "nodes")) or _nodes_in(cells)
        ranks = read_whole(_cell(cells, found.shared, "group_ranks" if is_rccl else "ranks"))
        ranks = ranks or read_whole(_cell(cells, found.shared, "ranks"))
        tables.setdefault((name, ranks, nodes), []).extend(rows)
    tool = "rccl-tests" if is_rccl else "nccl-tests"
    made = [_table(tool, *known, rows, source) for known, rows in tables.items()]
    if made:
        made[0] = replace(made[0], lost=tuple(lost[:1000]))
    elif lost:
        made = [ForeignTable(tool, UNKNOWN, "throughput", TIME_MEANS, (), lost=tuple(lost[:1000]))]
    return made


def _nodes_in(cells: Sequence[str]) -> int | None:
    """The nodes that a path among the cells names, such as `jobs/2_nodes/out.txt`."""
    return next((int(match[1]) for cell in cells if (match := _NODES.search(cell[:300]))), None) or None


def _table(
    tool: str, name: str | None, ranks: int | None, nodes: int | None, rows: list[ForeignRow], source: Source
) -> ForeignTable:
    by_file = None if name else read_collective_of_file(source.name)
    evidence = Evidence(
        source.hints, name or by_file, "the file's name" if by_file else "the text", said_ranks=ranks, where=source.name
    )
    found = identify(rows, evidence)
    findings = list(found.findings)
    if all(row.wrong is None for row in found.rows):
        findings.append(notes.not_checked(found.collective, source.name))
    return ForeignTable(
        tool, "rccl" if tool == "rccl-tests" else "nccl", "throughput", TIME_MEANS, found.rows, found.collective,
        ranks=found.ranks, nodes=source.hints.nodes or nodes,
        findings=tuple(findings),
    )  # fmt: skip


def _cell(cells: Sequence[str], places: dict[str, int], name: str) -> str:
    place = places.get(name)
    return cells[place] if place is not None and place < len(cells) else ""


def _rows(line: int, cells: Sequence[str], found: _Columns) -> list[ForeignRow] | None:
    """A row for each body; None if the line is no row."""
    nbytes = read_whole(_cell(cells, found.shared, "size"))
    if nbytes is None or max(place for body in found.bodies for place in body.values()) >= len(cells):
        return None
    root, redop = _cell(cells, found.shared, "root"), _cell(cells, found.shared, "redop").lower()
    asked = ForeignRow(
        line, nbytes, None, count=read_whole(_cell(cells, found.shared, "count")),
        dtype=read_dtype(_cell(cells, found.shared, "type")), redop=redop if redop in REDOPS_BY_NAME else UNKNOWN,
        root=int(root) if root.lstrip("-").isdecimal() and len(root) < 7 and root.count("-") < 2 else None,
        variant=shown(" ".join(cells[place] for place in found.others if place < len(cells))),
    )  # fmt: skip
    inplace = _cell(cells, found.shared, "inplace")
    return [
        _row(asked, cells, body, inplace == "1" if inplace else place == 1) for place, body in enumerate(found.bodies)
    ]


def _row(asked: ForeignRow, cells: Sequence[str], body: dict[str, int], in_place: bool) -> ForeignRow:
    rates = [read_printed(_cell(cells, body, name), 1e9) for name in ("algbw", "busbw")]
    wrong = read_wrong(_cell(cells, body, "wrong"))
    seconds = read_printed(_cell(cells, body, "time"), 1e-6)
    if seconds is None and "time" not in body and rates[0] is not None and rates[0].value > 0 and asked.nbytes:
        seconds = Printed(asked.nbytes / rates[0].value, 0.0)
    row = replace(asked, in_place=in_place, seconds=seconds, algbw=rates[0], busbw=rates[1], wrong=wrong)
    if seconds is None:
        return replace(row, status="incomplete", reason=f"line {row.line}: it has no time")
    if wrong:
        return replace(row, status="wrong", reason=f"line {row.line}: {wrong} wrong elements")
    if row.nbytes == 0:
        return replace(row, status="skipped", reason="size 0: less than one element for each rank")
    return row
