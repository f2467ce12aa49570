"""`commbench export`: coefficients and measured times, as the files that planners load."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli.fit import parse_window
from commbench.cli.options import Parsed, read_input
from commbench.cli.runs import load_launches
from commbench.errors import CommbenchError, UsageError

if TYPE_CHECKING:
    from commbench.export import Base

_MAX_BASE_NBYTES = 8 << 20


def parse_name(text: str) -> str:
    """A name that files and systems may have. Raises UsageError."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", text, re.ASCII):
        raise UsageError(f"cannot take the name {text!r}: write letters, digits, _, . and -, 64 at most.")
    return text


@click.command(short_help="coefficients and times of stored runs, in the files that planners load")
@click.argument("runs", nargs=-1, metavar="RUN…", type=click.Path(path_type=Path))
@click.option("--to", "format_name", metavar="FORMAT", help="For which planner: a name of --list.")
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False),
              help="Directory that the files are written into; made if it is not there.")  # fmt: skip
@click.option("--list", "list_formats", is_flag=True,
              help="Say what each format needs, its units, what alpha is in it and how it was tested.")  # fmt: skip
@click.option(
    "--window", type=Parsed("window", parse_window), default="1M:", show_default=True, metavar="FIRST:LAST",
    help="Sizes that lines are fitted on, as for commbench fit.",
)  # fmt: skip
@click.option("--base", "base_file", metavar="FILE",
              help="The planner's own system file, in which the network is replaced; - is standard input.")  # fmt: skip
@click.option("--name", type=Parsed("name", parse_name), default="commbench", show_default=True,
              help="What the machine is called in the files.")  # fmt: skip
@click.option("--force", is_flag=True, help="Also write lines below quality, and say so in the side file.")
@click.option("--overwrite", is_flag=True, help="Replace files that are there.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the bootstrap.")
@click.option("-q", "--quiet", is_flag=True, help="No assumptions and no warnings on stderr, errors only.")
def export(
    runs: tuple[Path, ...],
    format_name: str | None,
    out: Path | None,
    list_formats: bool,
    window: tuple[int | None, int | None],
    base_file: str | None,
    name: str,
    force: bool,
    overwrite: bool,
    seed: int,
    quiet: bool,
) -> None:
    """Write what was measured in each RUN (a run's directory) as the files of a planner or simulator.

    The files written are listed on stdout; what they assume is on stderr, and with every coefficient's window,
    interval, error and source in the side file commbench-export.json. Where a run lacks what the format needs, the
    sweep that would give it is printed. A line below quality (poor, as commbench fit says) needs --force.

    \b
    commbench export --list
    commbench export results/RUN --to galvatron -o hardware_configs
    commbench export one-node two-nodes --to commbench-json -o coefficients --window 16M:
    commbench export results/RUN --to llm-analysis --base a100-sxm-80gb.json --name mybox -o gpu_configs

    Exit codes: 0 fine; 2 usage; 3 the runs lack something, are below quality, or a file could not be written.
    """
    from commbench.export import export_runs, find_format

    if list_formats:
        click.echo(_listing(), nl=False)
        return
    if format_name is None or out is None or not runs:
        raise UsageError("give one or more RUN, --to FORMAT (commbench export --list says which) and -o DIRECTORY.")
    find_format(format_name)
    from commbench.analysis.curves import group_launches
    from commbench.analysis.record_file import fit_launches
    from commbench.analysis.records import Window

    base = _read_base(base_file)
    launches = load_launches(runs)
    records = [fit_launches(members, Window(*window), seed) for members in group_launches(launches)]
    made = export_runs(
        format_name, records, [launch.run for launch in launches], name=name, base=base, force=force
    )  # fmt: skip
    _write(out, made.files, overwrite)
    if not quiet:
        for kind, texts in (("assumed", made.assumptions), ("warning", made.warnings)):
            for text in texts:
                click.echo(f"{kind}: {text}.", err=True)
    click.echo("".join(f"{out / path}\n" for path in made.files), nl=False)


def _listing() -> str:
    from commbench.export import FORMATS

    blocks = []
    for row in FORMATS.values():
        facts = [
            ("for", row.planner),
            ("needs", row.needs),
            ("units", row.units),
            ("alpha", row.alpha),
            ("tested", row.tested),
        ]
        if row.base:
            facts.append(("--base", row.base))
        blocks.append("\n".join([row.name, *(f"  {label:<7} {text}" for label, text in facts)]))
    return "\n".join(blocks) + "\n"


def _read_base(base_file: str | None) -> "Base | None":
    """Raises CommbenchError for a file that cannot be read, UsageError for one that is too large or no text."""
    from commbench.export import Base

    if base_file is None:
        return None
    name, data = read_input(base_file, _MAX_BASE_NBYTES)
    if len(data) > _MAX_BASE_NBYTES:
        raise UsageError(f"--base {name} is larger than 8 MiB: that is no system file.")
    try:
        return Base(name, data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(f"--base {name} is no text: {error}.") from error


def _write(out: Path, files: Mapping[str, bytes], overwrite: bool) -> None:
    """Raises CommbenchError if a file is there and may not be replaced, or cannot be written."""
    there = [path for path in files if (out / path).exists()]
    if there and not overwrite:
        raise CommbenchError(f"{out / there[0]} is there already: give another -o, or --overwrite to replace it.")
    for path, data in files.items():
        target = out / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError as error:
            raise CommbenchError(f"cannot write {target}: {error.strerror}.") from error
