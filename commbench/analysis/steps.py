"""Steps in a series: the levels that explain it with the least absolute error, each new one at a price.

The price is in units of the noise, which is read from the differences of neighbours, so that the steps themselves
do not count as noise. Medians and absolute errors: one run that is off is no step, two after each other may be.
Sources: Friedrich et al., Journal of Computational and Graphical Statistics 17 (2008), for the Potts functional and its
dynamic program; the median of absolute differences of neighbours: Hampel, JASA 69 (1974).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, heappushpop
from math import inf, log, sqrt

import numpy as np

from commbench.analysis.lines import Floats

MIN_RUNS = 6  # with fewer neither noise nor a step can be told
_SHORTEST = 2  # runs of one level
_PRICE = 3.0  # of a step, in noise, at one run; grows with the logarithm of the runs
_FLOOR = 0.002  # noise below which no series is taken to be
_MAD_TO_DEVIATION = 1.4826
_MEDIAN_ERROR = sqrt(np.pi / 2)  # standard error of a median over that of a mean


@dataclass(frozen=True, slots=True)
class Step:
    """From the run at `index` on the level is another: `change` of the logarithm, with its 95 % interval."""

    index: int
    change: float
    low: float
    high: float


def noise_of(values: Floats) -> float:
    """The standard deviation of one value, from the differences of neighbours; steps hardly count."""
    differences = np.abs(np.diff(values))
    return max(float(np.median(differences)) * _MAD_TO_DEVIATION / sqrt(2), _FLOOR)


def find_steps(values: Floats, least: float) -> list[Step]:
    """The steps of a series of logarithms in time, of at least `least` and twice the noise; none below six values."""
    if len(values) < MIN_RUNS:
        return []
    noise = noise_of(values)
    starts = _cheapest_starts(values / noise, _PRICE + 2.0 * log(len(values)))
    least = max(least, 2.0 * noise)
    while len(starts) > 1:  # the smallest goes first: what it parted may make the next larger
        levels = _levels(values, starts)
        sizes = np.abs(np.diff(levels))
        smallest = int(np.argmin(sizes))
        if sizes[smallest] >= least:
            break
        del starts[smallest + 1]
    return [_step(values, starts, place, noise) for place in range(1, len(starts))]


def _cheapest_starts(values: Floats, price: float) -> list[int]:
    """Where levels start, by dynamic programming over the last one."""
    n = len(values)
    costs, previous = [-price] + [inf] * n, [0] * (n + 1)
    for start in range(n):
        for length, error in enumerate(_absolute_errors(values[start:].tolist()), start=1):
            cost = costs[start] + price + error
            if length >= _SHORTEST and cost < costs[start + length]:
                costs[start + length], previous[start + length] = cost, start
    starts: list[int] = []
    end = n
    while end:
        end = previous[end]
        starts.insert(0, end)
    return starts


def _absolute_errors(values: list[float]) -> Iterator[float]:
    """The sum of absolute differences from the median, of the first value, the first two, …: two heaps meet there."""
    below: list[float] = []  # negated, so that the largest is first
    above: list[float] = []
    difference = 0.0  # the sum above less that below
    for value in values:
        moved = -heappushpop(below, -value)
        heappush(above, moved)
        difference += 2 * moved - value
        if len(above) > len(below) + 1:
            back = heappop(above)
            heappush(below, -back)
            difference -= 2 * back
        yield difference - (above[0] if len(above) > len(below) else 0.0)


def _levels(values: Floats, starts: list[int]) -> Floats:
    ends = [*starts[1:], len(values)]
    return np.array([np.median(values[start:end]) for start, end in zip(starts, ends, strict=True)])


def _step(values: Floats, starts: list[int], place: int, noise: float) -> Step:
    edges = [*starts, len(values)]
    levels = _levels(values, starts)
    change = float(levels[place] - levels[place - 1])
    counts = edges[place] - edges[place - 1], edges[place + 1] - edges[place]
    arm = 1.96 * noise * _MEDIAN_ERROR * sqrt(1 / counts[0] + 1 / counts[1])
    return Step(edges[place], change, change - arm, change + arm)
