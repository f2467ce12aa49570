"""Load for a while: how often pairs failed, whether they became slower, and the slowest part of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from commbench.preflight.pairs import PairTests
from commbench.report.preflight import Stage
from commbench.results.pairs import PairResult

_PARTS = 10
_MINUTE = 60.0
_DRIFTED = 1.075  # later over earlier: 93 % of the bandwidth
_SLOW_PART = 1.25


@dataclass(frozen=True, slots=True)
class SoakPart:
    """A minute of a soak, or a tenth of a short one. `ratio`: its median time over the median of the whole soak."""

    began_seconds: float
    results: int
    failed: int
    ratio: float


def run_soak(tests: PairTests, seconds: float) -> Stage:
    """Rounds of pairs again and again for so long."""
    began = tests.clock.now()
    ends = began + seconds
    timed: list[tuple[float, list[PairResult]]] = []
    while tests.clock.now() < ends and (pairs := tests.next_round()):
        into: dict[int, list[PairResult]] = {}
        tests.measure(pairs, into)
        timed.append((tests.clock.now() - began, into.get(tests.nbytes, [])))
    return judge_soak(split(timed, min(_MINUTE, seconds / _PARTS)), tests.clock.now() - began)


def split(timed: Sequence[tuple[float, list[PairResult]]], part_seconds: float) -> list[SoakPart]:
    """The rounds by part. `timed`: when each round ended, and what it brought."""
    everything = [row.seconds for _, rows in timed for row in rows if row.seconds]
    if not everything:
        return []
    usual = median(everything)
    by_part: dict[int, list[PairResult]] = {}
    for ended, rows in timed:
        by_part.setdefault(int(ended // part_seconds), []).extend(rows)
    parts = []
    for number, rows in sorted(by_part.items()):
        times = [row.seconds for row in rows if row.seconds]
        failed = sum(row.status == "failed" for row in rows)
        parts.append(SoakPart(number * part_seconds, len(rows), failed, median(times) / usual if times else 0.0))
    return parts


def judge_soak(parts: Sequence[SoakPart], seconds: float) -> Stage:
    """A failure is a fail; drift, or a part that is slower by a quarter, is worth a look."""
    name = "soak"
    if not parts:
        return Stage(name, "skip", seconds, "no pair could be measured under load")
    results, failed = sum(part.results for part in parts), sum(part.failed for part in parts)
    third = max(1, len(parts) // 3)
    drift = median(part.ratio for part in parts[-third:]) / median(part.ratio for part in parts[:third])
    slowest = max(parts, key=lambda part: part.ratio)
    said = (
        f"{results} transfers in {seconds:.0f} s: {failed} failed ({failed / results:.2%}), the last third took "
        f"{drift:.3f} times as long as the first, the slowest part began at {slowest.began_seconds:.0f} s "
        f"({slowest.ratio:.2f} times the usual time)"
    )
    is_odd = drift > _DRIFTED or slowest.ratio > _SLOW_PART
    return Stage(name, "fail" if failed else "warn" if is_odd else "ok", seconds, said)
