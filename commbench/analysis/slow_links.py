"""What is left when slow endpoints are known: links that are slow by themselves, and endpoints whose times scatter."""

from dataclasses import dataclass

import numpy as np

from commbench.analysis.cluster import Cluster
from commbench.analysis.pair_levels import quantiles, spread
from commbench.analysis.slow_ends import choose_side
from commbench.analysis.suspects import Criteria, Suspect
from commbench.results.pairs import PairTable, Real, Whole

_FEWEST_NOISY = 8  # results, before an endpoint can be called noisy
_NOISY = 3.0  # times the median endpoint's deviation


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """By link (the lower endpoint first): how much longer than usual each direction takes, as a logarithm."""

    low: Whole
    high: Whole
    up: Real
    down: Real
    both: Real
    results: Whole


def gather_links(cluster: Cluster, table: PairTable, usual: Real) -> Links:
    """The links of `table`, all directions of all rounds; a direction that was not timed is NaN."""
    excess = np.log(table.seconds) - usual[table.senders % cluster.rails]
    low, high = np.minimum(table.senders, table.receivers), np.maximum(table.senders, table.receivers)
    keys, link = np.unique(low * cluster.endpoints + high, return_inverse=True)
    directions = []
    for rows in (table.senders < table.receivers, table.senders > table.receivers):
        counts = np.bincount(link[rows], minlength=len(keys))
        sums = np.bincount(link[rows], weights=excess[rows], minlength=len(keys))
        directions.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    up, down = directions
    both = np.where(np.isnan(up), down, np.where(np.isnan(down), up, (up + down) / 2))
    ends = divmod(keys, cluster.endpoints)
    return Links(*ends, up, down, both, np.bincount(link, minlength=len(keys)))


def find_slow_links(cluster: Cluster, links: Links, usual: Real, criteria: Criteria) -> list[Suspect]:
    """Links beyond the noise and beyond the ratio from which one is accused: most were measured once."""
    one_way = np.fmax(links.up, links.down)
    z_both = links.both / spread(links.both)
    z_one = one_way / spread(np.concatenate((links.up, links.down)))
    hit = (links.both >= criteria.accuse) & (z_both >= criteria.z)
    hit |= (one_way >= criteria.accuse) & (z_one >= criteria.z)
    found = []
    for at in np.flatnonzero(hit).tolist():
        side, effect = choose_side(float(links.up[at]), float(links.down[at]))
        ends = (int(links.low[at]), int(links.high[at]))
        z = float((z_both if side == "both" else z_one)[at])
        found.append(
            Suspect(
                kind="link",
                members=ends[::-1] if side == "receive" else ends,
                side="both" if side == "both" else "send",
                effect=effect,
                z=z,
                usual=float(usual[ends[0] % cluster.rails]),
                results=int(links.results[at]),
            )
        )
    return found


def find_noisy(cluster: Cluster, table: PairTable, usual: Real, criteria: Criteria) -> list[Suspect]:
    """Endpoints half of whose times are too long, by the ratio that accuses and by thrice what is common."""
    excess = np.maximum(0.0, np.log(table.seconds) - usual[table.senders % cluster.rails])
    owners = np.concatenate((table.senders, table.receivers))
    deviations, counts = quantiles(np.concatenate((excess, excess)), owners, cluster.endpoints, 0.5)
    common = float(np.nanmedian(deviations)) if counts.any() else np.nan
    hit = (deviations >= max(criteria.accuse, _NOISY * common)) & (counts >= _FEWEST_NOISY)
    return [
        Suspect(
            kind="noisy",
            members=(end,),
            side="both",
            effect=float(deviations[end]),
            z=float(deviations[end] / max(common, 1e-9)),
            usual=float(usual[cluster.rail(end)]),
            results=int(counts[end]),
        )
        for end in np.flatnonzero(hit).tolist()
    ]


def find_uneven_pair(table: PairTable, criteria: Criteria) -> list[Suspect]:
    """Of the only two endpoints: the direction that is slower than the other. Which end is slow cannot be told."""
    ends = np.unique(table.senders)
    times = [float(np.median(np.log(table.seconds[table.senders == end]))) for end in ends]
    if len(times) != 2 or abs(times[0] - times[1]) < criteria.accuse:
        return []
    slow = int(np.argmax(times))
    members = (int(ends[slow]), int(ends[1 - slow]))
    effect = times[slow] - times[1 - slow]
    return [Suspect("pair", members, "send", effect, np.inf, times[1 - slow], len(table))]
