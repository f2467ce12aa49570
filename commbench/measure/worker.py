"""One process of a sweep, from joining the world to the last case: the order of things, told from the top."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from commbench.engines import load_engine
from commbench.engines.base import Board, Engine
from commbench.errors import CommbenchError, InterruptedRunError, UsageError, WrongDataError
from commbench.launch.environment import RankPlace
from commbench.machine.binding import BUSY, busy_fraction
from commbench.machine.heap import steady_heap
from commbench.measure.case_state import describe
from commbench.measure.fitting import plan_what_fits
from commbench.measure.flight import explain_hang
from commbench.measure.gpu_watch import find_gpu_state, raise_clocks
from commbench.measure.overlap import measure_overlap
from commbench.measure.recorder import Progress, Recorder, Unrecorded
from commbench.measure.rendezvous import meet
from commbench.measure.request import SweepRequest
from commbench.measure.resume import StoredRun, find_left, take_request
from commbench.measure.run_record import describe_run
from commbench.measure.session import Session, guarded
from commbench.measure.watchdog import Watchdog
from commbench.measure.witness import Judge, Witness
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from commbench.results.schema import Finding, Outcome, OverlapRecord, RunRecord
from commbench.results.store import LOGS_DIR
from commbench.results.writer import RunWriter


@dataclass(frozen=True, slots=True)
class Talk:
    """How a worker speaks to people; the command line gives it. Only rank 0 has progress to show."""

    describe: Callable[[RunRecord], None]
    progress: Callable[[int, float], Progress]
    warn: Callable[[str], None]
    note: Callable[[str], None]


@dataclass(slots=True)
class _Kept:
    """What there is to keep when a run ends early, as far as it has come."""

    directory: Path
    recorder: Recorder | None = None
    witness: Witness | None = None

    def abandon(self, outcome: Outcome) -> str:
        """Keep it, and say where."""
        run = self.recorder.abandon(outcome) if self.recorder else ""
        log = self.witness.keep(self.directory) if self.witness else ""
        return f"{run} {log}".strip()


def run_rank(
    request: SweepRequest, place: RankPlace | None, parent_pid: int | None, talk: Talk, judge: Judge
) -> CommbenchError | None:
    """Measure as one rank or, on the fake engine, as all of them. `parent_pid`: end when that process is gone.

    `judge`: what NCCL's log says went wrong. Returns what was wrong with a run that came to its end, None if nothing.
    Raises the CommbenchError that ended one early; what was measured until then is in its directory.
    """
    kept = _Kept(request.directory)

    def on_end(outcome: Outcome, message: str, _ranks: tuple[int, ...]) -> None:
        where = kept.abandon(outcome)
        if message:
            talk.warn(f"{message} {where}".rstrip())

    with Watchdog(place.rank if place else 0, request.timeout_seconds, parent_pid, on_end) as watchdog:
        try:
            return _measure(request, place, talk, judge, watchdog, kept)
        except UsageError:  # nothing was measured; a stored run that is not the one to go on with stays as it is
            raise
        except CommbenchError as error:
            error.args = (f"{error} {kept.abandon('failed')}".rstrip(),)
            raise
        finally:
            if kept.witness:
                kept.witness.close()


def _measure(
    request: SweepRequest, place: RankPlace | None, talk: Talk, judge: Judge, watchdog: Watchdog, kept: _Kept
) -> CommbenchError | None:
    rank = place.rank if place else 0
    board, interface, roll = meet(request, place, watchdog) if place else (None, None, None)
    for warning in roll.warnings if roll and rank == 0 else ():
        talk.warn(warning)
    with watchdog.watching("the connection of all ranks"):
        engine = _open_engine(request, place, board)
    watchdog.ask_library(partial(explain_hang, engine, os.environ))
    with guarded(engine, watchdog, "the preparation of the run"):
        request = take_request(engine, request)
        cases, shrunk = plan_what_fits(engine, request)
        kept.witness = witness = Witness(engine, board)
    groups = _create_groups(engine, watchdog, cases)
    with guarded(engine, watchdog, "the preparation of the run"):
        busy = _busy(engine) if place and request.bind == "auto" else 0.0
        raise_clocks(engine)
        findings = [*shrunk, *find_gpu_state(engine, "before")]
        record = describe_run(request, engine, place, cases, groups, busy, str(interface or ""), witness, findings)
        left, stored = find_left(engine, rank, request, record)
    if left.complete:
        talk.note(f"{request.directory} is complete: nothing is left to measure.")
        _leave(engine, watchdog, witness)
        return None
    if rank == 0:
        kept.recorder = _start_recorder(request, talk, record, stored, busy)
    session = Session(
        engine,
        cases,
        rules=request.rules,
        seed=request.plan.seed,
        verify=request.verify,
        observer=kept.recorder or Unrecorded(),
        watch=watchdog,
        done=left.done,
        graph_calls=request.graph_calls,
    )
    session.run()
    if request.overlap and not session.interrupted:
        _measure_overlap(engine, session, request, record, kept.recorder, watchdog)
    with _ending(engine, watchdog, witness):
        findings = find_gpu_state(engine, "after")
        witness.hand_over()
    if kept.recorder:
        _finish(request, talk, judge, session, kept.recorder, witness, findings)
        kept.recorder = None
    _leave(engine, watchdog, witness)
    return _verdict(session)


def _finish(
    request: SweepRequest, talk: Talk, judge: Judge, session: Session, recorder: Recorder, witness: Witness,
    findings: Sequence[Finding],
) -> None:  # fmt: skip
    """On rank 0: what the GPUs say now, what NCCL's logs tell, and the end of the record."""
    if findings:
        recorder.keep_findings(findings)
    evidence = witness.testify(recorder.directory, recorder.groups, dict(request.link_rates), judge)
    if evidence:
        recorder.keep_evidence(evidence)
        logs = recorder.directory / LOGS_DIR
        talk.note(f"NCCL's logs are in {logs}: commbench logs {logs}/*")
    recorder.finish("interrupted" if session.interrupted else "complete", session.seconds)


def _measure_overlap(
    engine: Engine, session: Session, request: SweepRequest, record: RunRecord, recorder: Recorder | None,
    watchdog: Watchdog,
) -> None:  # fmt: skip
    """The overlap of the cases that were right, into the run's record; wrong data is not timed. Call it last."""
    right = [state.case for state in session.states if state.status != "wrong"]

    def keep(found: Sequence[OverlapRecord]) -> None:
        if recorder:
            recorder.keep_overlap(found)

    measure_overlap(engine, right, lambda case: record.cases[case.index].groups, request.rules, watchdog, keep)


def _start_recorder(
    request: SweepRequest, talk: Talk, record: RunRecord, stored: StoredRun | None, busy: float
) -> Recorder:
    """Say what the run is, and open its directory: a new one, or that of the `stored` run."""
    if busy >= BUSY:
        talk.warn(f"other programs take {busy:.0%} of the CPUs: threads are not bound, and times will be noisy.")
    for finding in record.findings:
        if finding.verdict == "warn":
            talk.warn(f"{finding.subject}: {finding.observed}; {finding.action}.")
    talk.describe(record)
    progress = talk.progress(len(record.cases), request.rules.budget_seconds)
    if stored is None:
        return Recorder(RunWriter(request.directory, record), progress, 0)
    return Recorder(stored.writer(), progress, len(stored.left.done))


@contextmanager
def _ending(engine: Engine, watchdog: Watchdog, witness: Witness) -> Iterator[None]:
    """Watch the body, in which others may wait for rank 0 while it takes and reads what NCCL wrote."""
    what = "the end of the run"
    with guarded(engine, watchdog, what), watchdog.watching(what, allowed_seconds=witness.waiting_seconds):
        yield


def _leave(engine: Engine, watchdog: Watchdog, witness: Witness) -> None:
    with _ending(engine, watchdog, witness):
        engine.barrier()  # now nobody needs to know of the others any more
        watchdog.dismiss_monitor()
        engine.close()


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
        ranks_per_gpu=request.ranks_per_gpu,
    )
    return engine


def _busy(engine: Engine) -> float:
    """What other programs take of the CPUs, on the node where they take most: all ranks bind, or none does."""
    engine.barrier()  # now all ranks are here, and have nothing to do
    return float(engine.max_reduce(np.array([busy_fraction()]))[0])


def _create_groups(engine: Engine, watchdog: Watchdog, cases: Sequence[Case]) -> list[tuple[str, Group]]:
    """Connect every group of the plan. Returns all of them, with their layout, each once."""
    groups = list(dict.fromkeys((case.layout, group) for case in cases for group in case.groups))
    for layout, group in groups:
        with guarded(engine, watchdog, f"the connection of {layout} {group.name}"):
            engine.create_group(group)
    return groups


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
