"""From the tables of foreign files to a run of our own: its record, its rows, and its samples where there are any."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from commbench import __version__
from commbench.results.importers.records import ForeignRow, ForeignTable
from commbench.results.kinds import KINDS
from commbench.results.schema import (
    SCHEMA_VERSION,
    UNKNOWN,
    CaseRecord,
    Finding,
    GroupRecord,
    Host,
    Origin,
    OriginFile,
    Outcome,
    RunRecord,
    SampleRow,
    SummaryRow,
)
from commbench.stats import Summary, summarize
from commbench.units import GB

_MAX_SHOWN = 50  # findings of one rule: the rest is counted


@dataclass(frozen=True, slots=True)
class Imported:
    """A run that is not yet on disk."""

    record: RunRecord
    rows: tuple[SummaryRow, ...]
    samples: tuple[SampleRow, ...]


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file and the tables that its importer found in it."""

    file: OriginFile
    tables: tuple[ForeignTable, ...]


@dataclass(slots=True)
class _Builder:
    groups: list[GroupRecord] = field(default_factory=list)
    cases: list[CaseRecord] = field(default_factory=list)
    rows: list[SummaryRow] = field(default_factory=list)
    samples: list[SampleRow] = field(default_factory=list)
    seen: dict[tuple[object, ...], set[int | None]] = field(default_factory=dict)


def assemble(read: Sequence[ReadFile], created_utc: str, command: tuple[str, ...]) -> Imported:
    """One run out of the tables of one or more files. Tables that repeat another's sizes are told apart as variants."""
    builder = _Builder()
    tables = [(one.file, table) for one in read for table in one.tables]
    curves: dict[tuple[object, ...], list[tuple[ForeignTable, ForeignRow]]] = {}
    for number, (file, table) in enumerate(tables, start=1):
        apart = _apart(builder, table, file.name if len(read) > 1 else f"table {number}")
        for row in table.rows:
            apart_row = replace(row, variant=" ".join(word for word in (row.variant, apart) if word))
            curves.setdefault(_series(table, apart_row), []).append((table, apart_row))
    for curve in curves.values():
        for table, row in curve:
            _add_row(builder, table, row, _position(builder, table))
    record = _record(read, [table for _, table in tables], builder, created_utc, command)
    return Imported(record, tuple(builder.rows), tuple(builder.samples))


def _apart(builder: _Builder, table: ForeignTable, name: str) -> str:
    """`name` if an earlier table has the same sizes of the same case, else nothing."""
    found: dict[tuple[object, ...], set[int | None]] = {}
    for row in table.rows:
        found.setdefault(_series(table, row), set()).add(row.nbytes)
    repeats = any(sizes & builder.seen.get(key, set()) for key, sizes in found.items())
    for key, sizes in found.items():
        builder.seen.setdefault(key, set()).update(sizes)
    return name if repeats else ""


def _series(table: ForeignTable, row: ForeignRow) -> tuple[object, ...]:
    """What the rows of one curve have in common."""
    return table.tool, table.collective, table.ranks, row.dtype, row.redop, row.variant, row.in_place


def _all_ranks(ranks: int | None) -> str:
    return "" if ranks is None else "0" if ranks == 1 else f"0-{ranks - 1}"


def _position(builder: _Builder, table: ForeignTable) -> int:
    """The place of the table's group in the run's list."""
    ranks = table.ranks
    group = GroupRecord(
        layout="world", name="world", ranks=_all_ranks(ranks), size=ranks, nodes=table.nodes,
        link_class="net" if table.nodes and table.nodes > 1 else UNKNOWN,
    )  # fmt: skip
    if group not in builder.groups:
        builder.groups.append(group)
    return builder.groups.index(group)


def _add_row(builder: _Builder, table: ForeignTable, row: ForeignRow, position: int) -> None:
    index = len(builder.cases)
    builder.cases.append(
        CaseRecord(index, table.collective, row.nbytes, row.dtype, row.redop, row.in_place, table.mode, "world",
                   table.concurrency, (position,), row.variant)
    )  # fmt: skip
    builder.rows.append(_summary_row(index, table, row, builder.groups[position]))
    builder.samples += [SampleRow(index, position, "batch", 0, 1, seconds, None, None) for seconds in row.samples]


def _summary_row(index: int, table: ForeignTable, row: ForeignRow, group: GroupRecord) -> SummaryRow:
    raw = summarize(row.samples) if row.samples else None
    printed = row.seconds.value if row.seconds is not None and row.seconds.value > 0 else None
    seconds = raw.median if raw else printed
    algbw, busbw = _bandwidths(table, row, seconds)
    low, high, minimum, p95, p99, maximum = _spread(row, raw)
    return SummaryRow(
        case=index,
        engine=table.tool,
        backend=table.backend,
        collective=table.collective,
        in_place=row.in_place,
        size_bytes=row.nbytes,
        count=row.count,
        dtype=row.dtype,
        redop=row.redop,
        ranks=group.size,
        nodes=group.nodes,
        layout="world",
        group="world",
        concurrency=table.concurrency,
        mode=table.mode,
        link_class=group.link_class,
        samples=raw.samples if raw else row.spread.samples or (0 if seconds is None else 1),
        seconds_median=seconds,
        seconds_ci_low=low,
        seconds_ci_high=high,
        seconds_min=minimum,
        seconds_p95=p95,
        seconds_p99=p99,
        seconds_max=maximum,
        first_call_seconds=None,
        enqueue_seconds=None,
        algbw_gbps=algbw,
        busbw_gbps=busbw,
        theory_seconds=None,
        efficiency=None,
        wrong=row.wrong,
        status=row.status,
        reason=row.reason,
        variant=row.variant,
    )


def _spread(row: ForeignRow, raw: Summary | None) -> tuple[float | None, ...]:
    if raw is not None:
        return raw.ci_low, raw.ci_high, raw.minimum, raw.p95, raw.p99, raw.maximum
    spread = row.spread
    return None, None, spread.minimum, spread.p95, spread.p99, spread.maximum


def _bandwidths(table: ForeignTable, row: ForeignRow, seconds: float | None) -> tuple[float | None, float | None]:
    """algbw and busbw in GB/s: from size and time; as printed without these, and where the row contradicts itself."""
    printed = [None if rate is None else rate.value / GB for rate in (row.algbw, row.busbw)]
    algbw = row.nbytes / seconds / GB if row.nbytes and seconds else None
    if row.status == "suspect" or (algbw is None and row.nbytes != 0):
        algbw = printed[0]
    factor = KINDS[table.collective].bus_factor(table.ranks)
    if table.ranks == 1 or algbw is None:
        return algbw, None
    return algbw, printed[1] if factor is None else algbw * factor


def _record(
    read: Sequence[ReadFile],
    tables: Sequence[ForeignTable],
    builder: _Builder,
    created_utc: str,
    command: tuple[str, ...],
) -> RunRecord:
    measured = [table for table in tables if table.rows]
    worlds = {table.world_size if table.world_size is not None else table.ranks for table in measured}
    versions = {"commbench": __version__}
    for table in tables:
        versions.update(table.versions)
        if table.version != UNKNOWN:
            versions[table.tool] = table.version
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        created_utc=created_utc,
        command=command,
        engine=_one(table.tool for table in tables),
        backend=_one(table.backend for table in tables),
        launcher=UNKNOWN,
        world_size=worlds.pop() if len(worlds) == 1 else None,
        seed=None,
        precision=None,
        budget_seconds=None,
        layouts=("world",),
        hosts=_hosts(tables),
        groups=tuple(builder.groups),
        cases=tuple(builder.cases),
        versions=versions,
        environment={},
        outcome=_outcome(tables),
        origin=Origin(
            tool=_one(table.tool for table in tables),
            version=_one(table.version for table in tables),
            files=tuple(one.file for one in read),
            time_means="; ".join(dict.fromkeys(table.time_means for table in tables)),
        ),
        findings=tuple(_findings(read, builder.rows)),
    )


def _one(words: Iterator[str]) -> str:
    return " and ".join(word for word in dict.fromkeys(words) if word != UNKNOWN) or UNKNOWN


def _outcome(tables: Sequence[ForeignTable]) -> Outcome:
    found: set[Outcome] = {table.outcome for table in tables}
    return "failed" if "failed" in found else "incomplete" if "incomplete" in found else "complete"


def _hosts(tables: Sequence[ForeignTable]) -> tuple[Host, ...]:
    by_name: dict[str, Host] = {}
    for table in tables:
        for host in table.hosts:
            by_name.setdefault(host.name, host)
    return tuple(by_name.values())


def _findings(read: Sequence[ReadFile], rows: Sequence[SummaryRow]) -> Iterator[Finding]:
    """What the tables say, then every contradiction and every lost line, each rule at most `_MAX_SHOWN` times."""
    found: list[Finding] = []
    for one in read:
        for table in one.tables:
            found += table.findings
            found += [
                Finding("lost-row", one.file.name, "warn", lost.text, "a whole row", f"{one.file.name}:{lost.line}",
                        lost.reason)
                for lost in table.lost
            ]  # fmt: skip
    found += [
        Finding("contradicts-itself", row.collective, "warn", row.reason, "algbw = size / time", "",
                "the row is kept and marked `suspect`")
        for row in rows if row.status == "suspect"
    ]  # fmt: skip
    times: dict[str, int] = {}
    for finding in found:
        times[finding.rule] = times.get(finding.rule, 0) + 1
        if times[finding.rule] <= _MAX_SHOWN:
            yield finding
    for rule, count in times.items():
        if count > _MAX_SHOWN:
            yield Finding(rule, "the same", "warn", f"{count - _MAX_SHOWN} more of these")
