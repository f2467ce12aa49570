"""The table that everybody knows: size, count, type, time, algbw, busbw, #wrong. A line a case, the slowest group's."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import groupby

from commbench.report.finding_lines import finding_lines
from commbench.report.markdown import escape_markdown
from commbench.report.overlap import overlap_lines
from commbench.report.scaling import scaling_lines
from commbench.report.slow_groups import slow_group_lines, slower_than_median
from commbench.results.kinds import KINDS
from commbench.results.schema import UNKNOWN, SummaryRow
from commbench.results.store import Run
from commbench.units import format_nbytes

_OUR_TIME = "median over batches, each the slowest rank's"
_WIDE = 1 << 20  # a table is never cut: people pipe it, and the name of a group of 1000 ranks is long


@dataclass(frozen=True, slots=True)
class Line:
    """One case in the table: the row of its slowest group, how many groups it had, and how many times slower than the
    median group of its like the slowest is; None where it has no like.
    """

    row: SummaryRow
    groups: int
    slower: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its two-line heading, its cell, and whether a table with these lines shows it."""

    heading: str
    cell: Callable[[Line], str]
    right: bool = True
    shown: Callable[[Sequence[Line]], bool] = lambda lines: True


def table_lines(rows: Iterable[SummaryRow]) -> list[Line]:
    """A Line for every case, in the order of the plan."""
    lines = []
    for _, group in groupby(rows, key=lambda row: row.case):
        members = list(group)
        slowest = max(members, key=lambda row: (row.status == "wrong", row.seconds_median or 0.0))
        lines.append(Line(slowest, len(members), slower_than_median(slowest, members)))
    return lines


def format_table(run: Run) -> str:
    """The table as text for people, with its legend."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    lines = table_lines(run.rows)
    columns = shown_columns(lines)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column.heading, justify="right" if column.right else "left", no_wrap=True)
    for _, section in groupby(lines, key=section_of):
        for line in section:
            table.add_row(*(column.cell(line) for column in columns))
        table.add_section()
    text = StringIO()
    console = Console(file=text, width=_WIDE, color_system=None, markup=False, highlight=False)
    console.print(table)
    body = "\n".join(line.rstrip() for line in text.getvalue().splitlines())
    return "\n".join([run_title(run), body.rstrip("\n"), "", *lines_below(run), *finding_lines(run)]) + "\n"


def format_markdown(run: Run) -> str:
    """The table as Markdown, with its legend."""
    lines = table_lines(run.rows)
    columns = shown_columns(lines)
    escaped = [[_escape(column.cell(line)) for column in columns] for line in lines]
    rows = [
        [column.heading.strip().replace("\n", " ") for column in columns],
        ["---:" if column.right else ":---" for column in columns],
        *escaped,
    ]
    table = ["| " + " | ".join(row) + " |" for row in rows]
    below = [*lines_below(run), *map(escape_markdown, finding_lines(run))]
    return "\n".join([run_title(run), "", *table, "", *(f"{line}  " for line in below)]) + "\n"


def lines_below(run: Run) -> list[str]:
    """The legend, where scaling bends, who is slow, and what slows what beside it."""
    return [*_legend(run), *scaling_lines(run), *slow_group_lines(run), *overlap_lines(run)]


def legend(rows: Sequence[SummaryRow], time_means: str = _OUR_TIME) -> list[str]:
    """What the table's columns mean for its collectives, and how many cases are not plain `ok`."""
    by_factor: dict[str, list[str]] = {}
    for name in dict.fromkeys(row.collective for row in rows):
        if KINDS[name].factor_text != "0":
            by_factor.setdefault(KINDS[name].factor_text, []).append(name)
    factors = "; ".join(f"{text} for {', '.join(names)}" for text, names in by_factor.items())
    lines = [f"time: {time_means}; ±: half of its 95 % interval. GB/s: 1e9 bytes per second."]
    if factors:
        lines.append(f"busbw = algbw × factor: {factors}.")
    if any(row.efficiency is not None for row in rows):
        lines.append("theory: steps × alpha + factor × size / the link's nominal rate; efficiency = theory / time.")
    if any(row.contention is not None for row in rows):
        lines.append("contention: time together / time alone, of the same group.")
    lines += _counts(rows)
    return lines


def _legend(run: Run) -> list[str]:
    return legend(run.rows, run.record.origin.time_means if run.record.origin else _OUR_TIME)


def _counts(rows: Sequence[SummaryRow]) -> list[str]:
    explained = {
        "noisy": "the interval is wider than --precision: a larger --budget narrows it",
        "partial": "the run ended before they were measured enough",
        "missing": "the run ended before they were measured",
    }
    lines = []
    for status, found in _rows_by_status(rows).items():
        if status != "ok":
            cases = len({row.case for row in found})
            reasons = sorted({row.reason for row in found if row.reason})
            why = explained.get(status) or "; ".join(reasons[:3]) + ("; …" if len(reasons) > 3 else "")
            lines.append(f"{status}: {cases} {'case' if cases == 1 else 'cases'} ({why}).")
    return lines


def _rows_by_status(rows: Sequence[SummaryRow]) -> dict[str, list[SummaryRow]]:
    found: dict[str, list[SummaryRow]] = {}
    for row in rows:
        found.setdefault(row.status, []).append(row)
    return found


def run_title(run: Run) -> str:
    """Ranks, hosts, software and mode in one line."""
    record = run.record
    hosts = f"{len(record.hosts)} nodes" if len(record.hosts) > 1 else record.hosts[0].name if record.hosts else "?"
    software = f"torch {record.versions['torch']}, " if record.engine == "torch" and "torch" in record.versions else ""
    mode = run.rows[0].mode if run.rows else "throughput"
    tool = f"commbench {record.versions.get('commbench', '?')}"
    if record.origin:
        tool += f" import of {record.origin.tool} {record.origin.version}".removesuffix(f" {UNKNOWN}")
    ranks = "? ranks" if record.world_size is None else f"{record.world_size} ranks"
    return f"{tool}: {ranks} on {hosts}, {software}{record.backend}, {mode}"


def section_of(line: Line) -> tuple[object, ...]:
    """What the lines between two blank ones have in common."""
    row = line.row
    return row.collective, row.dtype, row.redop, row.layout, row.concurrency, row.variant, row.ranks, row.in_place


def shown_columns(lines: Sequence[Line]) -> list[Column]:
    """The columns that say something about these lines."""
    return [column for column in COLUMNS if column.shown(lines)]


def _several_layouts(lines: Sequence[Line]) -> bool:
    return any(line.groups > 1 or line.row.layout != "world" for line in lines)


def _any(name: str) -> Callable[[Sequence[Line]], bool]:
    return lambda lines: any(getattr(line.row, name) is not None for line in lines)


def _number(value: float | None, decimals: int) -> str:
    return "" if value is None else f"{value:.{decimals}f}"


def _microseconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    us = seconds * 1e6
    return f"{us:.2f}" if us < 100 else f"{us:.1f}" if us < 10_000 else f"{us:.0f}"


def _half_width(line: Line) -> str:
    row = line.row
    if not row.seconds_median or row.seconds_ci_low is None or row.seconds_ci_high is None:
        return ""
    arm = max(row.seconds_ci_high - row.seconds_median, row.seconds_median - row.seconds_ci_low)
    return f"{100 * arm / row.seconds_median:.1f}%"


def _rate(value: float | None, line: Line) -> str:
    """Not applicable is another thing than not measured."""
    if value is None:
        return "n/a" if line.row.seconds_median is not None else ""
    return f"{value:.3f}" if value < 10 else f"{value:.2f}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}x"


def _wrong(line: Line) -> str:
    return "N/A" if line.row.wrong is None and line.row.seconds_median is not None else _number(line.row.wrong, 0)


COLUMNS = (
    Column("\ncollective", lambda line: line.row.collective, right=False),
    Column("\nsize", lambda line: format_nbytes(line.row.size_bytes) if line.row.size_bytes else ""),
    Column("count\n(elements)", lambda line: str(line.row.count or "")),
    Column("\ntype", lambda line: line.row.dtype if line.row.size_bytes else ""),
    Column("\nredop", lambda line: line.row.redop),
    Column("in\nplace", lambda line: "yes" if line.row.in_place else "no"),
    Column("\nlayout", lambda line: line.row.layout, False, _several_layouts),
    Column("\nvariant", lambda line: line.row.variant, False, lambda lines: any(line.row.variant for line in lines)),
    Column("\nranks", lambda line: "?" if line.row.ranks is None else str(line.row.ranks), True,
           lambda lines: _several_layouts(lines) or len({line.row.ranks for line in lines}) > 1),
    Column("\ngroups", lambda line: str(line.groups), True, _several_layouts),
    Column("\nconcurrency", lambda line: line.row.concurrency, False, _several_layouts),
    Column("slowest\ngroup", lambda line: line.row.group, False, _several_layouts),
    Column("link\nclass", lambda line: line.row.link_class, False, _several_layouts),
    Column("slowest\n/ median", lambda line: _times(line.slower), True,
           lambda lines: any(line.slower is not None for line in lines)),
    Column("\ncontention", lambda line: _times(line.row.contention), True, _any("contention")),
    Column("time\n(us)", lambda line: _microseconds(line.row.seconds_median)),
    Column("\n±", _half_width),
    Column("p99\n(us)", lambda line: _microseconds(line.row.seconds_p99), True,
           lambda lines: any(line.row.mode == "latency" for line in lines)),
    Column("enqueue\n(us)", lambda line: _microseconds(line.row.enqueue_seconds), True, _any("enqueue_seconds")),
    Column("algbw\n(GB/s)", lambda line: _rate(line.row.algbw_gbps, line)),
    Column("busbw\n(GB/s)", lambda line: _rate(line.row.busbw_gbps, line)),
    Column("theory\n(us)", lambda line: _microseconds(line.row.theory_seconds), True, _any("theory_seconds")),
    Column("\nefficiency", lambda line: "" if line.row.efficiency is None else f"{100 * line.row.efficiency:.1f}%",
           True, _any("efficiency")),
    Column("\n#wrong", _wrong),
    Column("\nstatus", lambda line: line.row.status, False),
)  # fmt: skip


def _escape(cell: str) -> str:
    return cell.replace("|", "\\|")
