"""The JSON of iperf3 (`-J`): one TCP or UDP transfer, taken as one message of all its bytes."""

from dataclasses import replace
from typing import Any

from commbench.results.importers import notes
from commbench.results.importers.documents import items, number, read_document, section, text_of, whole
from commbench.results.importers.lines import decode, shown
from commbench.results.importers.records import ForeignRow, ForeignTable, Source
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import UNKNOWN, Host, Outcome

_MEANS = "seconds of the whole transfer, as received"


def recognises(document: Any) -> bool:
    """Whether a parsed document is iperf3's, also that of a failed run."""
    return isinstance(document, dict) and "start" in document and bool({"end", "intervals", "error"} & document.keys())


def read(source: Source) -> list[ForeignTable]:
    """The one transfer. Raises CommbenchError if it is no JSON."""
    document = read_document(decode(source.data), source.name)
    top = document.value if isinstance(document.value, dict) else {}
    start, end = section(top, "start"), section(top, "end")
    error = text_of(top.get("error"), "")
    received = section(end, "sum_received") or section(end, "sum")
    row = _row(received, section(start, "test_start"), error)
    findings = [notes.point_to_point("iperf3", source.name, "a stream from one host to another")]
    if error:
        findings.append(notes.failed("iperf3", shown(error), source.name))
    outcome: Outcome = "incomplete" if document.torn or row.seconds is None else "complete"
    hosts = [
        text_of(item.get(key), "")
        for item in items(start.get("connected"))[:1]
        for key in ("local_host", "remote_host")
    ]
    return [
        ForeignTable(
            tool="iperf3", backend=text_of(section(start, "test_start").get("protocol"), UNKNOWN).lower(),
            mode="throughput", time_means=_MEANS, rows=(row,), collective=POINT_TO_POINT,
            version=text_of(start.get("version"), UNKNOWN).removeprefix("iperf "), ranks=2,
            nodes=source.hints.nodes or (len(set(hosts)) if all(hosts) and len(hosts) == 2 else None),
            hosts=tuple(Host(name, "", None, "") for name in dict.fromkeys(hosts) if name),
            outcome="failed" if error else outcome,
            findings=tuple(findings),
        )
    ]  # fmt: skip


def _row(received: dict[str, Any], asked: dict[str, Any], error: str) -> ForeignRow:
    nbytes, seconds = whole(received.get("bytes")), number(received.get("seconds"))
    rate = number(received.get("bits_per_second"), 1 / 8)
    streams = whole(asked.get("num_streams"))
    variant = f"{streams} streams" if streams and streams > 1 else ""
    if error:
        return ForeignRow(1, nbytes, None, status="failed", reason=f"iperf3 says: {shown(error)}", variant=variant)
    if not nbytes or seconds is None or seconds.value <= 0:
        reason = "the document has no result"
        return ForeignRow(1, nbytes, None, status="incomplete", reason=reason, variant=variant)
    row = ForeignRow(1, nbytes, seconds, rate, redop="none", variant=variant)
    if rate is not None and abs(rate.value * seconds.value / nbytes - 1) > 0.01:
        found = f"{rate.value / 1e9:.4g} GB/s is not {nbytes} B in {seconds.value:g} s"
        return replace(row, status="suspect", reason=found)
    return row
