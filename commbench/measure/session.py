"""A run from the first case to the last: rounds over a shuffled plan, each case checked once and then sampled.

Every rank takes the same decisions, because it takes them from the same numbers: maxima over all ranks of the world.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from typing import Protocol

import numpy as np

from commbench.engines.base import Call, Engine, Seconds
from commbench.errors import TransportError
from commbench.measure.case_state import CaseState, Measured, describe
from commbench.measure.loop import time_batch
from commbench.measure.sampling import SamplingRules, batch_target_seconds, grow_calls
from commbench.measure.verify import Mismatch, find_mismatch, write_pattern, write_steady
from commbench.plan.collectives import Blocks
from commbench.plan.groups import Group
from commbench.plan.plan import Case, shuffled
from commbench.results.resume import DoneCase
from commbench.results.schema import SampleKind, Status
from commbench.results.summary import GroupSamples

_BARRIERS_TO_TIME = 15


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


class Observer(Protocol):
    """Who is told what happens; called between visits, never inside one. Only rank 0 has one that does anything."""

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        """`case` was visited; `seconds` of measuring have passed in the whole run."""
        ...

    def closed(self, state: CaseState) -> None:
        """Nothing more will be measured of a case."""
        ...


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
    `graph_calls`: how many calls the CUDA graphs hold by which all but the first are made; None: they are made singly.
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
        graph_calls: int | None = None,
    ) -> None:
        self.states = [
            CaseState(case, [GroupSamples() for _ in case.groups], [1] * len(case.groups), graph_calls or 1)
            for case in cases
        ]
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
        self._in_graphs = graph_calls is not None
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
        elif reason := self._why_unsupported(state.case):
            self._close(state, "unsupported", reason)

    def _why_unsupported(self, case: Case) -> str | None:
        return self._engine.unsupported(case) or (self._engine.no_graph(case) if self._in_graphs else None)

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
        if self._in_graphs:
            calls = self._capture(calls, state.repeats)
        if state.rounds == 0:
            measured += self._warm_up(state, calls)
            state.batch_seconds = float((measured[-1].seconds[:, -1] * measured[-1].calls).sum())
        batches = self._rules.batches_per_visit(state.batch_seconds)
        measured.append(self._measure(state, calls, "batch", batches))
        state.keep(measured[-1])
        return measured

    def _prepare(self, case: Case, group: Group) -> Call | None:
        """The call of `group` for a rank that this process speaks for; None if it has no such member."""
        me = next((index for index, rank in enumerate(group.ranks) if rank in self._mine), None)
        return None if me is None else self._engine.prepare(case, group, me)

    def _capture(self, calls: Sequence[Call | None], repeats: int) -> list[Call | None]:
        """The calls, each run of which replays a graph of `repeats` calls; made anew each visit, so few are kept."""
        return [call and replace(call, run=self._engine.capture(call, repeats)) for call in calls]

    def _first_call(self, state: CaseState, calls: Sequence[Call | None]) -> Measured:
        """The first call, and what it did to the data; where graphs are timed, the first replay's data too."""
        measured = self._check(state, calls)
        if self._in_graphs and self._data and not state.mismatches:
            measured = replace(measured, wrong=self._check(state, self._capture(calls, 1)).wrong)
        state.keep(measured)
        if state.mismatches:
            bad = min(state.mismatches, key=lambda bad: bad.rank)
            state.status = "wrong"
            state.reason = f"rank {bad.rank} element {bad.index}: expected {bad.expected:g}, got {bad.got:g}"
        return measured

    def _check(self, state: CaseState, calls: Sequence[Call | None]) -> Measured:
        """One call, on data of which every element is compared afterwards, unless nothing is to be verified."""
        case, data = state.case, self._data if state.case.spec.send is not Blocks.NONE else None
        mine = [call for call in calls if call]
        if data is None:
            return self._measure(state, calls, "first", 1)
        for call in mine:
            write_pattern(data, case, call)
        measured = self._measure(state, calls, "first", 1)
        state.mismatches = self._share_mismatches([find_mismatch(data, case, call) for call in mine])
        wrong = [sum(bad.wrong for bad in state.mismatches if bad.rank in group.ranks) for group in case.groups]
        for call in mine:
            write_steady(data, case, call)
        return replace(measured, wrong=tuple(wrong))

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
            took = measured[-1].seconds[:, -1] * measured[-1].calls
            pairs = zip(state.runs, took, strict=True)
            grown = [grow_calls(count, float(seconds), self._target_seconds) for count, seconds in pairs]
            if grown == state.runs:
                break
            state.runs = grown
            measured.append(self._measure(state, calls, "warmup", 1))
        return measured

    # -- timing ----------------------------------------------------------------------------------------------------

    def _measure(self, state: CaseState, calls: Sequence[Call | None], kind: SampleKind, batches: int) -> Measured:
        engine, stopwatch = self._engine, self._engine.stopwatch
        scope = None if state.case.concurrency == "together" else state.case.groups[0]
        repeats = 1 if kind == "first" else state.repeats
        counts = tuple(runs * repeats for runs in state.runs)
        taken = np.full((2, len(calls), batches), -np.inf)
        for batch in range(batches):
            self._watch.step(state.expected_seconds)
            if scope is None or calls[0] is not None:
                engine.barrier(scope)
            for position, call in enumerate(calls):
                if call is not None:
                    elapsed = time_batch(stopwatch, call.run, state.runs[position])
                    taken[0, position, batch] = elapsed.seconds / counts[position]
                    if elapsed.enqueue_seconds is not None:
                        taken[1, position, batch] = elapsed.enqueue_seconds / counts[position]
        seconds, enqueue = self._exchange(taken.ravel()).reshape(taken.shape)
        state.slowest_seconds = max(state.slowest_seconds, float(seconds.max()))
        has_enqueue = bool(np.isfinite(enqueue).all())
        return Measured(kind, state.rounds, counts, seconds, enqueue if has_enqueue else None)

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
        out_of_budget = rules.is_over(state.spent_seconds, len(self.states), self.seconds, len(seconds[0]))
        precise = all(rules.is_precise(values) for values in seconds)
        if out_of_budget and not precise:
            self._close(state, "noisy", "the budget ended before it was precise")
        elif out_of_budget or all(rules.is_enough(state.rounds, values) for values in seconds):
            self._close(state, "ok", "")

    def _close(self, state: CaseState, status: Status, reason: str) -> None:
        state.status, state.reason = status, reason
        self._observer.closed(state)
