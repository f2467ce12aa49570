"""Small plans, records and runs for tests: a valid default of everything, changed by keyword."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from commbench.plan.collectives import COLLECTIVES
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from commbench.results.schema import (
    SCHEMA_VERSION,
    CaseRecord,
    GroupRecord,
    Host,
    Outcome,
    RunRecord,
    SampleRow,
    SummaryRow,
)
from commbench.results.store import Run
from commbench.results.writer import RunWriter


def make_group(size: int = 2, first: int = 0, name: str = "world") -> Group:
    """`size` ranks from `first` on."""
    return Group(name, tuple(range(first, first + size)))


def make_case(collective: str = "all_reduce", nbytes: int = 1024, *groups: Group, **changes: Any) -> Case:
    """A case of a plan, on a world of two ranks unless `groups` are given."""
    redop = "sum" if COLLECTIVES[collective].reduces else "none"
    several = len(groups) > 1
    case = Case(
        index=0,
        collective=collective,
        requested_nbytes=nbytes,
        dtype="float32",
        redop=redop,
        in_place=False,
        mode="throughput",
        layout="node" if several else "world",
        concurrency="together" if several else "alone",
        groups=groups or (make_group(),),
    )
    return replace(case, **changes)


def make_group_record(**changes: Any) -> GroupRecord:
    """The world of two ranks on one node, without a known rate."""
    return replace(GroupRecord("world", "world", "0-1", 2, 1, "loopback"), **changes)


def make_case_record(index: int = 0, **changes: Any) -> CaseRecord:
    """An all_reduce of 1 KiB on the first group of its run."""
    case = CaseRecord(index, "all_reduce", 1024, "float32", "sum", True, "throughput", "world", "alone", (0,))
    return replace(case, **changes)


def make_record(**changes: Any) -> RunRecord:
    """A run of two sizes on two ranks."""
    record = RunRecord(
        schema_version=SCHEMA_VERSION,
        created_utc="2026-01-02T03:04:05+00:00",
        command=("commbench", "sweep"),
        engine="torch",
        backend="gloo",
        launcher="local",
        world_size=2,
        seed=0,
        precision=0.05,
        budget_seconds=30.0,
        layouts=("world",),
        hosts=(Host("node1", "a CPU", 2, "6.1", "0-1", "none"),),
        groups=(make_group_record(),),
        cases=(make_case_record(0), make_case_record(1, requested_nbytes=4096)),
        versions={"commbench": "0.1.0", "torch": "2.9.0"},
        environment={},
    )
    return replace(record, **changes)


def make_sample(case: int = 0, seconds: float = 1e-4, **changes: Any) -> SampleRow:
    """One batch of one call on the first group."""
    return replace(SampleRow(case, 0, "batch", 0, 1, seconds, None, None), **changes)


def make_row(case: int = 0, **changes: Any) -> SummaryRow:
    """An all_reduce of 1 KiB on two ranks that took 100 us."""
    row = SummaryRow(
        case=case,
        engine="torch",
        backend="gloo",
        collective="all_reduce",
        in_place=True,
        size_bytes=1024,
        count=256,
        dtype="float32",
        redop="sum",
        ranks=2,
        nodes=1,
        layout="world",
        group="world",
        concurrency="alone",
        mode="throughput",
        link_class="loopback",
        samples=18,
        seconds_median=1e-4,
        seconds_ci_low=0.98e-4,
        seconds_ci_high=1.03e-4,
        seconds_min=0.9e-4,
        seconds_p95=1.2e-4,
        seconds_p99=1.5e-4,
        seconds_max=1.6e-4,
        first_call_seconds=2e-3,
        enqueue_seconds=None,
        algbw_gbps=0.01024,
        busbw_gbps=0.01024,
        theory_seconds=None,
        efficiency=None,
        wrong=0,
        status="ok",
        reason="",
    )
    return replace(row, **changes)


UNMEASURED: dict[str, Any] = dict.fromkeys(
    (
        *("seconds_median", "seconds_ci_low", "seconds_ci_high", "seconds_min", "seconds_p95", "seconds_p99"),
        *("seconds_max", "first_call_seconds", "algbw_gbps", "busbw_gbps", "efficiency", "wrong"),
    )
) | {"samples": 0}


def make_run(*rows: SummaryRow, **changes: Any) -> Run:
    """A run in memory with these rows; its record is `make_record` with `changes`."""
    return Run(Path("run"), make_record(**changes), rows)


def write_run(
    tmp_path: Path,
    samples: Iterable[SampleRow] = (),
    rows: Iterable[SummaryRow] = (),
    outcome: Outcome = "complete",
    record: RunRecord | None = None,
) -> Path:
    """The directory of a run that was written by the program's own writer."""
    writer = RunWriter(tmp_path / "run", record or make_record())
    writer.add_samples(samples)
    writer.add_summary(rows)
    writer.finish(outcome, 1.5)
    return tmp_path / "run"


def batches(case: int, seconds: Sequence[float]) -> list[SampleRow]:
    """A first call of 2 ms with its data checked, a warm-up call, and one batch for each of `seconds`."""
    return [
        make_sample(case, 2e-3, kind="first", wrong=0),
        make_sample(case, 9e-3, kind="warmup"),
        *(make_sample(case, value) for value in seconds),
    ]
