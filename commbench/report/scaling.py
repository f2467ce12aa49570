"""Where scaling bends: busbw at the largest size, and the time at the smallest, over the rungs of a ladder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from commbench.plan.collectives import COLLECTIVES
from commbench.report.notes import Question, measured_questions
from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from commbench.units import format_seconds

BEND = 0.8  # of the best rung before

_LEGEND = (
    f"bends: at the first rung with less than {100 * BEND:g} % of the best one before it, in busbw or, of a time, in "
    "ring steps per second."
)


@dataclass(frozen=True, slots=True)
class Climb:
    """One question at one size over the rungs of a ladder. `by_time`: told by its time, else by its busbw.

    `bend`: the position of the rung at which scaling bends; None where it does not.
    """

    question: Question
    nbytes: int
    rungs: tuple[SummaryRow, ...]
    by_time: bool
    bend: int | None


def climb_ladders(run: Run) -> Iterator[Climb]:
    """For every collective of a ladder its busbw at the largest size, then its time at the smallest."""
    for question, by_size in measured_questions(run):
        climbed = {nbytes: tuple(rows) for nbytes, rows in by_size.items() if len(rows) > 1}
        if question.layout != "ladder" or question.collective not in COLLECTIVES or not climbed:
            continue
        largest, smallest = max(climbed), min(climbed)
        rungs = climbed[largest]
        if all(row.busbw_gbps for row in rungs):
            yield Climb(question, largest, rungs, False, find_bend([row.busbw_gbps or 0.0 for row in rungs]))
        if smallest < largest or not smallest:
            rungs = climbed[smallest]
            yield Climb(question, smallest, rungs, True, find_bend(_steps_per_second(rungs)))


def scaling_lines(run: Run) -> list[str]:
    """A line for every climb of a ladder; [] without one."""
    lines = [f"scaling of {climb.question.words(climb.nbytes)}: {_tell(climb)}." for climb in climb_ladders(run)]
    return [*lines, _LEGEND] if lines else []


def _tell(climb: Climb) -> str:
    tell = _tell_time if climb.by_time else _tell_busbw
    bend = "does not bend" if climb.bend is None else f"bends at {climb.rungs[climb.bend].group}"
    return f"{tell(climb.rungs)}, {bend}"


def _tell_busbw(rungs: Sequence[SummaryRow]) -> str:
    told = [f"{_three_digits(row.busbw_gbps or 0.0)} ({row.group})" for row in rungs]
    return f"busbw {', '.join(told)} GB/s"


def _three_digits(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def _tell_time(rungs: Sequence[SummaryRow]) -> str:
    told = [f"{format_seconds(row.seconds_median or 0.0)} ({row.group})" for row in rungs]
    return f"time {', '.join(told)}"


def _steps_per_second(rungs: Sequence[SummaryRow]) -> list[float]:
    """Of a ring, which takes longer by right when it has more ranks."""
    return [COLLECTIVES[row.collective].steps(row.ranks or 1) / (row.seconds_median or 1.0) for row in rungs]


def find_bend(speeds: Sequence[float]) -> int | None:
    """The position of the first of `speeds` that is below BEND times the largest before it; None if there is none."""
    best = 0.0
    for position, speed in enumerate(speeds):
        if speed < BEND * best:
            return position
        best = max(best, speed)
    return None
