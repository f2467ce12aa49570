"""A run from the first case to the last: rounds over a shuffled plan, each case checked once and then sampled.

Every rank takes the same decisions, because it takes them from the same numbers: maxima over all ranks of the world.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Protocol

import numpy as np

from commbench.engines.base import Call, Engine, Seconds
from commbench.errors import TransportError
from commbench.measure.loop import time_batch
from commbench.measure.sampling import SamplingRules, batch_target_seconds, grow_calls
from commbench.measure.verify import Mismatch, find_mismatch, write_pattern, write_steady
from commbench.plan.collectives import Blocks
from commbench.plan.groups import Group
from commbench.plan.plan import Case, shuffled
from commbench.results.resume import DoneCase
from commbench.results.schema import SampleKind, Status
from commbench.results.summary import GroupSamples
from commbench.units import format_nbytes

_BARRIERS_TO_TIME = 15
# What a call is taken to need before any was timed; checking its data included.
_CAUTIOUS_SECONDS_PER_BYTE = 1.0 / 100e6


class Watch(Protocol):
    """What the session needs of a watchdog."""

    @property
    def interrupted(self) -> bool: ...

    def watching(self, what: str, expected_seconds: float = 0.0) -> AbstractContextManager[None]: ...

    def step(self, expected_seconds: float) -> None:
        """What is watched has come further; what follows is expected to take so long."""
        ...

    def blame(self, what: str, reason: str) -> TransportError:
        """The error for a collective that failed for `reason`."""
        ...


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


class Observer(Protocol):
    """Who is told what happens; called between visits, never inside one. Only rank 0 has one that does anything."""

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        """`case` was visited; `seconds` of measuring have passed in the whole run."""
        ...

    def closed(self, state: "CaseState") -> None:
        """Nothing more will be measured of a case."""
        ...


@dataclass(slots=True)
class CaseState:
    """What is known of a case so far, by group."""

    case: Case
    samples: list[GroupSamples]
    calls: list[int]
    rounds: int = 0
    spent_seconds: float = 0.0
    slowest_seconds: float = 0.0
    status: Status | None = None
    reason: str = ""
    mismatches: list[Mismatch] = field(default_factory=list)

    @property
    def expected_seconds(self) -> float:
        """Of one batch on all groups, from the slowest call so far; the same on every rank."""
        nbytes = max(self.case.nbytes(group) for group in self.case.groups)
        return sum(self.calls) * (self.slowest_seconds or nbytes * _CAUTIOUS_SECONDS_PER_BYTE)

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


@contextmanager
def guarded(engine: Engine, watch: Watch, what: str) -> Iterator[None]:
    """Watch the body, in which ranks wait for each other. Raises TransportError where a peer or its link is gone."""
    try:
        with watch.watching(what):
            yield
    except engine.transport_errors as error:
        raise watch.blame(what, engine.explain(error)) from error


class Session:
    """Measures `cases` on `engine`. Make one on every rank with the same cases, rules and seed, then `run` them.

    `done`: the cases that a stored run has closed already; they count as cases, so each has the share that it had.
    """

    def __init__(
        self,
        engine: Engine,
        cases: Sequence[Case],
        *,
        rules: SamplingRules,
        seed: int,
        verify: bool,
        observer: Observer,
        watch: Watch,
        done: Sequence[DoneCase] = (),
    ) -> None:
        self.states = [CaseState(case, [GroupSamples() for _ in case.groups], [1] * len(case.groups)) for case in cases]
        for kept in done:
            self.states[kept.index].take_over(kept)
        self.seconds = 0.0
        self.interrupted = False
        self._engine = engine
        self._rules = rules
        self._seed = seed
        self._data = engine.data if verify else None
        self._observer = observer
        self._watch = watch
        self._mine = frozenset(engine.ranks)
        self._target_seconds = 0.0
        self._began = 0.0

    def run(self) -> None:
        """Measure until every case is closed or Ctrl-C."""
        self._began = self._engine.now_seconds()
        with guarded(self._engine, self._watch, "the barrier before the first case"):
            self._target_seconds = batch_target_seconds(self._engine.stopwatch.resolution_seconds, self._time_barrier())
        for state in self.states:
            if state.status is None:
                self._close_if_impossible(state)
        round_number = 0
        while (cases := [state.case for state in self.states if state.status is None]) and not self.interrupted:
            for case in shuffled(cases, self._seed, round_number):
                if not self.interrupted:
                    self._visit(self.states[case.index])
            round_number += 1
        for state in self.states:
            if state.status is None:
                self._close(state, "partial" if state.rounds else "missing", "the run was interrupted")

    # -- one case --------------------------------------------------------------------------------------------------

    def _close_if_impossible(self, state: CaseState) -> None:
        if reason := state.case.too_small:
            self._close(state, "skipped", reason)
        elif reason := self._engine.unsupported(state.case):
            self._close(state, "unsupported", reason)

    def _visit(self, state: CaseState) -> None:
        """One case in one round: at the first visit its first call, its data and its warm-up; then some batches."""
        case, started = state.case, self.seconds
        with guarded(self._engine, self._watch, describe(case)):
            self._watch.step(state.expected_seconds)
            calls = [self._prepare(case, group) for group in case.groups]
            measured = self._measure_round(state, calls)
        state.rounds += 1
        state.spent_seconds += self.seconds - started
        self._observer.sampled(case, measured, self.seconds)
        if state.status == "wrong":
            self._observer.closed(state)
        else:
            self._close_if_done(state)

    def _measure_round(self, state: CaseState, calls: Sequence[Call | None]) -> list[Measured]:
        measured: list[Measured] = []
        if state.rounds == 0:
            measured.append(self._first_call(state, calls))
            if state.status == "wrong":  # a fast wrong answer is of no use
                return measured
            measured += self._warm_up(state, calls)
        measured.append(self._measure(state, calls, "batch", self._rules.batches_per_visit))
        state.keep(measured[-1])
        return measured

    def _prepare(self, case: Case, group: Group) -> Call | None:
        """The call of `group` for a rank that this process speaks for; None if it has no such member."""
        me = next((index for index, rank in enumerate(group.ranks) if rank in self._mine), None)
        return None if me is None else self._engine.prepare(case, group, me)

    def _first_call(self, state: CaseState, calls: Sequence[Call | None]) -> Measured:
        case, data = state.case, self._data if state.case.spec.send is not Blocks.NONE else None
        mine = [call for call in calls if call]
        if data is None:
            measured = self._measure(state, calls, "first", 1)
        else:
            for call in mine:
                write_pattern(data, case, call)
            measured = self._measure(state, calls, "first", 1)
            state.mismatches = self._share_mismatches([find_mismatch(data, case, call) for call in mine])
            wrong = [sum(bad.wrong for bad in state.mismatches if bad.rank in group.ranks) for group in case.groups]
            measured = replace(measured, wrong=tuple(wrong))
            for call in mine:
                write_steady(data, case, call)
        state.keep(measured)
        if state.mismatches:
            bad = min(state.mismatches, key=lambda bad: bad.rank)
            state.status = "wrong"
            state.reason = f"rank {bad.rank} element {bad.index}: expected {bad.expected:g}, got {bad.got:g}"
        return measured

    def _share_mismatches(self, mine: Sequence[Mismatch | None]) -> list[Mismatch]:
        """The mismatches of all ranks, on every rank. Costs one small maximum as long as nothing is wrong."""
        found = [bad for bad in mine if bad]
        if self._exchange(np.array([float(len(found))]))[0] == 0.0:
            return []
        texts = self._engine.gather_texts(json.dumps([asdict(bad) for bad in found]))
        return [Mismatch(**bad) for text in texts for bad in json.loads(text)]

    def _warm_up(self, state: CaseState, calls: Sequence[Call | None]) -> list[Measured]:
        """Single calls until they agree, then batches until they are long enough."""
        measured = [self._measure(state, calls, "warmup", 3)]
        slowest = list(measured[0].seconds.max(axis=0))
        while not self._rules.is_warm(slowest):
            measured.append(self._measure(state, calls, "warmup", 1))
            slowest += list(measured[-1].seconds.max(axis=0))
        while self._rules.mode == "throughput":
            took = measured[-1].seconds[:, -1] * state.calls
            pairs = zip(state.calls, took, strict=True)
            grown = [grow_calls(count, float(seconds), self._target_seconds) for count, seconds in pairs]
            if grown == state.calls:
                break
            state.calls = grown
            measured.append(self._measure(state, calls, "warmup", 1))
        return measured

    # -- timing ----------------------------------------------------------------------------------------------------

    def _measure(self, state: CaseState, calls: Sequence[Call | None], kind: SampleKind, batches: int) -> Measured:
        engine, stopwatch = self._engine, self._engine.stopwatch
        scope = None if state.case.concurrency == "together" else state.case.groups[0]
        taken = np.full((2, len(calls), batches), -np.inf)
        for batch in range(batches):
            self._watch.step(state.expected_seconds)
            if scope is None or calls[0] is not None:
                engine.barrier(scope)
            for position, call in enumerate(calls):
                if call is not None:
                    elapsed = time_batch(stopwatch, call.run, state.calls[position])
                    taken[0, position, batch] = elapsed.seconds / state.calls[position]
                    if elapsed.enqueue_seconds is not None:
                        taken[1, position, batch] = elapsed.enqueue_seconds / state.calls[position]
        seconds, enqueue = self._exchange(taken.ravel()).reshape(taken.shape)
        state.slowest_seconds = max(state.slowest_seconds, float(seconds.max()))
        has_enqueue = bool(np.isfinite(enqueue).all())
        return Measured(kind, state.rounds, tuple(state.calls), seconds, enqueue if has_enqueue else None)

    def _exchange(self, values: Seconds) -> Seconds:
        """The maxima of `values` over all ranks; on the way all learn how much time has passed, and of Ctrl-C."""
        elapsed = self._engine.now_seconds() - self._began
        reduced = self._engine.max_reduce(np.concatenate([values, [elapsed, float(self._watch.interrupted)]]))
        self.seconds = float(reduced[-2])
        self.interrupted = bool(reduced[-1])
        return reduced[:-2]

    def _time_barrier(self) -> float:
        taken = []
        for _ in range(_BARRIERS_TO_TIME):
            began = self._engine.now_seconds()
            self._engine.barrier()
            taken.append(self._engine.now_seconds() - began)
        return float(self._exchange(np.array([np.median(taken)]))[0])

    # -- closing ---------------------------------------------------------------------------------------------------

    def _close_if_done(self, state: CaseState) -> None:
        rules, seconds = self._rules, [samples.seconds for samples in state.samples]
        out_of_budget = (
            state.spent_seconds >= rules.budget_seconds / len(self.states)
            or self.seconds >= rules.budget_seconds
            or len(seconds[0]) >= rules.max_batches
        )
        precise = all(rules.is_precise(values) for values in seconds)
        if out_of_budget and not precise:
            self._close(state, "noisy", "the budget ended before it was precise")
        elif out_of_budget or all(rules.is_enough(state.rounds, values) for values in seconds):
            self._close(state, "ok", "")

    def _close(self, state: CaseState, status: Status, reason: str) -> None:
        state.status, state.reason = status, reason
        self._observer.closed(state)
