"""How a collective's line goes with N, where several N were measured; every other N is an extrapolation.

alpha_total(N) = base + per_step × steps(N), by relative error; B(N) stays as measured, between two N linear in log N,
beyond them that of the nearest. On published GPU curves a line from N = 2 and 4 misses N = 8 by about 15 %.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from commbench.analysis.lines import HUBER_DELTA, fit_line
from commbench.analysis.records import CurveFit, PlannerLine, RateAt, ScalingFit, Window
from commbench.plan.collectives import COLLECTIVES

MIN_FOR_LEFT_OUT = 3  # numbers of ranks

_Measured = tuple[CurveFit, PlannerLine]


def fit_scaling(fits: Sequence[CurveFit], window: Window) -> list[ScalingFit]:
    """The N model of every collective under the same conditions with lines at two N or more."""
    groups: dict[tuple[str, str, str, str, str], dict[int, _Measured]] = defaultdict(dict)
    for fit in fits:
        key = fit.key
        if key.collective in COLLECTIVES and fit.line and fit.line.line.seconds_per_byte > 0.0:
            name = (key.collective, key.link_class, key.concurrency, key.dtype, key.mode)
            groups[name].setdefault(key.ranks, (fit, fit.line))
    return [_fit_group(*name, window, by_ranks) for name, by_ranks in groups.items() if len(by_ranks) > 1]


def scaled_seconds(scaling: ScalingFit, nbytes: float, ranks: int) -> float:
    """The time of a size at any N of at least 2."""
    collective = COLLECTIVES[scaling.collective]
    alpha = scaling.base_seconds + scaling.per_step_seconds * collective.steps(ranks)
    known = sorted(scaling.rates, key=lambda rate: rate.ranks)
    rate = np.interp(np.log(ranks), np.log([at.ranks for at in known]), [at.bytes_per_second for at in known])
    return float(alpha + collective.factor(ranks) * nbytes / rate)


def _fit_group(
    collective: str, link_class: str, concurrency: str, dtype: str, mode: str, window: Window,
    by_ranks: dict[int, _Measured],
) -> ScalingFit:  # fmt: skip
    def fit_to(ranks: Sequence[int], left_out_mape: float | None) -> ScalingFit:
        base, per_step = _alpha_of_steps([by_ranks[n] for n in ranks])
        rates = tuple(RateAt(n, 1.0 / by_ranks[n][1].line.seconds_per_byte) for n in ranks)
        return ScalingFit(
            collective, link_class, concurrency, dtype, mode, window, base, per_step, rates, left_out_mape
        )

    ranks = sorted(by_ranks)
    if len(ranks) < MIN_FOR_LEFT_OUT:
        return fit_to(ranks, None)
    errors = []
    for n in ranks:
        others = fit_to([other for other in ranks if other != n], None)
        inside = [point for point in by_ranks[n][0].points if window.contains(point.nbytes)]
        errors += [abs(scaled_seconds(others, point.nbytes, n) / point.seconds - 1.0) for point in inside]
    return fit_to(ranks, float(np.mean(errors)))


def _alpha_of_steps(measured: Sequence[_Measured]) -> tuple[float, float]:
    """(base, per_step), both at least zero, of the lines' alphas; a line without an alpha says nothing about it."""
    known = [(fit.steps, line.line.alpha_seconds) for fit, line in measured if line.line.alpha_seconds > 0.0]
    if not known:
        return 0.0, 0.0
    steps, alphas = np.array(known, dtype=float).T
    line = fit_line(steps, alphas, np.ones(len(known)), HUBER_DELTA)
    return line.alpha_seconds, line.seconds_per_byte
