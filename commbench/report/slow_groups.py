"""Who is slow: groups that take longer than their like, and the ranks that are in all of them, with their hosts."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median_low

from commbench.plan.groups import format_ranks, read_ranks
from commbench.report.notes import Question, measured_questions
from commbench.results.schema import RunRecord, SummaryRow
from commbench.results.store import Run
from commbench.units import format_seconds

SLOW = 1.25  # times the usual time

_MOST_NAMED = 8
_MOST_HOSTS = 2  # of one group
_LEGEND = (
    f"slow: at least {SLOW:g} times the usual time of groups of that size and link class, also at the low end of its "
    "interval; usual: the median over ranks of each rank's fastest group."
)


@dataclass(frozen=True, slots=True)
class TimedGroup:
    """A group's time, and its ranks; () where they are not known."""

    row: SummaryRow
    ranks: tuple[int, ...]

    @property
    def seconds(self) -> float:
        return self.row.seconds_median or 0.0


@dataclass(frozen=True, slots=True)
class Compared:
    """Groups of one question at its largest size that should take as long: as many ranks, the same link class.

    `slow` has the slowest first; `suspects` are the ranks that all slow groups, and no fast one, have in common.
    """

    question: Question
    nbytes: int
    link_class: str
    groups: tuple[TimedGroup, ...]
    usual_seconds: float
    slow: tuple[TimedGroup, ...]
    suspects: tuple[int, ...]


def slower_than_median(row: SummaryRow, rows: Iterable[SummaryRow]) -> float | None:
    """The time of `row` over that of the median group among its like (of an even number, the faster in the middle).

    Its like are the `rows` with as many ranks over the same link class; None where there is no other with a time.
    """
    like = [
        other.seconds_median
        for other in rows
        if other.seconds_median and (other.link_class, other.ranks) == (row.link_class, row.ranks)
    ]
    return row.seconds_median / median_low(like) if row.seconds_median and len(like) > 1 else None


def compare_groups(run: Run) -> Iterator[Compared]:
    """The groups of every layout and collective at its largest size, each with its like."""
    ranks = {(group.layout, group.name): read_ranks(group.ranks) for group in run.record.groups}
    for question, by_size in measured_questions(run):
        largest = max(by_size)
        for (link_class, _), like in _by_likeness(by_size[largest]).items():
            groups = tuple(TimedGroup(row, ranks.get((row.layout, row.group), ())) for row in like)
            usual = _usual_seconds(groups)
            slow = [group for group in groups if _is_slow(group, usual)]
            slow.sort(key=lambda group: (-round(group.seconds / usual, 2), group.ranks))
            suspects = tuple(_find_suspects(groups, slow))
            yield Compared(question, largest, link_class, groups, usual, tuple(slow), suspects)


def slow_group_lines(run: Run) -> list[str]:
    """A line for every layout and collective, at its largest size, that has slow groups; [] where none is slow."""
    host_of_rank = hosts_by_rank(run.record)
    lines = []
    for compared in compare_groups(run):
        if compared.slow:
            question = compared.question
            where = f"{question.layout} {question.concurrency} over {compared.link_class}"
            lines.append(f"slow in {question.words(compared.nbytes)} on {where}: {_tell_slow(compared, host_of_rank)}.")
    return [*lines, _LEGEND] if lines else []


def hosts_by_rank(record: RunRecord) -> dict[int, str]:
    """The name of the host that each rank ran on, as far as the run knows it."""
    return {rank: host.name for host in record.hosts for rank in read_ranks(host.ranks)}


def _by_likeness(rows: Sequence[SummaryRow]) -> dict[tuple[str, int | None], list[SummaryRow]]:
    found: dict[tuple[str, int | None], list[SummaryRow]] = {}
    for row in rows:
        found.setdefault((row.link_class, row.ranks), []).append(row)
    return found


def _tell_slow(compared: Compared, host_of_rank: dict[int, str]) -> str:
    usual, slow, suspects = compared.usual_seconds, compared.slow, compared.suspects
    names = [
        f"{group.row.group}{'' if suspects else _where(group.ranks, host_of_rank)} {group.seconds / usual:.2f}x"
        for group in slow[:_MOST_NAMED]
    ]
    more = f" and {len(slow) - _MOST_NAMED} more" if len(slow) > _MOST_NAMED else ""
    told = f"{', '.join(names)}{more} of {len(compared.groups)} groups, usual {format_seconds(usual)}"
    return f"{told}; all with {name_ranks(suspects, host_of_rank)}" if suspects else told


def _usual_seconds(groups: Sequence[TimedGroup]) -> float:
    """A few slow ranks make half of all pairs slow, so the median is taken over ranks, not over groups."""
    best: dict[int, float] = {}
    for group in groups:
        for rank in group.ranks:
            best[rank] = min(best.get(rank, group.seconds), group.seconds)
    return median_low(best.values() or [group.seconds for group in groups])


def _is_slow(group: TimedGroup, usual: float) -> bool:
    low = group.row.seconds_ci_low
    return (group.seconds if low is None else low) >= SLOW * usual


def _find_suspects(groups: Sequence[TimedGroup], slow: Sequence[TimedGroup]) -> list[int]:
    """The ranks whose every group is slow, if they have several and are in all that are slow; else none."""
    slow_groups, all_groups = _count_groups(slow), _count_groups(groups)
    suspects = [rank for rank, count in slow_groups.items() if count == all_groups[rank] > 1]
    return sorted(suspects) if all(not set(suspects).isdisjoint(group.ranks) for group in slow) else []


def _count_groups(groups: Iterable[TimedGroup]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for group in groups:
        for rank in group.ranks:
            counts[rank] = counts.get(rank, 0) + 1
    return counts


def _where(ranks: Sequence[int], host_of_rank: dict[int, str]) -> str:
    hosts = list(dict.fromkeys(host_of_rank[rank] for rank in ranks if rank in host_of_rank))
    if not hosts or len(set(host_of_rank.values())) == 1:
        return ""
    return f" ({', '.join(hosts)})" if len(hosts) <= _MOST_HOSTS else f" ({len(hosts)} nodes)"


def name_ranks(ranks: Collection[int], host_of_rank: dict[int, str]) -> str:
    """`rank 2 on node2 or ranks 4-5 on node4`."""
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(host_of_rank.get(rank, ""), []).append(rank)
    return " or ".join(
        f"{'rank' if len(mine) == 1 else 'ranks'} {format_ranks(mine)}{f' on {host}' if host else ''}"
        for host, mine in by_host.items()
    )
