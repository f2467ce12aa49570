"""`commbench sweep`: measure. Started alone it starts local workers; started by a launcher it is one of its ranks."""

import os
import socket
import sys
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commbench.cli import SaidError, show_message
from commbench.cli.local_world import count_local_ranks
from commbench.cli.options import output_options, write_output
from commbench.cli.progress import make_progress
from commbench.cli.sweep_options import sweep_options
from commbench.engines import check_engine
from commbench.errors import CommbenchError, InterruptedRunError, RendezvousError, TransportError, UsageError
from commbench.plan.links import collect_link_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commbench.launch.environment import RankPlace
    from commbench.measure.request import SweepRequest
    from commbench.results.finding import Finding
    from commbench.results.nccl_log import NcclLog
    from commbench.results.schema import RunRecord
    from commbench.topology.graph import Topology

DEFAULT_FAKE_RANKS = 8


@click.command(short_help="measure collectives over sizes and groups")
@sweep_options
@output_options
def sweep(**options: Any) -> None:
    """Measure collectives over sizes, on the groups of one or more layouts, and keep the run.

    \b
    commbench sweep
    commbench sweep --collectives all_reduce --sizes 1M:1G:x2 --budget 2m
    commbench sweep --layout world --layout node --concurrency alone --concurrency together
    commbench sweep --mode latency --sizes 8,1K --redop sum,max --dtype bfloat16,int32
    commbench sweep --engine fake --ranks 4096 --layout world --layout node
    torchrun --nnodes 2 --nproc-per-node 8 … -m commbench sweep
    srun -N4 commbench sweep

    Exit codes: 0 fine; 1 wrong data; 2 usage; 3 could not measure; 124 a hang was ended; 130 Ctrl-C.
    """
    from commbench.launch.environment import find_place

    check_engine(options["engine"])
    place = None if options["engine"] == "fake" else find_place(os.environ)
    if options["resume"]:
        from commbench.cli.resume import resumed_options

        options = resumed_options(click.get_current_context(), options, place)
    fake = options["engine"] == "fake"
    _check_options(options, place)
    if fake:
        ranks = options["ranks"] or DEFAULT_FAKE_RANKS
    else:
        ranks = place.world_size if place else _count_local_ranks(options)
    directory = options["resume"] or options["out"] or _default_directory(options["engine"], ranks)
    if not options["resume"] and (place is None or place.rank == 0):
        from commbench.results.writer import check_new_directory

        check_new_directory(directory)
    request = _request(options, ranks, directory)
    try:
        verdict = _measure(request, place, ranks, options["quiet"], options["verbose"])
    except InterruptedRunError as interrupted:  # the workers were told too, and have kept what they had
        verdict = interrupted
    if place is None or place.rank == 0:
        _present(directory, options)
    if verdict is not None:
        raise verdict if place is None or place.rank == 0 else SaidError(verdict.exit_code)


def _count_local_ranks(options: dict[str, Any]) -> int:
    return count_local_ranks(options["ranks"], options["backend"], options["engine"], options["ranks_per_gpu"])


def _check_options(options: dict[str, Any], place: "RankPlace | None") -> None:
    if options["fake"] and options["engine"] != "fake":
        raise UsageError("--fake describes the fake engine's machine: add --engine fake.")
    if options["graph"] and options["overlap"]:
        raise UsageError("--overlap times calls that are in no graph: give --graph or --overlap, not both.")
    if place is not None and options["ranks"] not in (None, place.world_size):
        raise UsageError(
            f"--ranks {options['ranks']} is for local workers, but {place.launcher} started {place.world_size} ranks: "
            "leave --ranks away, or unset the launcher's variables."
        )


def _request(options: dict[str, Any], ranks: int, directory: Path) -> "SweepRequest":
    from commbench.measure.request import SweepRequest
    from commbench.measure.sampling import SamplingRules
    from commbench.plan.plan import PlanRequest

    return SweepRequest(
        plan=PlanRequest(
            collectives=options["collectives"],
            sizes_nbytes=options["sizes"],
            layouts=tuple(dict.fromkeys(options["layouts"])),
            dtypes=options["dtypes"],
            redops=options["redops"],
            concurrencies=tuple(dict.fromkeys(options["concurrencies"])),
            mode=options["mode"],
            in_place=options["in_place"],
            seed=options["seed"],
        ),
        rules=SamplingRules(precision=options["precision"], budget_seconds=options["budget"], mode=options["mode"]),
        directory=directory,
        engine=options["engine"],
        backend=options["backend"],
        verify=options["verify"],
        bind=options["bind"],
        timeout_seconds=options["timeout"],
        command=("commbench", *click.get_current_context().obj),
        fake=options["fake"],
        fake_ranks=ranks,
        resume=options["resume"] is not None,
        link_rates=collect_link_rates(options["link_rates"]),
        overlap=options["overlap"],
        graph=options["graph"],
        ranks_per_gpu=options["ranks_per_gpu"],
    )


def _measure(
    request: "SweepRequest", place: "RankPlace | None", ranks: int, quiet: bool, verbose: bool
) -> CommbenchError | None:
    """Run as the rank that a launcher made of this process, as all ranks on paper, or start local workers."""
    if place is not None or request.engine == "fake":
        return _run_rank(request, place, None, quiet, verbose)
    from commbench.launch.local import WorkerExitError, run_local_workers

    try:
        verdict: CommbenchError | None = run_local_workers(ranks, _local_worker, request, os.getpid(), quiet, verbose)
    except WorkerExitError as ended:
        raise SaidError(ended.exit_code) from ended
    return verdict


def _local_worker(request: "SweepRequest", parent_pid: int, quiet: bool, verbose: bool) -> CommbenchError | None:
    from commbench.launch.environment import find_place

    try:
        verdict = _run_rank(request, find_place(os.environ), parent_pid, quiet, verbose)
    except SaidError as error:
        sys.exit(error.exit_code)
    if isinstance(verdict, InterruptedRunError):  # the launcher is ending too, and takes no more results
        sys.exit(verdict.exit_code)
    return verdict


def _run_rank(
    request: "SweepRequest", place: "RankPlace | None", parent_pid: int | None, quiet: bool, verbose: bool
) -> CommbenchError | None:
    """`run_rank`, with an error said by the one rank that should: rank 0, or all where rank 0 may not be there."""
    from commbench.measure.worker import Talk, run_rank

    def describe(record: "RunRecord") -> None:
        if verbose:
            _describe_world(record)

    def progress(cases: int, budget_seconds: float) -> Any:
        return make_progress(cases, budget_seconds, quiet)

    def note(message: str) -> None:
        if not quiet and (place is None or place.rank == 0):
            show_message(message)

    try:
        return run_rank(request, place, parent_pid, Talk(describe, progress, show_message, note), _judge_log)
    except CommbenchError as error:
        speaks = place is None or place.rank == 0 or isinstance(error, (RendezvousError, TransportError))
        if speaks and not error.is_quiet:
            show_message(str(error))
        raise SaidError(error.exit_code) from error


def _judge_log(log: "NcclLog", wired: "Sequence[tuple[Topology, frozenset[str]]]") -> "list[Finding]":
    """What NCCL's log says that people should look at, by itself and held against the wiring."""
    from commbench.analysis.witness import judge
    from commbench.analysis.witness_topology import judge_nodes

    return [found for found in (*judge(log), *judge_nodes(log, wired)) if found.verdict in ("warn", "fail")]


def _describe_world(record: "RunRecord") -> None:
    """What `-v` says on stderr before the first case."""
    found = " ".join(f"{name} {version}" for name, version in record.versions.items())
    click.echo(f"{record.world_size} ranks, {record.engine} over {record.backend}; {found}", err=True)
    for host in record.hosts:
        click.echo(
            f"{host.name}: ranks {host.ranks}; {host.cpus} CPUs ({host.cpu}); {host.interface or 'no network'}; "
            f"{host.binding}",
            err=True,
        )
    for name, value in record.environment.items():
        click.echo(f"{name}={value}", err=True)


def _present(directory: Path, options: dict[str, Any]) -> None:
    """The result on stdout, the plots beside the run."""
    from commbench.report.formats import FORMATS
    from commbench.results.store import RUN_FILE, load_run

    if not (directory / RUN_FILE).exists():  # interrupted before the first case
        return
    run = load_run(directory)
    write_output(FORMATS[options["format_name"]](run), options["output"])
    if options["plots"]:
        from commbench.cli.plots import write_plots

        write_plots(run, quiet=True)
    if not options["quiet"]:
        click.echo(f"run kept in {directory}", err=True)


def _default_directory(engine: str, ranks: int) -> Path:
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    wanted = Path("results") / f"{now}-{socket.gethostname()}-{engine}-{ranks}"
    taken = (wanted.with_name(f"{wanted.name}.{number}") for number in count(2))
    return next(path for path in chain([wanted], taken) if not path.exists())
