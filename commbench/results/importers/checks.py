"""How an imported table checks itself: algbw = S/t within the printed digits, and busbw = factor x algbw."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from commbench.results.importers.records import ForeignRow, Printed
from commbench.units import format_nbytes, format_seconds

_GIB = 1.073741824  # bytes of a GiB over bytes of a GB
_SLACK = 1.0  # more half units of the last digit: a printed number was rounded from a rounded one
MAX_RANKS = 1 << 16


@dataclass(frozen=True, slots=True)
class Interval:
    """The factors that the printed digits allow."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


def expected_algbw(row: ForeignRow) -> Printed | None:
    """S/t with the error that the printed digits of t leave; None where there is no size or no time above zero."""
    if row.nbytes is None or row.seconds is None or row.seconds.low <= 0:
        return None
    low, high = row.nbytes / row.seconds.high, row.nbytes / row.seconds.low
    return Printed((low + high) / 2, (high - low) / 2)


def agrees(row: ForeignRow, scale: float = 1.0) -> bool | None:
    """Whether the printed algbw is `scale` x S/t within the digits; None where one of the three is not there."""
    expected = expected_algbw(row)
    if expected is None or row.algbw is None:
        return None
    room = row.algbw.half_unit * (1 + _SLACK) + expected.half_unit * scale * (1 + _SLACK)
    return abs(row.algbw.value - expected.value * scale) <= room


def convention(rows: Sequence[ForeignRow], scales: dict[str, float]) -> str | None:
    """Which of `scales` (name to factor on S/t) algbw follows, when plain S/t is not it; None if none is."""
    telling = [row for row in rows if row.algbw is not None and row.algbw.value > 20 * row.algbw.half_unit]
    judged = [row for row in telling if agrees(row) is not None]
    if not judged or 2 * sum(1 for row in judged if agrees(row)) >= len(judged):
        return None
    for name, scale in {**scales, "GiB": 1 / _GIB}.items():
        if sum(1 for row in judged if agrees(row, scale)) >= 0.9 * len(judged):
            return name
    return None


def flag_contradictions(rows: Sequence[ForeignRow], scale: float = 1.0) -> tuple[ForeignRow, ...]:
    """The rows, with those that contradict themselves marked `suspect` and told why."""
    return tuple(_flag(row, scale) for row in rows)


def _flag(row: ForeignRow, scale: float) -> ForeignRow:
    if row.status != "ok" or not row.nbytes or row.seconds is None:
        return row
    if row.seconds.value <= 0:
        return replace(row, status="suspect", reason=f"line {row.line}: the time is {row.seconds.value:g}")
    if agrees(row, scale) is False and row.algbw is not None and row.algbw.value != 0:
        found = row.nbytes / row.seconds.value * scale
        said = f"algbw is {row.algbw.value / 1e9:g} GB/s where {format_nbytes(row.nbytes)}"
        reason = f"line {row.line}: {said} in {format_seconds(row.seconds.value)} is {found / 1e9:.4g}"
        return replace(row, status="suspect", reason=reason)
    return row


def measured_factor(rows: Sequence[ForeignRow]) -> Interval | None:
    """The interval of busbw/algbw that most rows agree on; None where no row has both with two digits or more."""
    intervals = []
    for row in rows:
        if row.algbw is None or row.busbw is None or row.algbw.value <= 10 * row.algbw.half_unit:
            continue
        slack = 1 + _SLACK / 2
        low = (row.busbw.value - slack * row.busbw.half_unit) / (row.algbw.value + slack * row.algbw.half_unit)
        high = (row.busbw.value + slack * row.busbw.half_unit) / (row.algbw.value - slack * row.algbw.half_unit)
        intervals.append(Interval(low, high))
    if not intervals:
        return None
    intervals.sort(key=lambda interval: interval.high - interval.low)
    best = max(intervals[:25], key=lambda one: sum(1 for other in intervals if _meet(one, other)))
    for other in intervals:
        if _meet(best, other):
            best = Interval(max(best.low, other.low), min(best.high, other.high))
    return best


def _meet(one: Interval, other: Interval) -> bool:
    return one.low <= other.high and other.low <= one.high


def block_ratio(rows: Sequence[ForeignRow], itemsizes: dict[str, int | None]) -> int | None:
    """size / (count x element bytes) where rows agree on it: 1, or the ranks of a collective with a block per rank."""
    ratios: Counter[int] = Counter()
    for row in rows:
        itemsize = itemsizes.get(row.dtype)
        if row.nbytes and row.count and itemsize:
            whole, rest = divmod(row.nbytes, row.count * itemsize)
            ratios[whole if rest == 0 else 0] += 1
    if not ratios:
        return None
    (ratio, times), total = ratios.most_common(1)[0], sum(ratios.values())
    return ratio if ratio and times >= 0.9 * total else None


def ranks_of_factor(interval: Interval, doubled: bool) -> list[int]:
    """Every N from 2 on whose factor, (N-1)/N or 2(N-1)/N, is in `interval`; the first hundred."""
    times = 2.0 if doubled else 1.0

    def first_at_least(factor: float) -> int:
        rest = 1.0 - factor / times
        return MAX_RANKS if rest <= 1.0 / MAX_RANKS else max(2, int(1.0 / rest) - 1)

    found = []
    for ranks in range(first_at_least(interval.low), min(first_at_least(interval.high) + 3, MAX_RANKS)):
        if interval.holds(times * (ranks - 1) / ranks):
            found.append(ranks)
        if len(found) == 100:
            break
    return found
