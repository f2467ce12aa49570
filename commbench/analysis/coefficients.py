"""Did alpha change, or B: the times of all cases of a link class, held against the shares of both in the base.

Where a time is alpha + beta q, one that changed to alpha x + beta y q is a x + (1 - a) y of what it was, with a the
share of alpha in it. So x and y are the coefficients of the relative times over the shares, launch by launch; what a
curve has of bends is in both times and cancels. The launches' x and y are then compared like any value.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commbench.analysis.curves import MIN_SIZES
from commbench.analysis.lines import HUBER_DELTA, Floats, fit_line
from commbench.analysis.matching import CaseKey

_MAJOR = 0.5  # a size speaks for the coefficient that makes most of its time
_MIN_SPEAKERS = 2


@dataclass(frozen=True, slots=True)
class Values:
    """A coefficient over that of the base, launch by launch; `variance`: of one of them, from those of the cases."""

    launches: Floats
    variance: float


@dataclass(frozen=True, slots=True)
class Coefficients:
    """alpha and beta of a link class; None where its sizes do not tell."""

    link_class: str
    alpha: Values | None
    beta: Values | None


def link_coefficients(keys: Sequence[CaseKey], times: Floats, base: Floats, variances: Floats) -> list[Coefficients]:
    """For each link class, from `times` (cases, launches; NaN for none), the base's typical `base` seconds of each
    case, and the relative variance of each. Cases of curves with fewer than three sizes say nothing of shares.
    """
    shares = _alpha_shares(keys, base)
    by_class: Mapping[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if not np.isnan(shares[index]):
            by_class[key.link_class].append(index)
    return [
        Coefficients(name, *_over_launches(times[places] / base[places, None], shares[places], 1 / variances[places]))
        for name, places in by_class.items()
    ]


def _alpha_shares(keys: Sequence[CaseKey], base: Floats) -> Floats:
    """The share of alpha in each case's time, by a line through its curve; NaN where there is no curve."""
    shares = np.full(len(keys), np.nan)
    curves: Mapping[tuple[object, ...], list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if key.size_bytes and (key.ranks is None or key.ranks > 1):
            curves[key.series].append(index)
    for places in curves.values():
        if len(places) >= MIN_SIZES:
            nbytes = np.array([keys[index].size_bytes for index in places], dtype=float)
            line = fit_line(nbytes, base[places], np.ones(len(places)), HUBER_DELTA)
            bytes_cost = line.seconds_per_byte * nbytes
            shares[places] = line.alpha_seconds / (line.alpha_seconds + bytes_cost)
    return shares


def _over_launches(ratios: Floats, shares: Floats, weights: Floats) -> tuple[Values | None, Values | None]:
    """Weighted least squares of each launch's ratios over (a, 1 - a); one alone where no size speaks for the other."""
    tells = [(shares >= _MAJOR).sum() >= _MIN_SPEAKERS, (shares < _MAJOR).sum() >= _MIN_SPEAKERS]
    columns = np.stack([shares, 1.0 - shares], axis=1)
    if not all(tells):
        columns = np.ones((len(shares), 1))
    solved = np.stack([_solve(columns, ratios[:, launch], weights) for launch in range(ratios.shape[1])], axis=1)
    variances = np.diag(np.linalg.inv(columns.T @ (columns * weights[:, None])))
    values = [Values(*pair) for pair in zip(solved, variances.tolist(), strict=True)]
    if all(tells):
        return values[0], values[1]
    return (values[0], None) if tells[0] else (None, values[0])


def _solve(columns: Floats, ratios: Floats, weights: Floats) -> Floats:
    known = ~np.isnan(ratios)
    roots = np.sqrt(weights[known])
    if known.sum() < columns.shape[1]:
        return np.full(columns.shape[1], np.nan)
    solution = np.linalg.lstsq(columns[known] * roots[:, None], ratios[known] * roots, rcond=None)[0]
    return solution.astype(np.float64)
