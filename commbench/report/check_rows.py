"""The rows that a check is shown in: one for each thing that was found, however many ranks found it."""

from collections.abc import Sequence
from dataclasses import dataclass

from commbench.checks.result import CheckResult, Placed
from commbench.results.finding import Verdict
from commbench.texts import printable

_MOST_VALUES = 3  # that a row tells apart


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One line of text for people. `place`: the ranks and nodes, empty where there is only one or all are meant."""

    verdict: Verdict
    rule: str
    subject: str
    observed: str
    expected: str
    where: str
    action: str
    place: str


def make_rows(result: CheckResult) -> list[CheckRow]:
    """The findings, the worst first. Ranks that differ in what was seen alone share a row, which tells the values."""
    alike: dict[tuple[str, ...], list[Placed]] = {}
    for placed in result.findings:
        finding = placed.finding
        reason = finding.observed if finding.verdict == "skip" else ""
        key = (finding.verdict, finding.rule, finding.subject, finding.expected, finding.action, reason)
        alike.setdefault(key, []).append(placed)
    rows = []
    for group in alike.values():
        rows += [_row(result, group)] if _is_of_ranks(group) else [_row(result, [placed]) for placed in group]
    return rows


def _is_of_ranks(group: Sequence[Placed]) -> bool:
    """Whether each finding is of other ranks: two of one rank are two things, and two rows."""
    ranks = [rank for placed in group for rank in placed.ranks]
    return len(ranks) == len(set(ranks)) and all(placed.ranks for placed in group)


def _row(result: CheckResult, group: Sequence[Placed]) -> CheckRow:
    first = group[0].finding
    ranks = sorted({rank for placed in group for rank in placed.ranks})
    return CheckRow(
        verdict=first.verdict,
        rule=first.rule,
        subject=printable(first.subject),
        observed=printable(_observed(result, group)),
        expected=printable(first.expected),
        where=printable(", ".join(dict.fromkeys(placed.finding.where for placed in group if placed.finding.where))),
        action=printable(first.action),
        place=name_place(result, ranks),
    )


def _observed(result: CheckResult, group: Sequence[Placed]) -> str:
    if len(group) == 1:
        return group[0].finding.observed
    told = [f"{placed.finding.observed} ({name_place(result, placed.ranks)})" for placed in group[:_MOST_VALUES]]
    more = len(group) - len(told)
    return "; ".join(told) + (f"; and {more} more {'value' if more == 1 else 'values'}" if more else "")


def name_place(result: CheckResult, ranks: Sequence[int]) -> str:
    """`rank 2 on node n3`, `ranks 8-15,24 on nodes n[2,4]`, `all 4 nodes`, `all 2 ranks`; empty without ranks."""
    if not ranks or result.world_size < 2:
        return ""
    if len(ranks) == result.world_size:
        return f"all {len(result.nodes)} nodes" if len(result.nodes) > 1 else f"all {result.world_size} ranks"
    from commbench.plan.groups import format_ranks

    which = f"{'rank' if len(ranks) == 1 else 'ranks'} {format_ranks(ranks)}"
    names = result.nodes_of(ranks)
    return f"{which} on {'node' if len(names) == 1 else 'nodes'} {_fold(names)}"


def _fold(names: Sequence[str]) -> str:
    """`n[1-3,7]`: host names in short."""
    if len(names) == 1:
        return names[0]
    from hostlist import BadHostlist, collect_hostlist

    try:
        return str(collect_hostlist(names))
    except BadHostlist:
        return ", ".join(names)


def tell(row: CheckRow) -> str:
    """What was found, what was expected, where, as a part of a line."""
    expected = f", expected {row.expected}" if row.expected else ""
    place = f" [{row.place}]" if row.place else ""
    subject = "" if row.observed.startswith(f"{row.subject}=") else f"{row.subject}: "  # NAME=value names itself
    return f"{subject}{row.observed}{expected}{place}"
