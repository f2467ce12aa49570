"""A check for people: a line for each finding, the worst first, and how many there are; as text or as markdown."""

from collections.abc import Iterator, Sequence

from commbench.checks.result import CheckResult
from commbench.report.check_rows import CheckRow, make_rows, tell
from commbench.report.markdown import escape_markdown, format_markdown_table
from commbench.results.finding import Verdict

_STYLES: dict[Verdict, str] = {"fail": "bold red", "warn": "yellow", "ok": "green", "skip": "dim"}
_MOST_REASONS = 4
_WORDS: dict[Verdict, str] = {"fail": "fail", "warn": "warn", "ok": "ok", "skip": "skipped"}


def format_table(result: CheckResult, *, verbose: bool = False, quiet: bool = False, colour: bool = False) -> str:
    """Fails and warnings, and a last line with the counts. `verbose`: also what is ok or was skipped, and where each
    was read; `quiet`: no last line, so nothing at all where nothing is wrong. `colour`: with a terminal's escapes.
    """
    rows = make_rows(result)
    shown = [row for row in rows if verbose or row.verdict in ("fail", "warn")]
    width = max((len(row.rule) for row in shown), default=0)
    lines = [(row.verdict, f"{row.verdict:<4}", f"  {row.rule:<{width}}  {_line(row, verbose)}") for row in shown]
    last = "" if quiet else summarise(result, rows) + "\n"
    return "".join(f"{_paint(word, verdict) if colour else word}{rest}\n" for verdict, word, rest in lines) + last


def summarise(result: CheckResult, rows: Sequence[CheckRow]) -> str:
    """`142 checks: 3 fail, 5 warn, 120 ok, 14 skipped (9 there is no GPU; 5 …)`."""
    counted = {verdict: sum(row.verdict == verdict for row in rows) for verdict in _WORDS}
    counts = ", ".join(f"{number} {_WORDS[verdict]}" for verdict, number in counted.items())
    where = f" on {_count(result.world_size, 'rank')}, {_count(len(result.nodes), 'node')}" if result.world_size else ""
    reasons = "; ".join(_reasons(rows))
    return f"{_count(len(rows), 'check')}{where}: {counts}" + (f" ({reasons})" if reasons else "")


def format_markdown(result: CheckResult) -> str:
    """The counts, and a table of what is not ok: fails, warnings, and what was skipped with its reason."""
    rows = make_rows(result)
    shown = [row for row in rows if row.verdict != "ok"]
    headings = ("verdict", "rule", "subject", "found", "expected", "ranks", "what to do")
    cells = [(r.verdict, r.rule, r.subject, r.observed, r.expected, r.place, r.action) for r in shown]
    parts = [escape_markdown(summarise(result, rows)), format_markdown_table(headings, cells)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _line(row: CheckRow, verbose: bool) -> str:
    where = f" (read in {row.where})" if verbose and row.where else ""
    return tell(row) + where + (f" → {row.action}" if row.action else "")


def _paint(word: str, verdict: Verdict) -> str:
    from rich.style import Style

    return Style.parse(_STYLES[verdict]).render(word)


def _reasons(rows: Sequence[CheckRow]) -> Iterator[str]:
    """Why rows were skipped, the commonest reason first; the rest is counted."""
    reasons: dict[str, int] = {}
    for row in rows:
        if row.verdict == "skip":
            reasons[row.observed] = reasons.get(row.observed, 0) + 1
    ordered = sorted(reasons.items(), key=lambda reason: -reason[1])
    yield from (f"{number} {reason}" for reason, number in ordered[:_MOST_REASONS])
    if more := ordered[_MOST_REASONS:]:
        yield f"{sum(number for _, number in more)} for other reasons: -v"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
