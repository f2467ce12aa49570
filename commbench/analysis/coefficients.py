"""Did alpha change, or B: the times of all cases of a link class, held against the shares of both in the base.

Where a time is alpha + beta q, one that changed to alpha x + beta y q is a x + (1 - a) y of what it was, with a the
share of alpha in it. Two such equations, of the sizes that are mostly alpha and of those that are mostly beta, give x
and y, launch by launch; what a curve has of bends is in both times and cancels. The launches' x and y are then compared
like any value.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commbench.analysis.curves import MIN_SIZES
from commbench.analysis.lines import Floats
from commbench.analysis.matching import CaseKey

Places = NDArray[np.int_]  # of cases

_MAJOR = 0.75  # of a size's time: what makes so much of it is what the size speaks for
_MIN_SPEAKERS = 2


@dataclass(frozen=True, slots=True)
class Values:
    """A coefficient over that of the base, launch by launch; `variance`: of one of them, from those of the cases.

    `places`: of the cases that tell it; `share`: what part of their time it makes.
    """

    launches: Floats
    variance: float
    places: tuple[int, ...]
    share: float


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
        Coefficients(name, *_over_launches(times / base[:, None], shares, 1 / variances, np.array(places)))
        for name, places in by_class.items()
    ]


def _alpha_shares(keys: Sequence[CaseKey], base: Floats) -> Floats:
    """The share of alpha in each case's time; NaN where there is no curve.

    That of beta is q dt/dq / t. Read off the sizes beside it, it holds on a bent curve too: of small messages that fit
    into a buffer, no line through all sizes would say that their time has no beta in it.
    """
    shares = np.full(len(keys), np.nan)
    curves: Mapping[tuple[object, ...], list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        if key.size_bytes and (key.ranks is None or key.ranks > 1):
            curves[key.series].append(index)
    for found in curves.values():
        if len(found) >= MIN_SIZES:
            places = sorted(found, key=lambda index: keys[index].size_bytes or 0)
            nbytes = np.array([keys[index].size_bytes for index in places], dtype=float)
            beta = nbytes * np.gradient(base[places], nbytes) / base[places]
            shares[places] = 1.0 - np.clip(beta, 0.0, 1.0)
    return shares


def _over_launches(
    ratios: Floats, shares: Floats, weights: Floats, places: Places
) -> tuple[Values | None, Values | None]:
    """alpha and beta of each launch, told by the sizes that are mostly one or the other; one alone if only it is told.

    Both groups of sizes have a weighted mean ratio and a mean share: two equations. Least squares over all sizes would
    read alpha off the bends of the large ones, which are many times more precise and have next to nothing of it.
    """
    speakers = places[shares[places] >= _MAJOR], places[shares[places] <= 1 - _MAJOR]
    told = [len(group) >= _MIN_SPEAKERS for group in speakers]
    groups = speakers if all(told) else [places]
    solved = np.stack([_solve(groups, ratios[:, launch], shares, weights) for launch in range(ratios.shape[1])], axis=1)
    matrix = _equations(groups, shares, weights)
    variances = np.linalg.inv(matrix) ** 2 @ [1 / weights[group].sum() for group in groups]
    values = [
        Values(solved[at], float(variances[at]), tuple(group.tolist()), float(matrix[at, at]))
        for at, group in enumerate(groups)
    ]
    if len(values) == 2:
        return values[0], values[1]
    return (values[0], None) if told[0] else (None, values[0])


def _equations(groups: Sequence[Places], shares: Floats, weights: Floats) -> Floats:
    """The mean shares of alpha and beta in each group of sizes; of one group alone, that all is one coefficient."""
    if len(groups) == 1:
        return np.ones((1, 1))
    alpha = np.array([np.average(shares[group], weights=weights[group]) for group in groups])
    return np.stack([alpha, 1.0 - alpha], axis=1)


def _solve(groups: Sequence[Places], ratios: Floats, shares: Floats, weights: Floats) -> Floats:
    """The coefficients of one launch; NaN where it lacks the sizes of a group."""
    known = [group[~np.isnan(ratios[group])] for group in groups]
    if not all(len(group) for group in known):
        return np.full(len(groups), np.nan)
    means = np.array([np.average(ratios[group], weights=weights[group]) for group in known])
    solution: Floats = np.linalg.solve(_equations(known, shares, weights), means)
    return solution
