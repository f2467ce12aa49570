"""Who carries out what the conductor orders: the ranks of a launcher, by way of their board, or an engine on paper.

Rank 0 conducts. It puts an order on the board, does its own part, and waits for the others' answers, but no longer than
the order's patience: whoever is silent then is left behind, and named. Who gives no sign of life either is dead, and no
group with it is tried again. No rank ever waits for all ranks at once but in the library, and there not longer than its
timeout; so one that is dead or stopped costs an order's patience, no more.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import msgspec

from commbench.engines.base import Board, Engine
from commbench.engines.fake import VirtualClock
from commbench.launch.environment import RankPlace
from commbench.machine.facts import Facts
from commbench.plan.groups import Group, World
from commbench.plan.trials import Ranks, Trial, TrialResult
from commbench.preflight.gather import pack, unpack
from commbench.preflight.trials import Answer, TrialRunner, merge_answers

_ASK_SECONDS = 0.02  # between two looks for an order, or an answer
_ASKED_PER_SECOND = 10_000  # that the board's host shall answer
_GRACE_SECONDS = 1.5  # after the library's timeout, for the answer to arrive
_LAST_SECOND = 1.0
_MEMORY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Order:
    """What all ranks shall do now. `code`: the exit code of an `end`."""

    kind: str  # trials, facts, end
    trials: tuple[Trial, ...] = ()
    timeout_seconds: float = 0.0
    code: int = 0


class Bench(Protocol):
    """Carries out trials on a world."""

    world: World
    backend: str
    verifies: bool  # whether there is data to compare

    @property
    def silent(self) -> frozenset[int]:
        """Ranks that did not answer the last order."""
        ...

    @property
    def dead(self) -> frozenset[int]:
        """Ranks that gave no sign of life when they did not answer."""
        ...

    def find_dead_still(self) -> frozenset[int]:
        """Those of the dead that give no sign of life now either."""
        ...

    def now_seconds(self) -> float: ...

    def link_class(self, ranks: Ranks) -> str:
        """The slowest kind of link that these ranks must cross."""
        ...

    def fits(self, trial: Trial) -> bool:
        """Whether its buffers fit into half of the memory that is free where rank 0 runs."""
        ...

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        """By trial and group what was measured; `timeout_seconds` for each call, and for the whole a little more."""
        ...


class PaperBench:
    """The fake engine, which speaks for all ranks. The groups of a trial run at the same time."""

    silent: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()

    def __init__(self, engine: Engine, clock: VirtualClock) -> None:
        self.world = engine.world
        self.backend = engine.backend
        self.verifies = engine.data is not None
        self.now_seconds = engine.now_seconds
        self._clock = clock
        self._runner = TrialRunner(engine)
        self._engine = engine
        self.fits = partial(_fits, engine)

    def find_dead_still(self) -> frozenset[int]:
        return self.dead

    def link_class(self, ranks: Ranks) -> str:
        return self._engine.link(Group("", ranks)).link_class

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        answers = [self._run_together(trial, timeout_seconds) for trial in trials]
        return merge_answers(trials, dict.fromkeys(range(self.world.size), answers))

    def _run_together(self, trial: Trial, timeout_seconds: float) -> Answer:
        answer: Answer = {}
        began = ended = self._clock.seconds
        for position, ranks in enumerate(trial.groups):
            self._clock.seconds = began
            [alone] = self._runner.run([replace(trial, groups=(ranks,))], timeout_seconds)
            answer[position] = alone[0]
            ended = max(ended, self._clock.seconds)
        self._clock.seconds = ended
        return answer


class LiveBench:
    """The ranks that a launcher started, from rank 0, whose own part `engine` does.

    `find_lifeless`: which ranks give no sign of life; it takes a few seconds.
    """

    def __init__(
        self,
        board: Board,
        engine: Engine,
        read_facts: Callable[[], Facts],
        wiring: Callable[[Ranks], str],
        find_lifeless: Callable[[], Collection[int]],
    ) -> None:
        self.silent: frozenset[int] = frozenset()
        self.dead: frozenset[int] = frozenset()
        self._asked_about: frozenset[int] = frozenset()
        self._find_lifeless = find_lifeless
        self.world = engine.world
        self.backend = engine.backend
        self.verifies = engine.data is not None
        self.link_class = wiring
        self.fits = partial(_fits, engine)
        self._board = board
        self._runner = TrialRunner(engine)
        self._read_facts = read_facts
        self._number = 0

    def now_seconds(self) -> float:
        return time.monotonic()

    def run(self, trials: Sequence[Trial], timeout_seconds: float) -> list[list[TrialResult]]:
        dead = self.dead
        alive = [replace(trial, groups=tuple(filter(dead.isdisjoint, trial.groups))) for trial in trials]
        number = self._post(Order("trials", tuple(alive), timeout_seconds))
        began = time.monotonic()
        mine = self._runner.run(alive, timeout_seconds)
        texts = self._collect(number, began + timeout_seconds + _GRACE_SECONDS)
        answers = {rank: msgspec.json.decode(text, type=list[Answer]) for rank, text in texts.items()}
        answers[0] = mine
        self.silent = frozenset(range(self.world.size)) - answers.keys()
        self._look_for_life()
        merged = zip(trials, merge_answers(alive, answers), strict=True)
        return [_with_the_dead(trial, found, dead) for trial, found in merged]

    def _look_for_life(self) -> None:
        """Of ranks that are silent for the first time; those that live wait for one that does not."""
        if new := self.silent - self._asked_about:
            self.dead |= new.intersection(self._find_lifeless())
            self._asked_about |= new

    def find_dead_still(self) -> frozenset[int]:
        """Those of the dead that give no sign of life now either."""
        return self.dead.intersection(self._find_lifeless()) if self.dead else self.dead

    def read_facts(self, seconds: float) -> list[Facts]:
        """The facts of every node that answers within `seconds`, read anew by its first rank."""
        number = self._post(Order("facts"))
        mine = self._read_facts()
        texts = self._collect(number, time.monotonic() + seconds)
        return [mine, *(unpack(text, Facts) for text in texts.values() if text)]

    def end(self, code: int) -> None:
        """Send all ranks home with an exit code; wait until those that answer have heard."""
        number = self._post(Order("end", code=code))
        self._collect(number, time.monotonic() + _GRACE_SECONDS)

    def _post(self, order: Order) -> int:
        self._number += 1
        self._board.put(f"order/{self._number}", msgspec.json.encode(order).decode())
        return self._number

    def _collect(self, number: int, give_up: float) -> dict[int, str]:
        """The answers of the other ranks; those that were silent before share one last second."""
        answers = {}
        others = set(range(1, self.world.size)) - self.dead
        for rank in sorted(others, key=lambda rank: rank in self.silent):
            if rank in self.silent:
                give_up = min(give_up, time.monotonic() + _LAST_SECOND)
            key = f"answer/{number}/{rank}"
            while not (came := self._board.has(key)) and time.monotonic() < give_up:
                time.sleep(_ASK_SECONDS)  # one process asks
            if came:
                answers[rank] = self._board.get([key])[0]
                self._board.delete(key)
        return answers


def _with_the_dead(trial: Trial, found: list[TrialResult], dead: frozenset[int]) -> list[TrialResult]:
    """The results of all groups of `trial`; `found`: of those without the dead, which were tried."""
    tried = iter(found)
    return [
        TrialResult(reason=f"rank {min(gone)} gives no sign of life")
        if (gone := dead.intersection(ranks))
        else next(tried)
        for ranks in trial.groups
    ]


def _fits(engine: Engine, trial: Trial) -> bool:
    return engine.needed_nbytes(trial.case(Group("", trial.groups[0]))) <= _MEMORY_SHARE * engine.available_nbytes()


def follow(
    board: Board, engine: Engine, place: RankPlace, read_facts: Callable[[], Facts], went_on: Callable[[], None]
) -> int:
    """Carry out orders until the one that ends it: its exit code. `went_on` is called after each.

    Raises RendezvousError where the board is gone. A board that does not answer is the watchdog's to end.
    """
    number, runner = 1, TrialRunner(engine)
    while True:
        if not board.has(f"order/{number}"):
            time.sleep(max(_ASK_SECONDS, place.world_size / _ASKED_PER_SECOND))
            continue
        order = msgspec.json.decode(board.get([f"order/{number}"])[0], type=Order)
        answer = ""
        if order.kind == "trials":
            answer = msgspec.json.encode(runner.run(order.trials, order.timeout_seconds)).decode()
        elif order.kind == "facts" and place.local_rank == 0:
            answer = pack(read_facts())
        board.put(f"answer/{number}/{place.rank}", answer)
        if order.kind == "end":
            return order.code
        number += 1
        went_on()
