"""Ends a process that hangs: a thread that needs nothing of the main one, which may be stuck in a collective.

First form: each process watches itself. Rank 0 speaks first; the others wait a moment longer, for the case that it is
rank 0 that cannot.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

import psutil

from commbench.errors import InterruptedRunError, StalledError
from commbench.results.schema import Outcome

_HINT = "look for a rank that is stopped, or a link that is down"
_TICK_SECONDS = 0.5
_OTHERS_WAIT_SECONDS = 2.0
_INTERRUPT_GRACE_SECONDS = 5.0


class Watchdog:
    """Watches the current case's deadline, Ctrl-C, and the process that started this one.

    `on_end(outcome, message)` is called in the watchdog's thread just before it ends the process.
    """

    def __init__(
        self,
        rank: int,
        timeout_seconds: float,
        parent_pid: int | None,
        on_end: Callable[[Outcome, str], None],
    ) -> None:
        self._rank = rank
        self._timeout_seconds = timeout_seconds
        self._parent_pid = parent_pid
        self._on_end = on_end
        self._watched: tuple[float, str, str] | None = None
        self._interrupted_at: float | None = None
        self._wake_read, self._wake_write = os.pipe()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="commbench-watchdog", daemon=True)
        self._handlers: dict[signal.Signals, Any] = {}

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed: the session ends at the next chance."""
        return self._interrupted_at is not None

    def __enter__(self) -> Self:
        """Take over SIGINT and SIGTERM, and start watching. Call in the main thread."""
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        # The byte is written at once, also while the main thread is stuck inside a library.
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._handlers[signal.SIGINT] = signal.signal(signal.SIGINT, lambda _signum, _frame: None)
        self._handlers[signal.SIGTERM] = signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Watch no more, and give the signals back."""
        self._stopped.set()
        os.write(self._wake_write, b"\0")  # wakes the thread
        self._thread.join()
        signal.set_wakeup_fd(-1)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake_read)
        os.close(self._wake_write)

    @contextmanager
    def watching(self, what: str, hint: str = _HINT) -> Iterator[None]:
        """Give the body `timeout_seconds`; if it takes longer, `what` it was and the `hint` are said."""
        self._watched = (time.monotonic(), what, hint)
        try:
            yield
        finally:
            self._watched = None

    def _watch(self) -> None:
        while not self._stopped.is_set():
            ready, _, _ = select.select([self._wake_read], [], [], _TICK_SECONDS)
            if ready:
                self._take_signals()
            self._check_interrupt()
            self._check_parent()
            self._check_deadline()

    def _take_signals(self) -> None:
        with suppress(BlockingIOError):
            if signal.SIGINT in os.read(self._wake_read, 64) and self._interrupted_at is None:
                self._interrupted_at = time.monotonic()

    def _check_interrupt(self) -> None:
        if self._interrupted_at is None or time.monotonic() - self._interrupted_at < _INTERRUPT_GRACE_SECONDS:
            return
        watched = self._watched
        doing = f" in {watched[1]}" if watched else ""
        self._end("interrupted", f"rank {self._rank} was interrupted{doing}.", InterruptedRunError.exit_code)

    def _check_parent(self) -> None:
        if self._parent_pid is not None and not _is_alive(self._parent_pid):
            os._exit(StalledError.exit_code)  # nobody is left to tell

    def _check_deadline(self) -> None:
        watched = self._watched
        if watched is None:
            return
        since, what, hint = watched
        waited = time.monotonic() - since
        if waited < self._timeout_seconds + (_OTHERS_WAIT_SECONDS if self._rank else 0.0):
            return
        message = (
            f"rank {self._rank} hangs in {what}: no progress for {waited:.0f} s, at most {self._timeout_seconds:g} s "
            f"were allowed (--timeout); {hint}."
        )
        self._end("stalled", message, StalledError.exit_code)

    def _end(self, outcome: Outcome, message: str, exit_code: int) -> None:
        try:
            self._on_end(outcome, message)
        finally:
            os._exit(exit_code)


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
