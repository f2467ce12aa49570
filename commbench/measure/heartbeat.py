"""What a rank tells the others while it works: that it is alive, and how far it is.

All talk with the board is one thread's: where the board does not answer, that thread waits and nobody else does.
"""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from commbench.engines.base import Board
from commbench.errors import RendezvousError

_MIN_INTERVAL_SECONDS = 0.5
_RANKS_PER_SECOND = 256  # that the board's host shall hear of
_STACK_FRAMES = 12


@dataclass(frozen=True, slots=True)
class Beat:
    """One sign of life. `position` counts the steps of the run, which are the same on every rank.

    `what` the rank is in, empty between two waits; `failed`: why its collective failed; `stack` of its main thread, if
    somebody asked.
    """

    number: int
    position: int
    what: str
    failed: str = ""
    stack: str = ""


class Heartbeat:
    """Puts this rank's beat on the board, again and again, and takes from it what the others say."""

    def __init__(self, board: Board, rank: int, size: int, look: Callable[[], tuple[int, str]]) -> None:
        self.interval_seconds = max(_MIN_INTERVAL_SECONDS, size / _RANKS_PER_SECOND)
        self.alarm = ""  # why a collective of some rank has failed
        self.verdict = ""  # of the rank that speaks for all
        self.lost = ""  # why there is no board any more
        self.others: Mapping[int, Beat] = {}
        self._board = board
        self._rank = rank
        self._look = look
        self._number = 0
        self._failed = ""
        self._to_say: dict[str, str] = {}
        self._watched: Sequence[int] = ()
        self._stack_wanted = False
        self._main_thread = threading.main_thread().ident or 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commbench-heartbeat", daemon=True)
        self._beat()
        self._thread.start()

    def watch(self, ranks: Sequence[int]) -> None:
        """From now on read the beats of `ranks`, into `others`."""
        self._watched = ranks

    def ask_for_stacks(self) -> None:
        """Let every rank add the stack of its main thread to its beats."""
        self._to_say["stacks"] = "wanted"

    def fail(self, reason: str) -> None:
        """A collective failed on this rank: let all know."""
        self._failed = reason
        if not self.alarm:
            self._to_say["alarm"] = reason

    def say(self, verdict: str) -> None:
        """Put the verdict on the board; it is there after the next beat."""
        self._to_say["verdict"] = verdict

    def pause(self, beats: float) -> None:
        """Let so many beats pass; none, if there is no board any more."""
        if not self.lost:
            time.sleep(beats * self.interval_seconds)

    def stop(self) -> None:
        """Beat no more. A thread that the board holds up is left behind: it ends with the process."""
        self._stopped.set()
        self._thread.join(self.interval_seconds)

    def _run(self) -> None:
        while not self._stopped.wait(self.interval_seconds):
            try:
                self._beat()
            except RendezvousError as error:
                self.lost = str(error)
                return

    def _beat(self) -> None:
        self._number += 1
        position, what = self._look()
        stack = self._stack() if self._stack_wanted else ""
        beat = Beat(self._number, position, what, self._failed, stack)
        self._board.put(f"beat/{self._rank}", json.dumps(asdict(beat)))
        while self._to_say:
            self._board.put(*self._to_say.popitem())
            self._board.put("news", "")
        if self._board.has("news"):
            self._read_news()
        if watched := self._watched:
            texts = self._board.get([f"beat/{rank}" for rank in watched])
            self.others = {rank: Beat(**json.loads(text)) for rank, text in zip(watched, texts, strict=True)}

    def _read_news(self) -> None:
        self._stack_wanted = self._board.has("stacks")
        self.alarm = self._read("alarm")
        self.verdict = self._read("verdict")

    def _read(self, key: str) -> str:
        return self._board.get([key])[0] if self._board.has(key) else ""

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._main_thread)
        return "".join(traceback.format_stack(frame, limit=_STACK_FRAMES)) if frame else ""
