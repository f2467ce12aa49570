"""A check for programs: one JSON object."""

import json
from typing import Any

from commbench import __version__
from commbench.checks.result import CheckResult, Placed, count_verdicts
from commbench.plan.groups import format_ranks

SCHEMA_VERSION = 1  # of this object; a new key raises it not, one that goes or means another thing does


def format_json(result: CheckResult) -> str:
    """The object; `docs/checking.md` says what each key is."""
    return json.dumps(describe_check(result), indent=2) + "\n"


def describe_check(result: CheckResult) -> dict[str, Any]:
    """The object before it is text."""
    return {
        "schema_version": SCHEMA_VERSION,
        "commbench": __version__,
        "source": result.source,
        "taken_utc": result.taken_utc,
        "worst": result.worst,
        "counts": count_verdicts(placed.finding for placed in result.findings),
        "nodes": [{"name": node.name, "ranks": format_ranks(node.ranks)} for node in result.nodes],
        "findings": [_finding(result, placed) for placed in result.findings],
    }


def _finding(result: CheckResult, placed: Placed) -> dict[str, Any]:
    found = placed.finding
    return {
        "rule": found.rule,
        "verdict": found.verdict,
        "subject": found.subject,
        "observed": found.observed,
        "expected": found.expected,
        "where": found.where,
        "action": found.action,
        "ranks": format_ranks(placed.ranks),
        "nodes": list(result.nodes_of(placed.ranks)),
    }
