"""How slow each endpoint sends and receives, from the times of pairs: robust, in logarithms, without loops over pairs.

A pair runs at the rate of its slowest part, so log t = base + max(send side, receive side, link) + noise, where a side
of usual speed is 0. A slow partner can only add to an endpoint's time. Its level is therefore the lower quartile of its
times, which stays right with up to three quarters of the partners slow, where a median bears half; for normal noise it
is 9 % less exact. Noise is the median absolute deviation, so that tails do not widen it.
"""

from dataclasses import dataclass

import numpy as np

from commbench.analysis.suspects import SideName
from commbench.results.pairs import PairTable, Real, Whole

QUARTILE = 0.25
FEW = 10  # endpoints: below this there is no telling what is usual, and the best one is the reference
_SIGMAS_PER_MAD = 1.4826  # of a normal distribution
QUARTILE_ERROR = 1.36  # standard error of a normal lower quartile, in sigmas over the root of the count
_NO_NOISE = 1e-9  # exact times, as in tests, have no spread to divide by


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """By endpoint: how much longer than usual its times are, as a logarithm, and that over its noise (modified z)."""

    effect: Real
    z: Real


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The sides of all endpoints, and `both` together; NaN where one has no time.

    `counts`: results of each endpoint, both directions; `noise`: one sigma of a result's logarithm.
    """

    send: Side
    receive: Side
    both: Side
    counts: Whole
    noise: float

    def side(self, name: SideName) -> Side:
        return {"both": self.both, "send": self.send, "receive": self.receive}[name]


def spread(values: Real) -> float:
    """A robust sigma: the median absolute deviation in units of a normal distribution's."""
    if not len(values):
        return _NO_NOISE
    return max(_NO_NOISE, _SIGMAS_PER_MAD * float(np.median(np.abs(values - np.median(values)))))


def quantiles(values: Real, owners: Whole, count: int, share: float) -> tuple[Real, Whole]:
    """For each of `count` owners the order statistic at or below `share` of its values, and how many it has."""
    counts = np.bincount(owners, minlength=count)
    ordered = values[np.lexsort((values, owners))]
    first = np.cumsum(counts) - counts
    found = np.full(count, np.nan)
    has = counts > 0
    found[has] = ordered[(first + np.floor(share * (counts - 1)).astype(np.int64))[has]]
    return found, counts


def measure_levels(table: PairTable, rails: int, endpoints: int) -> Levels:
    """The levels of all endpoints from a table whose rows all have times."""
    times = np.log(table.seconds)
    send, counts = quantiles(times, table.senders, endpoints, QUARTILE)
    receive, received = quantiles(times, table.receivers, endpoints, QUARTILE)
    noise = spread(times - np.fmax(send[table.senders], receive[table.receivers]))
    effects = [_relative(level, rails) for level in (send, receive)]
    both = _mean(*effects)
    results = counts + received
    return Levels(
        send=_side(effects[0], counts, noise, rails),
        receive=_side(effects[1], received, noise, rails),
        both=_side(both, results, noise, rails),
        counts=results,
        noise=noise,
    )


def _relative(levels: Real, rails: int) -> Real:
    """Levels over the usual one of their rail: the median of at least 10 endpoints, else the best."""
    effects = levels.copy()
    for rail in range(rails):
        own = effects[rail::rails]
        known = own[np.isfinite(own)]
        if len(known):
            own -= np.median(known) if len(known) >= FEW else known.min()
    return effects


def _mean(one: Real, other: Real) -> Real:
    """Of both, or the one that is known."""
    one, other = np.where(np.isnan(one), other, one), np.where(np.isnan(other), one, other)
    return (one + other) / 2


def _side(effect: Real, counts: Whole, noise: float, rails: int) -> Side:
    """z against what so many noisy results leave, or against the spread of the endpoints where that is wider."""
    scale = QUARTILE_ERROR * noise / np.sqrt(np.maximum(counts, 1))
    for rail in range(rails):
        known = effect[rail::rails][np.isfinite(effect[rail::rails])]
        if len(known) >= FEW:
            scale[rail::rails] = np.maximum(scale[rail::rails], spread(known))
    return Side(effect, effect / scale)
