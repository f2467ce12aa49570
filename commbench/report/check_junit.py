"""A check for CI: JUnit XML, a suite for each family of rules, a case for each row."""

from commbench.checks.result import CheckResult
from commbench.report.check_rows import CheckRow, make_rows, tell
from commbench.report.junit import JunitCase, Outcome, format_junit
from commbench.results.finding import Verdict

# A warning does not break a build, as it does not change the exit code: it is the output of a case that passed.
OUTCOMES: dict[Verdict, Outcome] = {"fail": "failure", "warn": "ok", "ok": "ok", "skip": "skipped"}


def format_check_junit(result: CheckResult) -> str:
    """The XML; a case's class is the rule's id, its name the subject with the ranks, its message the table's line."""
    suites: dict[str, list[JunitCase]] = {}
    for row in make_rows(result):
        suites.setdefault(row.rule.partition("-")[0], []).append(_case(row))
    return format_junit(dict(sorted(suites.items())))


def _case(row: CheckRow) -> JunitCase:
    name = f"{row.subject} [{row.place}]" if row.place else row.subject
    said = {"warn": f"warning: {tell(row)}; {row.action}", "ok": "", "skip": row.observed}
    return JunitCase(name, row.rule, OUTCOMES[row.verdict], said.get(row.verdict, f"{tell(row)}; {row.action}"))
