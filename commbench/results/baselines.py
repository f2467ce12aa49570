"""Baselines: named sets of runs of one set-up, kept as copies so that they outlive the runs they were made of.

A baseline is a directory: baseline.json, and a run in each of its folders, without samples.
"""

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import msgspec

from commbench.errors import CommbenchError, UsageError, unknown_name
from commbench.results.json_record import read_json_record
from commbench.results.schema import RunRecord
from commbench.results.store import Run, load_run
from commbench.results.writer import RunWriter

BASELINE_FILE = "baseline.json"
VARIABLE = "COMMBENCH_BASELINES"
DEFAULT_DIRECTORY = Path("results/baselines")
_SCHEMA_VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """What all runs of a baseline share. `hosts`: the kinds of nodes, as `4 × AMD EPYC, 2 CPUs`; not their names."""

    engine: str
    backend: str
    world_size: int | None
    nodes: int
    layouts: tuple[str, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """baseline.json. `runs`: the folders of the runs inside; `sources`: where each was copied from."""

    schema_version: int
    name: str
    created_utc: str
    shape: Shape
    runs: tuple[str, ...]
    sources: tuple[str, ...]


def baselines_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Where baselines are: COMMBENCH_BASELINES, or results/baselines."""
    return Path(environment.get(VARIABLE) or DEFAULT_DIRECTORY)


def shape_of(record: RunRecord) -> Shape:
    """What must match between the runs of a baseline."""
    kinds = Counter(f"{host.cpu or 'unknown'}, {host.cpus or '?'} CPUs" for host in record.hosts)
    return Shape(
        engine=record.engine,
        backend=record.backend,
        world_size=record.world_size,
        nodes=len(record.hosts),
        layouts=record.layouts,
        hosts=tuple(f"{count} × {kind}" for kind, count in sorted(kinds.items())),
    )


def save_baseline(directory: Path, name: str, runs: Sequence[Run], created_utc: str) -> Baseline:
    """Copy at least one run under a name that is free. Raises UsageError if they are of more than one shape or hold
    nothing measured, CommbenchError on I/O.
    """
    target = _place(directory, name)
    if target.exists():
        raise UsageError(f"there is a baseline {name!r} already: take another name, or remove it first.")
    _check_runs(runs)
    folders = _folders(runs)
    baseline = Baseline(
        _SCHEMA_VERSION, name, created_utc, shape_of(runs[0].record), folders, tuple(str(run.directory) for run in runs)
    )
    part = target.with_name(f".{name}.{os.getpid()}.part")  # renamed when it is whole: a torn one is never seen
    try:
        for run, folder in zip(runs, folders, strict=True):
            writer = RunWriter(part / folder, run.record)
            writer.add_summary(run.rows)
            writer.finish(run.record.outcome, 0.0)
        (part / BASELINE_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n")
        part.rename(target)
    except OSError as error:
        raise CommbenchError(f"cannot write the baseline to {target}: {error.strerror}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return baseline


def list_baselines(directory: Path) -> list[Baseline]:
    """All of them by name; none where there is no such directory. Raises CommbenchError for a damaged one."""
    return [find_baseline(directory, path.parent.name) for path in sorted(directory.glob(f"[!.]*/{BASELINE_FILE}"))]


def find_baseline(directory: Path, name: str) -> Baseline:
    """The baseline of that name. Raises UsageError if there is none, CommbenchError if it is damaged."""
    place = _place(directory, name)
    if not (place / BASELINE_FILE).exists():
        known = [path.parent.name for path in sorted(directory.glob(f"[!.]*/{BASELINE_FILE}"))]
        if not known:
            raise UsageError(f"no baseline {name!r}: there are none in {directory}; save one, or set {VARIABLE}.")
        raise unknown_name("baseline", name, known)
    hint = "remove it and save it again"
    return read_json_record(place / BASELINE_FILE, Baseline, newest=_SCHEMA_VERSION, noun="baseline", hint=hint)


def load_baseline(directory: Path, name: str) -> list[Run]:
    """The runs of a baseline. Raises UsageError if there is none, CommbenchError if it is damaged."""
    baseline = find_baseline(directory, name)
    for folder in baseline.runs:
        if not _NAME.fullmatch(folder):
            raise CommbenchError(f"the baseline {name!r} is damaged: {folder!r} is no folder of it.")
    return [load_run(_place(directory, name) / folder) for folder in baseline.runs]


def remove_baseline(directory: Path, name: str) -> Baseline:
    """Remove it for good. Raises UsageError if there is none, CommbenchError if it cannot be removed."""
    baseline = find_baseline(directory, name)
    try:
        shutil.rmtree(_place(directory, name))
    except OSError as error:
        raise CommbenchError(f"cannot remove the baseline {name!r}: {error.strerror}.") from error
    return baseline


def _place(directory: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot name a baseline: use letters, digits, dots, - and _, a letter or digit first."
        )
    return directory / name


def _check_runs(runs: Sequence[Run]) -> None:
    first = shape_of(runs[0].record)
    for run in runs:
        if all(row.seconds_median is None for row in run.rows):
            raise UsageError(f"{run.directory} has nothing measured: a baseline needs times.")
        shape = shape_of(run.record)
        unlike = next(
            (field.name for field in fields(Shape) if getattr(shape, field.name) != getattr(first, field.name)), None
        )
        if unlike:
            raise UsageError(
                f"one baseline is of one set-up, and {unlike.replace('_', ' ')} is {getattr(first, unlike)} in "
                f"{runs[0].directory} but {getattr(shape, unlike)} in {run.directory}: save them apart."
            )


def _folders(runs: Sequence[Run]) -> tuple[str, ...]:
    """A folder for each run, named after it, no two alike."""
    return tuple(_free_names(re.sub(r"[^\w.-]+", "_", run.directory.resolve().name, flags=re.ASCII) for run in runs))


def _free_names(names: Iterator[str]) -> Iterator[str]:
    taken: set[str] = set()
    for name in names:
        usable = name[:80] if _NAME.fullmatch(name[:80]) else f"run{name[:80]}"
        free = next(
            word for word in (usable, *(f"{usable}.{number}" for number in range(2, 10_000))) if word not in taken
        )
        taken.add(free)
        yield free
