"""Tests of pairs on paper: a cluster with known culprits, whose times have noise and a heavy tail."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from commbench.plan.rounds import Round
from commbench.results.pairs import PairTable, Real


@dataclass(frozen=True, slots=True)
class FakePairs:
    """Factors are of time (1.25: a rate of 80 %). A direction runs at its slowest part.

    `noise`: sigma of the normal noise of each direction's logarithm. `tail_share` of the pairs in a round take
    exp(|N(0, tail_sigma)|) times as long in both directions: log-normal, one-sided. `slow_racks`: endpoints behind a
    slow uplink; pairs inside are not slowed. `dead` endpoints and `cut` links (the lower end first) do not answer.
    """

    endpoints: int
    seconds: float = 1e-2
    nbytes: int = 64 << 20
    noise: float = 0.03
    tail_share: float = 0.05
    tail_sigma: float = 0.5
    slow_send: dict[int, float] = field(default_factory=dict)
    slow_receive: dict[int, float] = field(default_factory=dict)
    slow_links: dict[tuple[int, int], float] = field(default_factory=dict)
    slow_racks: tuple[tuple[tuple[int, ...], float], ...] = ()
    dead: frozenset[int] = frozenset()
    cut: frozenset[tuple[int, int]] = frozenset()

    def measure(self, rounds: Iterable[Round], seed: int, first_round: int = 0) -> PairTable:
        """Both directions of all pairs of `rounds`; the same for the same seed."""
        numbered = [(turn, a, b) for turn, pairs in enumerate(rounds, first_round) for a, b in pairs]
        turns, one, other = np.array(numbered, dtype=np.int64).reshape(-1, 3).T
        random = np.random.default_rng(seed)
        tail = np.abs(random.normal(0.0, self.tail_sigma, len(turns)))
        tail *= random.random(len(turns)) < self.tail_share
        times = [self._direction(*ends) + tail for ends in ((one, other), (other, one))]
        logs = np.concatenate(times) + random.normal(0.0, self.noise, 2 * len(turns))
        return PairTable(
            nbytes=self.nbytes,
            rounds=np.concatenate((turns, turns)),
            senders=np.concatenate((one, other)),
            receivers=np.concatenate((other, one)),
            seconds=self.seconds * np.exp(logs),
        )

    def _direction(self, senders: np.ndarray, receivers: np.ndarray) -> Real:
        """The logarithm of the factor of each direction, NaN where it does not answer."""
        send, receive = self._factors(self.slow_send), self._factors(self.slow_receive)
        slowest = np.maximum(send[senders], receive[receivers])
        for members, factor in self.slow_racks:
            crosses = np.isin(senders, members) != np.isin(receivers, members)
            slowest = np.where(crosses, np.maximum(slowest, factor), slowest)
        low, high = np.minimum(senders, receivers), np.maximum(senders, receivers)
        for (a, b), factor in self.slow_links.items():
            slowest = np.where((low == a) & (high == b), np.maximum(slowest, factor), slowest)
        for a, b in self.cut:
            slowest = np.where((low == a) & (high == b), np.nan, slowest)
        dead = np.isin(senders, list(self.dead)) | np.isin(receivers, list(self.dead))
        return np.where(dead, np.nan, np.log(slowest))

    def _factors(self, slow: dict[int, float]) -> Real:
        factors = np.ones(self.endpoints)
        factors[list(slow)] = list(slow.values())
        return factors
