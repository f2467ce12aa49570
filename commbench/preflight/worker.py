"""One process of a preflight, from joining the world to the verdict: read this first.

Rank 0 conducts, the others follow its orders. Should rank 0 be the one that is missing, the first rank of the second
node says so.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from commbench.checks.registry import load_rules, select_rules
from commbench.checks.result import CheckResult, count_verdicts
from commbench.engines import load_board, load_engine
from commbench.engines.base import Board, Engine
from commbench.errors import CommbenchError, RendezvousError
from commbench.launch.environment import RankPlace, expected_hosts
from commbench.machine.facts import Facts
from commbench.machine.network import CHOICE_VARIABLE, choose_interface, is_loopback
from commbench.measure.flight import explain_hang
from commbench.measure.rendezvous import join
from commbench.measure.watchdog import Watchdog
from commbench.preflight.bench import LiveBench, PaperBench, follow
from commbench.preflight.clock import Clock, process_clock, virtual_clock
from commbench.preflight.conductor import Conductor
from commbench.preflight.gather import NodeReport, gather
from commbench.preflight.levels import expected_seconds
from commbench.preflight.line_rate import read_line_rate
from commbench.preflight.moved import find_moved
from commbench.preflight.passive import check_node, judge_world, read_own_facts
from commbench.preflight.request import Hints, PreflightRequest
from commbench.preflight.wiring import find_link_class
from commbench.report.preflight import Preflight, Stage
from commbench.results.finding import Verdict
from commbench.units import format_seconds

_MEET_SHARE, _CONNECT_SHARE = 0.4, 0.3  # of the time that is left: whoever has not come then is named
_LEAST_SECONDS = 2.0
_LEAST_STEP_SECONDS, _STEP_SHARE = 5.0, 0.3  # of the whole, for a step that has no limit of its own
_BLAME_SECONDS = 3.5  # before the deadline: so long it takes to find out who gives no sign of life
_HEARING_SECONDS = 1.5  # that the others wait for rank 0 to speak
_COUNTER_SECONDS = 2.0
_FAILED = 1
_OUR_LAUNCHERS = ("MASTER_ADDR", "MASTER_PORT")

Say = Callable[[str], None]
Present = Callable[[Preflight], None]


def run_on_paper(request: PreflightRequest, hints: Hints, say: Say) -> Preflight:
    """A preflight of the fake engine's machine, on its virtual clock. Nothing is checked: paper has no machine."""
    engine: Any = load_engine("fake")(ranks=request.fake_ranks, spec=request.fake, seed=request.seed)
    clock = virtual_clock(engine.now_seconds, request.budget_seconds)
    hosts = tuple(f"node{node}" for node in engine.world.node_of_rank)
    conductor = Conductor(request, hints, clock, hosts, say)
    conductor.run(PaperBench(engine, engine.clock))
    return conductor.outcome()


def run_rank(
    request: PreflightRequest, hints: Hints, place: RankPlace, parent_pid: int | None, say: Say, present: Present
) -> int:
    """Do one rank's part; its exit code. `present` shows the outcome, on the one rank that speaks, also at a deadline.

    Raises CommbenchError for what is wrong with the request; who is missing or dead is an outcome.
    """
    clock = process_clock(request.budget_seconds + request.soak_seconds)
    environment = dict(os.environ)
    if parent_pid is not None:  # our own launcher chose where to meet: that is nobody's mistake
        environment = {name: value for name, value in environment.items() if name not in _OUR_LAUNCHERS}
    read = partial(read_own_facts, place, environment, request.same)
    facts = read()
    rules = select_rules(load_rules(), request.select, request.ignore)
    conductor = Conductor(request, hints, clock, _expected_hosts(environment, place), say)

    def on_end(outcome: str, message: str, ranks: tuple[int, ...]) -> int | None:
        # One that was stopped comes too late: the others have told.
        is_quiet = not message or watchdog.was_stopped
        if is_quiet or (place.rank and not _speaks_for_rank_0(place, conductor, ranks)):
            return None
        _blame(conductor, message, ranks)
        found = conductor.outcome(message, is_hang=outcome == "stalled")
        present(found)
        return None if outcome == "interrupted" else found.exit_code

    ends_at = clock.deadline - _BLAME_SECONDS + (_HEARING_SECONDS if place.rank else 0.0)
    patience = max(_LEAST_STEP_SECONDS, _STEP_SHARE * request.budget_seconds)
    with Watchdog(place.rank, patience, parent_pid, on_end, ends_at) as watchdog:
        try:
            board = _meet(request, place, watchdog, conductor)
            reports = gather(board, facts, lambda here, nodes: check_node(here, rules, nodes), watchdog)
            conductor.line_rate = read_line_rate(facts, os.environ[CHOICE_VARIABLE])
            if reports:
                conductor.checks = judge_world(reports, rules)
                conductor.add(_check_stage(conductor.checks, clock))
            engine = _connect(request, place, board, watchdog, clock)
            watchdog.ask_library(partial(explain_hang, engine, os.environ))
            return _work(place, conductor, board, engine, watchdog, reports, present, read)
        except CommbenchError as error:
            if watchdog.was_stopped:
                return _FAILED
            # Rank 0 may be gone because it has told already.
            if place.rank and (watchdog.verdict or not _speaks_for_rank_0(place, conductor, error.ranks)):
                return _FAILED
            _blame(conductor, str(error), error.ranks, error.hosts)
            outcome = conductor.outcome(str(error))
            present(outcome)
            return outcome.exit_code


def _work(
    place: RankPlace,
    conductor: Conductor,
    board: Board,
    engine: Engine,
    watchdog: Watchdog,
    reports: tuple[NodeReport, ...] | None,
    present: Present,
    read: Callable[[], Facts],
) -> int:
    """Conduct, or follow, to the end. `read` reads the facts again."""
    if place.rank:
        with watchdog.watching("the wait for rank 0"):
            return follow(board, engine, place, read, lambda: watchdog.step(0.0))
    with watchdog.watching("the preflight", allowed_seconds=float("inf")):
        bench = LiveBench(board, engine, read, partial(find_link_class, engine, reports or ()))
        conductor.run(bench)
        if reports:
            conductor.add(_moved_stage(bench, reports, conductor.clock))
        if watchdog.was_stopped:
            return _FAILED
        outcome = conductor.outcome()
        present(outcome)
        watchdog.dismiss_monitor()
        bench.end(outcome.exit_code)
    return outcome.exit_code


def _meet(request: PreflightRequest, place: RankPlace, watchdog: Watchdog, conductor: Conductor) -> Board:
    """All ranks, or a RendezvousError that names who did not come."""
    clock = conductor.clock
    all_here = place.local_size == place.world_size
    os.environ[CHOICE_VARIABLE] = choose_interface(place.master_addr, all_here=all_here).name
    load_board(request.engine)  # what loads slowly counts for nobody's patience
    patience = max(_LEAST_SECONDS, _MEET_SHARE * clock.left_seconds)
    board, roll = join(place, watchdog, engine=request.engine, order=request.order, timeout_seconds=patience)
    conductor.hosts = roll.hosts
    if place.rank == 0:
        for warning in roll.warnings:
            conductor.say(warning)
        nodes = len(dict.fromkeys(roll.hosts))
        about = format_seconds(min(request.budget_seconds, expected_seconds(request.level, nodes)))
        came = f"{place.world_size} rank{'s' * (place.world_size > 1)} on {nodes} node{'s' * (nodes > 1)} came"
        said = f"{came}; level {request.level.name} takes about {about} where all are well"
        conductor.add(Stage("meeting", "ok", clock.spent_seconds, said))
    return board


def _connect(request: PreflightRequest, place: RankPlace, board: Board, watchdog: Watchdog, clock: Clock) -> Engine:
    """The engine. Raises TransportError that names who is gone."""
    patience = max(_LEAST_SECONDS, _CONNECT_SHARE * clock.left_seconds)
    with watchdog.watching("the connection of all ranks", allowed_seconds=2 * patience):
        try:
            engine: Engine = load_engine(request.engine)(
                rank=place.rank,
                size=place.world_size,
                local_rank=place.local_rank,
                backend=request.backend,
                board=board,
                library_timeout_seconds=patience,
            )
        except RendezvousError as error:
            raise watchdog.blame("the connection of all ranks", str(error).rstrip(".")) from error
    return engine


def _check_stage(checks: CheckResult, clock: Clock) -> Stage:
    counts = count_verdicts(placed.finding for placed in checks.findings)
    said = f"{counts['fail']} fail, {counts['warn']} warn, {counts['ok']} ok, {counts['skip']} skipped"
    worst = checks.worst
    culprits: tuple[str, ...] = ()
    if worst == "fail" and len(checks.nodes) > 1:
        failed = [checks.nodes_of(placed.ranks) for placed in checks.findings if placed.finding.verdict == "fail"]
        # What all nodes have in common is no reason to leave one out.
        culprits = tuple(dict.fromkeys(name for names in failed if len(names) < len(checks.nodes) for name in names))
    return Stage("checks", "ok" if worst == "skip" else worst, clock.spent_seconds, said, culprits)


def _moved_stage(bench: LiveBench, reports: tuple[NodeReport, ...], clock: Clock) -> Stage:
    """Counters of the nodes that answer, against what they were at the start."""
    began = clock.now()
    before = {(report.node.host.name, report.node.host.boot_id_hash): report.node for report in reports}
    now = bench.read_facts(_COUNTER_SECONDS)
    found = [
        (after.host.name, finding)
        for after in now
        if (node := before.get((after.host.name, after.host.boot_id_hash))) is not None
        for finding in find_moved(node, after)
    ]
    seconds = clock.now() - began
    if not found:
        return Stage("counters", "ok", seconds, f"nothing rose that may not, on {len(now)} of {len(before)} nodes")
    worst: Verdict = "fail" if any(finding.verdict == "fail" for _, finding in found) else "warn"
    told = "; ".join(f"{host}: {finding.subject} {finding.observed}" for host, finding in found)
    culprits = tuple(dict.fromkeys(host for host, finding in found if finding.verdict == "fail"))
    return Stage("counters", worst, seconds, told, culprits)


def _blame(conductor: Conductor, message: str, ranks: tuple[int, ...], hosts: tuple[str, ...] = ()) -> None:
    """Let the end be a stage, with the hosts of those that are to blame."""
    named = tuple(dict.fromkeys([*hosts, *(conductor.hosts[rank] for rank in ranks)]))
    known = tuple(host for host in named if host != "?")
    conductor.add(Stage("end", "fail" if known else "skip", conductor.clock.spent_seconds, message, known))


def _expected_hosts(environment: dict[str, str], place: RankPlace) -> tuple[str, ...]:
    """The host of every rank before anybody has come; that of rank 0 is where all meet."""
    first, *others = expected_hosts(environment, place)
    return (place.master_addr if first == "?" and not is_loopback(place.master_addr) else first, *others)


def _speaks_for_rank_0(place: RankPlace, conductor: Conductor, blamed: tuple[int, ...]) -> bool:
    """Whether rank 0 is to blame, and this is the first rank of the second node."""
    first = next((rank for rank, host in enumerate(conductor.hosts) if host != conductor.hosts[0]), 1)
    return 0 in blamed and place.rank == first
