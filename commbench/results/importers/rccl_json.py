"""The JSON of rccl-tests (`-Z json`): a list with one object a row and placement. `nodes` there counts split groups."""

from typing import Any

from commbench.results.importers.documents import items, number, read_document, text_of, whole
from commbench.results.importers.identify import Evidence, identify
from commbench.results.importers.lines import decode
from commbench.results.importers.nccl_json import judged
from commbench.results.importers.nccl_table import TIME_MEANS
from commbench.results.importers.numbers import REDOPS_BY_NAME, read_collective, read_dtype
from commbench.results.importers.records import ForeignRow, ForeignTable, Source
from commbench.results.schema import UNKNOWN


def recognises(document: Any) -> bool:
    """Whether a parsed document is a list of rccl-tests' rows."""
    return any("numCycle" in item and "size" in item for item in items(document)[:3])


def read(source: Source) -> list[ForeignTable]:
    """A table for each collective and number of ranks. Raises CommbenchError if it is no JSON."""
    document = read_document(decode(source.data), source.name)
    tables: dict[tuple[str | None, int | None], list[ForeignRow]] = {}
    for line, item in enumerate(items(document.value), start=1):
        row = _row(item, line)
        if row is not None:
            name = read_collective(text_of(item.get("name", item.get("collective")), ""))
            ranks = whole(item.get("ranksPerNode")) if whole(item.get("nodes")) else None
            tables.setdefault((name, ranks or whole(item.get("ranks", item.get("gpus")))), []).append(row)
    made = []
    for (name, ranks), rows in tables.items():
        found = identify(rows, Evidence(source.hints, name, "the text", said_ranks=ranks, where=source.name))
        made.append(
            ForeignTable(
                "rccl-tests", "rccl", "throughput", TIME_MEANS, found.rows, found.collective, ranks=found.ranks,
                nodes=source.hints.nodes, findings=found.findings,
                outcome="incomplete" if document.torn else "complete",
            )
        )  # fmt: skip
    return made


def _row(item: dict[str, Any], line: int) -> ForeignRow | None:
    nbytes = whole(item.get("size"))
    if nbytes is None:
        return None
    redop = text_of(item.get("redop"), "none").lower()
    return judged(
        ForeignRow(
            line, nbytes, number(item.get("time"), 1e-6), number(item.get("algBw"), 1e9),
            number(item.get("busBw"), 1e9), dtype=read_dtype(text_of(item.get("type"), "")),
            redop=redop if redop in REDOPS_BY_NAME else UNKNOWN, in_place=whole(item.get("inPlace")) == 1,
            wrong=whole(item.get("wrong")),
        )
    )  # fmt: skip
