"""Runs for a report, as the fake engine would measure them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commbench.analysis.curves import Launch
from commbench.analysis.fit import DEFAULT_WINDOW
from commbench.analysis.record_file import fit_launches
from commbench.report.reported import Reported
from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from tests.factories import make_case_record, make_row, make_run

SIZES = tuple(1 << power for power in range(10, 27, 2))


def curve_rows(
    *collectives: str, sizes: Sequence[int] = SIZES, first: int = 0, scale: float = 1.0, **changes: Any
) -> list[SummaryRow]:
    """A row for each collective and size: 100 us and 1 GB/s on two ranks, times `scale`."""
    asked = [(name, size) for name in collectives or ("all_reduce",) for size in sizes]
    rows = []
    for index, (name, size) in enumerate(asked):
        seconds = scale * (1e-4 + size * 1e-9)
        row = make_row(
            first + index, collective=name, size_bytes=size, redop="sum" if "reduce" in name else "none",
            seconds_median=seconds, seconds_ci_low=0.98 * seconds, seconds_ci_high=1.03 * seconds,
            algbw_gbps=size / seconds / 1e9, busbw_gbps=size / seconds / 1e9,
        )  # fmt: skip
        rows.append(replace(row, **changes))
    return rows


def run_of(rows: Sequence[SummaryRow], directory: str = "run", **record: Any) -> Run:
    """A run with a case on its first group for each row."""
    cases = tuple(
        make_case_record(row.case, collective=row.collective, requested_nbytes=row.size_bytes) for row in rows
    )
    return replace(make_run(*rows, cases=cases, **record), directory=Path(directory))


def launch_of(rows: Sequence[SummaryRow], directory: str = "/runs/run", **record: Any) -> Launch:
    """That run without samples."""
    return Launch(run_of(rows, directory, **record), {})


def reported(rows: Sequence[SummaryRow], label: str = "run", **record: Any) -> Reported:
    """That run with its fit."""
    launch = launch_of(rows, label, **record)
    return Reported(label, launch.run, fit_launches([launch], DEFAULT_WINDOW, seed=0))


def unfitted(run: Run, label: str = "run") -> Reported:
    """A run of any kind, with a fit of none of it."""
    return Reported(label, run, fit_launches([Launch(run_of([]), {})], DEFAULT_WINDOW, seed=0))
