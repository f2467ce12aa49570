"""The lines of nccl-tests' and rccl-tests' text that are not rows: what each says, by a pattern that finds it anywhere.

Prefixes that no rule foresees stand before some of these lines, so they are searched, not matched.
"""

import re
from dataclasses import dataclass, field

from commbench.results.importers.numbers import read_collective, read_whole

_VERSION = re.compile(r"nccl-tests version (\S{1,40})")
_LIBRARY = re.compile(r"nccl-library=(\d{4,6})")
_RCCL_TESTS = re.compile(r"rccl-tests: Version (\S{1,60})")
_NCCL = re.compile(r"\b(NCCL|RCCL) version\s{0,3}:?\s{0,3}(\d\S{0,40})")
_STARTING = re.compile(r"Collective test starting: (\w{1,60})")
_CONCLUDED = re.compile(r"Collective test concluded")
_CONFIG = re.compile(r"\bminBytes (\d{1,18}) maxBytes (\d{1,18}) step: (\d{1,18})\((factor|bytes)\)")
_VALIDATION = re.compile(r"\bvalidation: (\d{1,6})")
_DEVICE = re.compile(
    r"Rank\s{1,8}(\d{1,7})\s{1,8}(?:Group\s{1,8}(\d{1,7})\s{1,8})?Pid\s{1,12}(\d{1,10}) on\s{1,80}(\S{1,255}) "
    r"device\s{1,4}(\d{1,4}) \[([^\]]{1,40})\]\s{0,8}(.{0,120})"
)
_LIMITED = re.compile(r"Reducing maxBytes to (\d{1,18})")
_BOUNDS = re.compile(r"Out of bounds values\s{0,4}:\s{0,4}(\d{1,12}) (OK|FAILED)")
_AVERAGE = re.compile(r"Avg bus bandwidth\s{0,8}:\s{0,4}(-?[\w.+]{1,30})(?: (OK|FAILED))?")
_WORLD = re.compile(r"\bworld_size[=:] ?(\d{1,7})\b")
_COMMAND = re.compile(r"\b(\w{4,40})_perf(?:_mpi)?\b")
_OPTIONS = re.compile(r"\s-[be] ?\d")
_WORD = re.compile(r"[A-Za-z]\w{5,20}")
_LABEL = re.compile(r"\s{0,8}(?:#{2,6}|={3,12}|-{3,12}|\*{2,6})\s{0,4}([^\s#=*-].{0,200})$")
_FAILURE = re.compile(
    r"Test (?:NCCL|CUDA|HIP) failure|Test failure |Test timeout|[Ss]egmentation fault|exited on signal|signal: |"
    r"unhandled (?:system|cuda|hip) error|CANCELLED AT|Killed|Aborted \(core"
)


_TELLING = re.compile(
    r"[Vv]ersion|Collective test|Reducing|Out of|Avg bus|world_size|_perf|\s-[be] ?\d|failure|Test |fault|exited on|"
    r"signal|error|CANCELLED|Killed|Abort"
)


@dataclass(frozen=True, slots=True)
class Device:
    """A line of the device list."""

    rank: int
    group: int
    pid: int
    host: str
    device: str
    bus: str
    name: str


@dataclass(frozen=True, slots=True)
class Config:
    """The line that says what is swept, in bytes."""

    low: int
    high: int
    step: int
    is_factor: bool
    validated: bool

    def after(self, nbytes: int) -> int | None:
        """The size that follows `nbytes`; None after the last."""
        following = nbytes * self.step if self.is_factor else nbytes + self.step
        return following if nbytes < following <= self.high else None


@dataclass(slots=True)
class Marks:
    """What the lines of one table have said until now."""

    tests_version: str = ""
    version: str = ""
    is_rccl: bool = False
    named: str | None = None
    named_by: str = ""
    config: Config | None = None
    configs: int = 0
    devices: list[Device] = field(default_factory=list)
    limited: bool = False
    bounds: tuple[int, str] | None = None
    average: str = ""
    average_failed: bool = False
    footers: int = 0
    said_ranks: int | None = None
    failure: tuple[int, str] | None = None


def read_config(text: str) -> Config | None:
    match = _CONFIG.search(text)
    if match is None:
        return None
    validation = _VALIDATION.search(text)
    return Config(
        int(match[1]), int(match[2]), int(match[3]), match[4] == "factor",
        validation is None or validation[1] != "0",
    )  # fmt: skip


def read_device(text: str) -> Device | None:
    match = _DEVICE.search(text)
    if match is None:
        return None
    return Device(int(match[1]), int(match[2] or 0), int(match[3]), match[4], match[5], match[6], match[7].strip())


def read_label(text: str) -> str | None:
    """The words of a heading that someone put between tables, such as `### ALGO=Ring`."""
    match = _LABEL.match(text)
    return match[1].strip(" #=*-") if match else None


def starts_test(text: str) -> bool:
    """Whether a line is the first of a test's own output."""
    return bool(_VERSION.search(text) or _STARTING.search(text))


def repeats(text: str, marks: Marks) -> bool:
    """Whether a first line of a test says again what `marks` know already: it belongs to the next test."""
    if _VERSION.search(text):
        return bool(marks.tests_version) or marks.named_by == "the text"
    return marks.named_by == "the text"


def read_mark(text: str, number: int, marks: Marks) -> None:
    """Add what a line says to `marks`; the size, device and heading lines are the caller's."""
    if not _TELLING.search(text):  # most lines of a debug log say nothing: one search for them, not ten
        return
    if match := _VERSION.search(text):
        marks.tests_version = match[1]
        library = _LIBRARY.search(text)
        marks.version = _decoded_version(library[1]) if library else marks.version
    elif match := _RCCL_TESTS.search(text):
        marks.tests_version, marks.is_rccl = match[1], True
    elif match := _NCCL.search(text):
        marks.version, marks.is_rccl = marks.version or match[2], marks.is_rccl or match[1] == "RCCL"
    elif _LIMITED.search(text):
        marks.limited = True
    elif match := _BOUNDS.search(text):
        marks.bounds = (int(match[1]), match[2])
    elif match := _AVERAGE.search(text):
        marks.average, marks.average_failed = match[1], match[2] == "FAILED"
        marks.footers += 1
    elif _FAILURE.search(text) and marks.failure is None:
        marks.failure = (number, text.strip())
    if match := _STARTING.search(text):
        marks.named, marks.named_by = read_collective(match[1]), "the text"
    elif marks.named_by != "the text" and not _CONCLUDED.search(text) and (name := _named_in_command(text)):
        marks.named, marks.named_by = name, "the command"
    if match := _WORLD.search(text):
        marks.said_ranks = read_whole(match[1])


def _named_in_command(text: str) -> str | None:
    for match in _COMMAND.finditer(text):
        if name := read_collective(match[1]):
            return name
    if _OPTIONS.search(text):
        names = {name for word in _WORD.findall(text) if (name := read_collective(word))}
        return names.pop() if len(names) == 1 else None
    return None


def _decoded_version(number: str) -> str:
    """22807 is 2.28.7; before 2.9 it was 2804 for 2.8.4."""
    value = int(number)
    major, rest = divmod(value, 10_000 if value >= 10_000 else 1_000)
    return f"{major}.{rest // 100}.{rest % 100}"
