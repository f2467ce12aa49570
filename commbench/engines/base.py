"""What an engine is: the protocol between the measuring loop and whatever moves the bytes.

An engine speaks for one or more ranks of the world: a real one for the rank of its process, the fake one for all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from commbench.plan.groups import Group, World
from commbench.plan.plan import Case

Seconds = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Elapsed:
    """What a stopwatch read: seconds of the batch, and the CPU's seconds to enqueue it where that is another thing."""

    seconds: float
    enqueue_seconds: float | None = None


class Stopwatch(Protocol):
    """The clock round a batch. On a GPU its readings are events on the stream, elsewhere the CPU's clock."""

    @property
    def resolution_seconds(self) -> float: ...

    def start(self) -> None: ...

    def stop(self) -> Elapsed:
        """Wait until what was called since `start` is done, and say how long it took."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """One case made ready for one rank's group.

    `run` calls the collective once, without waiting for a GPU. `send` and `receive` are the engine's own buffers of
    the rank with index `me` in the group, None where it has none; in place they overlap.
    """

    group: Group
    me: int
    run: Callable[[], object]
    send: Any
    receive: Any


@dataclass(frozen=True, slots=True)
class Link:
    """What a group must cross: its link class and, where it can be read, the nominal rate of one rank's link.

    `alpha_step_seconds` is known on paper only (the fake engine).
    """

    link_class: str
    bytes_per_second: float | None = None
    alpha_step_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of what was timed. `covered`: what should run beside it did so until its end."""

    seconds: float
    covered: bool = True


class Overlap(Protocol):
    """A matrix product and a collective of one rank's group: each can be timed alone, and beside the other."""

    product: str  # in words

    def time_products(self, products: int, calls_beside: int) -> Timed:
        """Seconds of so many products, with so many calls of the collective in flight when they begin; 0: alone."""
        ...

    def time_calls(self, calls: int, products_beside: int) -> Timed:
        """Seconds of so many calls, with so many products or more beside them; 0: alone."""
        ...


class Board(Protocol):
    """Short texts by key that every rank of a world can read: its rendezvous store.

    All calls raise RendezvousError when the store is gone, and wait as long as it does not answer.
    """

    def put(self, key: str, text: str) -> None: ...

    def get(self, keys: Sequence[str]) -> list[str]:
        """The texts of keys that are there."""
        ...

    def has(self, key: str) -> bool: ...

    def count(self, key: str, more: int) -> int:
        """Add to a number, and say what it is now."""
        ...

    def wait(self, key: str, seconds: float) -> bool:
        """Whether the key is there, at the latest after so many seconds."""
        ...

    def delete(self, key: str) -> None:
        """Forget the key, if it is there."""
        ...


class BufferAccess(Protocol):
    """Reads and writes an engine's buffers as numpy arrays."""

    def write(self, buffer: Any, start: int, values: NDArray[Any]) -> None:
        """Put `values` (whole numbers that the dtype holds exactly) into `buffer` from element `start`."""
        ...

    def read(self, buffer: Any, start: int, stop: int) -> NDArray[Any]:
        """Elements `start` to `stop` of `buffer`, as numbers that numpy compares exactly."""
        ...


class Engine(Protocol):
    """Moves bytes among the ranks of a world, and reads the clock."""

    name: str
    backend: str
    world: World
    ranks: Sequence[int]  # those that this process speaks for
    data: BufferAccess | None  # None: nothing is moved, so nothing can be verified
    one_buffer: frozenset[str]  # collectives that the library offers in place only
    pci_address: str | None  # of the GPU that this process drives
    transport_errors: tuple[type[Exception], ...]  # what a call raises when a peer or a link is gone

    @property
    def stopwatch(self) -> Stopwatch: ...

    def now_seconds(self) -> float:
        """A clock that only grows, for budgets; virtual on the fake engine."""
        ...

    def explain(self, error: Exception) -> str:
        """The reason in a transport error, in a few words."""
        ...

    def unsupported(self, case: Case) -> str | None:
        """Why this engine cannot run `case`, in a few words; None if it can."""
        ...

    def link(self, group: Group) -> Link:
        """The slowest kind of link that `group` must cross."""
        ...

    def available_nbytes(self) -> int:
        """Bytes that this process may still allocate for buffers, its neighbours on the node counted as its equals."""
        ...

    def needed_nbytes(self, case: Case) -> int:
        """Bytes that `case` takes on one rank: its buffers and the library's own copies."""
        ...

    def buffer_nbytes(self, case: Case) -> tuple[int, int]:
        """Bytes of the send and of the receive buffer that `case` takes on one rank."""
        ...

    def allocate(self, send_nbytes: int, receive_nbytes: int) -> None:
        """Make the two buffers that all cases share."""
        ...

    def create_group(self, group: Group, timeout_seconds: float | None = None) -> None:
        """Connect the members of `group`. Called on all ranks, for the same groups in the same order; whoever is not in
        one waits for nobody. What a call in it may take is `timeout_seconds`; None: it is the watchdog's to end.
        """
        ...

    def drop_group(self, group: Group) -> None:
        """Let go of the connections of `group`, if there are any."""
        ...

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        """Bind `case` to the buffers and to `group`, for the rank with index `me` in it."""
        ...

    def no_graph(self, case: Case) -> str | None:
        """Why this engine cannot put `case` into a CUDA graph, in a few words; None if it can."""
        ...

    def capture(self, call: Call, calls: int) -> Callable[[], object]:
        """What starts a CUDA graph of so many calls of `call`, which has been called before (connections are made)."""
        ...

    def exercise(self, seconds: float) -> None:
        """Keep this rank's GPU busy for so long; nothing where there is none."""
        ...

    def no_overlap(self, case: Case) -> str | None:
        """Why this engine cannot time `case` beside a matrix product, in a few words; None if it can."""
        ...

    def prepare_overlap(self, case: Case, group: Group, me: int) -> Overlap:
        """As `prepare`, with a matrix product on this rank's device."""
        ...

    def barrier(self, group: Group | None = None) -> None:
        """Wait until all ranks of `group`, or of the world, are here and their devices are idle."""
        ...

    def max_reduce(self, values: Seconds) -> Seconds:
        """The maximum over all ranks of the world, element by element, on every rank."""
        ...

    def gather_texts(self, text: str) -> list[str]:
        """The texts of all processes in the order of their ranks, on every process."""
        ...

    def flight_record(self) -> str:
        """JSON of what torch's flight recorder has counted for NCCL; empty where there is none. Waits for nothing."""
        ...

    def close(self) -> None:
        """Let go of groups and buffers."""
        ...
