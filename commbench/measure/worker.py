"""One process of a sweep, from joining the world to the last case: the order of things, told from the top."""

import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np

from commbench.engines import load_board, load_engine
from commbench.engines.base import Board, Engine
from commbench.errors import CommbenchError, InterruptedRunError, RendezvousError, UsageError, WrongDataError
from commbench.launch.environment import RankPlace, expected_hosts
from commbench.machine.binding import BUSY, Bind, bind_threads, busy_fraction
from commbench.machine.heap import steady_heap
from commbench.machine.host import read_host
from commbench.machine.network import CHOICE_VARIABLE, Interface, choose_interface
from commbench.machine.software import kept_environment, versions
from commbench.measure.monitor import Monitor
from commbench.measure.recorder import Progress, Recorder, Unrecorded
from commbench.measure.resume import find_left, take_request
from commbench.measure.rollcall import Presence, Roll, call_roll
from commbench.measure.sampling import SamplingRules
from commbench.measure.session import Session, describe, guarded
from commbench.measure.watchdog import Watchdog
from commbench.plan.groups import Group, format_ranks
from commbench.plan.plan import Case, PlanRequest, build_plan
from commbench.results.schema import SCHEMA_VERSION, CaseRecord, GroupRecord, Host, Outcome, RunRecord
from commbench.results.writer import RunWriter
from commbench.units import format_nbytes

_RENDEZVOUS_SECONDS = 300.0  # unless --timeout says otherwise: schedulers start nodes one by one
_MEMORY_SHARE = 0.9  # of what is free: the rest is for the interpreter and for verification's chunks


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Everything that `commbench sweep` was asked for; the same on every rank, but where a run is resumed.

    `link_rates`: nominal bytes per second of one rank's link, by link class.
    """

    plan: PlanRequest
    rules: SamplingRules
    directory: Path
    engine: str = "torch"
    backend: str | None = None
    verify: bool = True
    bind: Bind = "auto"
    timeout_seconds: float | None = None
    command: tuple[str, ...] = ()
    fake: str = ""
    fake_ranks: int = 8
    resume: bool = False
    link_rates: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Talk:
    """How a worker speaks to people; the command line gives it. Only rank 0 has progress to show."""

    describe: Callable[[RunRecord], None]
    progress: Callable[[int, float], Progress]
    warn: Callable[[str], None]
    note: Callable[[str], None]


def run_rank(
    request: SweepRequest, place: RankPlace | None, parent_pid: int | None, talk: Talk
) -> CommbenchError | None:
    """Measure as one rank or, on the fake engine, as all of them. `parent_pid`: end when that process is gone.

    Returns what was wrong with a run that came to its end, None if nothing. Raises the CommbenchError that ended one
    early; what was measured until then is in its directory.
    """
    rank = place.rank if place else 0
    recorder: Recorder | None = None

    def on_end(outcome: Outcome, message: str) -> None:
        kept = recorder.abandon(outcome) if recorder else ""
        if message:
            talk.warn(f"{message} {kept}".rstrip())

    with Watchdog(rank, request.timeout_seconds, parent_pid, on_end) as watchdog:
        board, interface, roll = _meet(request, place, watchdog) if place else (None, None, None)
        for warning in roll.warnings if roll and rank == 0 else ():
            talk.warn(warning)
        with watchdog.watching("the connection of all ranks"):
            engine = _open_engine(request, place, board)
        with guarded(engine, watchdog, "the preparation of the run"):
            request = take_request(engine, request)
            cases = build_plan(request.plan, engine.world, engine.one_buffer)
            _allocate(engine, cases)
            groups = _create_groups(engine, cases)
            busy = _busy(engine) if place and request.bind == "auto" else 0.0
            record = _describe_run(request, engine, place, cases, groups, busy, str(interface or ""))
            left, stored = find_left(engine, rank, request, record)
        if left.complete:
            talk.note(f"{request.directory} is complete: nothing is left to measure.")
            _leave(engine, watchdog)
            return None
        if rank == 0:
            if busy >= BUSY:
                talk.warn(
                    f"other programs take {busy:.0%} of the CPUs: threads are not bound, and times will be noisy."
                )
            talk.describe(record)
            progress = talk.progress(len(cases), request.rules.budget_seconds)
            writer = stored.writer() if stored else RunWriter(request.directory, record)
            recorder = Recorder(writer, progress, len(left.done))
        session = Session(
            engine,
            cases,
            rules=request.rules,
            seed=request.plan.seed,
            verify=request.verify,
            observer=recorder or Unrecorded(),
            watch=watchdog,
            done=left.done,
        )
        try:
            session.run()
        except CommbenchError as error:
            if recorder:
                raise type(error)(f"{error} {recorder.abandon('failed')}") from error
            raise
        if recorder:
            recorder.finish("interrupted" if session.interrupted else "complete", session.seconds)
        _leave(engine, watchdog)
    return _verdict(session)


def _leave(engine: Engine, watchdog: Watchdog) -> None:
    with guarded(engine, watchdog, "the end of the run"):
        engine.barrier()  # now nobody needs to know of the others any more
        watchdog.dismiss_monitor()
        engine.close()


def _meet(request: SweepRequest, place: RankPlace, watchdog: Watchdog) -> tuple[Board, Interface, Roll]:
    """Wait for all ranks, and let them hear of each other from now on. Raises RendezvousError if one does not come."""
    os.environ |= {"MASTER_ADDR": place.master_addr, "MASTER_PORT": str(place.master_port)}
    speaks_second = place.local_rank == 0 or place.rank == 1
    patience = request.timeout_seconds or _RENDEZVOUS_SECONDS
    try:
        interface = choose_interface(place.master_addr, all_here=place.local_size == place.world_size)
        os.environ[CHOICE_VARIABLE] = interface.name
        with watchdog.watching("the rendezvous", allowed_seconds=2 * patience + 30.0):
            board: Board = load_board(request.engine)(rank=place.rank, size=place.world_size, timeout_seconds=patience)
            monitor = Monitor(board, place.rank, place.world_size, watchdog.look, speaks_second=speaks_second)
            watchdog.ask(monitor)
            me = Presence(socket.gethostname(), versions(), _order(request))
            hosts = expected_hosts(os.environ, place)
            roll = call_roll(board, place.rank, me, hosts, patience, speaks=speaks_second)
    except RendezvousError as error:
        error.is_quiet = error.is_quiet or not (speaks_second or place.rank == 0)
        raise
    monitor.meet(roll.hosts)
    return board, interface, roll


def _order(request: SweepRequest) -> str:
    """The same text for ranks that were asked to do the same; where to write, what to resume: rank 0's affair."""
    if request.resume:
        return "resume"
    asked = replace(request, directory=Path(), command=())
    return sha256(repr(asked).encode()).hexdigest()[:12]


def _open_engine(request: SweepRequest, place: RankPlace | None, board: Board | None) -> Engine:
    factory = load_engine(request.engine)
    if place is None:
        paper: Engine = factory(ranks=request.fake_ranks, spec=request.fake, seed=request.plan.seed)
        return paper
    if request.bind == "auto":
        steady_heap()
    engine: Engine = factory(
        rank=place.rank,
        size=place.world_size,
        local_rank=place.local_rank,
        backend=request.backend,
        board=board,
    )
    return engine


def _allocate(engine: Engine, cases: Sequence[Case]) -> None:
    """Make buffers for the largest case. Raises UsageError, before allocating, if it does not fit."""
    needs = [(engine.needed_nbytes(case), case) for case in cases]
    needed, largest = max(needs, key=lambda need: need[0])
    available = int(engine.available_nbytes() * _MEMORY_SHARE)
    # Every rank must come to the same end: the one with the least memory decides.
    least = -int(engine.max_reduce(np.array([-float(available)]))[0])
    if needed > least:
        fits = int(largest.requested_nbytes * (least / needed))
        raise UsageError(
            f"{describe(largest)} needs {format_nbytes(needed)} on each rank for its buffers, verification and the "
            f"library's copies, {format_nbytes(least)} are free for each: up to {format_nbytes(fits)} would fit; "
            "give smaller --sizes."
        )
    buffers = [engine.buffer_nbytes(case) for case in cases]
    engine.allocate(max(send for send, _ in buffers), max(receive for _, receive in buffers))


def _busy(engine: Engine) -> float:
    """What other programs take of the CPUs, on the node where they take most: all ranks bind, or none does."""
    engine.barrier()  # now all ranks are here, and have nothing to do
    return float(engine.max_reduce(np.array([busy_fraction()]))[0])


def _create_groups(engine: Engine, cases: Sequence[Case]) -> list[tuple[str, Group]]:
    """Connect every group of the plan by its members alone. Returns all of them, with their layout, each once."""
    groups = list(dict.fromkeys((case.layout, group) for case in cases for group in case.groups))
    engine.create_groups([group for _, group in groups])
    return groups


def _describe_run(
    request: SweepRequest,
    engine: Engine,
    place: RankPlace | None,
    cases: Sequence[Case],
    groups: Sequence[tuple[str, Group]],
    busy: float,
    interface: str,
) -> RunRecord:
    binding = ""
    if place is not None:  # after the groups: the library has started its threads
        binding = bind_threads(request.bind, place.local_rank, place.local_size, engine.pci_address, busy)
    positions = {key: position for position, key in enumerate(groups)}
    return RunRecord(
        schema_version=SCHEMA_VERSION,
        created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        command=request.command,
        engine=engine.name,
        backend=engine.backend,
        launcher=place.launcher if place else "none",
        world_size=engine.world.size,
        seed=request.plan.seed,
        precision=request.rules.precision,
        budget_seconds=request.rules.budget_seconds,
        layouts=request.plan.layouts,
        hosts=_gather_hosts(engine, binding, interface),
        groups=tuple(_group_record(engine, layout, group, dict(request.link_rates)) for layout, group in groups),
        cases=tuple(_case_record(case, positions) for case in cases),
        versions=versions(),
        environment=kept_environment(),
    )


def _gather_hosts(engine: Engine, binding: str, interface: str) -> tuple[Host, ...]:
    """One record a node: the facts of its first rank, and the binding of each of its ranks."""
    texts = engine.gather_texts(json.dumps(asdict(replace(read_host(), binding=binding, interface=interface))))
    facts = [Host(**json.loads(text)) for text in texts]
    if len(facts) < engine.world.size:  # one process plays all ranks, on nodes of paper
        nodes = engine.world.ranks_by_node()
        names = [f"node{node}" for node in range(len(nodes))] if len(nodes) > 1 else [facts[0].name]
        return tuple(
            replace(facts[0], name=name, ranks=format_ranks(ranks), binding="none")
            for name, ranks in zip(names, nodes, strict=True)
        )
    return tuple(
        replace(
            facts[ranks[0]],
            ranks=format_ranks(ranks),
            binding="; ".join(f"rank {rank}: {facts[rank].binding}" for rank in ranks),
        )
        for ranks in engine.world.ranks_by_node()
    )


def _group_record(engine: Engine, layout: str, group: Group, link_rates: Mapping[str, float]) -> GroupRecord:
    link = engine.link(group)
    return GroupRecord(
        layout=layout,
        name=group.name,
        ranks=format_ranks(group.ranks),
        size=group.size,
        nodes=engine.world.nodes_of(group.ranks),
        link_class=link.link_class,
        bytes_per_second=link_rates.get(link.link_class, link.bytes_per_second),
        alpha_step_seconds=link.alpha_step_seconds,
    )


def _case_record(case: Case, positions: Mapping[tuple[str, Group], int]) -> CaseRecord:
    kept = {field.name: getattr(case, field.name) for field in fields(CaseRecord) if field.name != "groups"}
    return CaseRecord(**kept, groups=tuple(positions[case.layout, group] for group in case.groups))


def _verdict(session: Session) -> CommbenchError | None:
    wrong = [state for state in session.states if state.status == "wrong"]
    if wrong:
        worst = wrong[0]
        elements = sum(samples.wrong or 0 for samples in worst.samples)
        return WrongDataError(
            f"{describe(worst.case)}: {elements} wrong elements; {worst.reason}. Wrong data in {len(wrong)} of "
            f"{len(session.states)} cases: do not trust this library or link until it is explained."
        )
    return InterruptedRunError("interrupted: what was measured is kept.") if session.interrupted else None
