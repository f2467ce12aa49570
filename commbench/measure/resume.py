"""Going on with a run that was cut off. Rank 0 alone reads its directory, which other nodes may not see, and tells."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from commbench.engines.base import Engine
from commbench.errors import CommbenchError, UsageError
from commbench.machine.binding import Bind
from commbench.measure.request import SweepRequest
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import PlanRequest
from commbench.results.lock import RunLock
from commbench.results.resume import DoneCase, find_differences, find_done
from commbench.results.schema import RunRecord
from commbench.results.store import Run, load_run
from commbench.results.writer import RunWriter, keep_cases

_MOST_DIFFERENCES = 3  # a smaller world has other groups too: the first say it

Told = TypeVar("Told")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rank was asked for. `backend`, `bind`, `ranks_per_gpu` take effect before ranks can tell each other."""

    backend: str
    bind: Bind
    plan: PlanRequest
    rules: SamplingRules
    verify: bool
    link_rates: tuple[tuple[str, float], ...]
    overlap: bool
    graph: bool
    ranks_per_gpu: int


@dataclass(frozen=True, slots=True)
class Resumption:
    """What is left of a stored run. `complete`: nothing at all, and it was ended well. `refusal`: why not to go on."""

    done: tuple[DoneCase, ...] = ()
    complete: bool = False
    refusal: str = ""


def take_request(engine: Engine, request: SweepRequest) -> SweepRequest:
    """`request` as rank 0 has it, who knows the options of the stored run; as it is, if none is resumed.

    Raises UsageError, on every rank, if one was started in another way than rank 0.
    """
    if not request.resume:
        return request
    mine = Asked(
        backend=engine.backend,
        bind=request.bind,
        plan=request.plan,
        rules=request.rules,
        verify=request.verify,
        link_rates=request.link_rates,
        overlap=request.overlap,
        graph=request.graph,
        ranks_per_gpu=request.ranks_per_gpu,
    )
    first, *others = _tell(engine, mine, Asked)
    for rank, other in enumerate(others, start=1):
        if _early_options(other) != _early_options(first):
            raise UsageError(
                f"rank {rank} was started with {_early_options(other)}, the stored run has "
                f"{_early_options(first)}: give these on all ranks, only rank 0 reads the run."
            )
    return replace(
        request,
        plan=first.plan,
        rules=first.rules,
        verify=first.verify,
        link_rates=first.link_rates,
        overlap=first.overlap,
        graph=first.graph,
    )


def _early_options(asked: Asked) -> str:
    """What has taken effect before ranks can tell each other; where one has a GPU of its own, that is not said."""
    sharing = f" --ranks-per-gpu {asked.ranks_per_gpu}" if asked.ranks_per_gpu > 1 else ""
    return f"--backend {asked.backend} --bind {asked.bind}{sharing}"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run that is locked, and what is left of it."""

    run: Run
    lock: RunLock
    left: Resumption

    def writer(self) -> RunWriter:
        """Drop what will be measured anew, and go on writing. Raises CommbenchError on I/O."""
        keep_cases(self.run, {case.index for case in self.left.done})
        record = self.run.record
        resumed = (*record.resumed_utc, datetime.now(UTC).isoformat(timespec="seconds"))
        return RunWriter(self.run.directory, replace(record, outcome="running", resumed_utc=resumed), self.lock)


def open_stored(directory: Path, now: RunRecord) -> StoredRun:
    """Lock and read the run in `directory`; `now` is the record that a new run would have.

    Raises UsageError if it is of another world or plan, or is being written, CommbenchError if it does not read.
    """
    with ExitStack() as stack:
        lock = RunLock(directory)
        stack.callback(lock.release)
        run = load_run(directory)
        differences = find_differences(run.record, now)[:_MOST_DIFFERENCES]
        if differences:
            raise UsageError(
                f"cannot resume {directory}: it differs in {'; '.join(differences)}: "
                "give what is stored, or measure a new run."
            )
        done = tuple(find_done(run))
        left = Resumption(done, len(done) == len(now.cases) and run.record.outcome == "complete")
        if not left.complete:
            stack.pop_all()  # what is left will be written
        return StoredRun(run, lock, left)


def find_left(engine: Engine, rank: int, request: SweepRequest, now: RunRecord) -> tuple[Resumption, StoredRun | None]:
    """What is left of the run that `request` resumes, on every rank; and the run itself, on rank 0.

    Raises what `open_stored` raises, on every rank, so that none waits for the others.
    """
    if not request.resume:
        return Resumption(), None
    stored: StoredRun | None = None
    failure: CommbenchError | None = None
    if rank == 0:
        try:
            stored = open_stored(request.directory, now)
        except CommbenchError as error:
            failure = error
    left = _tell(engine, stored.left if stored else Resumption(refusal=str(failure or "")), Resumption)[0]
    if left.refusal:
        raise failure or UsageError(left.refusal)
    return left, stored


def _tell(engine: Engine, mine: Told, kind: type[Told]) -> list[Told]:
    """What each process has to tell, by rank; of the fake engine there is one."""
    texts = engine.gather_texts(msgspec.json.encode(mine).decode())
    return [msgspec.json.decode(text, type=kind) for text in texts]
