"""Launches of one sweep with a known cost, a level of each launch and a noise of each case, for comparisons."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from commbench.results.store import Run
from commbench.results.writer import RunWriter
from tests.factories import make_case_record, make_group_record, make_record, make_row

SIZES = tuple(1 << power for power in range(10, 25, 2))
COLLECTIVES = ("all_reduce", "all_gather", "all_to_all")


def make_launch(
    seed: int = 0,
    *,
    alpha: float = 100e-6,
    rate: float = 1e9,
    level: float = 0.0,
    noise: float = 0.0,
    sizes: Sequence[int] = SIZES,
    collectives: Sequence[str] = COLLECTIVES,
    row: dict[str, Any] | None = None,
    **record: Any,
) -> Run:
    """alpha + S / rate seconds, times the exponential of normal deviates: one for the launch, one for each case."""
    random = np.random.default_rng(seed)
    shared = level * random.standard_normal()
    rows, cases = [], []
    for name in collectives:
        for nbytes in sizes:
            seconds = (alpha + nbytes / rate) * float(np.exp(shared + noise * random.standard_normal()))
            identity = {"collective": name, "dtype": "float32", "in_place": False}
            changes = {**identity, "link_class": "net", "seconds_median": seconds, **(row or {})}
            interval = {"seconds_ci_low": seconds * 0.98, "seconds_ci_high": seconds * 1.02}
            rows.append(make_row(len(rows), size_bytes=nbytes, **interval, **changes))
            cases.append(make_case_record(len(cases), requested_nbytes=nbytes, **identity))
    defaults = {
        "cases": tuple(cases),
        "groups": (make_group_record(link_class="net"),),
        "seed": seed,
        "outcome": "complete",
    }
    return Run(Path(f"run-{seed}"), make_record(**{**defaults, **record}), tuple(rows))


def make_launches(count: int, first_seed: int = 0, **changes: Any) -> list[Run]:
    """So many launches, another seed each."""
    return [make_launch(seed, **changes) for seed in range(first_seed, first_seed + count)]


def store(runs: Sequence[Run], folder: Path) -> list[str]:
    """Write each run below `folder`, and say where."""
    for run in runs:
        writer = RunWriter(folder / run.directory, run.record)
        writer.add_summary(run.rows)
        writer.finish(run.record.outcome, 0.0)
    return [str(folder / run.directory) for run in runs]


def dated(runs: Sequence[Run]) -> list[Run]:
    """The same runs, one a day."""
    return [
        replace(
            run, record=replace(run.record, created_utc=f"2026-{1 + day // 28:02}-{1 + day % 28:02}T00:00:00+00:00")
        )
        for day, run in enumerate(runs)
    ]
