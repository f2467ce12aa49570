"""What a session knows of each case so far, and how a case is called in words."""

from dataclasses import dataclass, field

from commbench.engines.base import Seconds
from commbench.measure.verify import Mismatch
from commbench.plan.collectives import Blocks
from commbench.plan.plan import Case
from commbench.results.resume import DoneCase
from commbench.results.schema import SampleKind, Status
from commbench.results.summary import GroupSamples
from commbench.units import format_nbytes

# What a call is taken to need before any was timed; checking its data included.
_CAUTIOUS_SECONDS_PER_BYTE = 1.0 / 100e6


@dataclass(frozen=True, slots=True)
class Measured:
    """Batches of one case: arrays of seconds per call, groups x batches, each the maximum over the group's ranks.

    `calls` of each group in a batch; `wrong` elements by group where data was checked.
    """

    kind: SampleKind
    round: int
    calls: tuple[int, ...]
    seconds: Seconds
    enqueue_seconds: Seconds | None
    wrong: tuple[int, ...] | None = None


@dataclass(slots=True)
class CaseState:
    """What is known of a case so far, by group. `runs` in a batch, each of `repeats` calls: 1, or those of a graph.

    `batch_seconds`: of one batch on all groups, at the end of the warm-up.
    """

    case: Case
    samples: list[GroupSamples]
    runs: list[int]
    repeats: int = 1
    rounds: int = 0
    spent_seconds: float = 0.0
    slowest_seconds: float = 0.0
    batch_seconds: float = 0.0
    status: Status | None = None
    reason: str = ""
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def expected_seconds(self) -> float:
        """Of one batch on all groups, from the slowest call so far; the same on every rank."""
        nbytes = max(self.case.nbytes(group) for group in self.case.groups)
        return sum(self.runs) * self.repeats * (self.slowest_seconds or nbytes * _CAUTIOUS_SECONDS_PER_BYTE)

    def take_over(self, done: DoneCase) -> None:
        """Be closed as the stored run has closed this case."""
        self.status, self.reason = done.status, done.reason
        for samples, wrong in zip(self.samples, done.wrong, strict=True):
            samples.wrong = wrong

    def keep(self, measured: Measured) -> None:
        """Add the first call or a visit's batches to the samples."""
        for position, samples in enumerate(self.samples):
            seconds = [float(value) for value in measured.seconds[position]]
            if measured.kind == "first":
                samples.first_call_seconds = seconds[0]
                samples.wrong = measured.wrong[position] if measured.wrong else None
                continue
            samples.seconds += seconds
            if measured.enqueue_seconds is not None:
                samples.enqueue_seconds += [float(value) for value in measured.enqueue_seconds[position]]


def describe(case: Case) -> str:
    """A case in words, for progress and for the watchdog."""
    words = [case.collective]
    if case.spec.send is not Blocks.NONE:
        words += [format_nbytes(case.requested_nbytes), case.dtype]
    if case.spec.reduces:
        words.append(case.redop)
    if len(case.groups) > 1:
        where = f"{len(case.groups)} groups of {case.layout}"
    else:
        where = "the world" if case.layout == "world" else f"{case.layout} {case.groups[0].name}"
    return f"{' '.join(words)} on {where}"
