"""`commbench baseline`: named sets of runs to compare with."""

from datetime import UTC, datetime

import click

from commbench.cli.options import write_output


@click.group(short_help="keep named sets of runs to compare with: save, list, show, remove")
def baseline() -> None:
    """Keep runs under a name, for `commbench compare NAME -- NEW…`. They are copied, to results/baselines or
    where the variable COMMBENCH_BASELINES says. Several runs make one baseline with its spread from run to run: 3 are
    good, 8 better.

    \b
    commbench baseline save rack7 results/20260102T*
    commbench baseline list
    commbench baseline show rack7
    commbench baseline remove rack7

    Exit codes: 0 fine; 2 usage (no such baseline, or runs that do not belong together); 3 could not read or write.
    """


@baseline.command(short_help="copy runs of one set-up under a name")
@click.argument("name")
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
def save(name: str, runs: tuple[str, ...]) -> None:
    """Copy each RUN (a run's directory, a directory of runs, or another tool's file) to the baseline NAME.

    They must be of one set-up: engine, backend, ranks, kinds of nodes, layouts.
    """
    from commbench.cli.run_arguments import load_named_runs
    from commbench.results.baselines import baselines_directory, save_baseline

    now = datetime.now(UTC).isoformat(timespec="seconds")
    saved = save_baseline(baselines_directory(), name, load_named_runs(runs), now)
    count = len(saved.runs)
    advice = "" if count > 2 else ": with 3 and more, compare knows their spread"
    click.echo(
        f"baseline {name}: {count} {'run' if count == 1 else 'runs'} in {baselines_directory() / name}{advice}",
        err=True,
    )


@baseline.command("list", short_help="what there is")
def list_() -> None:
    """Print a line for each baseline."""
    from commbench.report.baselines import format_baselines
    from commbench.results.baselines import baselines_directory, list_baselines

    found = list_baselines(baselines_directory())
    if found:
        write_output(format_baselines(found), None)
    else:
        click.echo(f"no baselines in {baselines_directory()}", err=True)


@baseline.command(short_help="its runs, and how far they differ")
@click.argument("name")
def show(name: str) -> None:
    """Print the runs of the baseline NAME, and each case's time and spread from run to run."""
    from commbench.report.baselines import format_baseline
    from commbench.results.baselines import baselines_directory, find_baseline, load_baseline

    directory = baselines_directory()
    write_output(format_baseline(find_baseline(directory, name), load_baseline(directory, name)), None)


@baseline.command(short_help="remove it for good")
@click.argument("name")
def remove(name: str) -> None:
    """Remove the baseline NAME and its copies; the runs it was made of stay."""
    from commbench.results.baselines import baselines_directory, remove_baseline

    removed = remove_baseline(baselines_directory(), name)
    click.echo(f"removed {name} ({len(removed.runs)} runs)", err=True)
