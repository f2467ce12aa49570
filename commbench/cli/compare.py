"""`commbench compare`: faster, slower, or noise."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli import SaidError
from commbench.cli.options import Parsed, write_file, write_output
from commbench.cli.run_arguments import load_named_runs
from commbench.errors import CommbenchError, UsageError
from commbench.units import parse_fraction

if TYPE_CHECKING:
    from commbench.analysis.comparison import Comparison

FORMATS = ("table", "json", "markdown", "junit")
FAIL_ON = {"slower": {"slower"}, "changed": {"slower", "faster"}, "never": set()}
_SEPARATOR = "--"
_MARK = "\0--"  # stands for the separator where click would take it away; no word of a command line holds a NUL


class TwoSided(click.Command):
    """A command whose `--` parts its arguments in two; options may stand on both sides of it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [_MARK if word == _SEPARATOR else word for word in args])


@click.command(cls=TwoSided, short_help="faster, slower or noise: two sets of runs, and what else changed")
@click.argument("runs", nargs=-1, required=True, metavar="BASE… -- NEW…")
@click.option("--least-effect", type=Parsed("fraction", parse_fraction), default="5%", show_default=True,
              help="Smaller changes are the same.")  # fmt: skip
@click.option("--assume-spread", type=Parsed("fraction", parse_fraction), default="5%", show_default=True,
              help="How far launches differ (standard deviation), where there are too few to show it.")  # fmt: skip
@click.option("--fail-on", type=click.Choice(list(FAIL_ON)), default="slower", show_default=True,
              help="What exits with 1.")  # fmt: skip
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Draw the ratios with their intervals as PNG.")  # fmt: skip
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True,
              help="Form of the result.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the result to FILE, not to stdout.")  # fmt: skip
def compare(
    runs: tuple[str, ...],
    least_effect: float,
    assume_spread: float,
    fail_on: str,
    plot: Path | None,
    format_name: str,
    output: Path | None,
) -> None:
    """Say what is faster, slower, the same or noise in the runs NEW against the runs BASE.

    Each is a run's directory, a directory of runs, a baseline's name, or another tool's file that `commbench import`
    reads; one BASE and one NEW need no `--`. First comes what else changed (NCCL, NCCL_*, drivers, kernel, links,
    hosts), the most suspicious first; then alpha and B of each link class; then case by case. Noise is how far launches
    of the same thing differ, so give several runs a side, 3 at least: with one, the output says what it cannot know.

    \b
    commbench compare before after
    commbench compare before-1 before-2 before-3 -- after-1 after-2 after-3
    commbench compare rack7 -- results/20260102T*          against a baseline
    commbench compare --format junit -o compare.xml --plot compare.png rack7 -- after

    Exit codes: 0 nothing slower; 1 slower (--fail-on); 2 usage; 3 nothing can be compared, or not read.
    """
    from commbench.analysis.compare import compare_runs
    from commbench.analysis.comparison import Rules
    from commbench.report.comparison import COMPARISON_FORMATS

    base, new = _sides(runs)
    rules = Rules(least_effect=least_effect, assumed_spread=assume_spread)
    comparison = compare_runs(load_named_runs(base), load_named_runs(new), rules)
    write_output(COMPARISON_FORMATS[format_name](comparison), output)
    if plot:
        _write_plot(comparison, plot)
    if not comparison.cases:
        raise CommbenchError(
            "nothing can be compared: no case was measured on both sides; the reasons are in the result."
        )
    if comparison.verdict in FAIL_ON[fail_on]:
        raise SaidError(1)


def _sides(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands before and after `--`; two words alone are one each. Raises UsageError for anything else."""
    if words.count(_MARK) == 1:
        place = words.index(_MARK)
        base, new = words[:place], words[place + 1 :]
        if base and new:
            return base, new
    elif len(words) == 2:
        return words[:1], words[1:]
    raise UsageError("say which runs are old and which are new: BASE… -- NEW…, with at least one on each side.")


def _write_plot(comparison: "Comparison", path: Path) -> None:
    """Draw it, if there is anything with a size. Raises CommbenchError if it cannot be written."""
    from commbench.report.comparison_plot import draw_comparison

    if not any(case.key.size_bytes for case in comparison.cases):
        click.echo("commbench: no plot: no case with a size can be compared.", err=True)
        return
    write_file(path, draw_comparison(comparison))
    click.echo(f"plot: {path}", err=True)
