"""Trials on the ranks that this process speaks for."""

from collections.abc import Sequence

from commbench.engines.base import Call, Engine
from commbench.measure.loop import time_batch
from commbench.measure.verify import find_mismatch, write_pattern, write_steady
from commbench.plan.groups import Group
from commbench.plan.trials import Ranks, Trial, TrialResult

Answer = dict[int, TrialResult]  # by the position of the group in its trial


def run_trials(engine: Engine, trials: Sequence[Trial], timeout_seconds: float) -> list[Answer]:
    """What this process saw of each trial. All ranks must call it with the same trials.

    A call may take `timeout_seconds` where the library can be told so. After a failure nothing more is tried in that
    group: its connections are gone.
    """
    broken: dict[frozenset[int], str] = {}
    for ranks in dict.fromkeys(ranks for trial in trials for ranks in trial.groups):
        try:
            engine.create_group(Group("", ranks), timeout_seconds)
        except engine.transport_errors as error:
            broken[frozenset(ranks)] = engine.explain(error)
    return [_run(engine, trial, broken) for trial in trials]


def drop_groups(engine: Engine, trials: Sequence[Trial]) -> None:
    """Let go of the groups of `trials`, once nobody waits in one of them."""
    for ranks in dict.fromkeys(ranks for trial in trials for ranks in trial.groups):
        engine.drop_group(Group("", ranks))


def _run(engine: Engine, trial: Trial, broken: dict[frozenset[int], str]) -> Answer:
    answer: Answer = {}
    mine = frozenset(engine.ranks)
    for position, ranks in enumerate(trial.groups):
        me = next((index for index, rank in enumerate(ranks) if rank in mine), None)
        if me is None:
            continue
        if (who := frozenset(ranks)) in broken:
            answer[position] = TrialResult(reason=broken[who])
            continue
        try:
            answer[position] = _run_group(engine, trial, ranks, me)
        except engine.transport_errors as error:
            broken[who] = engine.explain(error)
            answer[position] = TrialResult(reason=broken[who])
    return answer


def _run_group(engine: Engine, trial: Trial, ranks: Ranks, me: int) -> TrialResult:
    group = Group("", ranks)
    case = trial.case(group)
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
    return TrialResult(tuple(_sample(engine, trial, call) for _ in range(trial.samples)), wrong)


def _sample(engine: Engine, trial: Trial, call: Call) -> float:
    engine.barrier(call.group)
    return time_batch(engine.stopwatch, call.run, trial.calls).seconds / trial.calls


def merge_answers(trials: Sequence[Trial], answers: dict[int, list[Answer]]) -> list[list[TrialResult]]:
    """By trial and group: sample by sample the slowest rank's time. `answers`: by rank; who is missing did not answer."""
    return [
        [_merge(trial, position, ranks, [answers.get(rank, []) for rank in ranks], number)
         for position, ranks in enumerate(trial.groups)]
        for number, trial in enumerate(trials)
    ]  # fmt: skip


def _merge(
    trial: Trial, position: int, ranks: Ranks, answers: Sequence[list[Answer]], number: int
) -> TrialResult:
    found = [answer[number].get(position) if answer else None for answer in answers]
    silent = [rank for rank, result in zip(ranks, found, strict=True) if result is None]
    if silent:
        return TrialResult(reason=f"no answer from rank {silent[0]}")
    results = [result for result in found if result is not None]
    if reason := next((result.reason for result in results if result.reason), ""):
        return TrialResult(reason=reason)
    slowest = tuple(max(times) for times in zip(*(result.seconds for result in results), strict=True))
    return TrialResult(slowest, sum(result.wrong for result in results))
