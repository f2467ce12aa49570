"""95 % intervals by the bootstrap: refit on times that might as well have been measured.

Two kinds of replicates, and the wider interval counts. `resampled_seconds` draws launches, then batches in each, anew:
what noise does. `redrawn_seconds` puts the fit's own relative residuals at other sizes: what the misfit of a line does,
and all that there is where a size has one value.
Source: Efron, Tibshirani, An Introduction to the Bootstrap, 1993, sections 8.5 (two levels) and 9.5 (residuals).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commbench.analysis.curves import Point
from commbench.analysis.lines import Floats

REPLICATES = 1000
BORDER_REPLICATES = 400  # each is a segmentation of its own
_LEVELS = (2.5, 97.5)

Random = np.random.Generator


def resampled_seconds(points: Sequence[Point], replicates: int, random: Random) -> Floats | None:
    """Times of shape (replicates, n), each size with launches and batches drawn anew; None if all sizes have one value.

    The median of a resample needs no resample: its m-th smallest value is the sample's quantile at a Beta(m, n+1-m)
    variate, for the m-th smallest of n uniform variates is one (David, Nagaraja, Order Statistics, 3rd ed., 2.3).
    """
    if all(len(launch) == 1 for point in points for launch in point.launches) and _launches(points) == 1:
        return None
    columns = [_resampled_point(point, replicates, random) for point in points]
    return np.stack(columns, axis=1)


def _launches(points: Sequence[Point]) -> int:
    return max(len(point.launches) for point in points)


def _resampled_point(point: Point, replicates: int, random: Random) -> Floats:
    count = len(point.launches)
    chosen = random.integers(count, size=(replicates, count))
    medians = np.empty((replicates, count))
    for index, launch in enumerate(point.launches):
        drawn = chosen == index
        medians[drawn] = _resampled_medians(launch, int(drawn.sum()), random)
    resampled: Floats = np.median(medians, axis=1)
    return resampled


def _resampled_medians(ordered: Floats, replicates: int, random: Random) -> Floats:
    n = len(ordered)
    m = (n + 1) // 2
    lower = random.beta(m, n + 1 - m, size=replicates)
    below: Floats = ordered[_quantile_positions(lower, n)]
    if n % 2:
        return below
    upper = lower + (1.0 - lower) * random.beta(1, n - m, size=replicates)  # the next uniform variate above it
    above: Floats = (below + ordered[_quantile_positions(upper, n)]) / 2.0
    return above


def _quantile_positions(uniform: Floats, n: int) -> NDArray[np.int64]:
    positions: NDArray[np.int64] = np.minimum((uniform * n).astype(np.int64), n - 1)
    return positions


def redrawn_seconds(modelled: Floats, seconds: Floats, parameters: int, replicates: int, random: Random) -> Floats:
    """Times of shape (replicates, n): the model's, each with the relative residual of a size drawn at random.

    Residuals are widened by sqrt(n / (n - parameters)), for a fit takes a part of them into its coefficients.
    """
    n = len(seconds)
    residuals = (seconds / modelled - 1.0) * np.sqrt(n / max(n - parameters, 1))
    drawn = residuals[random.integers(n, size=(replicates, n))] * random.choice((-1.0, 1.0), size=(replicates, n))
    redrawn: Floats = modelled * np.maximum(1.0 + drawn, 0.1)
    return redrawn


def interval(*replicates: Floats | None) -> tuple[float, float]:
    """The 2.5 % and 97.5 % quantiles; with several kinds of replicates the least and the greatest of them."""
    bounds = [np.percentile(values, _LEVELS) for values in replicates if values is not None]
    return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))
