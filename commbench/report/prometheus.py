"""A check as metrics: Prometheus' text format, for node_exporter's textfile collector."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from commbench import __version__
from commbench.checks.result import CheckResult, count_verdicts
from commbench.results.finding import Verdict

# As the exit codes of a Nagios plug-in, so that `> 0` alerts and `max` over a node is its worst.
_VALUES: dict[Verdict, int] = {"ok": 0, "warn": 1, "fail": 2}


def format_prometheus(result: CheckResult) -> str:
    """Four metrics. What was skipped has no state: it is counted, and absent from `commbench_check_state`."""
    counts = count_verdicts(placed.finding for placed in result.findings)
    taken = datetime.fromisoformat(result.taken_utc).timestamp() if result.taken_utc else None
    return "".join(
        [
            format_metric(
                "commbench_check_info", "Version of the commbench that checked.", [({"version": __version__}, 1)]
            ),
            format_metric(
                "commbench_check_timestamp_seconds",
                "When the facts were taken, in seconds since 1970.",
                [] if taken is None else [({}, taken)],
            ),
            format_metric(
                "commbench_check_findings",
                "Findings of the last check, by verdict.",
                [({"verdict": verdict}, number) for verdict, number in counts.items()],
            ),
            format_metric(
                "commbench_check_state",
                "State of what a rule looked at: 0 ok, 1 warn, 2 fail; the worst of a node's ranks.",
                [
                    ({"node": node, "rule": rule, "subject": subject}, value)
                    for (node, rule, subject), value in _states(result).items()
                ],
            ),
        ]
    )


def _states(result: CheckResult) -> dict[tuple[str, str, str], int]:
    """The worst value by node, rule and subject; the node is empty where a finding is of all together."""
    states: dict[tuple[str, str, str], int] = {}
    for placed in result.findings:
        found = placed.finding
        if found.verdict in _VALUES:
            for node in result.nodes_of(placed.ranks) or ("",):
                key = (node, found.rule, found.subject)
                states[key] = max(states.get(key, 0), _VALUES[found.verdict])
    return states


def format_metric(name: str, meaning: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
    lines = [f"# HELP {name} {meaning}", f"# TYPE {name} gauge"]
    lines += [f"{name}{_labels(labels)} {value!r}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    """`{node="n1",rule="HOST-MEMLOCK"}`; empty if there are none, or none that says anything."""
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items() if value)
    return f"{{{pairs}}}" if pairs else ""


def _escape(value: str) -> str:
    """A label's value as the text format wants it: a backslash, a quote and a line's end are escaped."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
