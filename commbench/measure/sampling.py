"""How many calls make a batch, how many batches are enough: pure decisions, from the same numbers on every rank."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from commbench.plan.modes import Mode
from commbench.stats import MIN_FOR_INTERVAL, summarize

MAX_CALLS = 10_000
_VISIT_SECONDS = 0.015  # of short batches there are so many in a visit; of long ones a few, and more visits see drift


@dataclass(frozen=True, slots=True)
class SamplingRules:
    """When a case has been measured enough.

    `precision`: the half-width of the 95 % interval over the median that is good enough.
    `budget_seconds`: of measuring, for all cases together; each has an equal share, and at least the batches that an
    interval needs.
    """

    precision: float = 0.05
    budget_seconds: float = 30.0
    mode: Mode = "throughput"
    min_rounds: int = 8
    warmup_agreement: float = 0.25
    max_warmup: int = 12
    max_batches: int = 2000

    def batches_per_visit(self, batch_seconds: float) -> int:
        """Two to six of `batch_seconds` each. Latency keeps the distribution of single calls, so it takes more."""
        if self.mode == "latency":
            return 32
        wanted = ceil(min(MIN_FOR_INTERVAL, _VISIT_SECONDS / batch_seconds)) if batch_seconds > 0 else MIN_FOR_INTERVAL
        return max(2, wanted)

    def is_over(self, spent_seconds: float, cases: int, run_seconds: float, batches: int) -> bool:
        """Whether no time is left for a case that took `spent_seconds`, in a run of so many that took `run_seconds`.

        Each case gets the batches that an interval needs.
        """
        if batches < MIN_FOR_INTERVAL:
            return False
        is_spent = spent_seconds >= self.budget_seconds / cases or run_seconds >= self.budget_seconds
        return is_spent or batches >= self.max_batches

    def is_enough(self, rounds: int, seconds: Sequence[float]) -> bool:
        """Whether the interval is narrow enough and was taken from enough rounds to have seen drift.

        On the virtual clock without noise all batches are equal, and one round says it all.
        """
        seen = rounds >= self.min_rounds or max(seconds) - min(seconds) <= 1e-9 * max(seconds)
        return seen and self.is_precise(seconds)

    def is_precise(self, seconds: Sequence[float]) -> bool:
        """Whether the interval of the median is within the precision."""
        half_width = summarize(seconds).relative_half_width
        return half_width is not None and half_width <= self.precision

    def is_warm(self, seconds: Sequence[float]) -> bool:
        """Whether the last three warm-up calls agree, or enough were made."""
        last = seconds[-3:]
        agree = len(last) == 3 and max(last) - min(last) <= self.warmup_agreement * min(last)
        return agree or len(seconds) >= self.max_warmup


def batch_target_seconds(resolution_seconds: float, barrier_seconds: float) -> float:
    """How long a batch should be: long against the clock's resolution (0.1 %) and against the barrier before it."""
    return max(1000.0 * resolution_seconds, 10.0 * barrier_seconds)


def grow_calls(calls: int, seconds: float, target_seconds: float) -> int:
    """The number of calls for the next batch, when `calls` calls took `seconds`; unchanged once that is long enough."""
    if seconds >= 0.7 * target_seconds or calls >= MAX_CALLS:
        return calls
    wanted = ceil(min(MAX_CALLS, calls * target_seconds / seconds)) if seconds > 0 else MAX_CALLS
    return min(MAX_CALLS, 10 * calls, max(calls + 1, wanted))
