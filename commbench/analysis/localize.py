"""Who is to blame: from times of pairs, with holes, to suspects. Retests (`retests.py`) make verdicts of them.

    rounds = pair_rounds(nodes, most, seed)                   plan/rounds.py; the caller measures them
    diagnosis = localize(cluster, results)                    results of one size
    while pairs := plan_retests(diagnosis, retests, seed):    suspects against known-good partners; the caller measures
        retests += results of these pairs
    verdicts = settle(diagnosis, retests)

Suspected is what is beyond the noise (modified z) and beyond a least effect. Whole groups come first, then endpoints
that are slow with everybody; what they do not explain is a link's, or scatter.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, comb, exp

import numpy as np

from commbench.analysis.cluster import Cluster
from commbench.analysis.failures import find_failures
from commbench.analysis.pair_levels import QUARTILE_ERROR, measure_levels, spread
from commbench.analysis.slow_ends import complete, find_slow_ends, find_slow_rails
from commbench.analysis.slow_links import find_noisy, find_slow_links, find_uneven_pair, gather_links
from commbench.analysis.suspects import Criteria, Suspect, criteria_for
from commbench.results.pairs import PairResult, PairTable, Real

AGAIN_SHARE = 0.8  # of a suspect's retests that must be slow again
FEWEST_RETESTS, MOST_RETESTS = 5, 8  # with five, one may disagree
_BY_CHANCE = 1e-4  # how likely noise may confirm a suspect of a whole run
_LEAST_TAIL, _MOST_TAIL = 0.01, 0.25  # few links tell little about the share of slow ones


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What the first rounds tell.

    `usual`: the median log seconds of pairs with two good ends, by rail; NaN where there is none. `noise`: one sigma of
    a result, relative. `detectable_ratio`: how much slower than usual an endpoint must be to be told from noise.
    `retests`: how many a suspect needs. `allowed_seconds`: up to which a pair is as expected; None without expectation.
    """

    cluster: Cluster
    criteria: Criteria
    nbytes: int
    rounds: int
    pairs: int
    failed_results: int
    usual: tuple[float, ...]
    noise: float
    detectable_ratio: float
    suspects: tuple[Suspect, ...]
    retests: int
    allowed_seconds: float | None

    @property
    def usual_seconds(self) -> float | None:
        """Of the fastest rail; None where nothing was timed."""
        known = [value for value in self.usual if np.isfinite(value)]
        return exp(min(known)) if known else None

    @property
    def is_below_expectation(self) -> bool:
        """Whether even the usual pair takes longer than allowed: then all are slow, and nobody need stand out."""
        usual, allowed = self.usual_seconds, self.allowed_seconds
        return usual is not None and allowed is not None and usual > allowed


def localize(
    cluster: Cluster,
    results: PairTable | Iterable[PairResult],
    criteria: Criteria | None = None,
    allowed_seconds: float | None = None,
) -> Diagnosis:
    """Suspects among the endpoints of `cluster`. With two endpoints only their directions are compared.

    Raises CommbenchError for results of several sizes.
    """
    table = results if isinstance(results, PairTable) else PairTable.of(results)
    criteria = criteria or criteria_for(table.nbytes)
    failures = find_failures(table)
    timed = table.where(np.isfinite(table.seconds))
    levels = measure_levels(timed, cluster.rails, cluster.endpoints)
    is_one_pair = len(np.unique((timed.senders, timed.receivers))) <= 2
    slow = [] if is_one_pair else find_slow_ends(cluster, levels, criteria)
    good = timed.where(~_touches(timed, [*failures, *slow]))
    usual = _usual(cluster, good, timed)
    noise = max(levels.noise, spread(np.log(good.seconds) - usual[good.senders % cluster.rails]))
    suspects = failures + complete(cluster, slow, timed, usual, noise, criteria)
    tail = 0.0
    if is_one_pair:
        suspects += find_uneven_pair(timed, criteria)
    else:
        noisy = find_noisy(cluster, good, usual, criteria)
        links = gather_links(cluster, good.where(~_touches(good, noisy)), usual)
        tail = float(np.mean(links.both >= criteria.suspect)) if len(links.both) else 0.0
        rails = find_slow_rails(cluster, timed, usual, noise, criteria)
        suspects += [*rails, *noisy, *find_slow_links(cluster, links, usual, criteria)]
    results_each = max(1.0, float(np.median(levels.counts)))
    ends = np.stack((table.senders, table.receivers))
    return Diagnosis(
        cluster=cluster,
        criteria=criteria,
        nbytes=table.nbytes,
        rounds=len(np.unique(table.rounds)),
        pairs=len(np.unique(ends.min(axis=0) * cluster.endpoints + ends.max(axis=0))),
        failed_results=len(table) - len(timed),
        usual=tuple(usual.tolist()),
        noise=noise,
        detectable_ratio=max(criteria.accuse_ratio, exp(criteria.z * QUARTILE_ERROR * noise / results_each**0.5)),
        suspects=tuple(suspects),
        retests=retests_needed(tail, len(suspects)),
        allowed_seconds=allowed_seconds,
    )


def retests_needed(tail: float, suspects: int) -> int:
    """How many retests make it unlikely (1 in 10,000 runs) that noise confirms one of `suspects`.

    `tail`: the share of good pairs that look slow. Confirmed is who is slow again in four fifths of the retests.
    """
    share = min(max(tail, _LEAST_TAIL), _MOST_TAIL)
    for retests in range(FEWEST_RETESTS, MOST_RETESTS):
        needed = again_needed(retests)
        chance = sum(
            comb(retests, slow) * share**slow * (1 - share) ** (retests - slow) for slow in range(needed, retests + 1)
        )
        if suspects * chance <= _BY_CHANCE:
            return retests
    return MOST_RETESTS


def again_needed(retests: int) -> int:
    """Of so many retests, how many must be slow again."""
    return ceil(AGAIN_SHARE * retests)


def _usual(cluster: Cluster, good: PairTable, timed: PairTable) -> Real:
    """The median log time of good pairs by rail; the least of all where no pair is good; NaN where none was timed."""
    usual = np.full(cluster.rails, np.nan)
    for rail in range(cluster.rails):
        of_good, of_all = (table.seconds[table.senders % cluster.rails == rail] for table in (good, timed))
        if len(of_all):
            usual[rail] = np.log(np.median(of_good) if len(of_good) else of_all.min())
    return usual


def _touches(table: PairTable, suspects: Iterable[Suspect]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Which rows have an end among `suspects`; a link that fails does not taint its ends."""
    members = [member for suspect in suspects if suspect.kind not in ("cut", "pair") for member in suspect.members]
    return np.isin(table.senders, members) | np.isin(table.receivers, members)
