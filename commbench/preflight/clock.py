"""The time that is left: a hard limit, counted from the start of the process."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

TAIL_SECONDS = 5.0  # kept at the end for counters, the verdict, and a hang that may need to be found out


@dataclass(frozen=True, slots=True)
class Clock:
    """`now` on any clock that only grows; `began` and `deadline` on the same."""

    now: Callable[[], float]
    began: float
    deadline: float

    @property
    def left_seconds(self) -> float:
        return self.deadline - self.now()

    @property
    def spent_seconds(self) -> float:
        return self.now() - self.began


def process_clock(budget_seconds: float) -> Clock:
    """A clock for this process, loading of its libraries included."""
    began = time.monotonic() - max(0.0, time.time() - psutil.Process().create_time())
    return Clock(time.monotonic, began, began + budget_seconds)


def virtual_clock(now: Callable[[], float], budget_seconds: float) -> Clock:
    """A clock that counts an engine's own seconds."""
    return Clock(now, now(), now() + budget_seconds)
