"""Results of other tools, read into runs of ours. Text and bytes in, records out; nothing here opens a file.

`FORMATS` is the table of what can be read. A module of it has two functions: `recognises`, of a text or of a parsed
JSON document, and `read`, of a `Source`. To add a format: a module, a line here, and a file of tests.
"""

import hashlib
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Literal

from commbench.errors import CommbenchError, UsageError, unknown_name
from commbench.results.importers.assemble import ReadFile
from commbench.results.importers.documents import read_document
from commbench.results.importers.lines import MAX_FILE_NBYTES, MAX_LINES, decode
from commbench.results.importers.records import ForeignTable, Hints, LostLine, Source
from commbench.results.schema import OriginFile
from commbench.units import MAX_NBYTES, format_nbytes

_MAX_RANKS = 1 << 24


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table of formats. `shape` decides what its `recognises` is given."""

    name: str
    module: str
    shape: Literal["text", "json", "bytes"]
    summary: str


# In the order in which they are asked: those with an unmistakable mark come first.
FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("aiconfigurator", "aiconfigurator", "bytes", "AIConfigurator's nccl_perf tables, Parquet and CSV"),
        Format("nccl-tests-json", "nccl_json", "json", "nccl-tests, the JSON of -J"),
        Format("rccl-tests-json", "rccl_json", "json", "rccl-tests, the JSON of -Z json"),
        Format("perftest-json", "perftest_json", "json", "perftest, the JSON of --out_json"),
        Format("nvbandwidth", "nvbandwidth", "json", "nvbandwidth, the JSON of -j"),
        Format("iperf3", "iperf3", "json", "iperf3, the JSON of -J"),
        Format("osu", "osu", "text", "OSU micro-benchmarks, MPI, XCCL and one-sided"),
        Format("imb", "imb", "text", "Intel MPI Benchmarks"),
        Format("perftest", "perftest", "text", "perftest (ib_write_bw, ib_send_lat, …)"),
        Format("gloo", "gloo", "text", "gloo's benchmark"),
        Format("param", "param", "text", "PARAM's communication benchmark"),
        Format("csv", "separated", "text", "rccl-tests' CSV, and CSV made of nccl-tests' tables"),
        Format("nccl-tests", "nccl_text", "text", "nccl-tests and rccl-tests, the table of every version"),
    )
}


def import_source(source: Source, format_name: str | None = None) -> ReadFile:
    """The tables of one file; `format_name` overrides what it is recognised as.

    Raises UsageError for a format that is not known, CommbenchError for a file that is of no format or has no case.
    """
    if len(source.data) > MAX_FILE_NBYTES:
        limit = format_nbytes(MAX_FILE_NBYTES)
        raise CommbenchError(f"{source.name} is larger than {limit}: cut the log to the part with the tables.")
    if source.data.count(b"\n") + source.data.count(b"\r") > MAX_LINES and not source.data.startswith(b"PAR1"):
        raise CommbenchError(f"{source.name} has more than {MAX_LINES} lines: cut the log to the part with the tables.")
    if not source.data.strip():
        raise CommbenchError(f"{source.name} is empty: there is nothing to import.")
    if format_name is not None and format_name not in FORMATS:
        raise unknown_name("format", format_name, FORMATS)
    name = format_name or recognise(source)
    tables = [_within_reach(table, source.hints) for table in _module(FORMATS[name]).read(source)]
    if not any(table.rows for table in tables):
        why = "; ".join(dict.fromkeys(lost.reason for table in tables for lost in table.lost)) or "no row was found"
        raise CommbenchError(f"{source.name} was read as {name}, and there is nothing in it to import: {why}.")
    digest = hashlib.sha256(source.data).hexdigest()
    return ReadFile(OriginFile(source.name, digest, len(source.data), name), tuple(tables))


def _within_reach(table: ForeignTable, hints: Hints) -> ForeignTable:
    """The table without what no machine has: more than 2^24 ranks, a size above 1 PiB. A damaged digit makes these.

    Raises UsageError if the user gives more nodes than there are ranks.
    """
    if table.ranks is not None and table.ranks > _MAX_RANKS:
        table = replace(table, ranks=None, world_size=None, nodes=None)
    if table.ranks is not None and table.nodes is not None and table.nodes > table.ranks:
        if hints.nodes is not None:
            raise UsageError(f"--nodes {hints.nodes} is more than the {table.ranks} ranks of {table.collective}.")
        table = replace(table, nodes=None)
    kept = tuple(row for row in table.rows if max(row.nbytes or 0, row.count or 0) <= MAX_NBYTES)
    if len(kept) == len(table.rows):
        return table
    lost = LostLine(0, f"{len(table.rows) - len(kept)} rows", "their sizes are beyond 1 PiB")
    return replace(table, rows=kept, lost=(*table.lost, lost))


def recognise(source: Source) -> str:
    """The name of the format of a file. Raises CommbenchError if it is none of ours."""
    text = decode(source.data)
    given: dict[str, Any] = {"bytes": source.data, "text": text}
    if text.lstrip()[:1] in ("{", "[") and text.lstrip()[:2].strip('[{ \n\t\r"]}') == "":
        given = {"json": read_document(text, source.name).value}
    for row in FORMATS.values():
        if row.shape in given and _module(row).recognises(given[row.shape]):
            return row.name
    known = ", ".join(FORMATS)
    raise CommbenchError(f"{source.name} is of no format that is known here: give --as, one of {known}.")


def _module(row: Format) -> Any:
    return import_module(f"{__name__}.{row.module}")
