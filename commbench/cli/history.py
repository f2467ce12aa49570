"""`commbench history`: runs over time, and when something stepped."""

from pathlib import Path

import click

from commbench.cli.options import Parsed, write_file, write_output
from commbench.cli.run_arguments import load_named_runs
from commbench.units import parse_fraction


@click.command(short_help="dated runs: a trend of alpha and B, and when it stepped")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--least-effect", type=Parsed("fraction", parse_fraction), default="5%", show_default=True,
              help="Smaller steps are not told.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Draw the trend as PNG.")
@click.option("--format", "format_name", type=click.Choice(["table", "json"]), default="table", show_default=True,
              help="Form of the result.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the result to FILE, not to stdout.")  # fmt: skip
def history(
    names: tuple[str, ...], least_effect: float, plot: Path | None, format_name: str, output: Path | None
) -> None:
    """Put runs in the order of their dates, and say when alpha or B of a link class stepped, how much, and what
    else changed then. Each NAME is a run's directory, a directory of runs, or a baseline. One run that is off is no
    step; from six runs on steps are looked for.

    \b
    commbench history results
    commbench history rack7 results/2026* --plot trend.png

    Exit codes: 0 fine; 2 usage; 3 no two runs measured the same, or not read.
    """
    from commbench.analysis.history import trace_history
    from commbench.report.history import HISTORY_FORMATS

    traced = trace_history(load_named_runs(names), least_effect)
    write_output(HISTORY_FORMATS[format_name](traced), output)
    if plot:
        from commbench.report.history_plot import draw_history

        write_file(plot, draw_history(traced))
        click.echo(f"plot: {plot}", err=True)
