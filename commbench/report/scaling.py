"""Where scaling bends: busbw at the largest size, and the time at the smallest, over the rungs of a ladder."""

from collections.abc import Sequence

from commbench.plan.collectives import COLLECTIVES
from commbench.report.notes import measured_questions
from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from commbench.units import format_seconds

BEND = 0.8  # of the best rung before

_LEGEND = (
    f"bends: at the first rung with less than {100 * BEND:g} % of the best one before it, in busbw or, of a time, in "
    "ring steps per second."
)


def scaling_lines(run: Run) -> list[str]:
    """For every collective of a ladder its busbw at the largest size and its time at the smallest; [] without one."""
    lines = []
    for question, by_size in measured_questions(run):
        climbed = {nbytes: rows for nbytes, rows in by_size.items() if len(rows) > 1}
        if question.layout != "ladder" or not climbed:
            continue
        largest, smallest = max(climbed), min(climbed)
        if all(row.busbw_gbps for row in climbed[largest]):
            lines.append(f"scaling of {question.words(largest)}: {_tell_busbw(climbed[largest])}.")
        if smallest < largest or not smallest:
            lines.append(f"scaling of {question.words(smallest)}: {_tell_time(climbed[smallest])}.")
    return [*lines, _LEGEND] if lines else []


def _tell_busbw(rungs: Sequence[SummaryRow]) -> str:
    told = [f"{_three_digits(row.busbw_gbps or 0.0)} ({row.group})" for row in rungs]
    return f"busbw {', '.join(told)} GB/s, {_bend(rungs, [row.busbw_gbps or 0.0 for row in rungs])}"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _tell_time(rungs: Sequence[SummaryRow]) -> str:
    told = [f"{format_seconds(row.seconds_median or 0.0)} ({row.group})" for row in rungs]
    steps = [COLLECTIVES[row.collective].steps(row.ranks) for row in rungs]
    speeds = [count / (row.seconds_median or 1.0) for count, row in zip(steps, rungs, strict=True)]
    return f"time {', '.join(told)}, {_bend(rungs, speeds)}"


def _bend(rungs: Sequence[SummaryRow], speeds: Sequence[float]) -> str:
    at = find_bend(speeds)
    return "does not bend" if at is None else f"bends at {rungs[at].group}"


def find_bend(speeds: Sequence[float]) -> int | None:
    """The position of the first of `speeds` that is below BEND times the largest before it; None if there is none."""
    best = 0.0
    for position, speed in enumerate(speeds):
        if speed < BEND * best:
            return position
        best = max(best, speed)
    return None
