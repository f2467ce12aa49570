"""What an importer reads out of a file: tables of rows, in seconds, bytes and bytes per second."""

from dataclasses import dataclass

from commbench.plan.modes import Concurrency, Mode
from commbench.results.schema import UNKNOWN, Finding, Host, Outcome, Status


@dataclass(frozen=True, slots=True)
class Hints:
    """What the user says about a file that the file does not say itself; None: nothing."""

    collective: str | None = None
    ranks: int | None = None
    nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One file as it was read. `name` is what messages call it."""

    name: str
    data: bytes
    hints: Hints = Hints()


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as its file prints it: the true one is within `half_unit` of `value`."""

    value: float
    half_unit: float

    @property
    def low(self) -> float:
        return self.value - self.half_unit

    @property
    def high(self) -> float:
        return self.value + self.half_unit

    def scaled(self, factor: float) -> "Printed":
        """The same number in another unit."""
        return Printed(self.value * factor, self.half_unit * factor)


@dataclass(frozen=True, slots=True)
class Spread:
    """What a tool prints of a distribution beside its one time, in seconds. `samples`: how many calls are in it."""

    samples: int | None = None
    minimum: float | None = None
    p95: float | None = None
    p99: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """One case. `seconds` per call, `algbw` and `busbw` in bytes/s, `line` where it was read.

    `wrong` is None where the data was not checked, or not counted. `samples`: raw seconds of single calls.
    """

    line: int
    nbytes: int | None
    seconds: Printed | None
    algbw: Printed | None = None
    busbw: Printed | None = None
    count: int | None = None
    dtype: str = UNKNOWN
    redop: str = UNKNOWN
    root: int | None = None
    in_place: bool = False
    wrong: int | None = None
    status: Status = "ok"
    reason: str = ""
    variant: str = ""
    spread: Spread = Spread()
    samples: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class LostLine:
    """A line that held a row, or a part of one, that could not be put together for certain."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class ForeignTable:
    """One table of a file: its rows, and what is known of all of them.

    `collective` is a kind of `results/kinds.py`. `world_size` differs from `ranks` where several groups ran at once.
    """

    tool: str
    backend: str
    mode: Mode
    time_means: str
    rows: tuple[ForeignRow, ...]
    collective: str = UNKNOWN
    version: str = UNKNOWN
    ranks: int | None = None
    nodes: int | None = None
    world_size: int | None = None
    concurrency: Concurrency = "alone"
    hosts: tuple[Host, ...] = ()
    outcome: Outcome = "complete"
    findings: tuple[Finding, ...] = ()
    lost: tuple[LostLine, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
