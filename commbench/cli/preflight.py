"""`commbench preflight`: healthy or not, and who is to blame, within a budget."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commbench.cli import SaidError, show_message
from commbench.cli.options import read_input, write_file, write_output
from commbench.cli.preflight_options import preflight_options
from commbench.errors import CommbenchError, UsageError
from commbench.units import format_nbytes

if TYPE_CHECKING:
    from commbench.launch.environment import RankPlace
    from commbench.preflight.request import Hints, PreflightRequest
    from commbench.report.preflight import Preflight

_MOST_OF_HINTS = 8 << 20  # racks of 100,000 nodes are 2 MiB


@click.command(short_help="healthy or not, and which node, NIC or link is to blame")
@preflight_options
def preflight(**options: Any) -> None:
    """Say before a job whether its nodes are healthy, and who is to blame if not, within --budget.

    Every rank checks its node; then all meet, and rank 0 conducts: a first answer, right data, the ranks of each node,
    rounds of disjoint pairs of nodes. Who looks slow is measured again, with good partners, before it is accused.

    \b
    srun --kill-on-bad-exit=1 commbench preflight
    srun commbench preflight --level standard --budget 2m --exclude-file bad_nodes
    srun commbench preflight --expect h100-8 --plot pairs.png
    srun commbench preflight --write-expectation ours.toml
    commbench preflight                                      this machine alone
    commbench preflight --engine fake --ranks 64 --fake slow-rank=9:2

    Exit codes: 0 healthy; 1 not; 2 usage; 3 could not measure; 124 a hang was ended, and nobody named; 130 Ctrl-C.
    """
    from commbench.launch.environment import find_place

    if options["list_platforms"]:
        from commbench.analysis.expectations import published_platforms

        click.echo("".join(f"{name:<12} {title}\n" for name, title in published_platforms().items()), nl=False)
        return
    if options["fake"] and options["engine"] != "fake":
        raise UsageError("--fake describes the fake engine's machine: add --engine fake.")
    place = None if options["engine"] == "fake" else find_place(os.environ)
    request, hints = _request(options), _hints(options)
    code = _run(request, hints, place, options)
    if code:
        raise SaidError(code)


def _run(request: "PreflightRequest", hints: "Hints", place: "RankPlace | None", options: dict[str, Any]) -> int:
    if request.engine == "fake":
        from commbench.preflight.worker import run_on_paper

        outcome = run_on_paper(request, hints, _speaker(options, True))
        _present(outcome, options)
        return outcome.exit_code
    if place is not None:
        return _run_rank(request, hints, place, None, options)
    from commbench.cli.local_world import count_local_ranks
    from commbench.launch.local import WorkerExitError, run_local_workers

    ranks = count_local_ranks(options["ranks"], request.backend)
    try:
        return int(run_local_workers(ranks, _local_worker, request, hints, os.getpid(), options))
    except WorkerExitError as ended:
        return ended.exit_code


def _local_worker(request: "PreflightRequest", hints: "Hints", parent_pid: int, options: dict[str, Any]) -> int:
    from commbench.launch.environment import find_place

    place = find_place(os.environ)
    assert place is not None  # torch's launcher has just set it
    return _run_rank(request, hints, place, parent_pid, options)


def _run_rank(
    request: "PreflightRequest", hints: "Hints", place: "RankPlace", parent_pid: int | None, options: dict[str, Any]
) -> int:
    from commbench.preflight.worker import run_rank

    return run_rank(
        request, hints, place, parent_pid, _speaker(options, place.rank == 0), lambda found: _present(found, options)
    )


def _speaker(options: dict[str, Any], speaks: bool) -> Any:
    def say(message: str) -> None:
        if speaks and not options["quiet"]:
            show_message(message)

    return say


def _present(found: "Preflight", options: dict[str, Any]) -> None:
    """The outcome on stdout or in a file, and what else was asked for."""
    from commbench.report.preflight_formats import PREFLIGHT_FORMATS

    if options["exclude_file"] is not None:
        write_file(options["exclude_file"], _exclude_text(found))
    if options["plot_file"] is not None and found.searches:
        from commbench.report.pair_map import draw_pair_map

        search = found.searches[0]
        write_file(options["plot_file"], draw_pair_map(search.diagnosis, search.table, search.verdicts))
    if options["write_expectation"] is not None and found.searches:
        from commbench.preflight.expected import expectations_of

        write_file(options["write_expectation"], expectations_of(found))
    write_output(PREFLIGHT_FORMATS[options["format_name"]](found), options["output"], at_once=True)
    sys.stdout.flush()  # what ends a hang does not come back here


def _exclude_text(found: "Preflight") -> str:
    from commbench.analysis.racks import collect_hosts

    return f"{collect_hosts(found.exclude)}\n" if found.exclude else ""


def _request(options: dict[str, Any]) -> "PreflightRequest":
    from itertools import chain

    from commbench.preflight.levels import LEVELS
    from commbench.preflight.request import PreflightRequest

    level = LEVELS[options["level"]]
    return PreflightRequest(
        level=level,
        budget_seconds=options["budget"] or level.budget_seconds,
        command=("commbench", *click.get_current_context().obj),
        engine=options["engine"],
        backend=options["backend"],
        seed=options["seed"],
        soak_seconds=options["soak"] or 0.0,
        select=tuple(chain(*options["select"])),
        ignore=tuple(chain(*options["ignore"])),
        same=options["same"],
        fake=options["fake"],
        fake_ranks=options["ranks"] or 8,
    )


def _hints(options: dict[str, Any]) -> "Hints":
    """What is expected, and which nodes share a rack. Raises CommbenchError for files that do not read so."""
    from commbench.analysis.expectations import expectations_from_run, published_expectations, read_expectations
    from commbench.analysis.racks import read_racks, read_slurm_topology
    from commbench.preflight.request import Hints

    expectations: list[Any] = []
    for text in options["expect"]:
        path = Path(text)
        if path.is_dir():
            from commbench.results.store import load_run

            expectations += expectations_from_run(load_run(path), str(path))
        elif path.is_file():
            expectations += read_expectations(_read_text(path), str(path))
        else:
            expectations += published_expectations(text)
    racks = None
    if options["racks"] is not None:
        text = _read_text(options["racks"])
        racks = read_slurm_topology(text) or read_racks(text, str(options["racks"]))
    return Hints(tuple(expectations), racks)


def _read_text(path: Path) -> str:
    name, data = read_input(str(path), _MOST_OF_HINTS)
    if len(data) > _MOST_OF_HINTS:
        raise CommbenchError(f"{name} is larger than {format_nbytes(_MOST_OF_HINTS)}: that is no file of hints.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CommbenchError(f"{name} is no text: {error}.") from error
