"""The options of a stored run, from the command that it keeps: `--resume` takes them over."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from commbench.errors import CommbenchError, UsageError

if TYPE_CHECKING:
    from commbench.launch.environment import RankPlace

# These belong to an invocation, not to the run: how long to wait, what to show, and where.
_OF_AN_INVOCATION = frozenset({"out", "resume", "timeout", "plots", "quiet", "verbose", "format_name", "output"})


def resumed_options(context: click.Context, given: dict[str, Any], place: "RankPlace | None") -> dict[str, Any]:
    """The `given` options of this command, with those of the stored run where they decide what is measured.

    A rank other than 0 may not see the run, and keeps what it was given; rank 0 will tell it. Raises UsageError for an
    option that was given again with another value, CommbenchError if there is no run that `commbench sweep` has made.
    """
    if given["out"]:
        raise UsageError("--resume goes on in the directory of its run, found --out too: leave --out away.")
    options = given if place and place.rank else _take_over(context, given["resume"], given)
    return {**options, "ranks": None} if place else options  # the launcher has decided on them; the worker compares


def _take_over(context: click.Context, directory: Path, given: dict[str, Any]) -> dict[str, Any]:
    from commbench.results.store import load_run

    record = load_run(directory).record
    stored = _parse(context.command, record.command, directory)
    stored |= {"ranks": record.world_size, "backend": record.backend}  # whether they were given or found out
    taken = {name: value for name, value in stored.items() if name not in _OF_AN_INVOCATION}
    names = {parameter.name: max(parameter.opts, key=len) for parameter in context.command.params}
    differing = [
        f"{names[name]} (stored {_shown(value)}, now {_shown(given[name])})"
        for name, value in taken.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and given[name] != value
    ]
    if differing:
        raise UsageError(f"cannot resume {directory}: it differs in {'; '.join(differing)}: leave these away.")
    return {**given, **taken}


def _parse(command: click.Command, words: tuple[str, ...], directory: Path) -> dict[str, Any]:
    if words[:2] != ("commbench", "sweep"):
        raise UsageError(f"{directory} was not made by commbench sweep: only such a run can be resumed.")
    try:
        return dict(command.make_context("sweep", list(words[2:])).params)
    except (click.ClickException, click.exceptions.Exit) as error:
        raise CommbenchError(f"{directory} holds a command that does not read: {' '.join(words)}.") from error


def _shown(value: object) -> str:
    return ",".join(str(part) for part in value) if isinstance(value, tuple) else str(value)
