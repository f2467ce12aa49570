"""A run in plain words, the worst first: is the data right, was it measured well, how far from theory, who is slow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from commbench.report.reported import Reported
from commbench.report.scaling import climb_ladders
from commbench.report.slow_groups import TimedGroup, compare_groups, hosts_by_rank, name_ranks
from commbench.results.schema import UNKNOWN, SummaryRow
from commbench.results.store import Run

Level = Literal["fail", "warn", "ok", "unknown"]
_ORDER: tuple[Level, ...] = ("fail", "warn", "ok", "unknown")

_NOT_MEASURED = {  # by status: what is said of such cases
    "noisy": "noisy: the interval is wider than asked for",
    "partial": "cut off before they were measured enough",
    "missing": "missing: the run ended before them",
    "unsupported": "not supported here",
    "skipped": "too small for one element per rank",
    "incomplete": "torn in the file they were read from",
    "suspect": "suspect: the row contradicts itself",
}
_HARMLESS = frozenset({"unsupported", "skipped"})
LOW_EFFICIENCY = 0.7


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence, and how bad what it says is; `unknown` where it could not be seen."""

    level: Level
    text: str


def judge_run(reported: Reported) -> list[Statement]:
    """The statements on one run: those on its data first, then by how bad they are."""
    run = reported.run
    others = [*_completeness(run), *_theory(run), *_slow(run), *_scaling(run)]
    return [*_data(run), *sorted(others, key=lambda statement: _ORDER.index(statement.level))]


def worst_level(statements: Iterable[Statement]) -> Level:
    """The level of the worst statement."""
    return min((statement.level for statement in statements), key=_ORDER.index, default="unknown")


def _data(run: Run) -> Iterable[Statement]:
    wrong = [row for row in run.rows if row.status == "wrong"]
    failed = {row.case for row in run.rows if row.status == "failed"}
    if wrong:
        names = ", ".join(dict.fromkeys(row.collective for row in wrong))
        cases = _count(len({row.case for row in wrong}), _cases(run))
        yield Statement("fail", f"Wrong data in {cases} ({names}): trust nothing here until that is explained.")
    if failed:
        yield Statement("fail", f"The test failed in {_count(len(failed), _cases(run))}.")
    timed = [row for row in run.rows if row.seconds_median is not None]
    checked = sum(row.wrong == 0 for row in timed)
    if timed and not wrong and checked:
        in_all = checked == len(timed)
        share = "in all cases" if in_all else f"in {checked} of {len(timed)} results; the others were not checked"
        yield Statement("ok" if in_all else "unknown", f"The data is right, element by element, {share}.")
    elif timed and not wrong:
        yield Statement("unknown", "The data was not checked.")


def _completeness(run: Run) -> Iterable[Statement]:
    if run.record.outcome not in ("complete", "failed"):
        yield Statement("warn", f"The run is {run.record.outcome}: what is shown is what was measured until then.")
    cases = _cases(run)
    plain = {row.case for row in run.rows} - {row.case for row in run.rows if row.status != "ok"}
    if cases and len(plain) == cases:
        yield Statement("ok", f"All {cases} cases were measured as precisely as asked for." if _ours(run)
                        else f"All {cases} cases were read.")  # fmt: skip
    for status, words in _NOT_MEASURED.items():
        found = {row.case for row in run.rows if row.status == status}
        if found:
            level: Level = "unknown" if status in _HARMLESS else "warn"
            yield Statement(level, f"{_count(len(found), cases)} {'is' if len(found) == 1 else 'are'} {words}.")
    if not run.rows:
        yield Statement("unknown", "Nothing was measured.")


def _theory(run: Run) -> Iterable[Statement]:
    """By the efficiency of every collective at its largest size, that of its slowest group."""
    largest: dict[str, SummaryRow] = {}
    for row in run.rows:
        if row.efficiency is not None and row.size_bytes:
            held = largest.get(row.collective)
            size = held.size_bytes or 0 if held else 0
            if held is None or row.size_bytes > size or (row.size_bytes == size and _is_less(row, held)):
                largest[row.collective] = row
    if largest:
        ordered = sorted(largest.values(), key=lambda row: row.efficiency or 0.0)
        told = ", ".join(f"{row.collective} {100 * (row.efficiency or 0.0):.0f} %" for row in ordered)
        low = (ordered[0].efficiency or 0.0) < LOW_EFFICIENCY
        text = f"Of the speed that the links' nominal rates allow, the slowest group at the largest size: {told}."
        yield Statement("warn" if low else "ok", text)
    elif any(row.busbw_gbps for row in run.rows):
        links = ", ".join(dict.fromkeys(row.link_class for row in run.rows if row.link_class != UNKNOWN))
        why = f"the nominal rate of {links or 'its links'} is not ({_remedy(run)})"
        yield Statement("unknown", f"How far from theory is not known: {why}.")


def _is_less(row: SummaryRow, other: SummaryRow) -> bool:
    return (row.efficiency or 0.0) < (other.efficiency or 0.0)


def _remedy(run: Run) -> str:
    return "sweep --link-rate CLASS=RATE tells it" if _ours(run) else "the file does not say it"


def _slow(run: Run) -> Iterable[Statement]:
    """One sentence for each set of suspects, of the case in which they are slowest."""
    hosts = hosts_by_rank(run.record)
    worst: dict[tuple[int, ...], tuple[float, str, str]] = {}
    compared_any = False
    for compared in compare_groups(run):
        compared_any = compared_any or len(compared.groups) > 1
        if compared.slow:
            ratio = compared.slow[0].seconds / compared.usual_seconds
            where = f"{compared.question.words(compared.nbytes)} on {compared.question.layout}"
            found = (ratio, where, _name_group(compared.slow[0], hosts))
            worst[compared.suspects] = max(worst.get(compared.suspects, (0.0, "", "")), found)
    for suspects, (ratio, where, group) in worst.items():
        if suspects:
            who = name_ranks(suspects, hosts)
            verb = "is" if len(suspects) == 1 else "are"
            text = f"{who[0].upper()}{who[1:]} {verb} slow: every group with it takes up to {ratio:.2f} times as long"
        else:
            text = f"Groups are slow, first {group} with {ratio:.2f} times the time of its like"
        yield Statement("warn", f"{text} ({where}).")
    if compared_any and not worst:
        yield Statement("ok", "No group is slower than its like.")


def _name_group(group: TimedGroup, hosts: dict[int, str]) -> str:
    names = list(dict.fromkeys(hosts[rank] for rank in group.ranks if rank in hosts))
    where = f" on {', '.join(names)}" if 0 < len(names) <= 2 else ""
    return f"group {group.row.group}{where}"


def _scaling(run: Run) -> Iterable[Statement]:
    climbs = list(climb_ladders(run))
    bends = [f"{climb.question.words(climb.nbytes)} at {climb.rungs[climb.bend].group}"
             for climb in climbs if climb.bend is not None]  # fmt: skip
    if bends:
        more = f" and {len(bends) - 3} more" if len(bends) > 3 else ""
        yield Statement("warn", f"Scaling bends: {', '.join(bends[:3])}{more}.")
    elif climbs:
        yield Statement("ok", "Scaling does not bend on the ladder.")


def _cases(run: Run) -> int:
    return len({row.case for row in run.rows})


def _ours(run: Run) -> bool:
    return run.record.origin is None


def _count(found: int, cases: int) -> str:
    return f"{found} of {cases} {'case' if cases == 1 else 'cases'}"


def headline(statements: Sequence[Statement]) -> str:
    """The few words that stand above all."""
    return {
        "fail": "Not to be trusted",
        "warn": "Look at this first",
        "ok": "Nothing stands out",
        "unknown": "Nothing stands out, but not all could be seen",
    }[worst_level(statements)]
