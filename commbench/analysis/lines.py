"""Lines of alpha and beta through times, by relative error: many fits at once, each a weighting of the same points.

Plain least squares sees only the largest sizes: on published GPU curves its median error is near 30 %, that of the same
line by relative error near 11 %. Here 8 B and 1 GiB count alike, an outlier counts little (Huber), and neither
coefficient goes below zero.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HUBER_DELTA = 0.05  # relative residuals up to 5 % count by their square, larger ones by their size
NOISE_FLOOR = 0.02  # no time is trusted to better than 2 %, whatever its interval says
MANY_ROUNDS = 200  # at most, until the weights of a fit that is shown have settled
FEW_ROUNDS = 6  # enough to tell one cut or one replicate from another
_SETTLED = 1e-4  # of a weight, from round to round


@dataclass(frozen=True, slots=True)
class Line:
    """seconds = alpha_seconds + seconds_per_byte × bus bytes, both at least zero."""

    alpha_seconds: float
    seconds_per_byte: float

    def seconds(self, bus_nbytes: float) -> float:
        """The time of `bus_nbytes` bytes of traffic on each rank's link."""
        return self.alpha_seconds + self.seconds_per_byte * bus_nbytes


@dataclass(frozen=True, slots=True)
class LineBatch:
    """m fits, each field of shape (m,): `alpha` and `beta` as in `fit_lines`, `loss` the weighted Huber loss."""

    alpha: Floats
    beta: Floats
    loss: Floats


def fit_lines(
    steps: Floats, bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float, rounds: int = MANY_ROUNDS
) -> LineBatch:
    """For every row of `weights` the alpha, beta >= 0 that minimise sum w rho((alpha steps + beta nbytes)/seconds - 1).

    `weights` has shape (m, n); the others (n,) or (m, n). `steps` are ones where alpha is to be that of the whole
    collective. rho is Huber's loss (r² up to `delta`, 2 delta |r| - delta² beyond), minimised by iteratively reweighted
    least squares. Source: Huber, Robust Statistics, 2nd ed., section 7.8.
    """
    u, v = steps / seconds, bus_nbytes / seconds
    current = weights
    alpha, beta = _least_squares(u, v, current)
    residuals = np.abs(_times(alpha, u) + _times(beta, v) - 1.0)
    for _ in range(rounds):
        updated = weights * np.minimum(1.0, delta / np.maximum(residuals, 1e-300))
        settled = np.max(np.abs(updated - current), initial=0.0) < _SETTLED
        current = updated
        if settled:
            break
        alpha, beta = _least_squares(u, v, current)
        residuals = np.abs(_times(alpha, u) + _times(beta, v) - 1.0)
    rho = np.where(residuals <= delta, residuals**2, 2 * delta * residuals - delta**2)
    return LineBatch(alpha, beta, (weights * rho).sum(axis=1))


def fit_line(bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float) -> Line:
    """The one line through these points, each of shape (n,)."""
    batch = fit_lines(np.ones_like(seconds), bus_nbytes, seconds, weights[None, :], delta)
    return Line(float(batch.alpha[0]), float(batch.beta[0]))


def relative_weights(half_widths: Floats) -> Floats:
    """Weights in (0, 1] from relative half-widths of 95 % intervals; NaN where there is no interval."""
    trusted = np.maximum(np.nan_to_num(half_widths, nan=NOISE_FLOOR), NOISE_FLOOR)
    weights: Floats = (NOISE_FLOOR / trusted) ** 2
    return weights


def huber_delta(half_widths: Floats) -> float:
    """The border between noise and outlier: 5 %, or three times the median half-width if that is more."""
    known = half_widths[~np.isnan(half_widths)]
    return max(HUBER_DELTA, 3.0 * float(np.median(known))) if len(known) else HUBER_DELTA


def _times(coefficients: Floats, column: Floats) -> Floats:
    product: Floats = coefficients[:, None] * column
    return product


def _dot(rows: Floats, column: Floats) -> Floats:
    """Row by row; a column of shape (n,) is every row's."""
    product: Floats = rows @ column if column.ndim == 1 else (rows * column).sum(axis=1)
    return product


def _least_squares(u: Floats, v: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Closed-form non-negative least squares of alpha u + beta v = 1, for every row of `w`.

    The loss is convex, so where the free solution leaves the quadrant the best one is on an axis.
    """
    wu, wv = w * u, w * v
    u1, v1 = wu.sum(axis=1), wv.sum(axis=1)
    uu, uv, vv = _dot(wu, u), _dot(wu, v), _dot(wv, v)
    determinant = uu * vv - uv * uv
    solvable = determinant > 1e-13 * uu * vv
    divisor = np.where(solvable, determinant, 1.0)
    alpha, beta = (vv * u1 - uv * v1) / divisor, (uu * v1 - uv * u1) / divisor
    only_alpha, only_beta = u1 / np.maximum(uu, 1e-300), v1 / np.maximum(vv, 1e-300)
    on_axis = ~solvable | (alpha < 0.0) | (beta < 0.0)
    alpha_axis = u1 * only_alpha >= v1 * only_beta  # what an axis takes off the loss
    alpha = np.where(on_axis, np.where(alpha_axis, only_alpha, 0.0), alpha)
    beta = np.where(on_axis, np.where(alpha_axis, 0.0, only_beta), beta)
    return alpha, beta
