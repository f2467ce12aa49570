"""`commbench report`: the table of stored runs, their plots, and all of it as one page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli.options import output_options, write_output
from commbench.errors import CommbenchError, UsageError

if TYPE_CHECKING:
    from commbench.results.store import Run

HTML_FILE = "report.html"


@click.command(short_help="the table, plots and one page (report.html) of stored runs")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--plots/--no-plots", default=True, show_default=True, help="Remake RUN/plots/*.png.")
@click.option("--html", "html_file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
              help="Where the page goes. Default: RUN/report.html, of several runs report.html here.")  # fmt: skip
@click.option("--no-html", is_flag=True, help="Write no page.")
@output_options
@click.pass_context
def report(
    ctx: click.Context,
    runs: tuple[Path, ...],
    plots: bool,
    html_file: Path | None,
    no_html: bool,
    format_name: str,
    output: Path | None,
) -> None:
    """Print the table of each RUN (a run's directory), remake its plots, and write report.html.

    The page needs nothing beside it, no network and no script: what was measured and on what, a verdict in plain words,
    busbw and time over size with the fit and the nominal rate, what the fit leaves, pairs as a heat map, scaling,
    findings, fits and the table. Several RUNs (at most 10) are overlaid on one page. A run that was cut off is shown
    as far as it was measured.

    \b
    commbench report results/20260102T030405Z-node1-torch-2
    commbench report --html upgrade.html before after
    commbench report --no-plots --no-html --format csv -o all.csv results/*
    """
    from commbench.report.formats import FORMATS
    from commbench.results.store import load_run

    if html_file and no_html:
        raise UsageError("--html FILE and --no-html exclude each other: give one of them.")
    loaded = [load_run(directory) for directory in runs]
    write_output("\n".join(FORMATS[format_name](run) for run in loaded), output)
    if plots:
        from commbench.cli.plots import write_plots

        for run in loaded:
            write_plots(run)
    if not no_html:
        _write_html(loaded, html_file, ("commbench", *ctx.obj))


def _write_html(runs: Sequence["Run"], file: Path | None, command: Sequence[str]) -> None:
    """Write the page. Raises CommbenchError if it cannot be written."""
    from commbench.analysis.curves import Launch
    from commbench.report.html import format_html
    from commbench.report.reported import MOST_RUNS
    from commbench.results.store import SAMPLES_FILE, collect_samples

    distinct = list({run.directory.resolve(): run for run in runs}.items())
    launches = []
    for directory, run in distinct[:MOST_RUNS]:
        samples = collect_samples(directory) if (directory / SAMPLES_FILE).exists() else {}
        launches.append(Launch(replace(run, directory=directory), samples))
    if len(distinct) > MOST_RUNS:
        click.echo(f"the page shows the first {MOST_RUNS} of {len(distinct)} runs.", err=True)
    target = file or (distinct[0][0] if len(distinct) == 1 else Path()) / HTML_FILE
    page = format_html(launches, command)
    try:
        target.write_text(page, encoding="utf-8", errors="replace")  # a path may hold what is no text
    except OSError as error:
        raise CommbenchError(f"cannot write {target}: {error.strerror}; use --no-html or --html FILE.") from error
    click.echo(f"report: {target}", err=True)
