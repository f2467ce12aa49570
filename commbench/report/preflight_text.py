"""A preflight on one screen: the verdict first, then who is to blame and why, what to do, and what was looked at."""

from collections.abc import Iterable

from commbench.report.check_rows import make_rows, tell
from commbench.report.culprits import exclude_option, tell_culprits
from commbench.report.preflight import Preflight
from commbench.units import format_seconds

_HEADLINES = {
    "ok": "HEALTHY",
    "warn": "HEALTHY, with something to look at",
    "fail": "NOT HEALTHY",
    "skip": "COULD NOT TELL",
}
_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "skip": "skip"}
_MOST_FINDINGS = 12


def format_preflight(found: Preflight) -> str:
    """Text for a terminal."""
    nodes = len(found.hosts)
    world = f"{found.world_size} rank{'s' * (found.world_size != 1)} on {nodes} node{'s' * (nodes != 1)}"
    lines = [f"{_HEADLINES[found.verdict]}: {_reason(found)}"]
    if option := exclude_option(found.exclude):
        lines.append(option)
    for search in found.searches:
        lines += ["", *tell_culprits(search.diagnosis, search.verdicts)]
    lines += ["", "what was looked at:"]
    lines += [f"  {_MARKS[stage.verdict]}  {stage.name}: {stage.said}" for stage in found.stages]
    lines += [f"    {line}" for line in _check_lines(found)]
    spent, budget = (format_seconds(seconds) for seconds in (found.spent_seconds, found.budget_seconds))
    lines += ["", f"{world}, {found.backend or 'no backend'}, level {found.level}: {spent} of {budget}"]
    return "\n".join(lines) + "\n"


def _reason(found: Preflight) -> str:
    """Why the verdict is what it is, in a sentence."""
    if found.ended:
        return found.ended
    if found.exclude:
        return f"{', '.join(found.exclude)} to blame"
    bad = [stage for stage in found.stages if stage.verdict in ("fail", "warn")]
    if any(search.confirmed for search in found.searches):
        return "a link or a rail is to blame, see below"
    if bad:
        return f"{bad[0].name}: {bad[0].said}"
    if found.verdict == "skip":
        return "no pair could be measured"
    return f"{len(found.hosts)} node{'s' * (len(found.hosts) != 1)}, nobody stands out"


def _check_lines(found: Preflight) -> Iterable[str]:
    """The fails and warnings of the checks."""
    if found.checks is None:
        return
    bad = [row for row in make_rows(found.checks) if row.verdict in ("fail", "warn")]
    for row in bad[:_MOST_FINDINGS]:
        yield f"{row.verdict} {row.rule} {tell(row)}; {row.action}"
    if len(bad) > _MOST_FINDINGS:
        yield f"and {len(bad) - _MOST_FINDINGS} more: commbench check"
