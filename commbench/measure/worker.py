"""One process of a sweep, from joining the world to the last case: the order of things, told from the top."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from commbench.engines import load_engine
from commbench.engines.base import Engine
from commbench.errors import CommbenchError, InterruptedRunError, UsageError, WrongDataError
from commbench.launch.environment import RankPlace
from commbench.machine.binding import BUSY, Bind, bind_threads, busy_fraction
from commbench.machine.heap import steady_heap
from commbench.machine.host import read_host
from commbench.machine.software import kept_environment, versions
from commbench.measure.recorder import Progress, Recorder, Unrecorded
from commbench.measure.sampling import SamplingRules
from commbench.measure.session import Session, describe, guarded
from commbench.measure.watchdog import Watchdog
from commbench.plan.groups import Group, format_ranks
from commbench.plan.plan import Case, PlanRequest, build_plan
from commbench.results.schema import SCHEMA_VERSION, CaseRecord, GroupRecord, Host, Outcome, RunRecord
from commbench.results.store import RunWriter
from commbench.units import format_nbytes

_MEMORY_SHARE = 0.9  # of what is free: the rest is for the interpreter and for verification's chunks


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Everything that `commbench sweep` was asked for; the same on every rank."""

    plan: PlanRequest
    rules: SamplingRules
    directory: Path
    engine: str = "torch"
    backend: str | None = None
    verify: bool = True
    bind: Bind = "auto"
    timeout_seconds: float = 300.0
    command: tuple[str, ...] = ()
    fake: str = ""
    fake_ranks: int = 8


@dataclass(frozen=True, slots=True)
class Talk:
    """How a worker speaks to people; the command line gives it. Only rank 0 has progress to show."""

    describe: Callable[[RunRecord], None]
    progress: Callable[[int, float], Progress]
    warn: Callable[[str], None]


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
        talk.warn(f"{message} {recorder.abandon(outcome)}" if recorder else message)

    with Watchdog(rank, request.timeout_seconds, parent_pid, on_end) as watchdog:
        with watchdog.watching(*_rendezvous(place)):
            engine = _open_engine(request, place)
        with guarded(engine, watchdog, "the preparation of the run"):
            cases = build_plan(request.plan, engine.world, engine.one_buffer)
            _allocate(engine, cases)
            groups = _create_groups(engine, cases)
            busy = _busy(engine) if place and request.bind == "auto" else 0.0
            record = _describe_run(request, engine, place, cases, groups, busy)
        if rank == 0:
            if busy >= BUSY:
                talk.warn(
                    f"other programs take {busy:.0%} of the CPUs: threads are not bound, and times will be noisy."
                )
            talk.describe(record)
            progress = talk.progress(len(cases), request.rules.budget_seconds)
            recorder = Recorder(RunWriter(request.directory, record), progress)
        session = Session(
            engine,
            cases,
            rules=request.rules,
            seed=request.plan.seed,
            verify=request.verify,
            observer=recorder or Unrecorded(),
            watch=watchdog,
        )
        try:
            session.run()
        except CommbenchError as error:
            raise type(error)(f"{error} {recorder.abandon('failed')}" if recorder else str(error)) from error
        if recorder:
            recorder.finish("interrupted" if session.interrupted else "complete", session.seconds)
        with guarded(engine, watchdog, "the end of the run"):
            engine.close()
    return _verdict(session)


def _rendezvous(place: RankPlace | None) -> tuple[str, str]:
    """What a rank waits for at the start, and what to look at when that takes too long."""
    where = f" at {place.master_addr}:{place.master_port}, waiting for {place.world_size} ranks" if place else ""
    hint = "check that every rank was started, and that this address is reachable from every node"
    return f"the rendezvous{where}", hint


def _open_engine(request: SweepRequest, place: RankPlace | None) -> Engine:
    factory = load_engine(request.engine)
    if place is None:
        paper: Engine = factory(ranks=request.fake_ranks, spec=request.fake, seed=request.plan.seed)
        return paper
    if request.bind == "auto":
        steady_heap()
    os.environ |= {"MASTER_ADDR": place.master_addr, "MASTER_PORT": str(place.master_port)}
    engine: Engine = factory(
        rank=place.rank,
        size=place.world_size,
        local_rank=place.local_rank,
        backend=request.backend,
        timeout_seconds=request.timeout_seconds,
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
    mine = set(engine.ranks)
    groups = list(dict.fromkeys((case.layout, group) for case in cases for group in case.groups))
    for _, group in groups:
        if not mine.isdisjoint(group.ranks):
            engine.create_group(group)
    return groups


def _describe_run(
    request: SweepRequest,
    engine: Engine,
    place: RankPlace | None,
    cases: Sequence[Case],
    groups: Sequence[tuple[str, Group]],
    busy: float,
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
        hosts=_gather_hosts(engine, binding),
        groups=tuple(_group_record(engine, layout, group) for layout, group in groups),
        cases=tuple(_case_record(case, positions) for case in cases),
        versions=versions(),
        environment=kept_environment(),
    )


def _gather_hosts(engine: Engine, binding: str) -> tuple[Host, ...]:
    """One record a node: the facts of its first rank, and the binding of each of its ranks."""
    texts = engine.gather_texts(json.dumps(asdict(replace(read_host(), binding=binding))))
    facts = [Host(**json.loads(text)) for text in texts]
    if len(facts) < engine.world.size:  # one process plays all ranks
        return (replace(facts[0], ranks=format_ranks(range(engine.world.size)), binding="none"),)
    return tuple(
        replace(
            facts[ranks[0]],
            ranks=format_ranks(ranks),
            binding="; ".join(f"rank {rank}: {facts[rank].binding}" for rank in ranks),
        )
        for ranks in engine.world.ranks_by_node()
    )


def _group_record(engine: Engine, layout: str, group: Group) -> GroupRecord:
    link = engine.link(group)
    return GroupRecord(
        layout=layout,
        name=group.name,
        ranks=format_ranks(group.ranks),
        size=group.size,
        nodes=engine.world.nodes_of(group.ranks),
        link_class=link.link_class,
        bytes_per_second=link.bytes_per_second,
        alpha_step_seconds=link.alpha_step_seconds,
    )


def _case_record(case: Case, positions: Mapping[tuple[str, Group], int]) -> CaseRecord:
    foreign = ("groups", "variant")  # positions instead of groups; a variant is an imported case's
    kept = {field.name: getattr(case, field.name) for field in fields(CaseRecord) if field.name not in foreign}
    return CaseRecord(**kept, groups=tuple(positions[case.layout, group] for group in case.groups))


def _verdict(session: Session) -> CommbenchError | None:
    wrong = [state for state in session.states if state.mismatches]
    if wrong:
        worst = wrong[0]
        elements = sum(bad.wrong for bad in worst.mismatches)
        return WrongDataError(
            f"{describe(worst.case)}: {elements} wrong elements; {worst.reason}. Wrong data in {len(wrong)} of "
            f"{len(session.states)} cases: do not trust this library or link until it is explained."
        )
    return InterruptedRunError("interrupted: what was measured is kept.") if session.interrupted else None
