"""The JSON of nccl-tests (`-J`, versions 1 to 3). It names the collective in its arguments only, and keeps booleans,
roots and NaN as strings. Its `env` holds the whole environment, secrets too: it is not read.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from commbench.plan.groups import format_ranks
from commbench.results.importers import notes
from commbench.results.importers.documents import items, number, read_document, section, text_of, whole
from commbench.results.importers.identify import Evidence, Identity, identify
from commbench.results.importers.lines import decode
from commbench.results.importers.nccl_table import TIME_MEANS
from commbench.results.importers.numbers import REDOPS_BY_NAME, read_collective, read_dtype
from commbench.results.importers.records import ForeignRow, ForeignTable, Source, Spread
from commbench.results.schema import UNKNOWN, Finding, Host, Outcome

_RAW_MEANS = "median over iterations of the slowest rank's (CUDA events)"
_PLACES = (("out_of_place", False), ("in_place", True))


def recognises(document: Any) -> bool:
    """Whether a parsed document is the output of `-J`."""
    return isinstance(document, dict) and "results" in document and bool({"nccl_version", "config"} & document.keys())


def read(source: Source) -> list[ForeignTable]:
    """The one table of the document. Raises CommbenchError if it is no JSON."""
    document = read_document(decode(source.data), source.name)
    top = document.value if isinstance(document.value, dict) else {}
    config = section(top, "config")
    results = items(top.get("results"))
    rows = [row for number, result in enumerate(results, start=1) for row in _rows(result, number)]
    devices = items(config.get("devices"))
    arguments = top.get("args")
    command = text_of(arguments[0], "") if isinstance(arguments, list) and arguments else ""
    found = identify(
        rows,
        Evidence(
            source.hints,
            read_collective(command.rsplit("/", 1)[-1]),
            "its arguments",
            said_ranks=_ranks(config, devices),
            where=source.name,
        ),
    )
    outcome = _outcome(top, document.torn)
    hosts = _hosts(devices)
    return [
        ForeignTable(
            tool="nccl-tests",
            backend="nccl",
            mode="throughput",
            time_means=_RAW_MEANS if any(row.samples for row in found.rows) else TIME_MEANS,
            rows=found.rows,
            collective=found.collective,
            ranks=found.ranks,
            nodes=source.hints.nodes or len(hosts) or None,
            hosts=hosts,
            outcome=outcome,
            findings=(*found.findings, *_findings(top, found, outcome, source.name)),
            versions=_versions(top),
        )
    ]


def _versions(top: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    version = top.get("nccl_version")
    text = str(version)[:40] if isinstance(version, int) else text_of(version, "")
    return (("nccl", text),) if text else ()


def _ranks(config: dict[str, Any], devices: Sequence[dict[str, Any]]) -> int | None:
    """Ranks = processes x threads x GPUs; the list names the first GPU of each process only."""
    threads, gpus = whole(config.get("nthreads")), whole(config.get("ngpus"))
    groups = {whole(device.get("group")) for device in devices}
    if not devices or not threads or not gpus or len(groups) > 1:
        return None
    return len(devices) * threads * gpus


def _hosts(devices: Sequence[dict[str, Any]]) -> tuple[Host, ...]:
    by_host: dict[str, list[dict[str, Any]]] = {}
    for device in devices:
        by_host.setdefault(text_of(device.get("hostname"), UNKNOWN), []).append(device)
    return tuple(
        Host(name, "", None, "", format_ranks([rank for one in mine if (rank := whole(one.get("rank"))) is not None]),
             devices=tuple(text_of(one.get("device_info"), UNKNOWN) for one in mine))
        for name, mine in by_host.items()
    )  # fmt: skip


def _rows(result: dict[str, Any], line: int) -> list[ForeignRow]:
    nbytes = whole(result.get("size"))
    root = number(result.get("root"))
    redop = text_of(result.get("redop"), "none").lower()
    rows = []
    for place, in_place in _PLACES:
        body = section(result, place)
        if not body or nbytes is None:
            continue
        seconds = number(body.get("time", body.get("cpu_time")), 1e-6)
        nwrong = whole(body.get("nwrong"))
        spread, samples = _per_iteration(section(result, f"{place}_per_iter"))
        row = ForeignRow(
            line, nbytes, seconds, number(body.get("alg_bw"), 1e9), number(body.get("bus_bw"), 1e9),
            whole(result.get("count")), read_dtype(text_of(result.get("type"), "")),
            redop if redop in REDOPS_BY_NAME else UNKNOWN, None if root is None else int(root.value), in_place, nwrong,
            spread=spread, samples=samples,
        )  # fmt: skip
        rows.append(judged(row))
    return rows


def judged(row: ForeignRow) -> ForeignRow:
    """The row with the status that its own values give it."""
    if row.seconds is None:
        return replace(row, status="incomplete", reason=f"row {row.line}: it has no time")
    if row.wrong:
        return replace(row, status="wrong", reason=f"row {row.line}: {row.wrong} wrong elements")
    if row.nbytes == 0:
        return replace(row, status="skipped", reason="size 0: less than one element for each rank")
    return row


def _per_iteration(body: dict[str, Any]) -> tuple[Spread, tuple[float, ...]]:
    """What -I adds: statistics, and the time of every iteration."""
    found = [number(body.get(name), 1e-6) for name in ("min_us", "p95_us", "p99_us", "max_us")]
    minimum, p95, p99, maximum = (printed.value if printed else None for printed in found)
    times = body.get("times_us")
    read = [number(value, 1e-6) for value in times] if isinstance(times, list) else []
    samples = tuple(printed.value for printed in read if printed is not None and printed.value > 0)
    return Spread(None, minimum, p95, p99, maximum), samples if len(samples) == len(read) else ()


def _outcome(top: dict[str, Any], torn: bool) -> Outcome:
    verdicts = [section(top, name).get("okay") for name in ("out_of_bounds", "average_bus_bandwidth")]
    if any(verdict in ("false", False) for verdict in verdicts) or top.get("errors"):
        return "failed"
    return "incomplete" if torn or "end_time" not in top else "complete"


def _findings(top: dict[str, Any], found: Identity, outcome: Outcome, where: str) -> list[Finding]:
    findings = []
    if section(top, "out_of_bounds").get("okay") in ("false", False):
        findings.append(
            Finding("out-of-bounds", found.collective, "fail", "the check of the data failed", "okay", where)
        )
    errors = top.get("errors")
    if isinstance(errors, list) and errors:
        findings.append(notes.failed(found.collective, str(errors[0])[:200], where))
    if outcome == "incomplete":
        findings.append(Finding("no-footer", found.collective, "warn", "the document has no end", "end_time", where,
                                "the test hung, was killed, or the file was cut"))  # fmt: skip
    if found.rows and all(row.wrong is None for row in found.rows):
        findings.append(notes.not_checked(found.collective, where, "validation was off (-c 0)"))
    return findings
