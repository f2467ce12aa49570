"""`commbench topo`: how a machine is wired."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli.options import read_input, write_file, write_output
from commbench.errors import UsageError

if TYPE_CHECKING:
    from commbench.topology.graph import Topology


@click.command(short_help="how a machine is wired: GPUs, NICs, link classes, the nearest NIC")
@click.option("--from", "source", metavar="FILE", help="What another tool says of the machine; - is standard input.")
@click.option(
    "--snapshot", is_flag=True, help="Write all facts of this machine as JSON, to be read elsewhere by --from."
)
@click.option("--as", "as_format", metavar="FORMAT", help="What the file is, where it is not recognised.")
@click.option(
    "--format",
    "shown_as",
    type=click.Choice(["table", "json", "markdown"]),
    default="table",
    show_default=True,
    help="Form of the result.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the result to FILE, not to stdout.")  # fmt: skip
@click.option("--plot", "plot_file", type=click.Path(path_type=Path, dir_okay=False),
              help="Also draw the machine into FILE, a PNG.")  # fmt: skip
@click.option("--list", "list_formats", is_flag=True, help="Say which formats can be read, and end.")
def topo(
    source: str | None,
    snapshot: bool,
    as_format: str | None,
    shown_as: str,
    output: Path | None,
    plot_file: Path | None,
    list_formats: bool,
) -> None:
    """Read how this machine is wired, or another by --from, and print the link class of every pair of GPUs and NICs.

    Below the matrix: the nearest NICs of every GPU, which GPUs have none under their own switch, and which see their
    siblings otherwise than the rest. What is not said is shown as ?, and never guessed.

    A snapshot holds the host's name, the IP addresses of its interfaces and the variables of NCCL and its like; no
    other variable, and no serial number, hardware address or GUID.

    \b
    commbench topo                                        this machine
    commbench topo --snapshot -o host.json                all facts of it, for commbench topo --from host.json
    nvidia-smi topo -m | commbench topo --from -
    commbench topo --from topo.txt --format markdown
    NCCL_TOPO_DUMP_FILE=topo.xml all_reduce_perf && commbench topo --from topo.xml
    commbench topo --from topo.txt --plot machine.png
    commbench topo --list

    Exit codes: 0 fine; 2 usage; 3 could not read.
    """
    from commbench.topology import FORMATS

    if list_formats:
        click.echo("".join(f"{row.name:<16} {row.summary}\n" for row in FORMATS.values()), nl=False)
        return
    if snapshot:
        for option, value in (("--from", source), ("--as", as_format), ("--plot", plot_file)):
            if value is not None:
                raise UsageError(f"--snapshot writes the facts of this machine as JSON: leave {option} out.")
        _write_snapshot(output)
        return
    from commbench.report.topology import TOPOLOGY_FORMATS

    if source is None and as_format is not None:
        raise UsageError("--as says what a file is: give the file too, --from FILE.")
    topology = _read(source, as_format)
    if plot_file is not None:
        _draw(topology, plot_file)
    write_output(TOPOLOGY_FORMATS[shown_as](topology), output)


def _write_snapshot(output: Path | None) -> None:
    from commbench.cli import show_message
    from commbench.machine.read_facts import read_facts
    from commbench.machine.snapshot import WHAT_IT_HOLDS, format_snapshot

    write_output(format_snapshot(read_facts()), output)
    show_message(f"wrote the snapshot; {WHAT_IT_HOLDS}.")


def _read(source: str | None, as_format: str | None) -> "Topology":
    from commbench.topology import MAX_NBYTES, read_topology, with_judgement

    if source is not None:
        name, data = read_input(source, MAX_NBYTES)
        return read_topology(data, name, as_format)
    from commbench.machine.read_facts import read_facts
    from commbench.topology.from_facts import make_topology

    return with_judgement(make_topology(read_facts()))


def _draw(topology: "Topology", path: Path) -> None:
    from commbench.report.topology_plot import draw_topology

    write_file(path, draw_topology(topology))
