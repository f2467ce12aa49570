"""From the lines of one block of nccl-tests' text to a table: which test it was, how it ended, what does not fit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from commbench.plan.groups import format_ranks
from commbench.results.importers import notes
from commbench.results.importers.identify import Evidence, Identity, identify
from commbench.results.importers.lines import shown
from commbench.results.importers.nccl_marks import Device, Marks
from commbench.results.importers.nccl_rows import Layout
from commbench.results.importers.numbers import read_collective_of_file, read_printed
from commbench.results.importers.records import ForeignRow, ForeignTable, LostLine, Source
from commbench.results.schema import UNKNOWN, Finding, Host, Outcome, Status

TIME_MEANS = "mean over calls back to back, and over ranks"


@dataclass(slots=True)
class Block:
    """The lines of one table, sorted. `began`: its first line, 0 as long as it has none."""

    began: int = 0
    started: bool = False
    label: str = ""
    layout: Layout = field(default_factory=Layout)
    marks: Marks = field(default_factory=Marks)
    rows: list[ForeignRow] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)
    joined: int = 0

    @property
    def rows_may_come(self) -> bool:
        return bool(self.rows) or self.layout.has_header


def close_block(block: Block, source: Source) -> ForeignTable | None:
    """The table of a block; None if the block holds nothing of a test."""
    if not block.began:
        return None
    marks, where = block.marks, f"{source.name}:{block.began}"
    named, named_by = _name(marks, source)
    found = identify(block.rows, _evidence(block, source, named, named_by, where))
    outcome = _outcome(block)
    rows = [*_labelled(found.rows, block.label), *_unmeasured(block, outcome)]
    hosts = _hosts(marks.devices) if found.listed_all or _all_alone(marks, found) else ()
    findings = [*found.findings, *_findings(block, found, outcome, where)]
    if not block.rows and not marks.devices and not marks.config and not block.label and outcome == "incomplete":
        return None  # a heading, a prompt: no test
    return ForeignTable(
        tool="rccl-tests" if marks.is_rccl else "nccl-tests",
        backend="rccl" if marks.is_rccl else "nccl",
        mode="throughput",
        time_means=TIME_MEANS,
        rows=tuple(rows),
        collective=found.collective,
        version=marks.tests_version or UNKNOWN,
        ranks=found.ranks,
        nodes=source.hints.nodes or (len(hosts) if hosts and found.listed_all else 1 if found.ranks == 1 else None),
        world_size=found.ranks,
        hosts=hosts,
        outcome=outcome,
        findings=tuple(findings),
        lost=tuple(block.lost),
        versions=(("rccl" if marks.is_rccl else "nccl", marks.version),) if marks.version else (),
    )


def _name(marks: Marks, source: Source) -> tuple[str | None, str]:
    """The collective by the best witness: the text, the command above it, the file's name."""
    if marks.named:
        return marks.named, marks.named_by
    by_file = read_collective_of_file(source.name)
    return (by_file, "the file's name") if by_file else (None, "")


def _evidence(block: Block, source: Source, named: str | None, named_by: str, where: str) -> Evidence:
    marks = block.marks
    first_group = [device.rank for device in marks.devices if device.group == 0]
    return Evidence(
        hints=source.hints,
        named=named,
        named_by=named_by,
        listed_ranks=tuple(first_group),
        said_ranks=marks.said_ranks,
        redop_column=block.layout.redop if block.layout.has_header and not _always_has_both(block.layout) else None,
        root_column=block.layout.root if block.layout.has_header else None,
        where=where,
    )


def _always_has_both(layout: Layout) -> bool:
    """Since 2.13 every table has both columns, whatever the collective."""
    return bool(layout.redop and layout.root and layout.counts_wrong)


def _all_alone(marks: Marks, found: Identity) -> bool:
    return found.ranks == 1 and {device.rank for device in marks.devices} == {0}


def _hosts(devices: Sequence[Device]) -> tuple[Host, ...]:
    """One node for each host name, in the order of ranks."""
    by_host: dict[str, list[Device]] = {}
    for device in sorted(devices, key=lambda device: device.rank):
        by_host.setdefault(device.host, []).append(device)
    return tuple(
        Host(name, "", None, "", format_ranks([one.rank for one in mine]),
             devices=tuple(f"{one.name} [{one.bus}]".strip() for one in mine))
        for name, mine in by_host.items()
    )  # fmt: skip


def _outcome(block: Block) -> Outcome:
    marks = block.marks
    if (marks.bounds and marks.bounds[1] == "FAILED") or marks.average_failed:
        return "failed"
    if block.rows and marks.footers >= max(1, marks.configs):
        return "complete"
    return "failed" if marks.failure else "incomplete"


def _labelled(rows: Sequence[ForeignRow], label: str) -> list[ForeignRow]:
    """Rows with the heading above them as their variant, less the size that the row says itself."""
    if not label:
        return list(rows)
    return [replace(row, variant=_without_size(label, row.nbytes, row.variant)) for row in rows]


def _without_size(label: str, nbytes: int | None, variant: str) -> str:
    words = [word for word in label.split() if not (word.lower().startswith("size=") and word[5:] == str(nbytes))]
    return shown(" ".join([*words, variant]).strip())


def _unmeasured(block: Block, outcome: Outcome) -> list[ForeignRow]:
    """The case at which a test ended that has no footer, where its configuration says which that was."""
    marks = block.marks
    config = marks.config
    if config is None or (marks.footers and block.rows) or marks.configs > 1:
        return []
    last = max((row.nbytes or 0 for row in block.rows), default=None)
    nbytes = config.low if last is None else config.after(last)
    if nbytes is None:
        return []
    status: Status = "failed" if outcome == "failed" else "incomplete"
    without = "its row is not in the text" if marks.footers else "the text ends before this size, without a footer"
    why = shown(marks.failure[1]) if marks.failure else without
    like = block.rows[-1] if block.rows else None
    return [
        ForeignRow(
            block.began, nbytes, None, dtype=like.dtype if like else UNKNOWN, redop=like.redop if like else UNKNOWN,
            status=status, reason=why,
        )
    ]  # fmt: skip


def _findings(block: Block, found: Identity, outcome: Outcome, where: str) -> list[Finding]:
    marks, subject = block.marks, found.collective
    findings = []
    if outcome == "failed" and marks.bounds and marks.bounds[1] == "FAILED":
        findings.append(
            Finding("out-of-bounds", subject, "fail", f"{marks.bounds[0]} checks FAILED", "0 OK", where,
                    "data was corrupted: do not trust this library or link, whatever its bandwidth")
        )  # fmt: skip
    elif marks.average_failed:
        findings.append(Finding("below-minimum", subject, "fail", f"average busbw {marks.average} FAILED", "OK", where))
    if marks.failure and outcome != "complete":
        line, text = marks.failure
        findings.append(notes.failed(subject, shown(text), f"{where.rsplit(':', 1)[0]}:{line}"))
    if block.label and not block.rows:
        findings.append(Finding("empty-block", block.label, "warn", f"no row below {block.label!r}", "rows", where))
    elif outcome == "incomplete" and not marks.footers:
        rows = f"{len(block.rows)} rows" if block.rows else "no row"
        findings.append(
            Finding("no-footer", subject, "warn", f"{rows} and no footer", "a line `# Avg bus bandwidth`", where,
                    "the test hung, was killed, or its output was cut")
        )  # fmt: skip
    if marks.configs > 1:
        findings.append(
            Finding("several-processes", subject, "fail", f"{marks.configs} tests began before one had ended", "1",
                    where, "each process ran a test of its own: build nccl-tests with MPI=1")
        )  # fmt: skip
    findings += _average_finding(block, subject, where)
    counted = block.layout.counts_wrong or marks.bounds is None  # up to 2.12 the footer alone says that data was right
    if block.rows and counted and all(row.wrong is None for row in block.rows):
        findings.append(notes.not_checked(subject, where))
    elif marks.config and not marks.config.validated:
        findings.append(notes.not_checked(subject, where, "validation was off (-c 0)"))
    if len({device.group for device in marks.devices}) > 1:
        findings.append(
            Finding("several-groups", subject, "warn", "NCCL_TESTS_SPLIT cut the ranks into groups", "", where,
                    "the time is the mean over all groups: a slow one is not seen")
        )  # fmt: skip
    if block.layout.cpu_time:
        findings.append(
            Finding("cpu-time", subject, "warn", "-C: the times are those of enqueueing", "", where,
                    "measure again without -C")
        )  # fmt: skip
    if marks.limited:
        findings.append(
            Finding("memory-limit", subject, "warn", "the largest sizes did not fit into memory", "", where)
        )
    if block.joined:
        findings.append(Finding("joined-rows", subject, "ok", f"{block.joined} torn rows were put together", "", where))
    return findings


def _average_finding(block: Block, subject: str, where: str) -> list[Finding]:
    """Whether the footer's average is that of the rows: if not, rows are missing."""
    printed = read_printed(block.marks.average)
    rates = [row.busbw.value / 1e9 for row in block.rows if row.busbw is not None]
    if printed is None or block.marks.configs > 1:
        return []
    if not rates:
        found, expected = f"the footer's average is {printed.value:g} GB/s and no row is there", "the rows"
    elif abs(fmean(rates) - printed.value) > 0.011 + 2 * printed.half_unit:
        found, expected = f"the rows average {fmean(rates):.4g} GB/s", f"{printed.value:g}, as the footer says"
    else:
        return []
    return [Finding("rows-missing", subject, "warn", found, expected, where, "rows were cut out of the text")]
