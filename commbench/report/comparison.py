"""A comparison as a table for people, Markdown for a pull request, JSON, or JUnit for CI."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commbench.analysis.comparison import CaseChange, Comparison
from commbench.analysis.matching import CaseKey
from commbench.report.comparison_words import (
    CHANGED,
    change_cell,
    interval,
    link_line,
    side_lines,
    unmatched_lines,
    verdict_line,
)
from commbench.report.junit import JunitCase, Outcome, format_junit
from commbench.report.text_table import format_text_table
from commbench.units import format_nbytes

_LEGEND = (
    "time: new over base, geometric means over runs, with the 95 % interval of each case by itself; ~: noise. Slower "
    "and faster are claims for all cases and links together (wrong in at most {level:.0%} of comparisons), beyond "
    "{least:.0%} and twice the spread between runs, and shared by a size beside."
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of cases; one that says the same in every row is said once above the table."""

    heading: str
    cell: Callable[[CaseChange], str]
    is_condition: bool = False


def _of_key(name: str) -> Callable[[CaseChange], str]:
    def tell(case: CaseChange) -> str:
        value = getattr(case.key, name)
        return {True: "in place", False: "out of place", None: ""}.get(value, str(value))

    return tell


def _microseconds(seconds: float) -> str:
    us = seconds * 1e6
    return f"{us:.2f}" if us < 100 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"


COLUMNS = (
    Column("collective", lambda case: case.key.collective),
    *(Column(name.replace("_", " "), _of_key(name), True)
      for name in ("dtype", "redop", "in_place", "layout", "concurrency", "variant", "mode", "backend", "link_class")),
    Column("ranks", lambda case: "?" if case.key.ranks is None else f"{case.key.ranks} ranks", True),
    Column("size", lambda case: format_nbytes(case.key.size_bytes) if case.key.size_bytes else "-"),
    Column("base (us)", lambda case: _microseconds(case.base_seconds)),
    Column("new (us)", lambda case: _microseconds(case.new_seconds)),
    Column("time", lambda case: change_cell(case.time, case.verdict)),
    Column("95 % interval", lambda case: interval(case.time)),
    Column("verdict", lambda case: case.verdict + (f" ({case.reason})" if case.reason else "")),
)  # fmt: skip


def format_table(comparison: Comparison) -> str:
    """The comparison as text for people: what else changed, then links, then cases, then what cannot be known."""
    parts = [[verdict_line(comparison)], side_lines(comparison), _environment_lines(comparison)]
    parts.append([link_line(link) for link in comparison.links])
    if comparison.cases:
        columns, constant = _columns(comparison.cases)
        rows = [[column.cell(case) for column in columns] for case in comparison.cases]
        left = next(index for index, column in enumerate(columns) if column.heading == "size")
        parts.append([*constant, format_text_table([column.heading for column in columns], rows, left)])
    parts.append(_lines_below(comparison))
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def format_markdown(comparison: Comparison) -> str:
    """The same for a pull request; cases that did not change are folded away."""
    parts = [f"**commbench compare: {_escape(verdict_line(comparison))}**"]
    parts.append("  \n".join(_escape(line) for line in side_lines(comparison)))
    rows = [[found.name, found.base, found.new, found.why] for found in comparison.environment]
    if rows:
        parts.append("What else changed, the most suspicious first:\n\n" + _pipes(["fact", "base", "new", "why"], rows))
    parts += [f"* {_escape(link_line(link))}" for link in comparison.links]
    changed = [case for case in comparison.cases if case.verdict in CHANGED]
    others = [case for case in comparison.cases if case.verdict not in CHANGED]
    if changed:
        parts.append(_case_pipes(changed))
    if others:
        body = _case_pipes(others)
        parts.append(f"<details><summary>{len(others)} cases without a change</summary>\n\n{body}\n\n</details>")
    parts.append("  \n".join(_escape(line) for line in _lines_below(comparison)))
    return "\n\n".join(parts) + "\n"


def format_json(comparison: Comparison) -> str:
    """All of it, times in seconds."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode() + "\n"


_OUTCOMES: dict[str, Outcome] = {
    "slower": "failure",
    "noisy": "skipped",
    "missing": "skipped",
    "not comparable": "skipped",
}


def format_comparison_junit(comparison: Comparison) -> str:
    """Slower is a failure; noise, and what could not be compared, was not seen and so is skipped."""
    suites: dict[str, list[JunitCase]] = {}
    for link in comparison.links:
        for name, change in (("alpha", link.alpha), ("B", link.rate)):
            outcome = _OUTCOMES.get(change.verdict, "ok") if change else "skipped"
            case = JunitCase(f"{name} of {link.link_class}", "commbench.compare.links", outcome, link_line(link))
            suites.setdefault("link classes", []).append(case)
    for found in comparison.cases:
        message = f"{found.verdict}: {interval(found.time)} of the base's {_microseconds(found.base_seconds)} us"
        outcome = _OUTCOMES.get(found.verdict, "ok")
        suites.setdefault(found.key.collective, []).append(_junit_case(found.key, outcome, message))
    for lost in comparison.unmatched:
        case = _junit_case(lost.key, _OUTCOMES[lost.verdict], f"{lost.verdict}: {lost.reason}")
        suites.setdefault(lost.key.collective, []).append(case)
    return format_junit(suites)


def _junit_case(key: CaseKey, outcome: Outcome, message: str) -> JunitCase:
    conditions = (key.dtype, key.redop, key.layout, key.concurrency, key.mode, key.link_class, key.variant)
    ranks = "?" if key.ranks is None else key.ranks
    name = " ".join((key.words(), *(word for word in conditions if word), f"{ranks} ranks"))
    return JunitCase(
        name + (" in place" if key.in_place else ""), f"commbench.compare.{key.collective}", outcome, message
    )


def _environment_lines(comparison: Comparison) -> list[str]:
    rows = [[found.name, found.base, found.new, found.why] for found in comparison.environment]
    if not rows:
        return ["Nothing else is known to have changed: versions, variables, hosts and links agree."]
    return ["What else changed, the most suspicious first:", format_text_table(["fact", "base", "new", "why"], rows, 4)]


def _lines_below(comparison: Comparison) -> list[str]:
    lines = [*unmatched_lines(comparison.unmatched), *comparison.notes]
    if comparison.cases:
        lines.append(_LEGEND.format(level=comparison.rules.level, least=comparison.rules.least_effect))
    return lines


def _columns(cases: Sequence[CaseChange]) -> tuple[list[Column], list[str]]:
    """The columns that differ from row to row, and the line of conditions that do not."""
    same = [column for column in COLUMNS if column.is_condition and len({column.cell(case) for case in cases}) == 1]
    constant = [cell for column in same if (cell := column.cell(cases[0])) not in ("", "none")]
    return [column for column in COLUMNS if column not in same], [", ".join(constant)] if constant else []


def _case_pipes(cases: Sequence[CaseChange]) -> str:
    columns, constant = _columns(cases)
    table = _pipes(
        [column.heading for column in columns], [[column.cell(case) for column in columns] for case in cases]
    )
    return "\n\n".join([*(_escape(line) for line in constant), table])


def _pipes(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([_escape(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("~", "\\~").replace("\n", " ")


COMPARISON_FORMATS: dict[str, Callable[[Comparison], str]] = {
    "table": format_table,
    "json": format_json,
    "markdown": format_markdown,
    "junit": format_comparison_junit,
}
