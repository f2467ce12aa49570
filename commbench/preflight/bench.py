"""Who carries out what the conductor orders: the ranks of a launcher, by way of their board, or an engine on paper.

Rank 0 conducts. It puts an order on the board, does its own part, and waits for the others' answers, but no longer than
the order's patience: whoever is silent then is left behind, and named. No rank ever waits for all ranks at once but in
the library, and there not longer than its timeout; so one that is dead or stopped costs an order's patience, no more.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from commbench.engines.base import Board, Engine
from commbench.plan.groups import World
from commbench.plan.trials import Trial, TrialResult
from commbench.preflight.trials import Answer, drop_groups, merge_answers, run_trials

_LOOK_SECONDS = 0.4  # a wait holds the board; between two of them signs of life go out
_GRACE_SECONDS = 1.5  # after the library's timeout, for the answer to arrive
_LAST_SECOND = 1.0


@dataclass(frozen=True, slots=True)
class Order:
    """What all ranks shall do now. `code`: the exit code of an `end`."""

    kind: str  # trials, end
    trials: tuple[Trial, ...] = ()
    timeout_seconds: float = 0.0
    code: int = 0


class Bench(Protocol):
    """Carries out trials on a world."""

    world: World
    backend: str

    @property
    def silent(self) -> frozenset[int]:
        """Ranks that did not answer the last order."""
        ...

    def now_seconds(self) -> float: ...

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        """By trial and group what was measured; `timeout_seconds` for each call, and for the whole a little more."""
        ...


class PaperBench:
    """The fake engine, which speaks for all ranks."""

    silent: frozenset[int] = frozenset()

    def __init__(self, engine: Engine) -> None:
        self.world = engine.world
        self.backend = engine.backend
        self._engine = engine

    def now_seconds(self) -> float:
        return self._engine.now_seconds()

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        answers: list[Answer] = [{} for _ in trials]
        for number, trial in enumerate(trials):
            for position, ranks in enumerate(trial.groups):
                alone = Trial(trial.collective, trial.nbytes, (ranks,), trial.samples, trial.calls, trial.warmups)
                answers[number][position] = run_trials(self._engine, [alone], timeout_seconds)[0][0]
        return merge_answers(trials, dict.fromkeys(range(self.world.size), answers))


@dataclass
class LiveBench:
    """The ranks that a launcher started, from rank 0, whose own part `engine` does."""

    board: Board
    engine: Engine
    silent: frozenset[int] = frozenset()
    _number: int = 0
    _last: tuple[Trial, ...] = field(default=())

    @property
    def world(self) -> World:
        return self.engine.world

    @property
    def backend(self) -> str:
        return self.engine.backend

    def now_seconds(self) -> float:
        return time.monotonic()

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        order = Order("trials", tuple(trials), timeout_seconds)
        number = self._post(order)
        began = time.monotonic()
        drop_groups(self.engine, self._last)
        self._last = order.trials
        mine = run_trials(self.engine, order.trials, timeout_seconds)
        answers = {0: mine, **self._collect(number, began + timeout_seconds + _GRACE_SECONDS)}
        self.silent = frozenset(range(self.world.size)) - answers.keys()
        return merge_answers(trials, answers)

    def end(self, code: int) -> None:
        """Send all ranks home with an exit code; wait until those that answer have heard."""
        number = self._post(Order("end", code=code))
        self._collect(number, time.monotonic() + _GRACE_SECONDS)

    def _post(self, order: Order) -> int:
        self._number += 1
        self.board.put(f"order/{self._number}", msgspec.json.encode(order).decode())
        return self._number

    def _collect(self, number: int, give_up: float) -> dict[int, list[Answer]]:
        """The answers of the other ranks; those that were silent before share one last second."""
        answers = {}
        others = range(1, self.world.size)
        for rank in sorted(others, key=lambda rank: rank in self.silent):
            if rank in self.silent:
                give_up = min(give_up, time.monotonic() + _LAST_SECOND)
            key = f"answer/{number}/{rank}"
            while not (came := self.board.has(key)) and (left := give_up - time.monotonic()) > 0.0:
                self.board.wait(key, min(_LOOK_SECONDS, left))
            if came:
                answers[rank] = msgspec.json.decode(self.board.get([key])[0], type=list[Answer])
                self.board.delete(key)
        return answers


def follow(board: Board, engine: Engine, rank: int, give_up: float) -> int | None:
    """Carry out orders until the one that ends it: its exit code. None if none came until `give_up` (monotonic).

    Raises RendezvousError where the board is gone: rank 0 has died, or cannot be reached.
    """
    number, last = 1, ()  # type: tuple[int, tuple[Trial, ...]]
    while time.monotonic() < give_up:
        if not board.wait(f"order/{number}", _LOOK_SECONDS):
            continue
        order = msgspec.json.decode(board.get([f"order/{number}"])[0], type=Order)
        answer: list[Answer] = []
        if order.kind == "trials":
            drop_groups(engine, last)
            last = order.trials
            answer = run_trials(engine, order.trials, order.timeout_seconds)
        board.put(f"answer/{number}/{rank}", msgspec.json.encode(answer).decode())
        if order.kind == "end":
            return order.code
        number += 1
    return None
