"""A check as a Nagios plug-in answers: one line, and an exit code."""

from commbench.checks.result import CheckResult
from commbench.report.check_rows import make_rows, tell
from commbench.results.finding import Verdict

STATES: dict[Verdict, tuple[int, str]] = {
    "ok": (0, "OK"), "warn": (1, "WARNING"), "fail": (2, "CRITICAL"), "skip": (3, "UNKNOWN"),
}  # fmt: skip
_MOST_TOLD = 4  # NRPE cuts a line at 1024 signs
_MOST_SIGNS = 160  # of one finding


def format_nagios(result: CheckResult) -> str:
    """`COMMBENCH CRITICAL - 1 fail, 2 warn, …: HOST-MEMLOCK memlock: … | fail=1 warn=2 ok=120 skip=14`."""
    rows = make_rows(result)
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in ("fail", "warn", "ok", "skip")}
    bad = [row for row in rows if row.verdict in ("fail", "warn")]
    told = [f"{row.rule} {tell(row)}"[:_MOST_SIGNS] for row in bad[:_MOST_TOLD]]
    told += [f"and {len(bad) - _MOST_TOLD} more"] if len(bad) > _MOST_TOLD else []
    head = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    text = f"COMMBENCH {STATES[result.worst][1]} - {head}" + (f": {'; '.join(told)}" if told else "")
    data = " ".join(f"{verdict}={number}" for verdict, number in counts.items())
    return f"{text.replace('|', '/')} | {data}\n"  # a bar begins the numbers
