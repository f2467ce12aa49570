"""Progress on stderr: a bar on a terminal, a line a case otherwise. Drawn between cases only: no thread of its own."""

import sys
import time
from typing import Any

import click


class Silent:
    """Shows nothing."""

    def update(self, closed: int, seconds: float, latest: str) -> None:
        pass

    def finish(self) -> None:
        pass


class Lines:
    """A line for every case that is done."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._closed = 0

    def update(self, closed: int, seconds: float, latest: str) -> None:
        if closed > self._closed:
            self._closed = closed
            click.echo(f"[{closed}/{self._total}] {seconds:.1f} s  {latest}", err=True)

    def finish(self) -> None:
        pass


class Bar:
    """A bar that fills with the cases done, or with the budget where that is further."""

    _MIN_SECONDS = 0.1  # a terminal needs no more

    def __init__(self, total: int, budget_seconds: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns: tuple[Any, ...] = (BarColumn(), TextColumn("{task.fields[closed]}/{task.fields[cases]} cases"),
                                    TimeElapsedColumn(), TextColumn("{task.description}"))  # fmt: skip
        self._progress = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
        self._task = self._progress.add_task("", total=1.0, closed=0, cases=total)
        self._total = total
        self._budget_seconds = budget_seconds
        self._drawn_at = 0.0
        self._progress.start()

    def update(self, closed: int, seconds: float, latest: str) -> None:
        now = time.monotonic()
        if now - self._drawn_at < self._MIN_SECONDS and closed < self._total:
            return
        self._drawn_at = now
        part = max(closed / self._total, min(0.99, seconds / self._budget_seconds))
        self._progress.update(self._task, completed=part, description=latest, closed=closed)
        self._progress.refresh()

    def finish(self) -> None:
        self._progress.stop()


def make_progress(cases: int, budget_seconds: float, quiet: bool) -> Silent | Lines | Bar:
    """What suits stderr."""
    if quiet:
        return Silent()
    return Bar(cases, budget_seconds) if sys.stderr.isatty() else Lines(cases)
