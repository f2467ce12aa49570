"""The records of a run on disk. Everything is in seconds and bytes; the two bandwidth columns are in GB/s of 1e9.

Schema history (`schema_version` in run.json):
  1  commbench 0.1.0: the first.
"""

from dataclasses import MISSING, dataclass, fields
from typing import Literal

from commbench.plan.plan import Concurrency, Mode

SCHEMA_VERSION = 1

Status = Literal["ok", "noisy", "partial", "wrong", "unsupported", "skipped", "missing"]
SampleKind = Literal["first", "warmup", "batch"]
Outcome = Literal["running", "complete", "interrupted", "stalled", "failed"]


@dataclass(frozen=True, slots=True)
class Host:
    """One node, and the ranks that ran on it as `0-3`; `interface`: which one reached the others, and why."""

    name: str
    cpu: str
    cpus: int
    kernel: str
    ranks: str = ""
    binding: str = ""
    interface: str = ""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group of a layout, and the slowest kind of link that it must cross.

    `bytes_per_second` is the nominal rate of one rank's link, None where it cannot be read; `alpha_step_seconds` is
    known on paper only.
    """

    layout: str
    name: str
    ranks: str
    size: int
    nodes: int
    link_class: str
    bytes_per_second: float | None = None
    alpha_step_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """A case of the plan; `groups` are positions in the run's list of groups."""

    index: int
    collective: str
    requested_nbytes: int
    dtype: str
    redop: str
    in_place: bool
    mode: Mode
    layout: str
    concurrency: Concurrency
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """run.json: what was asked, on what, and how it ended. `resumed_utc`: when it was gone on with by --resume."""

    schema_version: int
    created_utc: str
    command: tuple[str, ...]
    engine: str
    backend: str
    launcher: str
    world_size: int
    seed: int
    precision: float
    budget_seconds: float
    layouts: tuple[str, ...]
    hosts: tuple[Host, ...]
    groups: tuple[GroupRecord, ...]
    cases: tuple[CaseRecord, ...]
    versions: dict[str, str]
    environment: dict[str, str]
    outcome: Outcome = "running"
    measured_seconds: float = 0.0
    resumed_utc: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SampleRow:
    """One row of samples.csv. `kind`: `first` (the first call, data checked), `warmup` or `batch`.

    `seconds`: of the batch on the slowest rank of the group, divided by `calls`.
    """

    case: int
    group: int
    kind: SampleKind
    round: int
    calls: int
    seconds: float
    enqueue_seconds: float | None
    wrong: int | None


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One row of summary.csv: a case on one group. None is an empty cell: not measured, or not applicable.

    `contention`: the median together over the median alone, where a layout was measured both ways.
    """

    case: int
    engine: str
    backend: str
    collective: str
    in_place: bool
    size_bytes: int
    count: int
    dtype: str
    redop: str
    ranks: int
    nodes: int
    layout: str
    group: str
    concurrency: str
    mode: str
    link_class: str
    samples: int
    seconds_median: float | None
    seconds_ci_low: float | None
    seconds_ci_high: float | None
    seconds_min: float | None
    seconds_p95: float | None
    seconds_p99: float | None
    seconds_max: float | None
    first_call_seconds: float | None
    enqueue_seconds: float | None
    algbw_gbps: float | None
    busbw_gbps: float | None
    theory_seconds: float | None
    efficiency: float | None
    wrong: int | None
    status: Status
    reason: str
    contention: float | None = None


SAMPLE_COLUMNS = tuple(field.name for field in fields(SampleRow))
SUMMARY_COLUMNS = tuple(field.name for field in fields(SummaryRow))
# A column that came later has a default, and may be missing in an older file.
OPTIONAL_COLUMNS = {field.name: field.default for field in fields(SummaryRow) if field.default is not MISSING}
