"""Curves and runs whose answer is known."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from commbench.analysis.curves import Curve, CurveKey, Launch, Point
from commbench.plan.collectives import COLLECTIVES
from commbench.results.schema import GroupRecord, SummaryRow
from commbench.results.summary import GroupSamples
from tests.factories import make_case_record, make_group_record, make_row, make_run

SIZES = tuple(1 << power for power in range(10, 31))

Cost = Callable[[float], float]  # bus bytes to seconds


def line(alpha_seconds: float, bytes_per_second: float) -> Cost:
    return lambda bus_nbytes: alpha_seconds + bus_nbytes / bytes_per_second


def make_curve(
    cost: Cost,
    sizes: Sequence[int] = SIZES,
    *,
    collective: str = "all_reduce",
    ranks: int = 8,
    noise: float = 0.0,
    batches: int = 1,
    launches: int = 1,
    seed: int = 0,
    nominal: float | None = None,
    slowest_ratio: float = 1.0,
    **conditions: Any,
) -> Curve:
    """A curve of `cost`, each batch times a normal factor of width `noise`."""
    spec, random = COLLECTIVES[collective], np.random.default_rng(seed)
    points = []
    for size in sizes:
        seconds = cost(spec.factor(ranks) * size)
        drawn = [np.sort(seconds * (1 + noise * random.standard_normal(batches))) for _ in range(launches)]
        points.append(Point(size, float(np.median([np.median(launch) for launch in drawn])), tuple(drawn)))
    key = CurveKey(
        **{
            "source": "run", "collective": collective, "link_class": "nvlink", "layout": "world", "ranks": ranks,
            "nodes": 1, "dtype": "float32", "redop": "sum", "in_place": True, "concurrency": "alone",
            "engine": "torch", "backend": "nccl", "mode": "throughput", **conditions,
        }
    )  # fmt: skip
    return Curve(key, tuple(points), spec.factor(ranks), spec.steps(ranks), 1, nominal, slowest_ratio)


def make_launch(
    rows: Sequence[SummaryRow],
    samples: dict[tuple[int, int], Sequence[float]] | None = None,
    groups: Sequence[GroupRecord] = (),
    **record: Any,
) -> Launch:
    """A run with a case for each row, on the group of the row's name."""
    groups = groups or (make_group_record(),)
    positions = {group.name: index for index, group in enumerate(groups)}
    by_case: dict[int, list[int]] = {}
    for row in rows:
        by_case.setdefault(row.case, []).append(positions[row.group])
    cases = tuple(make_case_record(case, groups=tuple(at)) for case, at in by_case.items())
    run = make_run(*rows, cases=cases, groups=tuple(groups), **record)
    return Launch(run, {place: GroupSamples(seconds=list(values)) for place, values in (samples or {}).items()})


def rows_of(seconds_by_size: dict[int, float], first_case: int = 0, **changes: Any) -> list[SummaryRow]:
    """A row for each size."""
    return [
        make_row(first_case + index, size_bytes=size, seconds_median=seconds, **changes)
        for index, (size, seconds) in enumerate(seconds_by_size.items())
    ]
