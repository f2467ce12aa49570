"""How much collectives and matrix products slow each other, in words."""

from collections.abc import Iterator

from commbench.report.notes import Question
from commbench.results.schema import OverlapRecord, Slowdown
from commbench.results.store import Run


def overlap_lines(run: Run) -> list[str]:
    """A line for every case that --overlap chose: of several groups the one with the largest coefficient."""
    by_case: dict[int, list[OverlapRecord]] = {}
    for record in run.record.overlap:
        by_case.setdefault(record.case, []).append(record)
    return [line for records in by_case.values() for line in _lines(run, records)]


def _lines(run: Run, records: list[OverlapRecord]) -> Iterator[str]:
    worst = max(records, key=lambda record: record.coefficient or 0.0)
    case = run.record.cases[worst.case]
    question = Question(case.layout, case.concurrency, case.collective, case.dtype, case.redop, case.in_place)
    group = run.record.groups[worst.group]
    where = f"{case.layout} {group.name}" if len(records) > 1 else case.layout
    name = f"overlap of {question.words(case.requested_nbytes or 0)} on {where}"
    if worst.compute is None or worst.collective is None:
        yield f"{name}: {worst.status} ({worst.reason})."
        return
    yield (
        f"{name}: beside it a matrix product ({worst.product}) takes {_times(worst.compute)} as long as alone, "
        f"beside products it takes {_times(worst.collective)}; overlap_coe {worst.coefficient:.2f}"
        f"{'' if worst.status == 'ok' else f', {worst.status}'}."
    )


def _times(slowdown: Slowdown) -> str:
    interval = "" if slowdown.low is None else f" [{slowdown.low:.2f}, {slowdown.high:.2f}]"
    return f"{slowdown.factor:.2f} times{interval}"
