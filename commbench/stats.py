"""Order statistics of samples: medians, percentiles and intervals that assume no distribution."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

MIN_FOR_INTERVAL = 6  # with fewer values no pair of order statistics covers the median with 95 % probability


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of one case's samples, all in the unit of the samples.

    `ci_low` and `ci_high` bound the median with at least 95 % confidence; None with fewer than 6 samples.
    """

    samples: int
    median: float
    ci_low: float | None
    ci_high: float | None
    minimum: float
    p95: float
    p99: float
    maximum: float

    @property
    def relative_half_width(self) -> float | None:
        """The larger arm of the interval over the median; None where there is no interval."""
        if self.ci_low is None or self.ci_high is None or self.median == 0:
            return None
        return max(self.ci_high - self.median, self.median - self.ci_low) / self.median


def summarize(values: Sequence[float]) -> Summary:
    """The Summary of at least one value. Raises ValueError for none."""
    if not values:
        raise ValueError("no values to summarize")
    ordered = sorted(values)
    interval = median_interval_ranks(len(ordered))
    return Summary(
        samples=len(ordered),
        median=_median(ordered),
        ci_low=ordered[interval[0]] if interval else None,
        ci_high=ordered[interval[1]] if interval else None,
        minimum=ordered[0],
        p95=nearest_rank(ordered, 0.95),
        p99=nearest_rank(ordered, 0.99),
        maximum=ordered[-1],
    )


def nearest_rank(ordered: Sequence[float], quantile: float) -> float:
    """The nearest-rank quantile: the smallest value with at least `quantile` of the values at or below it."""
    return ordered[max(0, -int(-quantile * len(ordered) // 1) - 1)]


@lru_cache(maxsize=4096)
def median_interval_ranks(count: int, confidence: float = 0.95) -> tuple[int, int] | None:
    """Zero-based positions (low, high) of the sorted values that bound the median; None if `count` is too small.

    The number of values below the median is binomial(count, 1/2), whatever the distribution, so the interval
    [x(l), x(n+1-l)] misses it with probability 2 P(Bin(n, 1/2) < l). The narrowest symmetric one is taken.
    Source: Conover, Practical Nonparametric Statistics, 3rd ed., section 3.2.
    """
    allowed = (1.0 - confidence) / 2.0 * 2.0**count if count < 1000 else None
    if allowed is None:  # normal approximation of the binomial, off by less than one rank here
        half = 0.98 * count**0.5
        return max(0, int(count / 2 - half) - 1), min(count - 1, int(count / 2 + half) + 1)
    tail, ways, low = 0, 1, 0  # ways: `count` over `low`
    while tail + ways <= allowed:
        tail += ways
        ways = ways * (count - low) // (low + 1)
        low += 1
    return (low - 1, count - low) if low else None


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
