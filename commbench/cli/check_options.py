"""The options of `commbench check`, as one table."""

from functools import reduce
from pathlib import Path

import click

from commbench.cli.options import Command, Parsed
from commbench.units import parse_seconds

FORMATS = ("table", "json", "junit", "prometheus", "markdown")


def parse_prefixes(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_OPTIONS = (
    click.option(
        "--select", type=Parsed("prefixes", parse_prefixes), multiple=True, metavar="PREFIX,…",
        help="Only rules whose ids begin so: ENV, HOST-MEMLOCK; may be given again.",
    ),
    click.option(
        "--ignore", type=Parsed("prefixes", parse_prefixes), multiple=True, metavar="PREFIX,…",
        help="Not the rules whose ids begin so; goes before --select.",
    ),
    click.option("--list", "list_rules", is_flag=True, help="Say which rules there are, and end."),
    click.option("--explain", metavar="ID", help="Say what a rule looks at, why, and what to do, and end."),
    click.option(
        "--env-file", metavar="FILE",
        help="Check the environment in FILE instead of this process's: env's output, export lines, a batch script, "
        "a JSON object; - is standard input.",
    ),
    click.option(
        "--from", "source", metavar="SNAPSHOT|TREE",
        help="Check another machine: a snapshot of `commbench topo --snapshot`, or a folder with a copy of its /proc "
        "and /sys.",
    ),
    click.option(
        "--same", multiple=True, metavar="PATH",
        help="A file that must be the same on every node, such as the training script; may be given again.",
    ),
    click.option(
        "--nodes", type=click.IntRange(min=1), show_default="the launcher's, else 1",
        help="Nodes of the job that this is checked for: some settings are wrong for several only.",
    ),
    click.option(
        "--format", "format_name", type=click.Choice(FORMATS), default="table", show_default=True,
        help="Form of the result.",
    ),
    click.option(
        "-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
        help="Write the result to FILE, which is replaced at once, not to stdout.",
    ),
    click.option("--nagios", is_flag=True, help="One line, and exit codes 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN."),
    click.option(
        "--timeout", type=Parsed("seconds", parse_seconds), show_default="300 s for the rendezvous, then 60 s",
        help="Under a launcher: end when a rank does not come or tell for so long, and say which.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Of the table only fails and warnings: nothing when healthy."),
    click.option("-v", "--verbose", is_flag=True, help="Also what is ok, what was skipped, and where it was read."),
)  # fmt: skip


def check_options(command: Command) -> Command:
    """Give `command` the options of a check, in the order of the table."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)
