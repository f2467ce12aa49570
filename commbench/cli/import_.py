"""`commbench import`: results of other tools become a run of ours."""

import sys
from collections import Counter
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli.options import STDIN, read_input, write_output
from commbench.errors import UsageError, WrongDataError

if TYPE_CHECKING:
    from commbench.results.importers.assemble import Imported
    from commbench.results.importers.records import Hints, Source


@click.command("import", short_help="read results of other tools into a run")
@click.argument("files", nargs=-1, metavar="FILE…")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), help="Directory of the run. Default: results/<utc>-import-<tool>."
)
@click.option("--as", "format_name", metavar="FORMAT", help="What the files are, where it is not recognised.")
@click.option("--collective", help="Which collective it was, where the file does not say it.")
@click.option("--ranks", type=click.IntRange(min=1), help="How many ranks there were, where the file does not say it.")
@click.option("--nodes", type=click.IntRange(min=1), help="How many nodes there were, where the file does not say it.")
@click.option(
    "--format",
    "shown_as",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
    help="Form of the result on stdout.",
)
@click.option("--list", "list_formats", is_flag=True, help="Say which formats can be read, and end.")
@click.option("-q", "--quiet", is_flag=True, help="No findings and no notes on stderr, errors only.")
def import_(
    files: tuple[str, ...],
    out: Path | None,
    format_name: str | None,
    collective: str | None,
    ranks: int | None,
    nodes: int | None,
    shown_as: str,
    list_formats: bool,
    quiet: bool,
) -> None:
    """Read results of other tools (each FILE; - is standard input) into one run, and print its table.

    The format is recognised. A file may hold many tables; what it does not say is unknown, and shown as such. Findings
    and lines that were lost are listed on stderr, and kept in the run.

    \b
    commbench import all_reduce_perf.log
    commbench import -o pairs logs/pair-*.log
    srun all_gather_perf -b 8 -e 1G -f 2 | commbench import -
    commbench import --ranks 16 --nodes 2 osu_allgather.txt
    commbench import --as nccl-tests excerpt.md
    commbench import --list

    Exit codes: 0 fine; 1 the files show wrong data or a failed test; 2 usage; 3 could not read.
    """
    from commbench.results.importers import FORMATS, import_source
    from commbench.results.importers.assemble import assemble
    from commbench.results.importers.records import Hints

    if list_formats:
        click.echo("".join(f"{row.name:<15} {row.summary}\n" for row in FORMATS.values()), nl=False)
        return
    if not files:
        raise UsageError("nothing to import: give one or more files, or - for standard input.")
    hints = Hints(_known_collective(collective), ranks, nodes)
    read = [import_source(source, format_name) for source in _read_sources(files, hints)]
    now = datetime.now(UTC)
    imported = assemble(read, now.isoformat(timespec="seconds"), ("commbench", *sys.argv[1:]))
    directory = out or _default_directory(now, imported)
    _write(directory, imported)
    _present(directory, shown_as, quiet)
    _judge(imported)


def _known_collective(name: str | None) -> str | None:
    from commbench.errors import unknown_name
    from commbench.results.kinds import KINDS

    if name is not None and name not in KINDS:
        raise unknown_name("collective", name, KINDS)
    return name


def _read_sources(files: tuple[str, ...], hints: "Hints") -> "list[Source]":
    from commbench.results.importers.lines import MAX_FILE_NBYTES
    from commbench.results.importers.records import Source

    if files.count(STDIN) > 1:
        raise UsageError("standard input is named more than once: give - once.")
    return [Source(*read_input(name, MAX_FILE_NBYTES), hints) for name in files]


def _default_directory(now: datetime, imported: "Imported") -> Path:
    tool = imported.record.engine.replace(" ", "-")[:60]
    wanted = Path("results") / f"{now:%Y%m%dT%H%M%SZ}-import-{tool}"
    taken = (wanted.with_name(f"{wanted.name}.{number}") for number in count(2))
    return next(path for path in chain([wanted], taken) if not path.exists())


def _write(directory: Path, imported: "Imported") -> None:
    from commbench.results.writer import RunWriter

    writer = RunWriter(directory, imported.record)
    writer.add_samples(imported.samples)
    writer.add_summary(imported.rows)
    writer.finish(imported.record.outcome, 0.0)


def _present(directory: Path, shown_as: str, quiet: bool) -> None:
    """The run as it reads back from disk on stdout; findings and where it is on stderr."""
    from commbench.report.formats import FORMATS
    from commbench.results.store import load_run

    run = load_run(directory)
    write_output(FORMATS[shown_as](run), None)
    if quiet:
        return
    for finding in run.record.findings:
        expected = f", expected {finding.expected}" if finding.expected else ""
        action = f" ({finding.action})" if finding.action else ""
        place = f"{finding.where}: " if finding.where else ""
        click.echo(f"{finding.verdict}: {place}{finding.rule}: {finding.observed}{expected}{action}", err=True)
    click.echo(f"run kept in {directory}", err=True)


def _judge(imported: "Imported") -> None:
    """Raise WrongDataError where the imported test itself found wrong data, or failed."""
    statuses = Counter(row.status for row in imported.rows)
    if statuses["wrong"]:
        raise WrongDataError(
            f"the files show wrong data in {statuses['wrong']} of {len(imported.rows)} cases: do not trust this "
            "library or link until it is explained."
        )
    if imported.record.outcome == "failed":
        raise WrongDataError("the files show a test that failed: see its findings.")
