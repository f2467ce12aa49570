"""What the lines below a table have in common: rows by what was asked for, and a case in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from commbench.units import format_nbytes


@dataclass(frozen=True, slots=True)
class Question:
    """What rows of one question share but for the size: they differ in their groups only."""

    layout: str
    concurrency: str
    collective: str
    dtype: str
    redop: str
    in_place: bool

    def words(self, nbytes: int) -> str:
        """`all_reduce 64 MiB float32 sum`, as progress says it; `barrier` where no data is moved."""
        if not nbytes:
            return self.collective
        redop = "" if self.redop == "none" else f" {self.redop}"
        return f"{self.collective} {format_nbytes(nbytes)} {self.dtype}{redop}"


def measured_questions(run: Run) -> Iterator[tuple[Question, dict[int, list[SummaryRow]]]]:
    """The rows with a time by question and, from the smallest, by the size asked for (true sizes differ by group)."""
    requested = {case.index: case.requested_nbytes for case in run.record.cases}
    found: dict[Question, dict[int, list[SummaryRow]]] = {}
    for row in run.rows:
        if row.seconds_median and row.case in requested:
            question = Question(row.layout, row.concurrency, row.collective, row.dtype, row.redop, row.in_place)
            found.setdefault(question, {}).setdefault(requested[row.case], []).append(row)
    for question, by_size in found.items():
        yield question, dict(sorted(by_size.items()))
