"""`commbench check`: is the machine set up as it should be, without sending a byte."""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commbench.cli import SaidError, show_message
from commbench.cli.check_options import check_options
from commbench.cli.nagios import NagiosCommand
from commbench.cli.options import read_input, write_output
from commbench.errors import CommbenchError, RendezvousError, UsageError, unknown_name

if TYPE_CHECKING:
    from commbench.checks.registry import Rule
    from commbench.checks.result import CheckResult
    from commbench.launch.environment import RankPlace
    from commbench.machine.env_file import EnvFile
    from commbench.machine.facts import Facts

_MOST_OF_SNAPSHOT = 16 << 20  # bytes: those of the largest machines have some hundred KB
_EXIT_CODES = {
    "fail": 1,
    "warn": 0,
    "ok": 0,
    "skip": 3,
}  # by the worst verdict: all skipped means that nothing was seen


@click.command(cls=NagiosCommand, short_help="is the machine set up as it should be, without sending a byte")
@check_options
def check(**options: Any) -> None:
    """Compare this machine, its environment and its libraries with what collective communication needs.

    Nothing is sent and nothing is changed. A line for each fail and warning, the worst first: what was found, what was
    expected, what to do; then the counts. What could not be seen is skipped with the reason, never ok. Under a launcher
    every rank looks, and rank 0 tells once, with the nodes and ranks; rules of the family CON compare the ranks.

    \b
    commbench check
    commbench check --select ENV --env-file job.sbatch --nodes 4
    commbench check --explain ENV-VALUE-SWITCH
    srun -N4 commbench check --same train.py
    commbench check --from node7.json --format junit -o check.xml
    commbench check --format prometheus -o /var/lib/node_exporter/commbench.prom
    commbench check --nagios

    Exit codes: 0 fine, or warnings only; 1 a check failed; 2 usage; 3 could not read, or nothing could be seen;
    124 a rank did not tell; 130 Ctrl-C.
    """
    from commbench.checks.registry import load_rules, select_rules

    if options["explain"]:
        write_output(_explain(load_rules(), options["explain"]), options["output"])
        return
    rules = select_rules(load_rules(), *(tuple(chain(*options[name])) for name in ("select", "ignore")))
    if options["list_rules"]:
        lines = "".join(f"{rule.id:<28} {rule.severity}  {rule.summary}\n" for rule in rules)
        write_output(lines, options["output"])
        return
    # Before anything of ours is loaded that sets a variable.
    environment = dict(os.environ)
    place = _find_place(environment)
    if options["source"] is not None:
        result = None if place and place.rank else _check_alone(options, _load_facts(options), rules, None)
    else:
        facts = _read_facts(options, environment, place)
        if place is None or place.world_size == 1:
            result = _check_alone(options, facts, rules, place)
        else:
            result = _check_world(options, facts, rules, place)
    if result is not None:
        _present(result, options)


def _explain(rules: tuple["Rule", ...], id: str) -> str:
    rule = next((rule for rule in rules if rule.id == id.upper()), None)
    if rule is None:
        raise unknown_name("rule", id, [rule.id for rule in rules])
    return (
        f"{rule.id} ({rule.severity}): {rule.summary}\n\n{rule.explanation}\n\n"
        f"What to do: {rule.fix}\nSource: {rule.source}\n"
    )


def _find_place(environment: Mapping[str, str]) -> "RankPlace | None":
    from commbench.launch.environment import find_place

    try:
        return find_place(environment)
    except UsageError as error:  # a broken environment is what this command looks for
        show_message(f"{error} Only this process is checked.")
        return None


def _check_alone(
    options: dict[str, Any], facts: "Facts", rules: "list[Rule]", place: "RankPlace | None"
) -> "CheckResult":
    from commbench.preflight.passive import check_here

    return check_here(facts, rules, _nodes(options, facts, place))


def _nodes(options: dict[str, Any], facts: "Facts", place: "RankPlace | None") -> int:
    """The nodes of the job: as asked, as Slurm says, or two where the launcher has ranks on others."""
    if options["nodes"]:
        return int(options["nodes"])
    said = facts.variables.get("SLURM_JOB_NUM_NODES") or facts.variables.get("SLURM_NNODES") or ""
    elsewhere = place is not None and place.local_size < place.world_size
    return max(int(said) if said.isascii() and said.isdigit() and len(said) < 7 else 1, 1, 2 * elsewhere)


def _check_world(
    options: dict[str, Any], facts: "Facts", rules: "list[Rule]", place: "RankPlace"
) -> "CheckResult | None":
    """What all ranks find, on rank 0. If they do not come together it tells at least of itself, and why."""
    from commbench.preflight.world import check_world, find_meeting

    order = repr([(name, options[name]) for name in ("select", "ignore", "same")])
    try:
        return check_world(facts, find_meeting(place, os.environ), rules, order, options["timeout"], show_message)
    except CommbenchError as error:
        if place.rank == 0 and options["nagios"]:
            raise  # it becomes the plug-in's line
        is_apart = isinstance(error, RendezvousError) and not options["nagios"]
        if not error.is_quiet and (place.rank == 0 or is_apart):
            show_message(str(error))
        if place.rank == 0 and is_apart and options["format_name"] == "table":
            show_message("so only rank 0 is checked:")
            write_output(_format(_check_alone(options, facts, rules, place), options), None)
        raise SaidError(error.exit_code) from error


def _present(result: "CheckResult", options: dict[str, Any]) -> None:
    """Write the result, and leave with its exit code."""
    write_output(_format(result, options), options["output"], at_once=True)
    if options["nagios"]:
        from commbench.report.nagios import STATES

        raise SaidError(STATES[result.worst][0])
    if _EXIT_CODES[result.worst]:
        if result.worst == "skip":
            show_message("nothing could be seen: every check was skipped.")
        raise SaidError(_EXIT_CODES[result.worst])


def _format(result: "CheckResult", options: dict[str, Any]) -> str:
    from commbench.report.check_formats import load_format

    name = "nagios" if options["nagios"] else options["format_name"]
    if name != "table":
        return load_format(name)(result)
    colour = options["output"] is None and _is_coloured()
    return load_format(name)(result, verbose=options["verbose"], quiet=options["quiet"], colour=colour)


def _is_coloured() -> bool:
    """Whether stdout is a terminal that shows colours: not that which mpirun gives its ranks, whatever reads it."""
    if not sys.stdout.isatty() or "OMPI_COMM_WORLD_RANK" in os.environ:
        return False
    from rich.console import Console

    return Console().color_system is not None  # it knows TERM and NO_COLOR


def _read_facts(options: dict[str, Any], environment: dict[str, str], place: "RankPlace | None") -> "Facts":
    """The facts of this process; with --env-file as if its variables were those of the file."""
    from commbench.machine.software import is_kept
    from commbench.preflight.passive import read_own_facts

    file = _read_env_file(options)
    if file is not None:
        environment = {name: value for name, value in environment.items() if not is_kept(name)} | file.variables
    facts = read_own_facts(place, environment, options["same"])
    return replace(facts, variable_sources=file.sources if file else {})


def _load_facts(options: dict[str, Any]) -> "Facts":
    """The facts of another machine: its snapshot, or a tree with its files."""
    from commbench.machine.read_facts import read_facts
    from commbench.machine.snapshot import read_snapshot

    source, file = Path(options["source"]), _read_env_file(options)
    if options["same"]:
        raise UsageError("--same is for files of nodes that this command runs on, and --from is of another machine.")
    if source.is_dir():
        if not any((source / part).is_dir() for part in ("proc", "sys")):
            raise CommbenchError(f"{source} has neither proc nor sys in it: expected a copy of a machine's files.")
        facts = read_facts(source)
    else:
        name, data = read_input(options["source"], _MOST_OF_SNAPSHOT)
        facts = read_snapshot(data, name)
    if file is None:
        return facts
    unseen = {path: reason for path, reason in facts.unseen.items() if path != "variables"}
    return replace(facts, variables=file.variables, variable_sources=file.sources, unseen=unseen)


def _read_env_file(options: dict[str, Any]) -> "EnvFile | None":
    if options["env_file"] is None:
        return None
    from commbench.machine.env_file import MAX_NBYTES, parse_env

    name, data = read_input(options["env_file"], MAX_NBYTES)
    found = parse_env(data, name)
    if not found.variables:
        show_message(f"{name} sets none of the variables that are checked: is it an environment?")
    return found
