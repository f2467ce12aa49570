"""The timed region. Nothing of ours is inside it: no print, no allocation, no progress, no collective."""

from collections.abc import Callable

from commbench.engines.base import Elapsed, Stopwatch


def time_batch(stopwatch: Stopwatch, run: Callable[[], object], calls: int) -> Elapsed:
    """Seconds of `calls` calls of `run` back to back, the wait for the last of them included."""
    rounds = range(calls)
    stopwatch.start()
    for _ in rounds:
        run()
    return stopwatch.stop()
