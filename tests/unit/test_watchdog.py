"""commbench.measure.watchdog: deadlines, Ctrl-C and alarms, with an end that is recorded instead of made."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from commbench.measure.monitor import Blame
from commbench.measure.watchdog import Watchdog


@dataclass
class Ends:
    """How a process would have ended."""

    told: list[tuple[str, str]] = field(default_factory=list)
    blamed: list[tuple[int, ...]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    answer: int | None = None  # the exit code that whoever is told asks for

    def tell(self, outcome: str, message: str, ranks: tuple[int, ...]) -> int | None:
        self.told.append((outcome, message))
        self.blamed.append(ranks)
        return self.answer

    def wait(self) -> tuple[str, str, int]:
        give_up = time.monotonic() + 10
        while not self.codes:
            assert time.monotonic() < give_up
            time.sleep(0.01)
        return (*self.told[0], self.codes[0])


class Culprit:
    """A monitor that always knows."""

    def __init__(self, alarm: str = "", is_quiet: bool = False) -> None:
        self.alarm = alarm
        self.is_quiet = is_quiet
        self.ask_library: Callable[[], str] = str

    def blame_stall(self) -> Blame:
        return Blame("rank 2 on n3 gives no sign of life", self.is_quiet, (2,), self.ask_library())

    def blame_failure(self, reason: str) -> Blame:
        return self.blame_stall()

    def stop(self) -> None:
        pass


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    found = Ends()
    monkeypatch.setattr(os, "_exit", found.codes.append)
    monkeypatch.setattr("commbench.measure.watchdog._TICK_SECONDS", 0.01)
    monkeypatch.setattr("commbench.measure.watchdog._ALARM_GRACE_SECONDS", 0.05)
    monkeypatch.setattr("commbench.measure.watchdog._INTERRUPT_GRACE_SECONDS", 0.05)
    return found


@pytest.fixture
def watch(ends: Ends) -> Iterator[Callable[..., Watchdog]]:
    started: list[Watchdog] = []

    def start(timeout_seconds: float | None = None, monitor: Any = None, ends_at: float | None = None) -> Watchdog:
        watchdog = Watchdog(1, timeout_seconds, None, ends.tell, ends_at)
        started.append(watchdog.__enter__())
        if monitor:
            watchdog.ask(monitor)
        return watchdog

    yield start
    for watchdog in started:
        watchdog.__exit__()


def test_a_step_that_takes_too_long_ends_with_who_is_missing(watch: Callable[..., Watchdog], ends: Ends) -> None:
    with watch(0.1, Culprit()).watching("all_reduce 1 KiB on the world"):
        outcome, message, code = ends.wait()
    assert (outcome, code) == ("stalled", 124)
    assert message == (
        "all_reduce 1 KiB on the world hangs: no progress for 0 s, at most 0.1 s were allowed (--timeout); "
        "rank 2 on n3 gives no sign of life."
    )


def test_a_run_that_ends_at_a_moment_ends_whatever_the_step_may_take(
    watch: Callable[..., Watchdog], ends: Ends
) -> None:
    ends.answer = 1
    with watch(60.0, Culprit(), time.monotonic() + 0.1).watching("the preflight", allowed_seconds=float("inf")):
        outcome, message, code = ends.wait()
    assert (outcome, code, ends.blamed) == ("stalled", 1, [(2,)])
    assert "(--budget); rank 2 on n3" in message


def test_one_that_was_stopped_knows_it(watch: Callable[..., Watchdog], monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = watch(60.0)
    time.sleep(0.05)
    assert not watchdog.was_stopped
    monkeypatch.setattr("commbench.measure.watchdog._STOPPED_SECONDS", 0.0)
    give_up = time.monotonic() + 5.0
    while not watchdog.was_stopped:
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_another_rank_speaks(watch: Callable[..., Watchdog], ends: Ends) -> None:
    with watch(0.1, Culprit(is_quiet=True)).watching("all_reduce"):
        assert ends.wait() == ("stalled", "", 124)


def test_each_step_has_a_deadline_of_its_own(watch: Callable[..., Watchdog], ends: Ends) -> None:
    watchdog = watch(0.3)
    with watchdog.watching("all_reduce"):
        for _ in range(8):
            time.sleep(0.1)
            watchdog.step(0.0)
    time.sleep(0.4)  # nothing is watched between two waits
    assert ends.codes == []
    assert watchdog.look() == (9, "")


@pytest.mark.parametrize(
    ("timeout", "expected", "allowed"),
    [(None, 0.0, 60.0), (None, 1.9, 60.0), (None, 10.0, 300.0), (5.0, 10.0, 5.0)],
)
def test_what_a_step_may_take(
    timeout: float | None, expected: float, allowed: float, watch: Callable[..., Watchdog]
) -> None:
    assert watch(timeout)._allowed(expected) == allowed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_wait_ends_by_itself(number: signal.Signals, watch: Callable[..., Watchdog], ends: Ends) -> None:
    watchdog = watch()
    with watchdog.watching("all_reduce"):
        os.kill(os.getpid(), number)
        outcome, message, code = ends.wait()
    assert watchdog.interrupted
    assert (outcome, message, code) == ("interrupted", "rank 1 was interrupted in all_reduce.", 130)


def test_another_ranks_failure_ends_a_wait_for_it(watch: Callable[..., Watchdog], ends: Ends) -> None:
    with watch(None, Culprit(alarm="Connection reset by peer")).watching("all_reduce"):
        outcome, message, code = ends.wait()
    assert (outcome, code) == ("failed", 3)
    assert message == "all_reduce failed: rank 2 on n3 gives no sign of life (Connection reset by peer)."


def test_what_the_library_has_counted_stands_behind_who_is_to_blame(watch: Callable[..., Watchdog], ends: Ends) -> None:
    watchdog = watch(0.1, Culprit())
    watchdog.ask_library(lambda: "RAS: rank 2 has launched 5 AllReduce.")
    assert str(watchdog.blame("all_reduce", "reset")).endswith(" (reset). RAS: rank 2 has launched 5 AllReduce.")
    other = watch(0.1, Culprit())
    other.ask_library(lambda: "RAS: rank 2 has launched 5 AllReduce.")
    with other.watching("all_reduce"):
        assert ends.wait()[1].endswith("gives no sign of life. RAS: rank 2 has launched 5 AllReduce.")


def test_without_a_monitor_no_library_is_asked(watch: Callable[..., Watchdog], ends: Ends) -> None:
    watchdog = watch(0.1)
    watchdog.ask_library(lambda: pytest.fail("asked"))
    with watchdog.watching("all_reduce"):
        assert ends.wait()[1].endswith("; look for a rank that is stopped.")


def test_an_alarm_after_the_last_wait_is_nobodys(watch: Callable[..., Watchdog], ends: Ends) -> None:
    watchdog = watch(None, Culprit(alarm="the store is gone"))
    with watchdog.watching("the end of the run"):
        watchdog.dismiss_monitor()
        time.sleep(0.2)
    assert ends.codes == []


def test_blame_names_who_is_gone(watch: Callable[..., Watchdog]) -> None:
    error = watch(None, Culprit()).blame("all_reduce", "Connection reset by peer")
    assert str(error) == "all_reduce failed: rank 2 on n3 gives no sign of life (Connection reset by peer)."
    assert not error.is_quiet
    assert watch(None, Culprit(is_quiet=True)).blame("all_reduce", "reset").is_quiet
