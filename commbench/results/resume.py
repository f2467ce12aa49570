"""What of a stored run can be gone on with: the cases that are done, and whether the world is still the same."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from zlib import crc32

from commbench.results.schema import RunRecord, Status
from commbench.results.store import Run, read_samples
from commbench.units import format_nbytes

DONE: frozenset[Status] = frozenset({"ok", "noisy", "wrong", "unsupported", "skipped"})
_LONGEST_SHOWN = 80  # characters of a value in a sentence


@dataclass(frozen=True, slots=True)
class DoneCase:
    """A case that a resumed run keeps; `wrong` by group."""

    index: int
    status: Status
    reason: str
    wrong: tuple[int | None, ...]


def find_done(run: Run) -> list[DoneCase]:
    """The cases of `run` with a final row for every group, and with every batch that the row counts in samples.csv.

    Raises CommbenchError if samples.csv does not read.
    """
    batches = Counter((row.case, row.group) for row in read_samples(run.directory) if row.kind == "batch")
    rows, done = iter(run.rows), []
    for case in run.record.cases:
        members = [(position, next(rows)) for position in case.groups]
        if all(row.status in DONE and row.samples == batches[case.index, position] for position, row in members):
            first = members[0][1]
            done.append(DoneCase(case.index, first.status, first.reason, tuple(row.wrong for _, row in members)))
    return done


def find_differences(stored: RunRecord, now: RunRecord) -> list[str]:
    """What keeps samples of the two records from being of one run: `world size (stored 4, now 2)`."""
    found = []
    now = _with_witnessed(stored, now)
    for name, tell in _COMPARED:
        before, after = tell(stored), tell(now)
        if before != after:
            found.append(f"{name} (stored {_shown(before)}, now {_shown(after)})")
    return found


def _with_witnessed(stored: RunRecord, now: RunRecord) -> RunRecord:
    """`now` with the links of the groups that NCCL's log has told of in `stored`: at its start no run can know them."""
    told = {(one.layout, one.name, one.ranks): one for one in stored.groups if one.link_source == "log"}
    return replace(now, groups=tuple(told.get((one.layout, one.name, one.ranks), one) for one in now.groups))


def _words(tell: Callable[[RunRecord], Iterable[object]]) -> Callable[[RunRecord], str]:
    return lambda record: ", ".join(dict.fromkeys(str(word) for word in tell(record)))


def _version(name: str) -> Callable[[RunRecord], str]:
    return lambda record: record.versions.get(name, "none")


# From the outside in: where the world differs, so does the plan, and the first is why.
_COMPARED: tuple[tuple[str, Callable[[RunRecord], str]], ...] = (
    ("schema", lambda record: str(record.schema_version)),
    ("commbench", _version("commbench")),
    ("torch", _version("torch")),
    ("engine", lambda record: record.engine),
    ("backend", lambda record: record.backend),
    ("world size", lambda record: str(record.world_size)),
    ("ranks of each host", _words(lambda record: (f"{host.name}: {host.ranks}" for host in record.hosts))),
    ("environment", _words(lambda record: (
        f"{name}={value}" for name, value in record.environment.items() if name != "MASTER_ADDR"))),
    ("layouts", _words(lambda record: record.layouts)),
    ("groups", _words(lambda record: (f"{group.layout} {group.name}: {group.ranks}" for group in record.groups))),
    ("link classes", _words(lambda record: (group.link_class for group in record.groups))),
    ("link rates", _words(lambda record: (group.bytes_per_second for group in record.groups))),
    ("collectives", _words(lambda record: (case.collective for case in record.cases))),
    ("sizes", _words(lambda record: (format_nbytes(case.requested_nbytes or 0) for case in record.cases))),
    ("dtypes", _words(lambda record: (case.dtype for case in record.cases))),
    ("redops", _words(lambda record: (case.redop for case in record.cases))),
    ("concurrency", _words(lambda record: (case.concurrency for case in record.cases))),
    ("mode", _words(lambda record: (case.mode for case in record.cases))),
    ("variant", _words(lambda record: (case.variant for case in record.cases))),
    ("seed", lambda record: str(record.seed)),
    ("precision", lambda record: f"{record.precision:g}"),
    ("budget", lambda record: f"{record.budget_seconds:g} s"),
    ("cases in place", _words(lambda record: (case.collective for case in record.cases if case.in_place))),
    ("plan", lambda record: f"{len(record.cases)} cases with checksum {crc32(repr(record.cases).encode()):08x}"),
)  # fmt: skip


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
