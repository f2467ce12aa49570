"""The JSON of nvbandwidth (`-j`): matrices of copies between devices. Cells are strings; `N/A` is no measurement.

A cell is a rate of 1e9 bytes/s without a size and a time: the buffer size is an argument, and not in the file.
"""

from typing import Any

from commbench.results.importers import notes
from commbench.results.importers.documents import items, number, read_document, section, text_of
from commbench.results.importers.lines import decode
from commbench.results.importers.records import ForeignRow, ForeignTable, Source
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import UNKNOWN, Finding

_TOP = "nvbandwidth"
_STATUSES = {"Passed": "complete", "Waived": "complete"}
_MEANS = "median over samples (CUDA events); sizes are not in the file, so there is no time"


def recognises(document: Any) -> bool:
    """Whether a parsed document is nvbandwidth's."""
    return isinstance(document, dict) and isinstance(document.get(_TOP), dict)


def read(source: Source) -> list[ForeignTable]:
    """A table for every test case. Raises CommbenchError if it is no JSON."""
    document = read_document(decode(source.data), source.name)
    top = section(document.value, _TOP)
    return [_table(case, top, source, document.torn) for case in items(top.get("testcases"))]


def _table(case: dict[str, Any], top: dict[str, Any], source: Source, torn: bool) -> ForeignTable:
    name, status = text_of(case.get("name"), UNKNOWN), text_of(case.get("status"), UNKNOWN)
    findings = [
        notes.point_to_point(name, source.name, "copies between two devices"),
        Finding("size-unknown", name, "skip", "the buffer size is not in the file", "", source.name),
    ]  # fmt: skip
    failed = status not in _STATUSES
    if failed:
        findings.append(notes.failed(name, f"status {status}", source.name))
    rows = _rows(case, name)
    if failed and not rows:
        rows = [ForeignRow(1, None, None, status="failed", reason=f"{name}: status {status}", variant=name)]
    return ForeignTable(
        tool="nvbandwidth", backend="cuda", mode="throughput", time_means=_MEANS, rows=tuple(rows),
        collective=POINT_TO_POINT, version=text_of(top.get("git_version"), UNKNOWN), ranks=2, nodes=source.hints.nodes,
        outcome="failed" if failed else "incomplete" if torn else "complete", findings=tuple(findings),
        versions=tuple(
            (key.removesuffix(" Version").lower(), text_of(top[key], str(top[key])[:40]))
            for key in ("CUDA Runtime Version", "Driver Version") if key in top
        ),
    )  # fmt: skip


def _rows(case: dict[str, Any], name: str) -> list[ForeignRow]:
    """A row for every cell that holds a rate. The diagonal of a device's copy to itself is 0 or N/A."""
    matrix = case.get("bandwidth_matrix")
    rows = []
    for line, values in enumerate(matrix if isinstance(matrix, list) else []):
        for column, value in enumerate(values if isinstance(values, list) else [values]):
            rate = number(value, 1e9)
            if rate is not None and rate.value > 0:
                rows.append(
                    ForeignRow(line + 1, None, None, rate, rate, redop="none",
                               variant=f"{name} row {line} column {column}")
                )  # fmt: skip
    return rows
