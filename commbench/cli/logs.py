"""`commbench logs`: which way every pair of ranks really took, and what is wrong."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commbench.cli import SaidError
from commbench.cli.options import STDIN, read_input, write_output
from commbench.errors import UsageError

if TYPE_CHECKING:
    from commbench.results.finding import Finding
    from commbench.results.nccl_log import NcclLog
    from commbench.topology.graph import Topology


@click.command(short_help="NCCL debug logs: which way every pair of ranks took, and what is wrong")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--topo", "topo_file", metavar="FILE",
              help="The wiring of a node, for what to expect: all that commbench topo --from reads.")  # fmt: skip
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
def logs(files: tuple[str, ...], topo_file: str | None, shown_as: str, output: Path | None) -> None:
    """Read what NCCL or RCCL wrote with NCCL_DEBUG=INFO (or WARN), of all ranks of one job, in one file or several.

    - is standard input. Told of: version, communicators, the transport of every pair and channel, NICs used and not
    used, the environment that was read, warnings with their cause and cure, hangs, crashes, and the tuning table. What
    is broken off and cannot be put together for certain is counted, with its lines.

    \b
    commbench logs nccl.log
    commbench logs /tmp/nccl.*.log --topo topo.txt        against the wiring: NVLink that was not used, far NICs
    srun all_reduce_perf 2>&1 | commbench logs -
    commbench logs slurm-4711.out --format json

    Exit codes: 0 fine; 1 a failure, a hang or a crash is in it; 2 usage; 3 could not read.
    """
    from commbench.analysis.witness import judge
    from commbench.report.nccl_log import WITNESS_FORMATS, Witness
    from commbench.results.nccl_log import read_logs

    log = read_logs(_read_files(files))
    findings = (*judge(log), *_judge_environment(log))
    topology = _read_topology(topo_file) if topo_file is not None else None
    if topology is not None:
        from commbench.analysis.witness_topology import judge_against

        findings = (*findings, *judge_against(log, topology))
    witness = Witness(log, findings, topology.source if topology else "")
    write_output(WITNESS_FORMATS[shown_as](witness), output)
    if any(finding.verdict == "fail" for finding in findings):
        raise SaidError(1)


def _read_files(names: tuple[str, ...]) -> list[tuple[str, bytes]]:
    """Names and bytes. Raises UsageError if standard input is to be read twice."""
    from commbench.results.nccl_log import MAX_NBYTES

    if names.count(STDIN) > 1:
        raise UsageError("- is standard input, which can be read once: give it once.")
    files, left = [], MAX_NBYTES
    for name in names:
        shown, data = read_input(name, left)
        left = max(0, left - len(data))
        files.append((shown, data))
    return files


def _read_topology(name: str) -> "Topology":
    from commbench.topology import MAX_NBYTES, read_topology

    shown, data = read_input(name, MAX_NBYTES)
    return read_topology(data, shown)


def _judge_environment(log: "NcclLog") -> "tuple[Finding, ...]":
    """What the rules of `commbench check` say of the variables that the log shows, and nothing of what it does not."""
    from commbench.checks.registry import Scene, load_rules, run_rules, select_rules
    from commbench.machine.facts import Facts, SoftwareFacts

    if not log.settings:
        return ()
    variables = {seen.name: seen.value for seen in log.settings}
    sources = {seen.name: seen.where for seen in log.settings}
    version = log.versions[0][0].partition("+")[0] if log.versions else ""
    facts = Facts(
        source=log.sources[0],
        variables=variables,
        variable_sources=sources,
        software=SoftwareFacts(nccl_loadable=version),
    )
    nodes = max((comm.nodes or 1 for comm in log.comms), default=1)
    rules = select_rules(load_rules(), ("ENV",))
    return tuple(
        finding for finding in run_rules(rules, Scene(facts, nodes=nodes)) if finding.verdict in ("warn", "fail")
    )
