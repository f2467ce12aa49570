"""Options that several commands share, and the way from a text of the command line to a value."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from commbench.cli import SaidError
from commbench.errors import CommbenchError

STDIN = "-"
Command = TypeVar("Command", bound=Callable[..., Any])


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """A value that a function of ours reads; its error becomes click's, with the option's name."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except CommbenchError as error:
            self.fail(str(error), param, ctx)


def output_options(command: Command) -> Command:
    """`--format` and `-o`: what a command writes, and where."""
    from commbench.report.formats import FORMATS

    command = click.option(
        "--format", "format_name", type=click.Choice(list(FORMATS)), default="table", show_default=True,
        help="Form of the result.",
    )(command)  # fmt: skip
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Write the result to FILE, not to stdout.",
    )(command)


def write_output(text: str, output: Path | None, *, at_once: bool = False) -> None:
    """Write `text` to `output`, or to stdout. `at_once`: a file is replaced, so that nobody ever reads a half of it.

    Raises CommbenchError if it cannot be written.
    """
    to_stdout = output is None or str(output) == "-"
    try:
        if output is None or to_stdout:
            click.echo(text, nl=False)
        elif at_once and (output.is_file() or not output.exists()):
            _replace_file(output.resolve(), text)
        else:
            output.write_text(text, encoding="utf-8")
    except BrokenPipeError as error:  # `commbench report | head`: the reader has seen enough
        raise SaidError(0) from error
    except OSError as error:
        raise CommbenchError(f"cannot write {'stdout' if to_stdout else output}: {error.strerror}.") from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that was asked for beside the result. Raises CommbenchError if it cannot be written."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise CommbenchError(f"cannot write {path}: {error.strerror}.") from error


def _replace_file(path: Path, text: str) -> None:
    """By way of a file beside it; not a temporary one as `tempfile` makes it, which others could not read."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def read_input(name: str, limit: int) -> tuple[str, bytes]:
    """What messages call the file or standard input, and its bytes: `limit` + 1 at most, so that more is noticed.

    Raises CommbenchError if it cannot be read.
    """
    try:
        if name == STDIN:
            return "standard input", sys.stdin.buffer.read(limit + 1)
        with open(name, "rb") as file:
            return Path(name).name, file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommbenchError(f"cannot read {name}: {reason}.") from error
