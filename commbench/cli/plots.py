"""Writes a run's plots beside it."""

import click

from commbench.errors import CommbenchError
from commbench.results.store import PLOTS_DIR, Run


def write_plots(run: Run, quiet: bool = False) -> None:
    """Draw the plots of `run` into its directory. Raises CommbenchError if they cannot be written."""
    from commbench.report.plots import draw_plots

    directory = run.directory / PLOTS_DIR
    try:
        for name, png in draw_plots(run).items():
            directory.mkdir(exist_ok=True)
            (directory / name).write_bytes(png)
    except OSError as error:
        raise CommbenchError(f"cannot write the plots to {directory}: {error.strerror}; use --no-plots.") from error
    if not quiet:
        click.echo(f"plots: {directory}", err=True)
