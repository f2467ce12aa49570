"""Says who is to blame when ranks wait in vain, once, from the rank that can still say it.

Rank 0 looks at everybody's beats and speaks. Should it be the one that is missing, the first rank of each other node
(and rank 1) speaks after a while. The rest is silent: a thousand ranks need not say the same.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commbench.engines.base import Board
from commbench.measure.heartbeat import Heartbeat
from commbench.measure.whereabouts import describe_failure, describe_stall, find_ranks, name_ranks

_LOOK_BEATS = 2.5  # between two looks at all beats: one may be late
_SILENCE_BEATS = 3.5  # of rank 0, after which another one speaks
_VERDICT_BEATS = 15.0  # in which somebody should have spoken
_TICK_SECONDS = 0.1
_LIBRARY_SECONDS = 0.5  # beyond what the beats take, in which the library should have been asked


@dataclass(frozen=True, slots=True)
class Blame:
    """Who is to blame, as a part of a sentence, and their ranks. `is_quiet`: another rank says it.

    `library`: sentences on what the library has counted; empty if it says nothing.
    """

    text: str
    is_quiet: bool = False
    ranks: tuple[int, ...] = ()
    library: str = ""

    def behind(self, sentence: str) -> str:
        """`sentence`, and behind it what the library says."""
        return f"{sentence} {self.library}".rstrip()


class _Question:
    """The library is asked, beside the beats, what it has counted: it may take as long as they do."""

    def __init__(self, ask: Callable[[], str]) -> None:
        self._said = ""
        self._ask = ask
        self._thread = threading.Thread(target=self._run, name="commbench-library", daemon=True)
        self._thread.start()

    def answer(self) -> str:
        self._thread.join(_LIBRARY_SECONDS)
        return self._said

    def _run(self) -> None:
        self._said = self._ask()


class Monitor:
    """This rank's part in finding out who is missing. `look` says how far this rank is, and in what.

    `ask_library`, where it is set, returns sentences on what the library has counted; called in a thread of its own.
    """

    def __init__(
        self, board: Board, rank: int, size: int, look: Callable[[], tuple[int, str]], *, speaks_second: bool
    ) -> None:
        self.ask_library: Callable[[], str] = str
        self._rank = rank
        self._hosts: Sequence[str] = ["?"] * size
        self._speaks_second = speaks_second
        self._heartbeat = Heartbeat(board, rank, size, look)

    @property
    def alarm(self) -> str:
        """Why another rank's collective has failed, or why the board is gone; empty as long as all is well."""
        return self._heartbeat.alarm or self._heartbeat.lost

    @property
    def verdict(self) -> str:
        """What the rank that speaks for all has said; empty if it has not."""
        return self._heartbeat.verdict

    def meet(self, hosts: Sequence[str]) -> None:
        """All ranks are here; they run on `hosts`."""
        self._hosts = hosts

    def stop(self) -> None:
        """The run is over: no sign of life is expected any more."""
        self._heartbeat.stop()

    def blame_stall(self) -> Blame:
        """Who keeps this rank waiting. Takes some beats; call it from the thread that watches."""
        return self._blame(describe_stall, wants_stacks=True)

    def blame_failure(self, reason: str) -> Blame:
        """Who is gone, after a collective failed here for `reason`. Takes some beats."""
        self._heartbeat.fail(reason)
        return self._blame(describe_failure, wants_stacks=False)

    def _blame(self, describe: Callable[..., str], wants_stacks: bool) -> Blame:
        if self._rank == 0:
            return self._investigate(describe, wants_stacks)
        verdict = self._wait_for_verdict()
        if verdict or not self._speaks_second:
            return Blame(verdict, is_quiet=True)
        return self._investigate(describe, wants_stacks)

    def _wait_for_verdict(self) -> str:
        """What another rank says. The second speaker waits no longer than rank 0 gives signs of life."""
        heartbeat = self._heartbeat
        if self._speaks_second:
            heartbeat.watch([0])
        seen, seen_at = -1, time.monotonic()
        give_up = seen_at + _VERDICT_BEATS * heartbeat.interval_seconds
        while not (heartbeat.verdict or heartbeat.lost) and time.monotonic() < give_up:
            time.sleep(_TICK_SECONDS)
            if 0 in heartbeat.others and heartbeat.others[0].number != seen:
                seen, seen_at = heartbeat.others[0].number, time.monotonic()
            if self._speaks_second and time.monotonic() > seen_at + _SILENCE_BEATS * heartbeat.interval_seconds:
                break
        return heartbeat.verdict

    def _investigate(self, describe: Callable[..., str], wants_stacks: bool) -> Blame:
        heartbeat, size = self._heartbeat, len(self._hosts)
        question = _Question(self.ask_library)
        heartbeat.watch(range(size))
        if wants_stacks:
            heartbeat.ask_for_stacks()
        heartbeat.pause(1.5)
        before = heartbeat.others
        heartbeat.pause(_LOOK_BEATS)
        after = heartbeat.others
        if after is before or not len(before) == len(after) == size:  # there is no board any more
            if self._rank == 0:  # whose host is alive, for it speaks
                return Blame("no rank's signs of life can be read", library=question.answer())
            return Blame(
                f"{name_ranks([0], self._hosts)} does not answer: it has died, is stopped, or its link is down",
                ranks=(0,),
                library=question.answer(),
            )
        found = find_ranks(before, after)
        text = describe(found, after, self._hosts, self._rank)
        library = question.answer()  # before the verdict: with it the others end, whom the library may ask
        heartbeat.say(text)
        heartbeat.pause(_LOOK_BEATS)  # the others read it, and then the store may go
        return Blame(text, ranks=found.silent, library=library)
