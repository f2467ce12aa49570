"""The forms in which a run can be written, by the name that `--format` takes."""

import csv
from collections.abc import Callable
from io import StringIO
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from commbench.results.store import Run


def _table(run: "Run") -> str:
    from commbench.report.table import format_table

    return format_table(run)


def _markdown(run: "Run") -> str:
    from commbench.report.table import format_markdown

    return format_markdown(run)


def _json(run: "Run") -> str:
    import msgspec

    document = {"run": run.record, "rows": run.rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _csv(run: "Run") -> str:
    from commbench.results.schema import SUMMARY_COLUMNS

    text, values = StringIO(), attrgetter(*SUMMARY_COLUMNS)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SUMMARY_COLUMNS)
    writer.writerows([_cell(value) for value in values(row)] for row in run.rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    """As in summary.csv, but with every digit."""
    return int(value) if isinstance(value, bool) else "" if value is None else value


FORMATS: dict[str, Callable[["Run"], str]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
}
