"""The forms in which a run can be written, by the name that `--format` takes."""

import csv
from collections.abc import Callable
from dataclasses import astuple
from io import StringIO

from commbench.results.schema import SUMMARY_COLUMNS
from commbench.results.store import Run


def _table(run: Run) -> str:
    from commbench.report.table import format_table

    return format_table(run)


def _markdown(run: Run) -> str:
    from commbench.report.table import format_markdown

    return format_markdown(run)


def _json(run: Run) -> str:
    import msgspec

    document = {"run": run.record, "rows": run.rows}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def _csv(run: Run) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SUMMARY_COLUMNS)
    writer.writerows(["" if value is None else value for value in astuple(row)] for row in run.rows)
    return text.getvalue()


FORMATS: dict[str, Callable[[Run], str]] = {
    "table": _table,
    "json": _json,
    "csv": _csv,
    "markdown": _markdown,
}
