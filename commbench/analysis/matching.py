"""Which cases of two sets of runs are the same question, and why the others are not.

A case's time is that of its slowest group, for a step of training waits for it. Groups over different link classes are
cases of their own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain

from commbench.analysis.curves import FITTED_STATUSES, PLAUSIBLE_SECONDS
from commbench.results.schema import UNKNOWN, SummaryRow
from commbench.results.store import Run
from commbench.units import format_nbytes


@dataclass(frozen=True, slots=True)
class CaseKey:
    """What two cases must share to be compared. `nodes` and `link_class` may differ: a lost link shows there."""

    collective: str
    size_bytes: int | None
    dtype: str
    redop: str
    in_place: bool
    mode: str
    layout: str
    concurrency: str
    ranks: int | None
    backend: str
    variant: str
    nodes: int | None
    link_class: str

    @property
    def series(self) -> tuple[object, ...]:
        """What the cases of one curve over sizes share."""
        return tuple(getattr(self, field.name) for field in fields(self) if field.name != "size_bytes")

    def words(self) -> str:
        """`all_reduce 64 MiB`."""
        return f"{self.collective} {format_nbytes(self.size_bytes)}" if self.size_bytes else self.collective


@dataclass(frozen=True, slots=True)
class Timing:
    """One case in one launch: the median of its slowest group, in seconds; `half_width`: of that median's 95 %
    interval, relative, None where the run has too few batches for one.
    """

    seconds: float
    half_width: float | None
    group: str


@dataclass(frozen=True, slots=True)
class MatchedCase:
    """One case and its timings, a place for each launch of a side: None where the launch lacks it."""

    key: CaseKey
    base: tuple[Timing | None, ...]
    new: tuple[Timing | None, ...]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A case that cannot be compared. `missing`: one side has no time of it; `not comparable`: it asked otherwise."""

    key: CaseKey
    verdict: str
    reason: str


Launch = Mapping[CaseKey, Timing | str]


def launch_timings(run: Run) -> dict[CaseKey, Timing | str]:
    """Every case of a run: its timing, or why it has none."""
    found: dict[CaseKey, list[SummaryRow]] = defaultdict(list)
    for row in run.rows:
        found[_key(row)].append(row)
    return {key: _timing(rows) for key, rows in found.items()}


def match_cases(base: Sequence[Launch], new: Sequence[Launch]) -> tuple[list[MatchedCase], list[Unmatched]]:
    """The cases with a time on both sides, in the order of the base, and the others with the reason."""
    base_keys, new_keys = (list(dict.fromkeys(chain.from_iterable(side))) for side in (base, new))
    shared = set(base_keys) & set(new_keys)
    partner = {key: key for key in base_keys if key in shared}
    lonely = [key for key in new_keys if key not in partner]
    partner.update(_relaxed_pairs([key for key in base_keys if key not in partner], lonely))
    taken = set(partner.values())
    matched, unmatched = [], []
    for key in base_keys:
        if key not in partner:
            unmatched.append(_explain(key, new_keys, "base", "new"))
            continue
        case = MatchedCase(_merged(key, partner[key]), _timings(base, key), _timings(new, partner[key]))
        if any(case.base) and any(case.new):
            matched.append(case)
        else:
            side, launches, own = ("new", new, partner[key]) if any(case.base) else ("base", base, key)
            unmatched.append(Unmatched(case.key, "missing", f"not measured in {side}: {_why(launches, own)}"))
    unmatched += [_explain(key, base_keys, "new", "base") for key in new_keys if key not in taken]
    return matched, unmatched


def _key(row: SummaryRow) -> CaseKey:
    return CaseKey(**{field.name: getattr(row, field.name) for field in fields(CaseKey)})


def _timing(rows: Sequence[SummaryRow]) -> Timing | str:
    for row in rows:
        if row.seconds_median is None or row.status not in FITTED_STATUSES:
            return f"{row.status}{f' ({row.reason})' if row.reason else ''}"
        if not PLAUSIBLE_SECONDS[0] <= row.seconds_median <= PLAUSIBLE_SECONDS[1]:
            return f"a time of {row.seconds_median:g} s cannot be"
    slowest = max(rows, key=lambda row: row.seconds_median or 0.0)
    seconds, low, high = slowest.seconds_median or 0.0, slowest.seconds_ci_low, slowest.seconds_ci_high
    half = None if low is None or high is None else max(high - seconds, seconds - low) / seconds
    return Timing(seconds, half, slowest.group)


def _timings(launches: Sequence[Launch], key: CaseKey) -> tuple[Timing | None, ...]:
    found = (launch.get(key) for launch in launches)
    return tuple(timing if isinstance(timing, Timing) else None for timing in found)


def _why(launches: Sequence[Launch], key: CaseKey) -> str:
    return "; ".join(dict.fromkeys(str(launch[key]) for launch in launches if key in launch))


# -- cases that differ in what may differ, or in what one side does not say --------------------------------------------

_FREE = ("nodes", "link_class")
_SILENT = (None, "", UNKNOWN)


def _relaxed_pairs(base: Sequence[CaseKey], new: Sequence[CaseKey]) -> Iterator[tuple[CaseKey, CaseKey]]:
    """Pairs that agree in all that both say and must share, where each is the only such partner of the other."""
    by_question = defaultdict(list)
    for key in new:
        by_question[key.collective, key.size_bytes].append(key)
    partners = {key: _agreeing(key, by_question[key.collective, key.size_bytes]) for key in base}
    wanted = [found[0] for found in partners.values() if len(found) == 1]
    for key, found in partners.items():
        if len(found) == 1 and wanted.count(found[0]) == 1:
            yield key, found[0]


def _agreeing(key: CaseKey, others: Iterable[CaseKey]) -> list[CaseKey]:
    return [other for other in others if not list(_disagreements(key, other))]


def _disagreements(key: CaseKey, other: CaseKey) -> Iterator[str]:
    for field in fields(CaseKey):
        values = getattr(key, field.name), getattr(other, field.name)
        silent = any(value in _SILENT for value in values) and field.name != "variant"
        if values[0] != values[1] and field.name not in _FREE and not silent:
            yield field.name


def _merged(key: CaseKey, other: CaseKey) -> CaseKey:
    """The key with what only the other says."""
    pairs = {field.name: (getattr(key, field.name), getattr(other, field.name)) for field in fields(CaseKey)}
    return CaseKey(**{name: second if first in (None, UNKNOWN) else first for name, (first, second) in pairs.items()})


def _explain(key: CaseKey, others: Iterable[CaseKey], here: str, there: str) -> Unmatched:
    """Why `key` has no partner: in what the nearest question of the other side differs, or that there is none."""
    near = [other for other in others if other.collective == key.collective]
    if not near:
        return Unmatched(key, "missing", f"{key.collective} is in {here} alone")
    differing = min((list(_disagreements(key, other)) for other in near), key=len)
    nearest = next(other for other in near if list(_disagreements(key, other)) == differing)
    if not differing:
        return Unmatched(key, "not comparable", f"more than one case of {there} could be meant")
    if differing == ["size_bytes"]:
        return Unmatched(key, "missing", f"this size is in {here} alone")
    words = ", ".join(
        f"{name.replace('_bytes', '')} {getattr(key, name)} in {here}, {getattr(nearest, name)} in {there}"
        for name in differing
        if name != "size_bytes" or len(differing) == 1
    )
    return Unmatched(key, "not comparable", words)
