"""From replicates of alpha and beta to estimates: a value with its interval, or `not identified` with a bound."""

from dataclasses import dataclass

import numpy as np

from commbench.analysis.intervals import Random, interval, redrawn_seconds
from commbench.analysis.lines import FEW_ROUNDS, NOISE_FLOOR, Floats, Line, LineBatch, fit_lines
from commbench.analysis.records import Estimate

VISIBLE_SHARE = 0.1  # of a size's time that a term must make to be read from it
MIN_VISIBLE = 2  # sizes in which it must be visible
MAX_HALF_WIDTH = 0.5  # of the value: a wider interval identifies nothing


@dataclass(frozen=True, slots=True)
class Replicates:
    """Refits of one line to resampled samples (None where there are no samples) and to redrawn residuals."""

    resampled: LineBatch | None
    redrawn: LineBatch


def replicate_line(
    line: Line,
    steps: Floats,
    bus_nbytes: Floats,
    seconds: Floats,
    weights: Floats,
    delta: float,
    resampled: Floats | None,
    replicates: int,
    random: Random,
) -> Replicates:
    """`resampled` has shape (replicates, n), as made by `resampled_seconds`, for the same n points."""
    modelled = line.alpha_seconds * steps + line.seconds_per_byte * bus_nbytes
    redrawn = redrawn_seconds(modelled, seconds, 2, replicates, random)

    def refit(times: Floats) -> LineBatch:
        return fit_lines(steps, bus_nbytes, times, np.broadcast_to(weights, times.shape), delta, FEW_ROUNDS)

    return Replicates(None if resampled is None else refit(resampled), refit(redrawn))


def estimate_alpha(value: float, share: Floats, seconds: Floats, replicates: Replicates) -> Estimate:
    """`share`: of alpha in each size's modelled time. The bound is from above: no time is shorter than its alpha."""
    batches = [batch.alpha for batch in (replicates.resampled, replicates.redrawn) if batch is not None]
    low, high = interval(*batches)
    if _identified(value, low, high, share):
        return Estimate(value, low, high)
    shortest = float(seconds.min())
    return Estimate(None, low, high, min(max(high, NOISE_FLOOR * shortest), shortest))


def estimate_rate(beta: float, share: Floats, bus_nbytes: Floats, seconds: Floats, replicates: Replicates) -> Estimate:
    """B = 1/beta. The bound is from below: the largest bus bandwidth that was seen."""
    batches = [batch.beta for batch in (replicates.resampled, replicates.redrawn) if batch is not None]
    low, high = interval(*batches)
    rates = (1.0 / high if high > 0.0 else None, 1.0 / low if low > 0.0 else None)
    if _identified(beta, low, high, share):
        return Estimate(1.0 / beta, *rates)
    return Estimate(None, *rates, float((bus_nbytes / seconds).max()))


def scaled(estimate: Estimate, divisor: float) -> Estimate:
    """The estimate of the quantity over `divisor`."""

    def over(value: float | None) -> float | None:
        return None if value is None else value / divisor

    return Estimate(over(estimate.value), over(estimate.low), over(estimate.high), over(estimate.bound))


def _identified(value: float, low: float, high: float, share: Floats) -> bool:
    visible = int((share >= VISIBLE_SHARE).sum())
    return value > 0.0 and low > 0.0 and visible >= MIN_VISIBLE and high - low <= 2 * MAX_HALF_WIDTH * value
