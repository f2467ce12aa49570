"""Reads the directory of a run: run.json, samples.csv, summary.csv; also a half-written one. `writer.py` writes it."""

import csv
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, TextIO, TypeVar, Union, get_args, get_origin, get_type_hints

from commbench.errors import CommbenchError
from commbench.results.batches import read_plain_samples
from commbench.results.json_record import read_json_record
from commbench.results.kinds import ITEMSIZES, KINDS
from commbench.results.schema import OPTIONAL_COLUMNS, SCHEMA_VERSION, RunRecord, SampleRow, SummaryRow
from commbench.results.summary import GroupSamples, summarize_group

RUN_FILE, SAMPLES_FILE, SUMMARY_FILE, PLOTS_DIR = "run.json", "samples.csv", "summary.csv", "plots"
LOGS_DIR = "nccl"  # NCCL's own log of each rank, `rank0.log`, …
_TOO_LARGE = 1 << 62  # no size and no count of ranks comes near: a damaged file

Row = TypeVar("Row", SampleRow, SummaryRow)


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run: its record and one row for every case and group of its plan, in the order of the plan."""

    directory: Path
    record: RunRecord
    rows: tuple[SummaryRow, ...]


def load_run(directory: Path) -> Run:
    """The run in `directory`, also a half-written one: cases without a summary row are summarized from their samples
    (status `partial`), and those without samples are `missing`.

    Raises CommbenchError if there is no run, if it is of a newer schema, or if a file does not read as one.
    """
    record = _load_record(directory)
    done = {(row.case, row.layout, row.group): row for row in read_summary(directory)}
    expected = [(case, position) for case in record.cases for position in case.groups]
    keys = [(case.index, record.groups[position].layout, record.groups[position].name) for case, position in expected]
    partial: dict[tuple[int, int], GroupSamples] = {}
    if not all(key in done for key in keys):
        partial = collect_samples(directory)
    rows = []
    for key, (case, position) in zip(keys, expected, strict=True):
        if key in done and done[key].collective != case.collective:
            found = done[key].collective
            raise CommbenchError(
                f"{directory / SUMMARY_FILE} is damaged: case {case.index} is {found!r} there and "
                f"{case.collective!r} in {RUN_FILE}."
            )
        samples = partial.get((case.index, position), GroupSamples())
        rows.append(
            done.get(key)
            or summarize_group(
                case,
                record.groups[position],
                samples,
                engine=record.engine,
                backend=record.backend,
                status="partial" if samples.seconds else "missing",
                reason=f"the run is {record.outcome}",
            )
        )
    return Run(directory, record, tuple(rows))


def read_samples(directory: Path) -> Iterator[SampleRow]:
    """Every row of samples.csv, one at a time. Raises CommbenchError for a row that does not read as one."""
    return _read_rows(directory / SAMPLES_FILE, SampleRow)


def read_summary(directory: Path) -> Iterator[SummaryRow]:
    """Every row of summary.csv in the order of the file. Raises CommbenchError for a row that does not read as one."""
    return _read_rows(directory / SUMMARY_FILE, SummaryRow)


def _load_record(directory: Path) -> RunRecord:
    path = directory / RUN_FILE
    record = read_json_record(path, RunRecord, newest=SCHEMA_VERSION, noun="run", hint="give the directory of a run")
    check_record(path, record)
    return record


def check_record(path: Path, record: RunRecord) -> None:
    """Raise CommbenchError if `record`, read from `path`, cannot be that of a run."""
    for group in record.groups:
        size, nodes = group.size, group.nodes
        least = nodes if nodes is not None else 1
        if least < 1 or (size is not None and not least <= size < _TOO_LARGE):
            raise CommbenchError(f"{path} is damaged: group {group.name!r} has {size} ranks on {nodes} nodes.")
        if group.bytes_per_second is not None and group.bytes_per_second <= 0:
            raise CommbenchError(f"{path} is damaged: group {group.name!r} has {group.bytes_per_second:g} bytes/s.")
    for case in record.cases:
        if case.collective not in KINDS or case.dtype not in ITEMSIZES:
            raise CommbenchError(f"{path} is damaged: case {case.index} is {case.collective!r} of {case.dtype!r}.")
        if case.requested_nbytes is not None and not 0 <= case.requested_nbytes < _TOO_LARGE:
            raise CommbenchError(f"{path} is damaged: case {case.index} has {case.requested_nbytes} bytes.")
        if not all(0 <= position < len(record.groups) for position in case.groups):
            raise CommbenchError(f"{path} is damaged: case {case.index} names a group that is not there.")

    for overlap in record.overlap:
        if not 0 <= overlap.case < len(record.cases) or overlap.group not in record.cases[overlap.case].groups:
            raise CommbenchError(f"{path} is damaged: an overlap names case {overlap.case} on group {overlap.group}.")
        slowdowns = [slowdown for slowdown in (overlap.compute, overlap.collective) if slowdown]
        if not all(0.0 < slowdown.factor < _TOO_LARGE for slowdown in slowdowns):
            raise CommbenchError(f"{path} is damaged: the overlap of case {overlap.case} has a factor of no time.")


def collect_samples(directory: Path) -> dict[tuple[int, int], GroupSamples]:
    """The samples of every case and group, by their positions in run.json, warm-up left out.

    Raises CommbenchError for a file that cannot be read, and for a row that does not read as one.
    """
    path = directory / SAMPLES_FILE
    try:
        plain = read_plain_samples(path)
    except OSError as error:
        raise CommbenchError(f"cannot read {path}: {error.strerror}.") from error
    return _collect_carefully(path) if plain is None else plain


def _collect_carefully(path: Path) -> dict[tuple[int, int], GroupSamples]:
    collected: dict[tuple[int, int], GroupSamples] = {}
    for row in _read_rows(path, SampleRow):
        samples = collected.setdefault((row.case, row.group), GroupSamples())
        if row.kind == "first":
            samples.first_call_seconds, samples.wrong = row.seconds, row.wrong
        elif row.kind == "batch":
            samples.seconds.append(row.seconds)
            if row.enqueue_seconds is not None:
                samples.enqueue_seconds.append(row.enqueue_seconds)
    return collected


def _read_rows(path: Path, kind: type[Row]) -> Iterator[Row]:
    """The rows of a CSV file of ours. A torn last line is left out; any other bad line is an error with its number."""
    readers = _readers(kind)
    try:
        with path.open(newline="\n", encoding="utf-8", errors="replace") as file:
            lines = csv.reader(_complete_lines(file), strict=True)
            header = next(lines, None)
            if header is None:  # the run ended before its first flush
                return
            if not _is_known_header(header, readers):
                raise CommbenchError(f"{path} does not start with the columns of {path.name}: found {header[:4]}….")
            readers = {name: readers[name] for name in header}
            for cells in lines:
                yield _row(path, lines.line_num, kind, readers, cells)
    except OSError as error:
        raise CommbenchError(f"cannot read {path}: {error.strerror}.") from error
    except csv.Error as error:
        raise CommbenchError(f"{path} line {lines.line_num} does not read as CSV: {error}.") from error


def _is_known_header(header: list[str], columns: Collection[str]) -> bool:
    """Whether it names today's columns in their order; those that came later may be missing in an older file."""
    known = [name for name in columns if name in header or name not in OPTIONAL_COLUMNS]
    return header == known


def _row(path: Path, number: int, kind: type[Row], readers: dict[str, Any], cells: list[str]) -> Row:
    try:
        if len(cells) != len(readers):
            raise ValueError(f"it has {len(cells)} cells, not {len(readers)}")
        pairs = zip(readers.items(), cells, strict=True)
        return kind(**{name: read(cell) for (name, read), cell in pairs})
    except ValueError as error:
        raise CommbenchError(f"{path} line {number} is damaged: {error}.") from error


def _complete_lines(file: TextIO) -> Iterator[str]:
    return (line for line in file if line.endswith("\n"))


def _readers(kind: type[Any]) -> dict[str, Any]:
    """For every column the function from its cell to its value."""
    hints = get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in fields(kind)}


def _reader(hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        inner = _reader(get_args(hint)[0])
        return lambda cell: inner(cell) if cell else None
    return {bool: lambda cell: bool(int(cell)), int: _whole, float: _finite}.get(hint, str)


def _whole(cell: str) -> int:
    value = int(cell)
    if abs(value) >= _TOO_LARGE:
        raise ValueError(f"{cell!r} is too large")
    return value


def _finite(cell: str) -> float:
    value = float(cell)
    if value - value != 0.0:
        raise ValueError(f"{cell!r} is not a finite number")
    return value
