"""Ends a process that waits in vain: a thread that needs nothing of the main one, which may be stuck."""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import psutil

from commbench.errors import InterruptedRunError, StalledError, TransportError
from commbench.measure.monitor import Blame, Monitor
from commbench.results.schema import Outcome

_TICK_SECONDS = 0.25
_STOPPED_SECONDS = 10.0  # between two ticks: nothing but SIGSTOP, or a machine that slept, takes so long
_INTERRUPT_GRACE_SECONDS = 5.0
_ALARM_GRACE_SECONDS = 1.5  # in which this rank's own collective may fail, or the run may end
# What a step may take unless --timeout says it: many times what is expected of it, and never less than the floor.
_EXPECTED_TIMES = 30.0
_FLOOR_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Watched:
    """What the main thread waits for, since when, and for how long it may."""

    what: str
    since: float
    allowed_seconds: float


class Watchdog:
    """Watches the current step's deadline, Ctrl-C, the other ranks' alarms, and the process that started this one.

    `timeout_seconds`: of every step; None: many times what a step is expected to take. `ends_at`: the moment
    (monotonic) after which no step goes on; None: there is none.
    `on_end(outcome, message, ranks)` is called in the watchdog's thread just before it ends the process; the message is
    empty where another rank speaks; `ranks` are to blame. What it returns is the exit code, where it returns one.
    """

    def __init__(
        self,
        rank: int,
        timeout_seconds: float | None,
        parent_pid: int | None,
        on_end: Callable[[Outcome, str, tuple[int, ...]], int | None],
        ends_at: float | None = None,
    ) -> None:
        self.position = 0
        self.was_stopped = False  # for so long that the others have given this rank up
        self._ends_at = ends_at
        self._rank = rank
        self._timeout_seconds = timeout_seconds
        self._parent_pid = parent_pid
        self._on_end = on_end
        self._monitor: Monitor | None = None
        self._watched: _Watched | None = None
        self._interrupted_at: float | None = None
        self._alarm_at: float | None = None
        self._blaming = threading.Lock()
        self._wake_read, self._wake_write = os.pipe()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="commbench-watchdog", daemon=True)
        self._handlers: dict[signal.Signals, Any] = {}

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed, or SIGTERM came: the session ends at the next chance."""
        return self._interrupted_at is not None

    def __enter__(self) -> Self:
        """Take over SIGINT and SIGTERM, and start watching. Call in the main thread."""
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        # The byte is written at once, also while the main thread is stuck inside a library.
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, lambda _signum, _frame: None)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Watch no more, and give the signals back."""
        self.dismiss_monitor()
        self._stopped.set()
        os.write(self._wake_write, b"\0")  # wakes the thread
        self._thread.join()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake_read)
        os.close(self._wake_write)

    def ask(self, monitor: Monitor) -> None:
        """From now on let `monitor` say who is to blame."""
        self._monitor = monitor

    def ask_library(self, explain: Callable[[], str]) -> None:
        """From now on let `explain` add what the library has counted: sentences, or nothing."""
        if self._monitor:
            self._monitor.ask_library = explain

    @property
    def verdict(self) -> str:
        """What another rank has said of who is to blame; empty if nobody has."""
        return self._monitor.verdict if self._monitor else ""

    def dismiss_monitor(self) -> None:
        """The other ranks' signs of life are over, and no alarm."""
        if self._monitor:
            self._monitor.stop()
        self._monitor = None

    def look(self) -> tuple[int, str]:
        """How many steps the main thread has made, and what it waits for; empty between two waits."""
        watched = self._watched
        return self.position, watched.what if watched else ""

    @contextmanager
    def watching(
        self, what: str, expected_seconds: float = 0.0, allowed_seconds: float | None = None
    ) -> Iterator[None]:
        """Give the body a deadline; if it takes longer, `what` it was is said, and who keeps it waiting."""
        self._begin(what, allowed_seconds or self._allowed(expected_seconds))
        try:
            yield
        finally:
            self._watched = None

    def step(self, expected_seconds: float) -> None:
        """The watched body has come further: what follows has a deadline of its own."""
        if self._watched:
            self._begin(self._watched.what, self._allowed(expected_seconds))

    def blame(self, what: str, reason: str) -> TransportError:
        """The error for a collective that failed here for `reason`; finds out who is gone, which takes a few beats."""
        self._blaming.acquire()  # never released: the process is ending, and one verdict is enough
        self._watched = None
        found = self._monitor.blame_failure(reason) if self._monitor else Blame("a peer has died or its link is down")
        message = found.behind(f"{what} failed: {found.text} ({reason}).")
        return TransportError(message, is_quiet=found.is_quiet, ranks=found.ranks)

    def _begin(self, what: str, allowed_seconds: float) -> None:
        self.position += 1
        now = time.monotonic()
        if self._ends_at is not None:
            allowed_seconds = min(allowed_seconds, max(0.0, self._ends_at - now))
        self._watched = _Watched(what, now, allowed_seconds)

    def _allowed(self, expected_seconds: float) -> float:
        return self._timeout_seconds or max(_FLOOR_SECONDS, _EXPECTED_TIMES * expected_seconds)

    def _watch(self) -> None:
        ticked_at = time.monotonic()
        while not self._stopped.is_set():
            ready, _, _ = select.select([self._wake_read], [], [], _TICK_SECONDS)
            before, ticked_at = ticked_at, time.monotonic()
            self.was_stopped |= ticked_at - before > _STOPPED_SECONDS and not self._blaming.locked()
            if ready:
                self._take_signals()
            self._check_parent()
            if not self._blaming.locked():
                self._check_interrupt()
                self._check_alarm()
                self._check_deadline()

    def _take_signals(self) -> None:
        with suppress(BlockingIOError):
            came = os.read(self._wake_read, 64)
            if (signal.SIGINT in came or signal.SIGTERM in came) and self._interrupted_at is None:
                self._interrupted_at = time.monotonic()

    def _check_interrupt(self) -> None:
        if self._interrupted_at is None or time.monotonic() - self._interrupted_at < _INTERRUPT_GRACE_SECONDS:
            return
        watched = self._watched
        doing = f" in {watched.what}" if watched else ""
        self._end("interrupted", f"rank {self._rank} was interrupted{doing}.", InterruptedRunError.exit_code)

    def _check_parent(self) -> None:
        if self._parent_pid is not None and not _is_alive(self._parent_pid):
            os._exit(StalledError.exit_code)  # nobody is left to tell

    def _check_alarm(self) -> None:
        """Another rank's collective has failed: this one waits for it, perhaps for ever."""
        monitor, watched = self._monitor, self._watched
        if monitor is None or watched is None or not monitor.alarm:
            self._alarm_at = None
            return
        self._alarm_at = self._alarm_at or time.monotonic()
        if time.monotonic() - self._alarm_at < _ALARM_GRACE_SECONDS or not self._blaming.acquire(blocking=False):
            return
        found = monitor.blame_failure(monitor.alarm)
        message = found.behind(f"{watched.what} failed: {found.text} ({monitor.alarm}).")
        self._end("failed", "" if found.is_quiet else message, TransportError.exit_code, found.ranks)

    def _check_deadline(self) -> None:
        watched = self._watched
        if watched is None:
            return
        waited = time.monotonic() - watched.since
        if waited < watched.allowed_seconds or not self._blaming.acquire(blocking=False):
            return
        found = self._monitor.blame_stall() if self._monitor else Blame("look for a rank that is stopped")
        limit = "--timeout" if self._ends_at is None else "--budget"
        message = found.behind(
            f"{watched.what} hangs: no progress for {waited:.0f} s, at most {watched.allowed_seconds:.3g} s were "
            f"allowed ({limit}); {found.text}."
        )
        self._end("stalled", "" if found.is_quiet else message, StalledError.exit_code, found.ranks)

    def _end(self, outcome: Outcome, message: str, exit_code: int, ranks: tuple[int, ...] = ()) -> None:
        try:
            exit_code = self._on_end(outcome, message, ranks) or exit_code
        finally:
            os._exit(exit_code)


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
