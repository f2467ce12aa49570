"""`commbench report`: the table and the plots of stored runs."""

from pathlib import Path

import click

from commbench.cli.options import output_options, write_output


@click.command(short_help="print the table of stored runs again, and remake their plots")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--plots/--no-plots", default=True, show_default=True, help="Remake RUN/plots/*.png.")
@output_options
def report(runs: tuple[Path, ...], plots: bool, format_name: str, output: Path | None) -> None:
    """Print the table of each RUN (a run's directory) and remake its plots.

    A run that was cut off is shown as far as it was measured.

    \b
    commbench report results/20260102T030405Z-node1-torch-2
    commbench report --no-plots --format csv -o all.csv results/*
    """
    from commbench.report.formats import FORMATS
    from commbench.results.store import load_run

    loaded = [load_run(directory) for directory in runs]
    write_output("\n".join(FORMATS[format_name](run) for run in loaded), output)
    if plots:
        from commbench.cli.plots import write_plots

        for run in loaded:
            write_plots(run)
