"""The whole way of a file, less the disk: recognised, read, made a run, shown."""

from pathlib import Path

import msgspec

from commbench.report.table import format_markdown
from commbench.results.importers import import_source
from commbench.results.importers.assemble import Imported, assemble
from commbench.results.importers.records import Source
from commbench.results.schema import RunRecord
from commbench.results.store import Run, check_record


def import_whole(data: bytes, format_name: str | None = None) -> Imported:
    """The run of a file; its record survives JSON and its rows can be shown."""
    found = assemble([import_source(Source("results", data), format_name)], "2026-01-02T03:04:05+00:00", ("commbench",))
    record = msgspec.json.decode(msgspec.json.encode(found.record), type=RunRecord)
    check_record(Path("run.json"), record)
    format_markdown(Run(Path("run"), record, found.rows))
    return found
