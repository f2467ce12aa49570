"""How much slower groups are together than alone, in words."""

from statistics import median

from commbench.report.notes import measured_questions
from commbench.results.store import Run


def contention_lines(run: Run) -> list[str]:
    """A line for every layout and collective that was measured alone and together, at its largest size."""
    lines = []
    for question, by_size in measured_questions(run):
        largest = max(by_size)
        factors = [row.contention for row in by_size[largest] if row.contention is not None]
        if factors:
            where = f"{question.words(largest)} on {question.layout}"
            groups = f"median of {len(factors)} groups, at most {max(factors):.2f}" if len(factors) > 1 else "one group"
            lines.append(
                f"contention in {where}: together it takes {median(factors):.2f} times as long as alone, {groups}."
            )
    return lines
