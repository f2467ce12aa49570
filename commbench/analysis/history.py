"""Runs over time: alpha and B of each link class against their median, and when they stepped."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p

import numpy as np

from commbench.analysis.coefficients import link_coefficients
from commbench.analysis.comparison import DEFAULT_LEAST_EFFECT, Ratio
from commbench.analysis.environment import EnvironmentDifference, list_differences
from commbench.analysis.lines import Floats
from commbench.analysis.matching import Timing, launch_timings
from commbench.analysis.spread import FLOOR
from commbench.analysis.steps import MIN_RUNS, find_steps, noise_of
from commbench.errors import CommbenchError
from commbench.results.store import Run

MOST_RUNS = 1000  # the search for steps is quadratic
_COMMON = 0.5  # of the cases that most runs measured: a run with fewer is of another kind
_MOST_CAUSES = 3


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A step of a series between two runs, and the most suspicious of what else changed between them."""

    index: int
    before_utc: str
    after_utc: str
    ratio: Ratio
    is_worse: bool
    causes: tuple[EnvironmentDifference, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """One coefficient of a link class: its value in each run over the median of all, None where a run does not tell.

    `noise`: how far a run differs from the next, relative (standard deviation).
    """

    link_class: str
    coefficient: str
    values: tuple[float | None, ...]
    noise: float
    steps: tuple[HistoryStep, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Runs from the first to the last, and what they tell. `left_out`: runs that measured something else."""

    runs: tuple[str, ...]
    created_utc: tuple[str, ...]
    cases: int
    trends: tuple[Trend, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def trace_history(runs: Sequence[Run], least_effect: float = DEFAULT_LEAST_EFFECT) -> History:
    """The history of runs in the order of their dates. Raises CommbenchError if no two of them can be compared."""
    dated = sorted(runs, key=lambda run: run.record.created_utc)[-MOST_RUNS:]
    measured = [
        {key: found for key, found in launch_timings(run).items() if isinstance(found, Timing)} for run in dated
    ]
    counted = Counter(key for launch in measured for key in launch)
    usual = {key for key, count in counted.items() if 2 * count >= len(dated)}
    kept = [place for place, launch in enumerate(measured) if len(usual & launch.keys()) >= _COMMON * len(usual) > 0]
    keys = [key for key in counted if kept and all(key in measured[place] for place in kept)]
    if len(kept) < 2 or not keys:
        raise CommbenchError(f"{len(runs)} runs have no history: no two of them measured the same cases.")
    times = np.array([[measured[place][key].seconds for place in kept] for key in keys])
    typical = np.exp(np.median(np.log(times), axis=1))
    variances = np.array([noise_of(case) ** 2 for case in np.log(times)])
    records = [dated[place] for place in kept]
    trends = [
        _trend(found.link_class, name, values, records, least_effect)
        for found in link_coefficients(keys, times, typical, np.maximum(variances, FLOOR**2))
        for name, values in (
            ("alpha", found.alpha.launches if found.alpha else None),
            ("B", 1 / found.beta.launches if found.beta else None),
        )
        if values is not None
    ]
    if not trends:
        raise CommbenchError("the runs have no history: alpha and B need at least three sizes of a collective.")
    return History(
        runs=tuple(str(run.directory) for run in records),
        created_utc=tuple(run.record.created_utc for run in records),
        cases=len(keys),
        trends=tuple(trends),
        left_out=tuple(str(run.directory) for place, run in enumerate(dated) if place not in kept),
        notes=tuple(_notes(trends, len(kept), len(runs))),
    )


def _trend(link_class: str, name: str, values: Floats, runs: Sequence[Run], least: float) -> Trend:
    usable = np.isfinite(values) & (values > 0)
    places = np.flatnonzero(usable)
    logs = np.log(values[usable])
    logs = logs - np.median(logs)
    steps = tuple(
        _history_step(
            int(places[step.index]), int(places[step.index - 1]), step.change, step.low, step.high, name, runs
        )
        for step in find_steps(logs, log1p(least))
    )
    shown: list[float | None] = [None] * len(values)
    for place, value in zip(places, logs, strict=True):
        shown[place] = exp(value)
    return Trend(link_class, name, tuple(shown), noise_of(logs) if len(logs) > 1 else FLOOR, steps)


def _history_step(
    index: int, before: int, change: float, low: float, high: float, name: str, runs: Sequence[Run]
) -> HistoryStep:
    records = runs[before].record, runs[index].record
    return HistoryStep(
        index=index,
        before_utc=records[0].created_utc,
        after_utc=records[1].created_utc,
        ratio=Ratio(exp(change), exp(low), exp(high)),
        is_worse=(change > 0) == (name == "alpha"),
        causes=tuple(list_differences(*([record] for record in records))[:_MOST_CAUSES]),
    )


def _notes(trends: Sequence[Trend], kept: int, given: int) -> list[str]:
    notes = []
    if given > MOST_RUNS:
        notes.append(f"only the last {MOST_RUNS} of {given} runs are looked at.")
    if kept < MIN_RUNS:
        notes.append(f"{kept} runs: steps are looked for from {MIN_RUNS} runs on; use compare for fewer.")
    for trend in trends:
        last = trend.values[-1]
        before = [value for value in trend.values[-MIN_RUNS:-1] if value is not None]
        if last is None or len(before) < MIN_RUNS - 1:
            continue
        off = last / float(np.median(before)) - 1
        if abs(off) > max(4 * trend.noise, DEFAULT_LEAST_EFFECT) and not any(s.index >= kept - 2 for s in trend.steps):
            notes.append(
                f"the last run alone is off: {trend.coefficient} of {trend.link_class} {off:+.1%} against those "
                "before; one run may be chance, another one will tell."
            )
    return notes
