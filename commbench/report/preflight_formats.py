"""The forms in which a preflight can be written, by the name that `--format` takes."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

from commbench import __version__
from commbench.report.check_json import describe_check
from commbench.report.check_junit import OUTCOMES
from commbench.report.culprits import tell_culprits
from commbench.report.junit import JunitCase, format_junit
from commbench.report.nagios import STATES
from commbench.report.preflight import PairSearch, Preflight
from commbench.report.preflight_text import format_preflight
from commbench.report.prometheus import format_metric

SCHEMA_VERSION = 1


def format_json(found: Preflight) -> str:
    """One JSON object; `docs/preflight.md` says what each key is."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "commbench": __version__,
        "created_utc": found.created_utc,
        "command": found.command,
        "verdict": found.verdict,
        "exit_code": found.exit_code,
        "exclude": found.exclude,
        "ended": found.ended,
        "level": found.level,
        "budget_seconds": found.budget_seconds,
        "spent_seconds": found.spent_seconds,
        "hosts": found.hosts,
        "world_size": found.world_size,
        "backend": found.backend,
        "stages": [asdict(stage) for stage in found.stages],
        "pairs": [_search(search) for search in found.searches],
        "checks": None if found.checks is None else describe_check(found.checks),
    }
    return json.dumps(document, indent=2) + "\n"


def format_preflight_junit(found: Preflight) -> str:
    """A suite of stages, and one of nodes: a node that is to blame has failed."""
    stages = [JunitCase(stage.name, "preflight", OUTCOMES[stage.verdict], stage.said) for stage in found.stages]
    lines = [line for search in found.searches for line in tell_culprits(search.diagnosis, search.verdicts)]
    nodes = [
        JunitCase(host, "node", "failure" if host in found.exclude else "ok", "\n".join(lines))
        for host in _all_hosts(found)
    ]
    return format_junit({"preflight": stages, "nodes": nodes})


def format_preflight_prometheus(found: Preflight) -> str:
    """For node_exporter's textfile collector: the verdict, each stage, each node."""
    return "".join(
        [
            format_metric("commbench_preflight_info", "Version and level.", [
                ({"version": __version__, "level": found.level}, 1)]),
            format_metric("commbench_preflight_verdict", "0 ok, 1 warn, 2 fail, 3 could not tell.", [
                ({}, STATES[found.verdict][0])]),
            format_metric("commbench_preflight_seconds", "Seconds that it took.", [({}, found.spent_seconds)]),
            format_metric("commbench_preflight_stage", "Of each stage: 0 ok, 1 warn, 2 fail, 3 left out.", [
                ({"stage": stage.name}, STATES[stage.verdict][0]) for stage in found.stages]),
            format_metric("commbench_preflight_excluded", "1 for a node that is to blame.", [
                ({"node": host}, int(host in found.exclude)) for host in _all_hosts(found)]),
        ]
    )  # fmt: skip


def format_preflight_markdown(found: Preflight) -> str:
    """For a ticket or a chat: the headline, a table of stages, and the screen's evidence as it is."""
    text = format_preflight(found)
    headline, _, rest = text.partition("\n")
    rows = "\n".join(f"| {stage.name} | {stage.verdict} | {_cell(stage.said)} |" for stage in found.stages)
    return f"**{headline}**\n\n| stage | verdict | |\n| --- | --- | --- |\n{rows}\n\n```\n{rest.rstrip()}\n```\n"


def _all_hosts(found: Preflight) -> tuple[str, ...]:
    """Also those that never came."""
    return tuple(dict.fromkeys((*found.hosts, *found.exclude)))


def _search(search: PairSearch) -> dict[str, Any]:
    diagnosis = search.diagnosis
    return {
        "nbytes": diagnosis.nbytes,
        "rounds": diagnosis.rounds,
        "pairs": diagnosis.pairs,
        "usual_seconds": diagnosis.usual_seconds,
        "noise": diagnosis.noise,
        "allowed_seconds": diagnosis.allowed_seconds,
        "suspects": [
            {
                "kind": one.suspect.kind,
                "name": one.suspect.name,
                "members": [diagnosis.cluster.name(end) for end in one.suspect.members],
                "side": one.suspect.side,
                "state": one.state,
                "time_ratio": one.ratio if isfinite(one.ratio) else None,
                "retests": one.retests,
                "again": one.again,
            }
            for one in search.verdicts
        ],
        "results": list(_results(search)),
    }


def _results(search: PairSearch) -> Iterable[dict[str, Any]]:
    table, cluster = search.table, search.diagnosis.cluster
    columns = zip(table.rounds, table.senders, table.receivers, table.seconds, strict=True)
    for number, sender, receiver, seconds in columns:
        yield {
            "round": int(number),
            "sender": cluster.name(int(sender)),
            "receiver": cluster.name(int(receiver)),
            "seconds": float(seconds) if isfinite(seconds) else None,
        }


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


PREFLIGHT_FORMATS: dict[str, Callable[[Preflight], str]] = {
    "table": format_preflight,
    "json": format_json,
    "junit": format_preflight_junit,
    "prometheus": format_preflight_prometheus,
    "markdown": format_preflight_markdown,
}
