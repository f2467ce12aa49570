"""A GPU that is none: streams that run later, so that whoever reads too early reads what was there before.

`Gpu` is the machine: work is put on streams and done only when something waits for it, in the order of its stream. What
CUDA refuses (an event's time before it was waited for, a wait or a new communicator inside a capture) is an OrderError,
and everything is kept in `log` as (what, on which stream). `tests/cuda_standin.py` puts it behind torch,
`tests/cupy_standin.py` behind CuPy.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class OrderError(AssertionError):
    """The calls came in an order in which a GPU would have answered with an error, or with nonsense."""


class Item:
    """One piece of work on a stream."""

    def __init__(self, what: str, work: Callable[[], object]) -> None:
        self.what, self.work, self.done, self.at = what, work, False, 0.0


class Stream:
    """Work in order, none of it done before somebody waits for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.queue: deque[Item] = deque()

    def run_until(self, item: Item) -> None:
        while not item.done:
            first = self.queue.popleft()
            first.work()
            first.done, first.at = True, time.perf_counter()

    def run_all(self) -> None:
        if self.queue:
            self.run_until(self.queue[-1])


class Gpu:
    """One GPU as seen by one rank."""

    def __init__(self) -> None:
        self.default = Stream("default")
        self.library = Stream("library")  # on which torch's NCCL group starts what is asynchronous
        self.streams = [self.default, self.library]
        self.current = self.default
        self.captured: list[Item] | None = None
        self.log: list[tuple[str, str]] = []
        self.free_nbytes = 8 << 30

    def new_stream(self, name: str) -> Stream:
        self.streams.append(Stream(name))
        return self.streams[-1]

    def put(self, what: str, work: Callable[[], object], stream: Stream | None = None) -> Item:
        stream = stream or self.current
        item = Item(what, work)
        self.log.append((what, stream.name if self.captured is None else "capture"))
        (stream.queue if self.captured is None else self.captured).append(item)
        return item

    def wait_for(self, what: str, stream: Stream | None = None, item: Item | None = None) -> None:
        """Block the CPU until an item, a stream or, with neither, everything is done."""
        if self.captured is not None:
            raise OrderError(f"{what} inside a capture")
        self.log.append((what, stream.name if stream else "all"))
        for one in [stream] if stream else list(self.streams):
            if item is None:
                one.run_all()
            else:
                one.run_until(item)

    @property
    def is_idle(self) -> bool:
        return not any(stream.queue for stream in self.streams)

    @contextmanager
    def capturing(self) -> Iterator[list[Item]]:
        if self.captured is not None:
            raise OrderError("a capture inside a capture")
        self.captured = items = []
        try:
            yield items
        finally:
            self.captured = None

    def replay(self, items: list[Item], stream: Stream | None = None) -> None:
        self.log.append(("replay", (stream or self.current).name))
        for item in items:
            self.put(item.what, item.work, stream)


class Event:
    """A CUDA event; it has a time only if it was made for one, recorded, and waited for."""

    def __init__(self, gpu: Gpu, enable_timing: bool = False) -> None:
        self._gpu, self._timing = gpu, enable_timing
        self._item: Item | None = None
        self._stream = gpu.default

    def record(self, stream: Stream | None = None) -> None:
        self._stream = stream or self._gpu.current
        self._item = self._gpu.put("record", lambda: None, self._stream)

    def synchronize(self) -> None:
        if self._item is None:
            raise OrderError("an event that was never recorded is waited for")
        self._gpu.wait_for("wait for event", self._stream, self._item)

    def query(self) -> bool:
        return self._item is not None and self._item.done

    def elapsed_time(self, last: "Event") -> float:
        """Milliseconds."""
        return elapsed_milliseconds(self, last)


def elapsed_milliseconds(first: Event, last: Event) -> float:
    for event in (first, last):
        if not event._timing:
            raise OrderError("an event without timing is asked for a time")
        if event._item is None or not event._item.done:
            raise OrderError("an event is asked for its time before it was waited for")
    return (last._item.at - first._item.at) * 1e3
