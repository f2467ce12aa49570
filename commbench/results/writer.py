"""Writes the directory of a run while it is measured, so that it can be read whenever the writing ends."""

import csv
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TextIO

import msgspec

from commbench.errors import CommbenchError, UsageError
from commbench.results.contention import add_contention, measured_both_ways
from commbench.results.lock import RunLock
from commbench.results.schema import (
    SAMPLE_COLUMNS,
    SUMMARY_COLUMNS,
    Finding,
    GroupRecord,
    Outcome,
    OverlapRecord,
    RunRecord,
    SampleRow,
    SummaryRow,
)
from commbench.results.store import LOGS_DIR, RUN_FILE, SAMPLES_FILE, SUMMARY_FILE, Run, read_samples, read_summary
from commbench.results.summary import relinked

# Not dataclasses.astuple: it copies every value, and a large run has millions.
_SAMPLE_VALUES, _SUMMARY_VALUES = attrgetter(*SAMPLE_COLUMNS), attrgetter(*SUMMARY_COLUMNS)


def check_new_directory(directory: Path) -> None:
    """Raise UsageError if a run cannot be written to `directory`: it holds something, or may not be written."""
    try:
        existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        holds_something = directory.is_dir() and any(directory.iterdir())
    except OSError as error:
        raise UsageError(f"cannot use {directory}: {error.strerror}; give another --out.") from error
    if not existing.is_dir():
        raise UsageError(f"{existing} is a file, not a directory: give another --out.")
    if holds_something:
        what = "a run" if (directory / RUN_FILE).exists() else "other files"
        raise UsageError(f"{directory} already holds {what} and is never overwritten: give another --out.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"{existing} is not writable: give an --out that is.")


class RunWriter:
    """Writes a run while it is measured. Every method leaves the directory readable."""

    def __init__(self, directory: Path, record: RunRecord, lock: RunLock | None = None) -> None:
        """Make `directory` and start the run in it; with the `lock` of a stored run, go on writing that one.

        Raises UsageError if a new run's directory holds something, CommbenchError on I/O.
        """
        if lock is None:
            check_new_directory(directory)
        self.directory = directory
        self.record = record
        self._seconds_before = record.measured_seconds
        with _storing(directory):
            if lock is None:
                directory.mkdir(parents=True, exist_ok=True)
            self._lock = lock or RunLock(directory)
            start = _start_csv if lock is None else _open_csv
            self._samples = start(directory / SAMPLES_FILE, SAMPLE_COLUMNS)
            self._summary = start(directory / SUMMARY_FILE, SUMMARY_COLUMNS)
            self._write_record()  # last: where there is a run.json there is a run to load

    def add_samples(self, rows: Iterable[SampleRow]) -> None:
        """Append to samples.csv and flush. Raises CommbenchError when the disk is full."""
        self._append(self._samples, rows)

    def add_summary(self, rows: Iterable[SummaryRow]) -> None:
        """Append to summary.csv and flush. Raises CommbenchError when the disk is full."""
        self._append(self._summary, rows)

    def complete_summary(self) -> None:
        """Fill what only a whole summary.csv can tell: how much slower groups are together than alone."""
        if not measured_both_ways(self.record.cases):
            return
        rows = add_contention(list(read_summary(self.directory)))
        with _storing(self.directory):
            self._summary.close()
            _replace_csv(self.directory / SUMMARY_FILE, SUMMARY_COLUMNS, rows)

    def add_overlap(self, records: Sequence[OverlapRecord]) -> None:
        """Put these into run.json. Raises CommbenchError when the disk is full."""
        self.record = replace(self.record, overlap=tuple(records))
        with _storing(self.directory):
            self._write_record()

    def add_findings(self, findings: Sequence[Finding]) -> None:
        """Add these to those of run.json. Raises CommbenchError when the disk is full."""
        new = [finding for finding in findings if finding not in self.record.findings]  # a resumed run may have them
        self.record = replace(self.record, findings=(*self.record.findings, *new))
        with _storing(self.directory):
            self._write_record()

    def set_groups(self, groups: Sequence[GroupRecord]) -> None:
        """Put these, of whose links more is known now, in the place of the same groups, in the rows as well.

        No row may be added afterwards. Raises CommbenchError when the disk is full.
        """
        self.record = replace(self.record, groups=tuple(groups))
        cases = {case.index: case for case in self.record.cases}
        by_name = {(group.layout, group.name): group for group in groups}
        rows = [relinked(row, cases[row.case], by_name[row.layout, row.group]) for row in read_summary(self.directory)]
        with _storing(self.directory):
            self._summary.close()
            _replace_csv(self.directory / SUMMARY_FILE, SUMMARY_COLUMNS, rows)
            self._write_record()

    def finish(self, outcome: Outcome, measured_seconds: float) -> None:
        """Say in run.json how the run ended, close the files, and let others write."""
        seconds = self._seconds_before + measured_seconds
        self.record = replace(self.record, outcome=outcome, measured_seconds=seconds)
        with _storing(self.directory):
            self._write_record()
            self._samples.close()
            self._summary.close()
        self._lock.release()

    def _append(self, file: TextIO, rows: Iterable[SampleRow] | Iterable[SummaryRow]) -> None:
        with _storing(self.directory):
            csv.writer(file, lineterminator="\n").writerows(map(_cells, rows))
            file.flush()

    def _write_record(self) -> None:
        # Renamed into place: a reader, or a run that is killed here, never sees half a record.
        part = self.directory / (RUN_FILE + ".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(self.record), indent=1) + b"\n")
        part.rename(self.directory / RUN_FILE)


def write_log(directory: Path, rank: int, data: bytes) -> Path:
    """Put NCCL's log of a rank beside the run in `directory`; says where it is. Raises CommbenchError on I/O."""
    path = directory / LOGS_DIR / f"rank{rank}.log"
    with _storing(directory):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return path


def keep_cases(run: Run, indices: Collection[int]) -> None:
    """Leave these cases in the stored samples and rows of `run`; the others shall be measured anew.

    Killed at any moment, the directory is still that of a run that was cut off. Raises CommbenchError on I/O.
    """
    samples = (row for row in read_samples(run.directory) if row.case in indices)
    rows = [row for row in run.rows if row.case in indices]
    with _storing(run.directory):
        _replace_csv(run.directory / SUMMARY_FILE, SUMMARY_COLUMNS, rows)
        _replace_csv(run.directory / SAMPLES_FILE, SAMPLE_COLUMNS, samples)


class _storing:
    """Turns an OSError into the CommbenchError that says what to do."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise CommbenchError(
                f"cannot write to {self._directory}: {error.strerror or error}; "
                "what was written until now is kept. Free some space or give another --out."
            ) from error


def _start_csv(path: Path, columns: Sequence[str]) -> TextIO:
    file = path.open("x", newline="", encoding="utf-8")
    csv.writer(file, lineterminator="\n").writerow(columns)
    file.flush()
    return file


def _open_csv(path: Path, _: Sequence[str]) -> TextIO:
    return path.open("a", newline="", encoding="utf-8")


def _replace_csv(path: Path, columns: Sequence[str], rows: Iterable[SampleRow] | Iterable[SummaryRow]) -> None:
    part = path.with_name(path.name + ".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(map(_cells, rows))
    part.rename(path)


def _cells(row: SampleRow | SummaryRow) -> list[Any]:
    values = _SAMPLE_VALUES(row) if isinstance(row, SampleRow) else _SUMMARY_VALUES(row)
    return ["" if value is None else _cell(value) for value in values]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return f"{value:.9g}" if isinstance(value, float) else value
