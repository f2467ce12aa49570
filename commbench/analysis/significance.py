"""Tests of two small samples of launches, and what many tests at once may claim.

Sources: Student's t and Welch-Satterthwaite degrees of freedom: Satterthwaite, Biometrics Bulletin 2 (1946); the rank
test and its interval: Conover, Practical Nonparametric Statistics, 3rd ed., sections 5.1 and 5.4; Holm, Scandinavian
Journal of Statistics 6 (1979).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, inf, sqrt

import numpy as np

from commbench.analysis.lines import Floats

_MAD_TO_DEVIATION = 1.4826  # of a normal distribution


@dataclass(frozen=True, slots=True)
class Difference:
    """New minus base of the logarithms of times: the estimate, its 95 % interval, and the two-sided p of no change.

    `standard_deviation`: of one launch. `method`: `t`, `ranks`, or `assumed` where the launches could not show how far
    they differ.
    """

    estimate: float
    low: float
    high: float
    p: float
    standard_deviation: float
    freedom: float
    method: str


def t_difference(
    estimate: float, variance: float, freedom: float, counts: tuple[int, int], method: str = "t"
) -> Difference:
    """From the variance of one launch, known with `freedom` degrees of freedom, and the launches of each side."""
    from scipy.special import stdtr, stdtrit

    error = sqrt(variance * (1 / counts[0] + 1 / counts[1]))
    p = float(2.0 * stdtr(freedom, -abs(estimate) / error))
    arm = float(stdtrit(freedom, 0.975)) * error
    return Difference(estimate, estimate - arm, estimate + arm, p, sqrt(variance), freedom, method)


def least_detectable(difference: Difference, counts: tuple[int, int], level: float) -> float:
    """The smallest change of the logarithm that a t-test at `level` would have called."""
    from scipy.special import stdtrit

    error = difference.standard_deviation * sqrt(1 / counts[0] + 1 / counts[1])
    return float(stdtrit(difference.freedom, 1 - level / 2)) * error


def least_rank_p(counts: tuple[int, int]) -> float:
    """The smallest two-sided p that the rank test of so many launches can give."""
    return 2.0 / comb(sum(counts), counts[0])


def rank_difference(base: Floats, new: Floats) -> Difference:
    """Mann and Whitney's exact test, with Hodges and Lehmann's estimate and interval. Ties count half.

    The deviation of one launch is that of the middle half (from the median absolute one), so that tails do not make it.
    """
    pairs = np.sort((new[:, None] - base[None, :]).ravel())
    wins = float((pairs > 0).sum() + 0.5 * (pairs == 0).sum())
    cumulative = _cumulative_wins(len(base), len(new))
    most = min(wins, len(pairs) - wins)
    p = min(1.0, 2.0 * cumulative[int(np.ceil(most))])
    cut = int(np.searchsorted(cumulative, 0.025, side="right"))  # pairs that may lie outside on each side
    low, high = (float(pairs[cut - 1]), float(pairs[len(pairs) - cut])) if cut else (-inf, inf)
    estimate = float(np.median(pairs))
    residuals = np.abs(np.concatenate([base - np.median(base), new - np.median(new)]))
    deviation = _MAD_TO_DEVIATION * float(np.median(residuals))
    return Difference(estimate, low, high, p, deviation, len(base) + len(new) - 2, "ranks")


@lru_cache(maxsize=64)
def _cumulative_wins(m: int, n: int) -> tuple[float, ...]:
    """P(U <= u) for u = 0 … mn where both samples are of one distribution."""
    ways = np.zeros((m + 1, m * n + 1))  # ways[k]: k values of the first sample placed, by the pairs won
    ways[0, 0] = 1.0
    for position in range(1, m + n + 1):  # from the smallest value up
        for k in range(min(m, position), 0, -1):
            beaten = position - k  # values of the other sample below this one
            if beaten <= n:
                ways[k, beaten:] += ways[k - 1, : m * n + 1 - beaten]
    return tuple(np.cumsum(ways[m]) / comb(m + n, m))


def holm(ps: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses are rejected so that the chance of any wrong rejection is at most `level`."""
    rejected = [False] * len(ps)
    for step, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        if ps[index] > level / (len(ps) - step):
            break
        rejected[index] = True
    return rejected
