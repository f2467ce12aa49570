"""The options of `commbench preflight`, as one table."""

from functools import reduce
from pathlib import Path

import click

from commbench.cli.check_options import FORMATS, parse_prefixes
from commbench.cli.options import Command, Parsed
from commbench.engines import ENGINES
from commbench.preflight.levels import LEVELS
from commbench.units import parse_seconds

_FILE = click.Path(path_type=Path, dir_okay=False)

_OPTIONS = (
    click.option("--level", type=click.Choice(list(LEVELS)), default="quick", show_default=True,
                 help="How thorough: more rounds, larger messages, the ladder of 2, 4, 8, … nodes."),
    click.option("--budget", type=Parsed("seconds", parse_seconds), show_default="60 s, 3 min or 10 min by level",
                 help="Hard limit from start to end; what it leaves no time for is said."),
    click.option("--soak", type=Parsed("seconds", parse_seconds), metavar="SECONDS",
                 help="Then keep pairs under load for so long: errors, drift, the slowest minute."),
    click.option("--expect", multiple=True, metavar="PLATFORM|FILE|RUN",
                 help="What links must reach: a published platform, a TOML file, an earlier run; may be given again."),
    click.option("--write-expectation", type=_FILE, metavar="FILE",
                 help="Write what pairs reached here as a file for --expect."),
    click.option("--list-platforms", is_flag=True, help="Say which platforms have published floors, and end."),
    click.option("--racks", type=_FILE, metavar="FILE",
                 help="Which nodes share a switch: lines NAME: HOSTLIST, or Slurm's topology.conf; else guessed."),
    click.option("--exclude-file", type=_FILE, metavar="FILE",
                 help="Write the nodes to leave out, as n[2,7]; an empty file if there is none."),
    click.option("--select", type=Parsed("prefixes", parse_prefixes), multiple=True, metavar="PREFIX,…",
                 help="Only checks whose ids begin so."),
    click.option("--ignore", type=Parsed("prefixes", parse_prefixes), multiple=True, metavar="PREFIX,…",
                 help="Not the checks whose ids begin so."),
    click.option("--same", multiple=True, metavar="PATH",
                 help="A file that must be the same on every node; may be given again."),
    click.option("--ranks", type=click.IntRange(min=1),
                 help="Local workers, or ranks on paper.  [default: one per GPU, else 2; 8 on paper]"),
    click.option("--engine", type=click.Choice(list(ENGINES)), default="torch", show_default=True,
                 help="Who moves the bytes; fake: nobody, times follow from --fake."),
    click.option("--backend", help="torch's backend.  [default: nccl with GPUs, else gloo]"),
    click.option("--fake", default="", metavar="KEY=VALUE,…", help="The machine of --engine fake, as for sweep."),
    click.option("--seed", type=int, default=0, show_default=True, help="Which pairs meet when not all can."),
    click.option("--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True,
                 help="Form of the result."),
    click.option("-o", "--output", type=_FILE, help="Write the result to FILE, which is replaced at once."),
    click.option("--plot", "plot_file", type=_FILE, metavar="FILE", help="Also draw the pairs into FILE, a PNG."),
    click.option("-q", "--quiet", is_flag=True, help="No progress on stderr."),
)  # fmt: skip


def preflight_options(command: Command) -> Command:
    """All options of the command, in this order."""
    return reduce(lambda made, option: option(made), reversed(_OPTIONS), command)
