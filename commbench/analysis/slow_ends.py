"""Endpoints that are slow with everybody: alone, as a named group (a rack), or as a whole rail."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from commbench.analysis.cluster import Cluster, NamedGroup
from commbench.analysis.pair_levels import FEW, QUARTILE_ERROR, Levels
from commbench.analysis.suspects import Criteria, SideName, Suspect
from commbench.results.pairs import PairTable, Real

GROUP_SHARE = 0.75  # of a group's members that must be slow
_ONE_SIDED = 0.5  # the other side is less than half as slow


def find_slow_ends(cluster: Cluster, levels: Levels, criteria: Criteria) -> list[Suspect]:
    """Slow groups, the largest first, and slow endpoints outside them; `usual` and partners are not filled in yet."""
    bar = _bar(cluster, levels, criteria)
    found: list[Suspect] = []
    blamed: set[int] = set()
    for group in sorted(cluster.groups, key=lambda group: -len(group.members)):
        suspect = _slow_group(cluster, group, levels, criteria, bar)
        if suspect is not None and blamed.isdisjoint(group.members):
            found.append(suspect)
            blamed.update(group.members)
    hit = np.zeros(len(bar), dtype=bool)
    for side in (levels.both, levels.send, levels.receive):
        hit |= (side.effect >= bar) & (side.z >= criteria.z)
    return found + [_slow_end(levels, end) for end in np.flatnonzero(hit).tolist() if end not in blamed]


def complete(
    cluster: Cluster, suspects: Iterable[Suspect], table: PairTable, usual: Real, noise: float, criteria: Criteria
) -> list[Suspect]:
    """The suspects with the usual time of their rail, and with whom they were measured.

    `noise` is that of good pairs, which is only known when the suspects are: who is within it is dropped.
    """
    done = []
    for suspect in suspects:
        of_it = np.isin(table.senders, suspect.members) | np.isin(table.receivers, suspect.members)
        ends = np.unique(np.concatenate((table.senders[of_it], table.receivers[of_it])))
        results = int(of_it.sum())
        z = min(suspect.z, suspect.effect * results**0.5 / (QUARTILE_ERROR * noise))
        partners = tuple(np.setdiff1d(ends, suspect.members).tolist())
        base = float(usual[cluster.rail(suspect.members[0])])
        if z >= criteria.z:
            done.append(replace(suspect, usual=base, z=z, results=results, partners=partners))
    return done


def find_slow_rails(cluster: Cluster, table: PairTable, usual: Real, noise: float, criteria: Criteria) -> list[Suspect]:
    """Rails whose usual pair is slower than that of the best rail."""
    best = np.nanmin(usual) if np.isfinite(usual).any() else np.nan
    found = []
    for rail in np.flatnonzero(usual - best >= criteria.accuse).tolist():
        results = int((table.senders % cluster.rails == rail).sum())
        members = tuple(range(rail, cluster.endpoints, cluster.rails))
        effect = float(usual[rail] - best)
        z = effect * np.sqrt(results) / noise
        if z >= criteria.z:
            found.append(Suspect("rail", members, "both", effect, z, float(best), results, name=f"rail {rail}"))
    return found


def choose_side(send: float, receive: float) -> tuple[SideName, float]:
    """The side that is slow, and its effect: one where the other is less than half as slow, else their mean."""
    if np.isnan(send) or np.isnan(receive) or min(send, receive) >= _ONE_SIDED * max(send, receive):
        return "both", float(np.nanmean((send, receive)))
    return ("send", send) if send > receive else ("receive", receive)


def _bar(cluster: Cluster, levels: Levels, criteria: Criteria) -> Real:
    """From which effect one is suspected: among few the best is the reference, and noise puts it below the usual."""
    known = np.isfinite(levels.both.effect)
    bars = np.empty(cluster.endpoints)
    for rail in range(cluster.rails):
        own = slice(rail, None, cluster.rails)
        bars[own] = criteria.suspect if known[own].sum() >= FEW else criteria.accuse
    return bars


def _slow_end(levels: Levels, end: int) -> Suspect:
    side, effect = choose_side(float(levels.send.effect[end]), float(levels.receive.effect[end]))
    return Suspect("node", (end,), side, effect, float(levels.side(side).z[end]), np.nan, 0)


def _slow_group(cluster: Cluster, group: NamedGroup, levels: Levels, criteria: Criteria, bar: Real) -> Suspect | None:
    """The group as a suspect, if its median member and three quarters of its members are slow."""
    known = np.isfinite(levels.both.effect)
    members = np.array([end for end in group.members if known[end]], dtype=np.int64)
    if not 2 <= len(members) < known.sum():
        return None
    side, effect = choose_side(_median(levels.send.effect[members]), _median(levels.receive.effect[members]))
    own = levels.side(side)
    z = _median(own.z[members]) * len(members) ** 0.5
    is_shared = np.mean(own.effect[members] >= effect / 2) >= GROUP_SHARE
    if not is_shared or effect < bar[members].max() or z < criteria.z:
        return None
    return Suspect("group", tuple(members.tolist()), side, effect, z, np.nan, 0, name=f"{group.kind} {group.name}")


def _median(values: Real) -> float:
    """Of what is known; NaN where nothing is."""
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else np.nan
