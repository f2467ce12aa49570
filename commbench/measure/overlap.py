"""How much a collective slows a matrix product beside it, and the other way round.

In every round both are timed alone and beside the other, in turn, and the slowdown is a ratio within the round, so that
drift hits both sides alike. What runs beside must outlast what is timed (in Galvatron's profile_overlap.py it is four
times as long); a round in which it did not is not counted, and the next has twice as much of it. Times are the slowest
rank's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from commbench.engines.base import Engine, Overlap, Timed
from commbench.measure.case_state import describe
from commbench.measure.sampling import SamplingRules
from commbench.measure.session import Watch, guarded
from commbench.measure.verify import write_steady
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from commbench.results.schema import MeasuredStatus, OverlapRecord, Slowdown
from commbench.stats import MIN_FOR_INTERVAL, summarize

_BATCH_SECONDS = 0.02  # of what is timed, alone
_COVER = 4  # times as long what runs beside it would take alone
_MOST_ROUNDS = 60
_MOST_DOUBLINGS = 4
_ENOUGH_TRIES = 2 * MIN_FOR_INTERVAL  # rounds that were counted or not, when the budget is spent
_MOST_CALLS = 10_000

Keep = Callable[[Sequence[OverlapRecord]], None]


@dataclass(slots=True)
class _Counts:
    """How many calls and products are timed, and how many of the other are beside them; the same on every rank."""

    calls: int = 1
    products: int = 1
    calls_beside: int = 1
    products_beside: int = 1
    doublings: int = 0

    def double(self, calls: bool, products: bool) -> None:
        """Have twice as many beside, of what ended first."""
        self.calls_beside *= 2 if calls else 1
        self.products_beside *= 2 if products else 1
        self.doublings += 1


@dataclass(slots=True)
class _Rounds:
    """Of one group: seconds of a product and of a call alone, and the ratios, one a round."""

    product_seconds: list[float] = field(default_factory=list)
    call_seconds: list[float] = field(default_factory=list)
    compute: list[float] = field(default_factory=list)
    collective: list[float] = field(default_factory=list)


def choose_cases(cases: Sequence[Case]) -> list[Case]:
    """The largest size of every collective, dtype and operator on every layout, on as many ranks as there are."""
    chosen: dict[tuple[str, str, str, str], Case] = {}
    for case in cases:
        key = (case.collective, case.dtype, case.redop, case.layout)
        if key not in chosen or _weight(case) > _weight(chosen[key]):
            chosen[key] = case
    return list(chosen.values())


def measure_overlap(
    engine: Engine, cases: Sequence[Case], positions: Callable[[Case], Sequence[int]], rules: SamplingRules,
    watch: Watch, keep: Keep,
) -> None:  # fmt: skip
    """Measure the chosen of `cases`, on all ranks alike, and `keep` what is known after each. Ctrl-C ends it.

    `positions`: of a case's groups in the run's list. The budget of the sweep is spent once more, in equal shares.
    """
    chosen, records = choose_cases(cases), list[OverlapRecord]()
    for case in chosen:
        reason = case.too_small or engine.unsupported(case) or _alone(case) or engine.no_overlap(case)
        if reason:
            status: MeasuredStatus = "skipped" if case.too_small else "unsupported"
            records += [OverlapRecord(case.index, at, "", 0, None, None, status, reason) for at in positions(case)]
        else:
            with guarded(engine, watch, f"the overlap of {describe(case)}"):
                measured = _Measurement(engine, case, rules, rules.budget_seconds / len(chosen), watch)
                measured.run()
            records += measured.records(positions(case))
            if measured.interrupted:
                break
        keep(records)
    keep(records)


def _alone(case: Case) -> str | None:
    return "one rank has no link" if max(group.size for group in case.groups) == 1 else None


def _weight(case: Case) -> tuple[int, int, bool]:
    return case.requested_nbytes, sum(group.size for group in case.groups), case.concurrency == "together"


class _Measurement:
    """One case, all its groups at once."""

    def __init__(self, engine: Engine, case: Case, rules: SamplingRules, budget_seconds: float, watch: Watch) -> None:
        self.interrupted = False
        self._engine, self._case, self._rules, self._watch = engine, case, rules, watch
        self._budget_seconds = budget_seconds
        self._overlaps = [self._prepare(group) for group in case.groups]
        self._rounds = [_Rounds() for _ in case.groups]
        self._began = engine.now_seconds()
        self._spent = 0.0
        self._tries = 0
        self._counts = _Counts()

    def run(self) -> None:
        """Calibrate, then go round until both slowdowns are precise or the budget is spent."""
        self._calibrate()
        while not self._is_done() and not self.interrupted:
            self._go_round(beside_first=self._tries % 2 == 1)
            self._tries += 1

    def records(self, positions: Sequence[int]) -> list[OverlapRecord]:
        product = next((overlap.product for overlap in self._overlaps if overlap), "")
        return [self._record(at, product, rounds) for at, rounds in zip(positions, self._rounds, strict=True)]

    def _prepare(self, group: Group) -> Overlap | None:
        me = next((index for index, rank in enumerate(group.ranks) if rank in self._engine.ranks), None)
        if me is None:
            return None
        if self._engine.data is not None:  # zeros stay zeros, whatever is added up how often
            write_steady(self._engine.data, self._case, self._engine.prepare(self._case, group, me))
        return self._engine.prepare_overlap(self._case, group, me)

    def _calibrate(self) -> None:
        """Counts from the times alone, of the slowest group; the first calls are a warm-up."""
        counts = self._counts
        for _ in range(3):
            call = max(self._time(lambda one: one.time_calls(counts.calls, 0))[0]) / counts.calls
            product = max(self._time(lambda one: one.time_products(counts.products, 0))[0]) / counts.products
            counts.calls, counts.products = (_limited(_BATCH_SECONDS / each) for each in (call, product))
        counts.calls_beside = _limited(_COVER * counts.products * product / call)
        counts.products_beside = _limited(_COVER * counts.calls * call / product)

    def _go_round(self, beside_first: bool) -> None:
        counts = self._counts
        steps: list[Callable[[Overlap], Timed]] = [
            lambda one: one.time_products(counts.products, 0),
            lambda one: one.time_products(counts.products, counts.calls_beside),
            lambda one: one.time_calls(counts.calls, 0),
            lambda one: one.time_calls(counts.calls, counts.products_beside),
        ]
        order = (1, 0, 3, 2) if beside_first else (0, 1, 2, 3)
        found = {step: self._time(steps[step]) for step in order}
        lacks_calls, lacks_products = not found[1][1], not found[3][1]
        if lacks_calls or lacks_products:
            counts.double(lacks_calls, lacks_products)
            return
        for group, rounds in enumerate(self._rounds):
            product, product_beside, call, call_beside = (found[step][0][group] for step in range(4))
            rounds.product_seconds.append(product / counts.products)
            rounds.call_seconds.append(call / counts.calls)
            rounds.compute.append(product_beside / product)
            rounds.collective.append(call_beside / call)

    def _time(self, run: Callable[[Overlap], Timed]) -> tuple[list[float], bool]:
        """Seconds of every group, the slowest rank's, and whether all were covered; on the way Ctrl-C and the time."""
        engine = self._engine
        self._watch.step(self._budget_seconds)
        engine.barrier()
        taken, uncovered = np.full(len(self._overlaps), -np.inf), 0.0
        for position, overlap in enumerate(self._overlaps):
            if overlap is not None:
                timed = run(overlap)
                taken[position] = timed.seconds
                uncovered = max(uncovered, float(not timed.covered))
        told = [uncovered, float(self._watch.interrupted), engine.now_seconds() - self._began]
        *seconds, some_uncovered, interrupted, self._spent = engine.max_reduce(np.concatenate([taken, told])).tolist()
        self.interrupted = bool(interrupted)
        return seconds, not some_uncovered

    def _is_done(self) -> bool:
        rounds = len(self._rounds[0].compute)
        if self._counts.doublings > _MOST_DOUBLINGS or rounds >= _MOST_ROUNDS:
            return True
        if self._spent >= self._budget_seconds and (rounds >= MIN_FOR_INTERVAL or self._tries >= _ENOUGH_TRIES):
            return True
        return rounds >= self._rules.min_rounds and self._is_precise()

    def _is_precise(self) -> bool:
        ratios = [ratio for rounds in self._rounds for ratio in (rounds.compute, rounds.collective)]
        return all(self._rules.is_precise(values) for values in ratios)

    def _record(self, position: int, product: str, rounds: _Rounds) -> OverlapRecord:
        count = len(rounds.compute)
        if not count:
            reason = "the run was interrupted" if self.interrupted else "what ran beside it ended first"
            return OverlapRecord(self._case.index, position, product, 0, None, None, "missing", reason)
        precise = self._rules.is_precise(rounds.compute) and self._rules.is_precise(rounds.collective)
        return OverlapRecord(
            case=self._case.index,
            group=position,
            product=product,
            rounds=count,
            compute=_slowdown(rounds.compute, rounds.product_seconds),
            collective=_slowdown(rounds.collective, rounds.call_seconds),
            status="ok" if precise else "noisy",
            reason="" if precise else "the budget ended before it was precise",
        )


def _slowdown(ratios: Sequence[float], alone: Sequence[float]) -> Slowdown:
    summary = summarize(ratios)
    return Slowdown(summary.median, summary.ci_low, summary.ci_high, summarize(alone).median)


def _limited(count: float) -> int:
    return max(1, min(_MOST_CALLS, ceil(count)))
