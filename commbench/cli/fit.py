"""`commbench fit`: alpha and beta of stored runs, with intervals and errors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli.options import Parsed, write_output
from commbench.cli.runs import load_launches
from commbench.errors import CommbenchError, UsageError
from commbench.units import parse_nbytes

if TYPE_CHECKING:
    from commbench.analysis.records import FitRecord

FORMATS = ("table", "json", "csv")
DEFAULT_WINDOW = "1M:"

Question = tuple[str, int, int]


def parse_window(text: str) -> tuple[int | None, int | None]:
    """First and last size of a text like `1M:`, `:64K` or `1K:1M`; None is open. Raises UsageError."""
    first, colon, last = text.partition(":")
    if not colon:
        raise UsageError(f"cannot read the window {text!r}: write FIRST:LAST, like 1M: or 64K:16M.")
    ends = (parse_nbytes(first) if first.strip() else None, parse_nbytes(last) if last.strip() else None)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise UsageError(f"the window {text!r} is empty: its first size is above its last.")
    return ends


def parse_question(text: str) -> Question:
    """Collective, bytes and ranks of a text like `all_reduce 64M 8`. Raises UsageError."""
    from commbench.plan.collectives import find_collective

    words = text.split()
    if len(words) != 3:
        raise UsageError(f"cannot read {text!r}: write COLLECTIVE SIZE RANKS, like 'all_reduce 64M 8'.")
    ranks = int(words[2]) if words[2].isascii() and words[2].isdigit() and len(words[2]) < 10 else 0
    if ranks < 2:
        raise UsageError(f"cannot read the ranks {words[2]!r}: write a whole number of at least 2.")
    return find_collective(words[0]).name, parse_nbytes(words[1]), ranks


@click.command(short_help="alpha and beta of stored runs, with intervals and errors")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…", type=click.Path(path_type=Path))
@click.option(
    "--window", type=Parsed("window", parse_window), default=DEFAULT_WINDOW, show_default=True, metavar="FIRST:LAST",
    help="Sizes that the one line for planners is fitted on; an end may be left out.",
)  # fmt: skip
@click.option(
    "--predict", "questions", type=Parsed("question", parse_question), multiple=True, metavar="'COLLECTIVE SIZE RANKS'",
    help="Also predict the time of this; repeatable.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("--save/--no-save", default=True, show_default=True, help="Write RUN/fit.json.")
@click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True,
              help="Form of the result.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the result to FILE, not to stdout.")  # fmt: skip
def fit(
    runs: tuple[Path, ...],
    window: tuple[int | None, int | None],
    questions: tuple[Question, ...],
    seed: int,
    save: bool,
    format_name: str,
    output: Path | None,
) -> None:
    """Fit alpha and beta to each RUN (a run's directory), and write them to RUN/fit.json.

    A line (alpha, B) on the window for planners, up to four regimes over all sizes, 95 % intervals, the error of each,
    what was not identified, one line for each link class, and what is odd. Several RUNs on the same hosts with the same
    software count as launches of one measurement; throughput and latency are never put together.

    \b
    commbench fit results/RUN
    commbench fit results/RUN --window 16M: --predict 'all_reduce 64M 8'
    commbench fit --format csv -o fits.csv results/launch-*
    """
    from commbench.analysis.predict import predict
    from commbench.report.fits import FIT_FORMATS

    records = fit_runs(runs, window, seed, save)
    if not any(record.fits for record in records):
        reasons = [f"{item.collective}: {item.reason}" for record in records for item in record.unfitted]
        raise CommbenchError(f"nothing to fit: {'; '.join(reasons[:3]) or 'no case was measured'}.")
    predictions = [prediction for question in questions for prediction in predict(records, *question)]
    write_output(FIT_FORMATS[format_name](records, predictions), output)


def fit_runs(runs: Sequence[Path], window: tuple[int | None, int | None], seed: int, save: bool) -> "list[FitRecord]":
    """A record for each machine that `runs` were measured on; with `save` also in the directories of its runs."""
    from commbench.analysis.curves import group_launches
    from commbench.analysis.record_file import fit_launches, write_record
    from commbench.analysis.records import Window

    machines = group_launches(load_launches(runs))
    records = [fit_launches(members, Window(*window), seed) for members in machines]
    for members, record in zip(machines, records, strict=True):
        for launch in members if save and record.fits else ():
            write_record(launch.run.directory, record)
    return records
