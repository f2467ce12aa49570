"""The options of `commbench sweep`, as one table."""

from functools import reduce
from pathlib import Path
from typing import Any

import click

from commbench.cli.options import Command, Parsed
from commbench.plan.collectives import parse_collectives
from commbench.plan.dtypes import find_dtype, find_redop
from commbench.plan.groups import LAYOUTS, check_layout
from commbench.plan.links import parse_link_rate
from commbench.plan.sizes import parse_sizes
from commbench.units import parse_fraction, parse_seconds


def _names(find: Any) -> Any:
    return lambda text: tuple(
        dict.fromkeys(getattr(find(word.strip()), "name", word.strip()) for word in text.split(","))
    )


def _layout(text: str) -> str:
    check_layout(text)
    return text


_LAYOUT_HELP = "How the world is cut into groups; may be given again. " + "; ".join(
    f"{layout.name}{':' + layout.argument if layout.argument else ''} ({layout.summary})" for layout in LAYOUTS.values()
)


_OPTIONS = (
    click.option(
        "--collectives",
        type=Parsed("names", parse_collectives),
        default="main",
        show_default=True,
        help="Comma-separated names, `main` (the first four) or `all`.",
    ),
    click.option(
        "--sizes",
        type=Parsed("sizes", parse_sizes),
        default="1K:64M:x4",
        show_default=True,
        help="64K, 1K:64M:x4, 1K:64K:+4K, or a list of these; K, M, G are binary.",
    ),
    click.option(
        "--layout",
        "layouts",
        type=Parsed("layout", _layout),
        multiple=True,
        default=["world"],
        show_default="world",
        help=_LAYOUT_HELP + ".",
    ),
    click.option(
        "--concurrency",
        "concurrencies",
        type=click.Choice(["together", "alone"]),
        multiple=True,
        default=["together"],
        show_default="together",
        help="All groups of a layout at once, as training does, or one at a time; give both for both.",
    ),
    click.option("--ranks", type=click.IntRange(min=1), help="Local workers. Default: one per visible GPU, else 2."),
    click.option("--engine", default="torch", show_default=True, help="torch, cupy or fake (ranks on paper)."),
    click.option("--backend", help="torch's backend: gloo, nccl, … Default: nccl where there is a GPU, else gloo."),
    click.option(
        "--dtype",
        "dtypes",
        type=Parsed("names", _names(find_dtype)),
        default="float32",
        show_default=True,
        help="Element types, comma-separated.",
    ),
    click.option(
        "--redop",
        "redops",
        type=Parsed("names", _names(find_redop)),
        default="sum",
        show_default=True,
        help="Reduction operators, comma-separated: sum, prod, min, max, avg.",
    ),
    click.option(
        "--mode",
        type=click.Choice(["throughput", "latency"]),
        default="throughput",
        show_default=True,
        help="Calls back to back between two clock readings, or one call after a barrier.",
    ),
    click.option(
        "--precision",
        type=Parsed("fraction", parse_fraction),
        default="5%",
        show_default=True,
        help="Measure a case until the 95 % interval of its median is this narrow.",
    ),
    click.option(
        "--budget",
        type=Parsed("seconds", parse_seconds),
        default="30s",
        show_default=True,
        help="Measuring time for all cases together.",
    ),
    click.option(
        "--graph",
        is_flag=True,
        help="Time CUDA graphs of 20 calls (of one in --mode latency) in place of calls; the data of a replay is "
        "checked too. Not yet run on a GPU.",
    ),
    click.option(
        "--ranks-per-gpu",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="Let so many ranks share a GPU, to try things out; needs NCCL 2.30.3 or newer, and tables say so. Not yet "
        "run on a GPU.",
    ),
    click.option("--in-place", is_flag=True, help="In place, wherever that is defined."),
    click.option(
        "--verify/--no-verify", default=True, show_default=True, help="Check every element once, before timing."
    ),
    click.option(
        "--bind",
        type=click.Choice(["auto", "none"]),
        default="auto",
        show_default=True,
        help="Bind each rank's calling thread to a CPU; a launcher's binding is kept.",
    ),
    click.option(
        "--timeout",
        type=Parsed("seconds", parse_seconds),
        show_default="30 times what is expected, 60 s at least; 300 s for the rendezvous",
        help="End the run when a rank does not come, or a case makes no progress, for so long; says who is missing.",
    ),
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Of the order of cases, and of the fake engine.",
    ),
    click.option(
        "--fake",
        default="",
        metavar="SPEC",
        help="The fake engine's machine, like ranks-per-node=4,net=10us:25GB/s,noise=2%,slow-rank=3:2.",
    ),
    click.option(
        "--link-rate",
        "link_rates",
        type=Parsed("class=rate", parse_link_rate),
        multiple=True,
        help="Nominal rate of one rank's link of a class, for theory and efficiency: net=25GB/s, net=400Mbit/s; "
        "may be given again. Goes before what is read.",
    ),
    click.option(
        "--overlap",
        is_flag=True,
        help="Then also time the largest size of each collective beside matrix products, and the other way round; "
        "takes up to --budget once more.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        help="Directory of the run. Default: results/<utc>-<host>-<engine>-<ranks>.",
    ),
    click.option(
        "--resume",
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Go on with a run that was cut off, in its directory and with its options; finished cases are kept.",
    ),
    click.option("--plots/--no-plots", default=True, show_default=True, help="Draw plots into the run's directory."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no notes on stderr, errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Say on stderr where the ranks run and what they are bound to."),
)


def sweep_options(command: Command) -> Command:
    """Give `command` the options of a sweep, in the order of the table."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)
