"""A debug log for people and programs: who talks to whom over what, NICs, settings, and what is wrong."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from commbench.report.markdown import escape_markdown, format_markdown_table
from commbench.report.text_table import format_text_table
from commbench.results.finding import Finding
from commbench.results.nccl_log.records import CommSeen, Connection, NcclLog
from commbench.units import GB

MAX_MATRIX = 32  # ranks; a larger one is told as counts
MAX_ROWS = 64
_MICROSECOND = 1e-6
_USES = (("bootstrap", "ranks first meet over"), ("OOB", "RDMA is set up over"), ("Socket", "interfaces for TCP"))


@dataclass(frozen=True, slots=True)
class Witness:
    """A log and all that was found of it: by itself, against the wiring, and of its environment."""

    log: NcclLog
    findings: tuple[Finding, ...]
    topology: str = ""  # the name of the wiring that it was held against


@dataclass(frozen=True, slots=True)
class _Table:
    title: str
    headings: list[str]
    rows: list[list[str]]
    left: int
    left_out: int = 0


def format_table(witness: Witness) -> str:
    """Heading, tables, findings."""
    parts = ["\n".join(_heading(witness))]
    for table in _tables(witness.log):
        more = f"\n… and {table.left_out} more (--format json has all)" if table.left_out else ""
        parts.append(f"{table.title}\n{format_text_table(table.headings, table.rows, table.left)}{more}")
    parts.append("\n".join(_line(finding) for finding in witness.findings))
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def format_markdown(witness: Witness) -> str:
    """The same as tables of markdown."""
    parts = ["\n".join(f"{escape_markdown(line)}  " for line in _heading(witness))]
    for table in _tables(witness.log):
        more = f"\n\n… and {table.left_out} more" if table.left_out else ""
        parts.append(f"### {table.title}\n\n{format_markdown_table(table.headings, table.rows)}{more}")
    parts.append("\n".join(f"- {escape_markdown(_line(finding))}" for finding in witness.findings))
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def format_json(witness: Witness) -> str:
    """One object with every record of the log; seconds, bytes per second."""
    document = {name: value for name, value in asdict(witness.log).items() if not name.startswith("_")}
    for row, connection in zip(document["connections"], witness.log.connections, strict=True):
        row["label"] = connection.transport.label
    document["topology"] = witness.topology
    document["findings"] = [asdict(finding) for finding in witness.findings]
    return json.dumps(document, indent=2) + "\n"


WITNESS_FORMATS: dict[str, Callable[[Witness], str]] = {
    "table": format_table,
    "json": format_json,
    "markdown": format_markdown,
}


def _heading(witness: Witness) -> list[str]:
    log, counts = witness.log, witness.log.counts
    versions = ", ".join(version for version, _ in log.versions) or "version not said"
    torn = f", {counts.joined} put together" if counts.joined else ""
    lost = f", {counts.lost} lost" if counts.lost else ""
    lines = [
        f"{log.library} {versions}: {_count(counts.messages, 'message')} in {_count(counts.lines, 'line')} "
        f"of {_names(log.sources)}{torn}{lost}"
    ]
    lines += [_comm_line(log, comm) for comm in log.comms[:8]]
    if len(log.comms) > 8:
        lines.append(f"… and {len(log.comms) - 8} more communicators")
    if log.networks:
        by_network = Counter(network for _, network in log.networks)
        lines.append("network: " + ", ".join(by_network))
    lines += dict.fromkeys(text for _, text in log.remarks if text.startswith("NET/OFI Selected"))
    for use, words in _USES:
        names = dict.fromkeys(interface.name for interface in log.interfaces if interface.use == use)
        if names:
            lines.append(f"{words}: {', '.join(list(names)[:8])}{', …' if len(names) > 8 else ''}")
    if witness.topology:
        lines.append(f"held against the wiring in {witness.topology}")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} files"


def _comm_line(log: NcclLog, comm: CommSeen) -> str:
    nodes = f" on {comm.nodes} node{'s' if comm.nodes != 1 else ''}" if comm.nodes else ""
    ready = f"{len(comm.completed)} say that they are ready" if comm.completed else "none says that it is ready"
    channels = next((one for one in log.channels if one.comm == comm.key), None)
    kinds = ""
    if channels is not None:
        named = (
            ("", channels.collective),
            ("CollNet ", channels.collnet),
            ("NVLS ", channels.nvls),
            ("p2p ", channels.p2p),
        )
        kinds = "; channels: " + ", ".join(f"{name}{count}" for name, count in named if count)
    return f"communicator {comm.key}: {comm.size} rank{'s' if comm.size != 1 else ''}{nodes}, {ready}{kinds}"


def _tables(log: NcclLog) -> list[_Table]:
    tables = [*_transports(log), _ranks(log), _nics(log), _settings(log), _tuning(log)]
    return [table for table in tables if table.rows]


def _transports(log: NcclLog) -> list[_Table]:
    """A matrix for each communicator, or the counts where it has many ranks."""
    by_comm: dict[str, list[Connection]] = {}
    for connection in log.connections:
        by_comm.setdefault(connection.comm, []).append(connection)
    tables = []
    for comm, connections in list(by_comm.items())[:8]:
        name = f" of communicator {comm}" if len(by_comm) > 1 else ""
        ranks = sorted({rank for one in connections for rank in (one.source, one.target)})
        if len(ranks) <= MAX_MATRIX:
            tables.append(
                _matrix(f"transport from (row) to (column), with the number of channels{name}", ranks, connections)
            )
        else:
            tables.append(_counted(f"transports{name}", connections))
    return tables


def _matrix(title: str, ranks: list[int], connections: list[Connection]) -> _Table:
    channels: dict[tuple[int, int], dict[str, set[int]]] = {}
    for one in connections:
        by_label = channels.setdefault((one.source, one.target), {})
        by_label.setdefault(one.transport.label, set()).add(one.channel)
    rows = [
        [str(source), *(_cell(channels.get((source, target)), source == target) for target in ranks)]
        for source in ranks
    ]
    return _Table(title, ["rank", *map(str, ranks)], rows, 1)


def _cell(by_label: dict[str, set[int]] | None, is_same: bool) -> str:
    if not by_label:
        return "X" if is_same else "·"
    return ", ".join(f"{label} x{len(channels)}" for label, channels in by_label.items())


def _counted(title: str, connections: list[Connection]) -> _Table:
    pairs: dict[str, set[tuple[int, int]]] = {}
    for one in connections:
        pairs.setdefault(one.transport.label, set()).add((one.source, one.target))
    counts = Counter(one.transport.label for one in connections)
    rows = [[label, str(len(pairs[label])), str(count)] for label, count in counts.most_common()]
    return _Table(title, ["transport", "pairs", "connections"], rows[:MAX_ROWS], 1, max(0, len(rows) - MAX_ROWS))


def _ranks(log: NcclLog) -> _Table:
    rows = [
        [
            seen.comm if len(log.comms) > 1 else "",
            str(seen.rank),
            seen.host,
            _number(seen.pid),
            _number(seen.cuda),
            _number(seen.gpu),
            seen.bus_id,
        ]
        for seen in log.ranks
    ]
    headings = ["communicator", "rank", "host", "pid", "CUDA device", "GPU", "PCI"]
    return _Table("ranks", headings, rows[:MAX_ROWS], 3, max(0, len(rows) - MAX_ROWS))


def _nics(log: NcclLog) -> _Table:
    """Every NIC with the number of channels over it, and those that only channels name."""
    used: Counter[tuple[str, int]] = Counter()
    networks: dict[tuple[str, int], str] = {}
    for one in log.connections:
        if one.transport.kind == "NET" and one.transport.device is not None:
            seen = log.rank(one.comm, one.source if one.end == "send" else one.target)
            key = (seen.host if seen else "", one.transport.device)
            used[key] += 1
            networks[key] = one.transport.network
    known = {(nic.host, nic.index): nic for nic in log.nics}
    first: dict[tuple[str, str], int] = {}
    rows = []
    for key in sorted({*known, *used}):
        nic = known.get(key)
        name = (nic.name if nic else "") or networks.get(key, "")
        if nic and nic.name and (same := first.setdefault((nic.host, nic.name), nic.index)) != nic.index:
            name = f"{name} (as {same})"  # NCCL has made a virtual device of one port alone
        rate = "" if nic is None or nic.bytes_per_second is None else f"{nic.bytes_per_second * 8 / GB:g}"
        gid = "" if nic is None else _number(nic.gid)
        ends = str(used[key]) if used[key] else "none" if used else "not said"
        rows.append([key[0], str(key[1]), name, nic.layer if nic else "", rate, gid, ends])
    headings = ["host", "index", "name", "layer", "Gb/s", "GID", "ends of channels"]
    return _Table("NICs", headings, rows[:MAX_ROWS], 4, max(0, len(rows) - MAX_ROWS))


def _settings(log: NcclLog) -> _Table:
    rows = [
        [seen.name, seen.value, _hosts(seen.hosts), seen.where]
        for seen in sorted(log.settings, key=lambda seen: seen.name)
    ]
    title = "environment that it read"
    return _Table(title, ["variable", "value", "said by", "line"], rows[:MAX_ROWS], 4, max(0, len(rows) - MAX_ROWS))


def _hosts(hosts: tuple[str, ...]) -> str:
    named = [host for host in hosts if host]
    return ", ".join(named) if len(named) <= 3 else f"{len(named)} hosts"


def _tuning(log: NcclLog) -> _Table:
    """Latency in us and algbw in GB/s as NCCL's model has them; what it does not offer is left out."""
    offered = [cell for cell in log.tuning if cell.bytes_per_second > 0]
    columns = list(dict.fromkeys((cell.algorithm, cell.protocol) for cell in offered))
    cells = {(cell.collective, cell.algorithm, cell.protocol): cell for cell in offered}
    rows = []
    for collective in dict.fromkeys(cell.collective for cell in offered):
        row = [collective]
        for column in columns:
            cell = cells.get((collective, *column))
            row.append(f"{cell.seconds / _MICROSECOND:.1f}/{cell.bytes_per_second / GB:.1f}" if cell else "")
        rows.append(row)
    title = "NCCL's own model: latency in us / algbw in GB/s"
    return _Table(title, ["collective", *(f"{algorithm} {protocol}" for algorithm, protocol in columns)], rows, 1)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _line(finding: Finding) -> str:
    expected = f", expected {finding.expected}" if finding.expected else ""
    where = f" [{finding.where}]" if finding.where else ""
    action = f" ({finding.action})" if finding.action else ""
    return f"{finding.verdict}: {finding.rule}: {finding.subject}: {finding.observed}{expected}{where}{action}"
