"""perftest (ib_write_bw, ib_send_lat and their kin), text and JSON: one sender and one receiver.

`MB/sec`, since 2024 `MiB/sec`, is 2^20 bytes in both cases; `Gb/sec` is 1e9 bits. A peak of 0 was not measured.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from commbench.plan.modes import Mode
from commbench.results.importers import notes
from commbench.results.importers.documents import number, read_document, section, text_of, whole
from commbench.results.importers.lines import clean_lines, decode, shown
from commbench.results.importers.numbers import read_printed, read_whole
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Printed, Source, Spread
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import Finding

_TITLE = re.compile(r"^\s{4,60}(\w{3,30}(?: \w{1,20}){0,2}) (BW|Latency) Test")
_FACT = re.compile(r"(Device|Link type|Connection type|Transport type|Number of qps)\s{0,16}: (\S{1,40})")
_ADDRESS = re.compile(r"(local|remote) address: LID (\S{1,12}) QPN (\S{1,12}) PSN (\S{1,12})")
_UNIT = re.compile(r"BW average\[(\w{1,4}/sec)\]")
_UNITS = {"MB/sec": float(1 << 20), "MiB/sec": float(1 << 20), "Gb/sec": 1e9 / 8}
_MEANS = {
    "throughput": "size over the printed rate of many messages",
    "latency": "typical time (median) of one message",
}


@dataclass(slots=True)
class _Block:
    line: int
    name: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    local: str = ""
    remote: str = ""
    header: str = ""
    rows: list[ForeignRow] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)

    @property
    def mode(self) -> Mode:
        return "latency" if "t_" in self.header else "throughput"

    @property
    def both_ways(self) -> bool:
        return "Bidirectional" in self.name


def recognises(text: str) -> bool:
    """Whether a table's header of perftest stands in the text."""
    return "#bytes" in text and "#iterations" in text and ("BW average[" in text or "t_avg[usec]" in text)


def read(source: Source) -> list[ForeignTable]:
    """A table for every test; what client and server of one test both print is one."""
    blocks = _blocks(source)
    kept: list[_Block] = []
    twice = 0
    for block in blocks:
        if any(_is_mirror(block, other) for other in kept):
            twice += 1
        elif block.rows or block.lost:
            kept.append(block)
    tables = [_table(block, source) for block in kept]
    if twice and tables:
        seen = Finding("both-ends", "perftest", "ok", f"{twice} tables are the other end's view of the same test", "",
                       source.name, "they are counted once")  # fmt: skip
        tables[0] = replace(tables[0], findings=(*tables[0].findings, seen))
    return tables


def _is_mirror(block: _Block, other: _Block) -> bool:
    """Whether two tables are client and server of one test: addresses swapped, the same rows."""
    same = [(row.nbytes, row.algbw, row.seconds) for row in block.rows]
    return (
        bool(block.local)
        and (block.local, block.remote) in ((other.remote, other.local), (other.local, other.remote))
        and same == [(row.nbytes, row.algbw, row.seconds) for row in other.rows]
    )


def _blocks(source: Source) -> list[_Block]:
    """Tests of the text. Each header takes the last title, facts and addresses before it."""
    blocks = [_Block(1)]
    for line in clean_lines(decode(source.data)):
        text, block = line.text, blocks[-1]
        if match := _TITLE.match(text):
            if block.header or block.name:
                blocks.append(block := _Block(line.number))
            block.name = f"{match[1]} {match[2]}"
        elif match := _ADDRESS.search(text):
            setattr(block, match[1], f"{match[2]} {match[3]} {match[4]}")
        elif "#bytes" in text and "#iterations" in text:
            if block.header:
                blocks.append(block := _Block(line.number, block.name, dict(block.facts)))
            block.header = text
        elif block.header and text and text.split()[0].isdecimal():
            _take_row(block, line.number, text)
        elif not block.header:
            block.facts.update(_FACT.findall(text))
    return blocks


def _take_row(block: _Block, line: int, text: str) -> None:
    cells = text.split()
    nbytes = read_whole(cells[0])
    names = re.findall(r"#?[\w.%]+(?: average| peak| percentile)?(?:\[[^\]]{0,16}\])?", block.header)
    if nbytes is None or len(cells) < min(len(names), 4):
        block.lost.append(LostLine(line, shown(text), "the row is cut off"))
        return
    values = dict(zip(names, cells, strict=False))
    block.rows.append(_latency(line, nbytes, values) if block.mode == "latency" else _rate(block, line, nbytes, values))


def _latency(line: int, nbytes: int, values: dict[str, str]) -> ForeignRow:
    def seconds(name: str) -> float | None:
        printed = read_printed(values.get(name, ""), 1e-6)
        return printed.value if printed else None

    typical = read_printed(values.get("t_typical[usec]", values.get("t_avg[usec]", "")), 1e-6)
    samples = read_whole(values.get("#iterations", ""))
    spread = Spread(samples, seconds("t_min[usec]"), None, seconds("99% percentile[usec]"), seconds("t_max[usec]"))
    return _timed(ForeignRow(line, nbytes, typical, redop="none", spread=spread))


def _rate(block: _Block, line: int, nbytes: int, values: dict[str, str]) -> ForeignRow:
    unit = _UNIT.search(block.header)
    scale = _UNITS.get(unit[1], 0.0) if unit else 0.0
    rate = read_printed(next((text for name, text in values.items() if name.startswith("BW average")), ""), scale)
    messages = read_printed(values.get("MsgRate[Mpps]", ""), 1e6)
    row = _of_rate(line, nbytes, rate, 2 if block.both_ways else 1)
    if rate is not None and messages is not None and messages.value > 20 * messages.half_unit and rate.value > 0:
        room = 2 * (rate.half_unit + nbytes * messages.half_unit) + 0.002 * rate.value
        if abs(rate.value - nbytes * messages.value) > room:
            said = f"{rate.value / 1e9:.4g} GB/s is not {nbytes} B at {messages.value / 1e6:g} M messages/s"
            return replace(row, status="suspect", reason=f"line {line}: {said}")
    return row


def _of_rate(line: int, nbytes: int, rate: Printed | None, directions: int) -> ForeignRow:
    if rate is None or rate.value <= 0:
        return _timed(ForeignRow(line, nbytes, None, redop="none"))
    one_way = rate.scaled(1 / directions)
    seconds = nbytes / one_way.value
    return ForeignRow(
        line, nbytes, Printed(seconds, seconds * one_way.half_unit / one_way.value), one_way, redop="none"
    )


def _timed(row: ForeignRow) -> ForeignRow:
    if row.seconds is None:
        return replace(row, status="incomplete", reason=f"line {row.line}: it has no time and no rate")
    return row


def _table(block: _Block, source: Source) -> ForeignTable:
    where = f"{source.name}:{block.line}"
    kind = "send_recv" if block.both_ways else POINT_TO_POINT
    meaning = "both send at once: the rate is halved" if block.both_ways else "one rank sends and another receives"
    findings = [notes.point_to_point(block.name or "perftest", where, meaning)]
    return ForeignTable(
        tool="perftest", backend="verbs", mode=block.mode, time_means=_MEANS[block.mode], rows=tuple(block.rows),
        collective=kind, ranks=2, nodes=source.hints.nodes,
        findings=tuple(findings), lost=tuple(block.lost),
        versions=tuple((name.lower(), value) for name, value in block.facts.items()),
    )  # fmt: skip


def recognises_document(document: Any) -> bool:
    """Whether a parsed document is perftest's."""
    return isinstance(document, dict) and "test_info" in document and "results" in document


def read_json(source: Source) -> list[ForeignTable]:
    """The last size of a test: perftest writes its JSON anew for every size. Raises CommbenchError if it is no JSON."""
    document = read_document(re.sub(r"(?m)^(\s{0,20})sl:", r'\1"sl":', decode(source.data)), source.name)
    info, results = section(document.value, "test_info"), section(document.value, "results")
    nbytes = whole(results.get("MsgSize"))
    block = _Block(1, text_of(info.get("test"), "perftest"))
    if nbytes is not None and "t_typical" in results:
        block.header = "t_typical"
        named = {key: f"{key}[usec]" for key in ("t_typical", "t_min", "t_max", "t_avg")}
        values = {name: str(results[key]) for key, name in named.items() if key in results}
        block.rows.append(_latency(1, nbytes, {**values, "#iterations": str(results.get("n_iterations", ""))}))
    elif nbytes is not None:
        rate, messages = number(results.get("BW_average")), number(results.get("MsgRate"), 1e6)
        unit = _told_unit(nbytes, rate, messages)
        if unit is None:
            block.lost.append(LostLine(1, f"BW_average {results.get('BW_average')!r}"[:80], "its unit cannot be told"))
        else:
            scaled = rate.scaled(_UNITS[unit]) if rate else None
            block.rows.append(_of_rate(1, nbytes, scaled, 2 if block.both_ways else 1))
    facts = {"device": text_of(info.get("Device"), ""), "link type": text_of(info.get("Link_type"), "")}
    block.facts = {name: value for name, value in facts.items() if value}
    table = _table(block, source)
    last = Finding("last-size-only", block.name, "warn", "one size", "all sizes of -a", source.name,
                   "perftest overwrites its JSON file for every size: the text has them all")  # fmt: skip
    return [replace(table, findings=(*table.findings, last))] if block.rows or block.lost else []


def _told_unit(nbytes: int, rate: Printed | None, messages: Printed | None) -> str | None:
    """The unit in which the rate is size x messages/s; the document does not name it."""
    if rate is None or messages is None or rate.value <= 0:
        return None
    ratio = nbytes * messages.value / rate.value
    return next((unit for unit in ("MiB/sec", "Gb/sec") if abs(ratio / _UNITS[unit] - 1) < 0.01), None)
