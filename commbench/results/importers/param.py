"""PARAM's communication benchmark: lines `COMMS-RES-collective-dtype`, with percentiles over ranks."""

import re
from dataclasses import replace

from commbench.results.importers.identify import Evidence, identify
from commbench.results.importers.lines import clean_lines, decode, shown
from commbench.results.importers.numbers import read_collective, read_dtype, read_printed, read_whole
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Source, Spread
from commbench.results.schema import UNKNOWN

_ROW = re.compile(r"COMMS-RES-([a-z]\w{2,40}?)-(\w{3,20})(\S{0,40})\s{1,40}(\d.{0,400})$")
_COLUMNS = ("size", "count", "p50", "p75", "p95", "min", "max", "algbw", "busbw")
_MEANS = "median over ranks"


def recognises(text: str) -> bool:
    """Whether a row of PARAM stands in the text."""
    return "COMMS-RES-" in text


def read(source: Source) -> list[ForeignTable]:
    """A table for every collective."""
    tables: dict[str, list[ForeignRow]] = {}
    lost = []
    for line in clean_lines(decode(source.data)):
        match = _ROW.search(line.text)
        if match is None or match[1].startswith("QUANT"):
            continue
        cells = match[4].split()
        row = _row(line.number, match[2], match[3], cells)
        if row is None:
            lost.append(LostLine(line.number, shown(line.text), "it has not the nine columns of a row"))
        else:
            tables.setdefault(match[1], []).append(row)
    made = [_table(name, rows, source) for name, rows in tables.items()]
    if lost and not made:
        made = [ForeignTable("param", UNKNOWN, "throughput", _MEANS, (), lost=tuple(lost[:1000]))]
    return made


def _row(line: int, dtype: str, tag: str, cells: list[str]) -> ForeignRow | None:
    if len(cells) < len(_COLUMNS):
        return None
    values = dict(zip(_COLUMNS, cells, strict=False))
    nbytes, seconds = read_whole(values["size"]), read_printed(values["p50"], 1e-6)
    if nbytes is None or seconds is None:
        return None
    p95, low, high = (
        one.value if (one := read_printed(values[name], 1e-6)) else None for name in ("p95", "min", "max")
    )
    return ForeignRow(
        line, nbytes, seconds, read_printed(values["algbw"], 1e9), read_printed(values["busbw"], 1e9),
        read_whole(values["count"]), read_dtype(dtype), spread=Spread(None, low, p95, None, high),
        variant=tag.strip("-_"),
    )  # fmt: skip


def _table(name: str, rows: list[ForeignRow], source: Source) -> ForeignTable:
    # PARAM counts elements otherwise than NCCL does: they say nothing about ranks here
    plain = [replace(row, count=None) for row in rows]
    found = identify(plain, Evidence(source.hints, read_collective(name), "the text", where=source.name))
    return ForeignTable(
        tool="param", backend="torch", mode="throughput", time_means=_MEANS, rows=found.rows,
        collective=found.collective, ranks=found.ranks, nodes=source.hints.nodes, findings=found.findings,
    )  # fmt: skip
