"""Trials on the ranks that this process speaks for."""

from collections.abc import Sequence
from itertools import chain

from commbench.engines.base import Call, Engine
from commbench.measure.loop import time_batch
from commbench.measure.verify import find_mismatch, write_pattern, write_steady
from commbench.plan.groups import Group
from commbench.plan.trials import Ranks, Trial, TrialResult

Answer = dict[int, TrialResult]  # by the position of the group in its trial


class TrialRunner:
    """Runs trials on an engine. Groups live until the next order: nobody waits in one of them any more then."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._mine = frozenset(engine.ranks)
        self._groups: list[Group] = []
        self._broken: dict[frozenset[int], str] = {}
        self._buffers = (0, 0)

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[Answer]:
        """What this process saw of each trial. All ranks must call it with the same trials.

        A call may take `timeout_seconds` where the library can be told so. After a failure nothing more is tried in
        that group: its connections are gone.
        """
        for group in self._groups:
            self._engine.drop_group(group)
        self._groups = [Group("", ranks) for ranks in dict.fromkeys(chain(*(trial.groups for trial in trials)))]
        self._broken = {}
        for group in self._groups:
            try:
                self._engine.create_group(group, timeout_seconds)
            except self._engine.transport_errors as error:
                self._broken[frozenset(group.ranks)] = self._engine.explain(error)
        return [self._run(trial) for trial in trials]

    def _run(self, trial: Trial) -> Answer:
        answer: Answer = {}
        for position, ranks in enumerate(trial.groups):
            me = next((index for index, rank in enumerate(ranks) if rank in self._mine), None)
            if me is None:
                continue
            who = frozenset(ranks)
            if who not in self._broken:
                try:
                    answer[position] = self._run_group(trial, Group("", ranks), me)
                    continue
                except self._engine.transport_errors as error:
                    self._broken[who] = self._engine.explain(error)
            answer[position] = TrialResult(reason=self._broken[who])
        return answer

    def _run_group(self, trial: Trial, group: Group, me: int) -> TrialResult:
        engine, case = self._engine, trial.case(group)
        self._make_room(engine.buffer_nbytes(case))
        call = engine.prepare(case, group, me)
        wrong = 0
        if trial.verify and engine.data is not None:
            write_pattern(engine.data, case, call)
            time_batch(engine.stopwatch, call.run, 1)
            mismatch = find_mismatch(engine.data, case, call)
            wrong = mismatch.wrong if mismatch else 0
            write_steady(engine.data, case, call)
        if trial.warmups:
            time_batch(engine.stopwatch, call.run, trial.warmups)
        return TrialResult(tuple(self._sample(trial, call) for _ in range(trial.samples)), wrong)

    def _sample(self, trial: Trial, call: Call) -> float:
        self._engine.barrier(call.group)
        return time_batch(self._engine.stopwatch, call.run, trial.calls).seconds / trial.calls

    def _make_room(self, needed: tuple[int, int]) -> None:
        larger = (max(self._buffers[0], needed[0]), max(self._buffers[1], needed[1]))
        if larger != self._buffers:
            self._engine.allocate(*larger)
            self._buffers = larger


def merge_answers(trials: Sequence[Trial], answers: dict[int, list[Answer]]) -> list[list[TrialResult]]:
    """By trial and group: of each sample the slowest rank's time. `answers`: by rank, of those that answered."""
    return [
        [
            _merge(ranks, [answers[rank][number].get(position) if rank in answers else None for rank in ranks])
            for position, ranks in enumerate(trial.groups)
        ]
        for number, trial in enumerate(trials)
    ]


def _merge(ranks: Ranks, found: Sequence[TrialResult | None]) -> TrialResult:
    silent = [rank for rank, result in zip(ranks, found, strict=True) if result is None]
    if silent:
        return TrialResult(reason=f"no answer from rank {silent[0]}")
    results = [result for result in found if result is not None]
    if reason := next((result.reason for result in results if result.reason), ""):
        return TrialResult(reason=reason)
    slowest = tuple(max(times) for times in zip(*(result.seconds for result in results), strict=True))
    return TrialResult(slowest, sum(result.wrong for result in results))
