"""The doors. Commands are loaded when they are called; this is the only place that prints an error and exits."""

import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from commbench import __version__
from commbench.errors import CommbenchError


class SaidError(CommbenchError):
    """An error that has been shown already, or is another rank's to show: only its exit code is left."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


COMMANDS = {
    "sweep": "measure collectives over sizes and groups",
    "fit": "alpha and beta of stored runs, with intervals and errors",
    "estimate": "a training step's communication, memory and bubble, of a model and a layout",
    "report": "the table, plots and one page (report.html) of stored runs",
    "export": "coefficients and times of stored runs, in the files that planners load",
    "compare": "faster, slower or noise: two sets of runs, and what else changed",
    "baseline": "keep named sets of runs to compare with: save, list, show, remove",
    "history": "dated runs: a trend of alpha and B, and when it stepped",
    "import": "read results of other tools into a run",
    "logs": "NCCL debug logs: which way every pair of ranks took, and what is wrong",
    "topo": "how a machine is wired: GPUs, NICs, link classes, the nearest NIC",
    "check": "is the machine set up as it should be, without sending a byte",
    "preflight": "healthy or not, and which node, NIC or link is to blame",
}


class LazyGroup(click.Group):
    """Finds a command in the module of its name, so that `--help` loads none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(import_module(f"commbench.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="commbench")
def cli() -> None:
    """Measure collective communication, and say how far from theory it is.

    \b
    commbench sweep                                   the four main collectives on this machine
    torchrun --nproc-per-node 8 -m commbench sweep    the same, as the launcher's ranks
    commbench fit results/RUN                         alpha and beta of it, and how far to trust them
    commbench estimate --model llama-70b --tp 8       what a training step communicates
    commbench report results/RUN                      its table, plots, and report.html
    commbench export results/RUN --to galvatron -o .  a planner's files from it
    commbench compare before after                    faster, slower, or noise
    commbench import all_reduce_perf.log              another tool's results, as a run
    commbench topo                                    how this machine is wired; --from another, or nvidia-smi topo -m
    srun -N4 commbench check                          is every node set up as it should be

    Exit codes: 0 fine; 1 wrong data, or a check failed; 2 usage; 3 could not measure or read; 124 a hang was ended;
    130 Ctrl-C.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        cli.main(args=words, prog_name="commbench", standalone_mode=False, obj=tuple(words))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except SaidError as error:
        sys.exit(error.exit_code)
    except CommbenchError as error:
        show_message(str(error))
        sys.exit(error.exit_code)


def show_message(message: str) -> None:
    """One line on stderr, with the program's name."""
    click.echo(f"commbench: {message}", err=True)
