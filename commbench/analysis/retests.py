"""Suspects are measured again before they are accused: whom with whom, and what the retests say.

A slow endpoint meets other partners than before, good ones, so that its own time is seen; a link is taken again. All
others are paired in the same rounds: the load is as it was, and their times show how the cluster has moved.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, inf, isinf
from statistics import median

import numpy as np

from commbench.analysis.localize import Diagnosis, again_needed
from commbench.analysis.pair_levels import QUARTILE
from commbench.analysis.suspects import FAILURES, LINKS, State, Suspect, Verdict
from commbench.plan.rounds import Round
from commbench.results.pairs import PairResult, PairTable

_FEWEST_CONTROLS = 8  # results of good pairs, before they say that the cluster has moved
_QUARTILE_SIGMAS = 0.6745
_FAILURE_RETESTS = 2  # each costs a timeout
_NOISY_RETESTS, _NOISY_AGAIN = 12, 4  # who is slow half of the time is so in 4 of 12, with 93 % probability


@dataclass(slots=True)
class _Seen:
    """What retests brought of one suspect: a logarithm over the usual time each (infinite: failed), and with whom."""

    values: list[float] = field(default_factory=list)
    partners: list[int] = field(default_factory=list)


def settle(diagnosis: Diagnosis, retests: PairTable | Iterable[PairResult]) -> tuple[Verdict, ...]:
    """A verdict on each suspect, in their order; `open`: too few retests. Each round has a number of its own."""
    table = retests if isinstance(retests, PairTable) else PairTable.of(retests)
    seen = _collect(diagnosis, table)
    return tuple(_judge(diagnosis, suspect, seen[at]) for at, suspect in enumerate(diagnosis.suspects))


def plan_retests(diagnosis: Diagnosis, retests: PairTable | Iterable[PairResult], seed: int = 0) -> Round:
    """The next round of disjoint pairs, lower endpoint first; () when no suspect is open."""
    table = retests if isinstance(retests, PairTable) else PairTable.of(retests)
    seen = _collect(diagnosis, table)
    waiting = [
        (len(seen[at].values), at)
        for at, suspect in enumerate(diagnosis.suspects)
        if _judge(diagnosis, suspect, seen[at]).state == "open"
    ]
    if not waiting:
        return ()
    plan = _RoundPlan(diagnosis, random.Random(f"{seed} {len(table)}"))
    for _, at in sorted(waiting):
        suspect = diagnosis.suspects[at]
        if suspect.kind in LINKS:
            plan.add_link(suspect)
        else:
            plan.add_members(suspect, seen[at].partners)
    return plan.with_controls()


class _RoundPlan:
    """A round that fills up: an endpoint is in one pair at most."""

    def __init__(self, diagnosis: Diagnosis, drawn: random.Random) -> None:
        self._cluster, self._pairs = diagnosis.cluster, list[tuple[int, int]]()
        suspected = _suspected(diagnosis)
        at_links = {end for suspect in diagnosis.suspects if suspect.kind in LINKS for end in suspect.members}
        self._free: dict[int, list[int]] = defaultdict(list)  # by rail, those that are best to meet last
        everyone = list(range(diagnosis.cluster.endpoints))
        drawn.shuffle(everyone)
        everyone.sort(key=lambda end: (end in suspected, end in at_links), reverse=True)
        for end in everyone:
            self._free[self._cluster.rail(end)].append(end)
        self._rails_with_good = {self._cluster.rail(end) for end in everyone if end not in suspected}
        self._suspected, self._busy = suspected, set[int]()
        self._links = {frozenset(suspect.members) for suspect in diagnosis.suspects if suspect.kind in LINKS}

    def add_link(self, suspect: Suspect) -> None:
        if self._busy.isdisjoint(suspect.members):
            self._add(*suspect.members)

    def add_members(self, suspect: Suspect, met: Sequence[int]) -> None:
        """Each member with a good endpoint of its rail, one that it has met least, over a link above suspicion;
        it waits where none is free.
        """
        times, known = Counter(met), set(suspect.partners)
        for member in suspect.members:
            others = self._candidates(member) if member not in self._busy else []
            if others:
                keys = [(frozenset((member, end)) in self._links, times[end], end in known) for end in others]
                self._add(member, others[keys.index(min(keys))])

    def with_controls(self) -> Round:
        """All pairs, with those who are left paired among themselves: suspects that wait for their turn excepted."""
        for free in self._free.values():
            left = [end for end in free if end not in self._busy and end not in self._suspected]
            for pair in zip(left[::2], left[1::2], strict=False):
                self._add(*pair)
        return tuple(sorted(self._pairs))

    def _candidates(self, member: int) -> list[int]:
        """Up to 64 who are free in its rail, the best first: more are not needed to find one that it has not met.

        Only good ones, for a slow partner would accuse the innocent; any where its rail has none.
        """
        rail = self._cluster.rail(member)
        free = self._free[rail]
        while free and free[-1] in self._busy:
            free.pop()
        found = [end for end in free[:-65:-1] if end not in self._busy and end != member]
        return [end for end in found if end not in self._suspected] if rail in self._rails_with_good else found

    def _add(self, one: int, other: int) -> None:
        self._busy.update((one, other))
        self._pairs.append((min(one, other), max(one, other)))


def _suspected(diagnosis: Diagnosis) -> set[int]:
    """Endpoints that are suspected themselves. A rail as a whole leaves its endpoints to each other."""
    kinds = (*LINKS, "rail")
    return {end for suspect in diagnosis.suspects if suspect.kind not in kinds for end in suspect.members}


def _collect(diagnosis: Diagnosis, table: PairTable) -> list[_Seen]:
    """For each suspect its retests, over the usual time as the good pairs of the same rounds show it."""
    seen = [_Seen() for _ in diagnosis.suspects]
    if not len(table):
        return seen
    moved = _drift(diagnosis, table)
    by_link: dict[tuple[int, int], list[int]] = defaultdict(list)  # a link can be cut one way and slow the other
    by_end: dict[int, list[int]] = defaultdict(list)
    for at, suspect in enumerate(diagnosis.suspects):
        if suspect.kind in LINKS:
            by_link[min(suspect.members), max(suspect.members)].append(at)
        else:
            for end in suspect.members:
                by_end[end].append(at)
    for (low, high), directions in _meetings(table, {*by_end, *(end for link in by_link for end in link)}):
        if (low, high) in by_link:
            for at in by_link[low, high]:
                suspect = diagnosis.suspects[at]
                seen[at].values.append(_value(suspect, suspect.members[0], directions, moved))
        for end, partner in ((low, high), (high, low)):
            for at in by_end.get(end, ()):
                seen[at].values.append(_value(diagnosis.suspects[at], end, directions, moved))
                seen[at].partners.append(partner)
    return seen


def _meetings(table: PairTable, ends: set[int]) -> Iterator[tuple[tuple[int, int], dict[int, float]]]:
    """Every meeting of a round that one of `ends` is in, with the log time by sender (NaN: failed)."""
    wanted = table.where(np.isin(table.senders, list(ends)) | np.isin(table.receivers, list(ends)))
    found: dict[tuple[int, int, int], dict[int, float]] = defaultdict(dict)
    columns = (wanted.rounds, wanted.senders, wanted.receivers, np.log(wanted.seconds))
    for turn, sender, receiver, seconds in zip(*(column.tolist() for column in columns), strict=True):
        found[turn, min(sender, receiver), max(sender, receiver)][sender] = seconds
    yield from (((low, high), directions) for (_, low, high), directions in found.items())


def _value(suspect: Suspect, end: int, directions: dict[int, float], moved: float) -> float:
    """How much longer than usual the meeting took, as a logarithm, on the side of `end` that is suspected."""
    wanted = {"both": (True, False), "send": (True,), "receive": (False,)}[suspect.side]  # whether `end` sends
    times = [seconds for sender, seconds in directions.items() if (sender == end) in wanted]
    if suspect.kind in FAILURES or suspect.usual != suspect.usual or not times or any(t != t for t in times):
        return inf if any(seconds != seconds for seconds in directions.values()) else -inf
    return sum(times) / len(times) - suspect.usual - moved


def _drift(diagnosis: Diagnosis, table: PairTable) -> float:
    """How much longer good pairs take in the retests than before, as a logarithm; 0 where too few were measured.

    By the lower quartile, as few controls may have tails; that of normal noise is 0.67 sigma below the median.
    """
    suspected = list(_suspected(diagnosis))
    is_good = ~(np.isin(table.senders, suspected) | np.isin(table.receivers, suspected)) & np.isfinite(table.seconds)
    usual = np.array(diagnosis.usual)[table.senders % diagnosis.cluster.rails]
    excess = np.sort((np.log(table.seconds) - usual)[is_good])
    if len(excess) < _FEWEST_CONTROLS:
        return 0.0
    return float(excess[int(QUARTILE * (len(excess) - 1))]) + _QUARTILE_SIGMAS * diagnosis.noise


def _judge(diagnosis: Diagnosis, suspect: Suspect, seen: _Seen) -> Verdict:
    values = seen.values
    wanted, needed = _rule(diagnosis, suspect)
    bar = diagnosis.criteria.suspect
    again = sum(value >= bar for value in values)
    effect = _together(suspect, values)
    state: State = "open"
    if len(values) - again > wanted - needed:
        state = "not reproduced"
    elif len(values) >= wanted:
        state = _decide(diagnosis, suspect, effect)
    return Verdict(suspect, state, len(values), again, effect, tuple(dict.fromkeys(seen.partners)))


def _rule(diagnosis: Diagnosis, suspect: Suspect) -> tuple[int, int]:
    """How many retests there must be, and how many of them slow again."""
    if suspect.kind == "noisy":
        return _NOISY_RETESTS, _NOISY_AGAIN
    wanted = _FAILURE_RETESTS if isinf(suspect.effect) else diagnosis.retests
    wanted *= len(suspect.members) if suspect.kind in ("group", "rail") else 1
    return wanted, again_needed(wanted)


def _decide(diagnosis: Diagnosis, suspect: Suspect, effect: float) -> State:
    """Slow again in nearly all retests: is it enough to accuse?"""
    if effect < diagnosis.criteria.accuse:
        return "slight"
    allowed = diagnosis.allowed_seconds
    if allowed is not None and not isinf(effect) and exp(suspect.usual + effect) <= allowed:
        return "within expectation"
    return "confirmed"


def _together(suspect: Suspect, values: Sequence[float]) -> float:
    """The effect over all results, weighed by how many directions each has; of noise and failures the first ones'."""
    if not values or isinf(suspect.effect) or suspect.kind == "noisy":
        return suspect.effect
    finite = [value for value in values if not isinf(value)]
    again = median(finite) if finite else inf
    weight = 2 * len(values)
    return (suspect.results * suspect.effect + weight * again) / (suspect.results + weight)
