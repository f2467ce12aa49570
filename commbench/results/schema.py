"""The records of a run on disk. Everything is in seconds and bytes; the two bandwidth columns are in GB/s of 1e9.

Schema history (`schema_version` in run.json):
  1  commbench 0.1.0: the first.
  2  imported runs. What another tool's file does not say is None, an empty cell, or the word `unknown`; a collective
     may be a kind of `results/kinds.py`. New: `origin`, `findings`, `Host.devices`, the column `variant`, the statuses
     `failed`, `incomplete`, `suspect`, the outcome `incomplete`. Of our own runs: `Host.interface`, `resumed_utc`, the
     column `contention`, `overlap`, `GroupRecord.link_source`, `environment_set`. Version 1 lacks these and reads with
     their defaults.
"""

from dataclasses import MISSING, dataclass, field, fields
from typing import Literal

from commbench.plan.modes import Concurrency, Mode
from commbench.results.finding import Finding as Finding

SCHEMA_VERSION = 2
UNKNOWN = "unknown"  # what a foreign file does not say, where a word is kept
OTHERS_BUSY = "not bound: others take"  # in the binding of a host on which other programs disturbed the run

MeasuredStatus = Literal["ok", "noisy", "partial", "wrong", "unsupported", "skipped", "missing"]
# Of imported rows: the tool failed, the text is torn, the row contradicts itself.
ForeignStatus = Literal["failed", "incomplete", "suspect"]
Status = MeasuredStatus | ForeignStatus
SampleKind = Literal["first", "warmup", "batch"]
Outcome = Literal["running", "complete", "interrupted", "stalled", "failed", "incomplete"]
# Who says what a group crosses: the engine by its nodes, or what was imported (empty); the PCI tree and NVLink of its
# node; NCCL's own log, by the ways that it took.
LinkSource = Literal["", "wiring", "log"]


@dataclass(frozen=True, slots=True)
class Host:
    """One node, and the ranks that ran on it as `0-3`; `interface`: which one reached the others, and why.

    None and empty: not known.
    """

    name: str
    cpu: str
    cpus: int | None
    kernel: str
    ranks: str = ""
    binding: str = ""
    interface: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group of a layout, and the slowest kind of link that it must cross.

    `bytes_per_second` is the nominal rate of one rank's link, None where it cannot be read; `alpha_step_seconds` is
    known on paper only. `size` and `nodes` are None in imported runs whose file does not say them.
    """

    layout: str
    name: str
    ranks: str
    size: int | None
    nodes: int | None
    link_class: str
    bytes_per_second: float | None = None
    alpha_step_seconds: float | None = None
    link_source: LinkSource = ""


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """A case of the plan; `groups` are positions in the run's list of groups.

    `variant`: what else tells it from its like: `graph`, `2 ranks per GPU`; imported `ALGO=Ring`, `GPU 0 to 3`.
    """

    index: int
    collective: str
    requested_nbytes: int | None
    dtype: str
    redop: str
    in_place: bool
    mode: Mode
    layout: str
    concurrency: Concurrency
    groups: tuple[int, ...]
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Slowdown:
    """Time beside the other over time alone: the median over rounds with its 95 % interval; `alone_seconds` of one."""

    factor: float
    low: float | None
    high: float | None
    alone_seconds: float


@dataclass(frozen=True, slots=True)
class OverlapRecord:
    """A case on one group, by position, beside matrix products; None: not measured, and `reason` says why."""

    case: int
    group: int
    product: str
    rounds: int
    compute: Slowdown | None
    collective: Slowdown | None
    status: MeasuredStatus
    reason: str = ""

    @property
    def coefficient(self) -> float | None:
        """The larger of the two, 1 at least: what Galvatron calls overlap_coe."""
        if self.compute is None or self.collective is None:
            return None
        return max(1.0, self.compute.factor, self.collective.factor)


@dataclass(frozen=True, slots=True)
class OriginFile:
    """A file that a run was imported from; `format` is the name of the importer that read it."""

    name: str
    sha256: str
    nbytes: int
    format: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Which tool measured an imported run; `time_means` says what its one time a row is."""

    tool: str
    version: str
    files: tuple[OriginFile, ...]
    time_means: str


@dataclass(frozen=True, slots=True)
class RunRecord:
    """run.json: what was asked, on what, and how it ended. `resumed_utc`: when it was gone on with by --resume.

    An imported run has an `origin`, and no plan of its own: its seed, precision and budget are None. `overlap`: of the
    cases that --overlap chose. `environment_set`: variables that rank 0 had set itself, which `environment` is without.
    """

    schema_version: int
    created_utc: str
    command: tuple[str, ...]
    engine: str
    backend: str
    launcher: str
    world_size: int | None
    seed: int | None
    precision: float | None
    budget_seconds: float | None
    layouts: tuple[str, ...]
    hosts: tuple[Host, ...]
    groups: tuple[GroupRecord, ...]
    cases: tuple[CaseRecord, ...]
    versions: dict[str, str]
    environment: dict[str, str]
    outcome: Outcome = "running"
    measured_seconds: float = 0.0
    resumed_utc: tuple[str, ...] = ()
    origin: Origin | None = None
    findings: tuple[Finding, ...] = ()
    overlap: tuple[OverlapRecord, ...] = ()
    environment_set: dict[str, str] = field(default_factory=dict)


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
    size_bytes: int | None
    count: int | None
    dtype: str
    redop: str
    ranks: int | None
    nodes: int | None
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
    variant: str = ""


SAMPLE_COLUMNS = tuple(field.name for field in fields(SampleRow))
SUMMARY_COLUMNS = tuple(field.name for field in fields(SummaryRow))
# A column that came after version 1 has a default, and may be missing in an older file.
OPTIONAL_COLUMNS = {field.name: field.default for field in fields(SummaryRow) if field.default is not MISSING}
