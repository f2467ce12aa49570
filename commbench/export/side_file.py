"""commbench-export.json, which stands beside every export: where each number comes from, and how far to trust it.

Schema history (`schema_version`):
  1  commbench 0.1.0: the first.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from commbench import __version__
from commbench.export.records import Chosen, Export, Request
from commbench.results.schema import RunRecord
from commbench.results.store import Run

SIDE_SCHEMA_VERSION = 1


def side_file(request: Request, export: Export, description: dict[str, str], poor: Sequence[str]) -> bytes:
    """The JSON. `description`: of the format, as in the list of formats; `poor`: lines that only --force wrote."""
    document = {
        "schema_version": SIDE_SCHEMA_VERSION,
        "commbench": __version__,
        **description,
        "runs": [run_facts(run) for run in request.runs],
        "data_sha256": [record.data_sha256 for record in request.records],
        "window": request.records[0].window,
        "nodes": request.shape.nodes,
        "ranks_per_node": request.shape.ranks_per_node,
        "forced": request.force,
        "below_quality": list(poor),
        "assumptions": list(export.assumptions),
        "warnings": list(export.warnings),
        "files": sorted(export.files),
        "used": [_used(item) for item in (*request.chosen.values(), *export.used)],
    }
    return encode(document)


def encode(document: Any) -> bytes:
    """JSON of records and plain values, for people too."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def run_facts(run: Run) -> dict[str, Any]:
    """What identifies a run, without the whole of run.json."""
    record: RunRecord = run.record
    return {
        "name": run.directory.name,
        "schema_version": record.schema_version,
        "created_utc": record.created_utc,
        "engine": record.engine,
        "backend": record.backend,
        "hosts": [host.name for host in record.hosts],
        "versions": record.versions,
        "imported_from": [file.name for file in record.origin.files] if record.origin else [],
    }


def _used(item: Chosen) -> dict[str, Any]:
    """The curve behind a need; its line, or None where the measured sizes were written."""
    fit = item.fit
    widths = [point.half_width for point in fit.points if point.half_width is not None]
    return {
        "for": str(item.need),
        "key": fit.key,
        "launches": fit.launches,
        "groups": fit.groups,
        "line": None if item.need.only_points else fit.line,
        "points": len(fit.points),
        "largest_relative_half_width": max(widths, default=None),
    }
