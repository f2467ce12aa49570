"""How far launches of the same thing differ: the noise against which a change must stand out.

A launch as a whole may be faster or slower (its level: clock, placement, neighbours), which hits all its cases alike,
and each case has a noise of its own beside. The level's variance is known from the launches alone; that of the cases is
shared among them where it is small, as Smyth does for genes, so that a variance which came out small by luck is not
believed; a large one is, whole.
Sources: Smyth, Statistical Applications in Genetics and Molecular Biology 3 (2004); Satterthwaite (1946).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from commbench.analysis.lines import Floats

# With less freedom launches do not show how far they differ: that is assumed then (docs/comparing.md says what for).
MIN_FREEDOM = 2
ASSUMED_FREEDOM = 6.0  # an assumption is worth no more than that
FLOOR = 0.002  # no time repeats better from launch to launch
_MOST_PRIOR = 4.0  # the cases of a launch are not independent: at most so many times the launches' own freedom
_HALF_WIDTH_TO_DEVIATION = 1 / 1.96


@dataclass(frozen=True, slots=True)
class Spread:
    """Variances of the logarithm of one launch's time: of its level, and of each case beside; with their freedom."""

    level_variance: float
    level_freedom: float
    case_variances: Floats
    case_freedoms: Floats
    is_assumed: bool

    def of_case(self, case: int) -> tuple[float, float]:
        """The variance of a case in one launch, and its degrees of freedom (Satterthwaite)."""
        own = float(self.case_variances[case])
        total = self.level_variance + own
        if self.is_assumed:
            return total, self.level_freedom
        inverse = self.level_variance**2 / self.level_freedom + own**2 / float(self.case_freedoms[case])
        return total, total**2 / inverse


def measure_spread(sides: tuple[Floats, Floats], half_widths: Floats, assumed: float) -> Spread:
    """From the logarithms of times, an array (cases, launches) a side with NaN for none.

    `half_widths`: of each case's median inside one launch, relative, NaN where it is not known. `assumed`: the standard
    deviation of a launch's level, and of a case beside it, where there are too few launches to see.
    """
    inside = np.nan_to_num(half_widths) * _HALF_WIDTH_TO_DEVIATION
    freedom = _freedom(sides)
    residuals = _residuals(sides)
    level = np.nanmedian(residuals, axis=0)
    if freedom < MIN_FREEDOM:
        seen = float(level @ level) / freedom if freedom else 0.0
        own = np.maximum(assumed, 2 * inside) ** 2
        return Spread(max(assumed**2, seen), ASSUMED_FREEDOM, own, np.full(len(own), ASSUMED_FREEDOM), True)
    beside = residuals - level
    freedoms = np.maximum(sum(np.maximum((~np.isnan(side)).sum(axis=1) - 1, 0) for side in sides), 1).astype(float)
    variances, shared = _shared_variances(np.nansum(beside**2, axis=1) / freedoms, freedoms)
    return Spread(_level_variance(level, freedom), freedom, np.maximum(variances, FLOOR**2), shared, False)


def measure_level(sides: tuple[Floats, Floats], cases: Sequence[int]) -> float:
    """The variance of a launch's level in these cases alone, where a side has more than one launch."""
    residuals = _residuals(sides)[list(cases)]
    seen = residuals[:, ~np.isnan(residuals).all(axis=0)]
    return _level_variance(np.nanmedian(seen, axis=0), _freedom(sides))


def _freedom(sides: tuple[Floats, Floats]) -> int:
    return sum(max(side.shape[1] - 1, 0) for side in sides)


def _residuals(sides: tuple[Floats, Floats]) -> Floats:
    """What each launch has beyond the mean of its side, case by case."""
    return np.concatenate([side - np.nanmean(side, axis=1, keepdims=True) for side in sides], axis=1)


def _level_variance(level: Floats, freedom: int) -> float:
    return max(float(level @ level) / freedom, FLOOR**2)


def _shared_variances(variances: Floats, freedoms: Floats) -> tuple[Floats, Floats]:
    """Variances raised to what is typical of the cases, and the freedom of each."""
    typical, prior = _prior(np.maximum(variances, FLOOR**2), freedoms)
    shared = (prior * typical + freedoms * variances) / (prior + freedoms)
    is_large = variances > shared
    return np.where(is_large, variances, shared), np.where(is_large, freedoms, freedoms + prior)


def _prior(variances: Floats, freedoms: Floats) -> tuple[float, float]:
    """The typical variance, and how many degrees of freedom it is worth: many if the cases differ by chance alone."""
    from scipy.special import digamma, polygamma

    if len(variances) < 3:
        return float(variances.max(initial=FLOOR**2)), 0.0
    logs = np.log(variances) - digamma(freedoms / 2) + np.log(freedoms / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, freedoms / 2)))
    most = _MOST_PRIOR * float(freedoms.max())
    prior = min(most, 2 * _inverse_trigamma(excess)) if excess > 0 else most
    return float(np.exp(np.mean(logs) + digamma(prior / 2) - np.log(prior / 2))), prior


def _inverse_trigamma(value: float) -> float:
    """x with trigamma(x) = value, by Newton's steps on 1/trigamma. Source: Smyth (2004), appendix."""
    from scipy.special import polygamma

    x = 0.5 + 1.0 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1.0 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
