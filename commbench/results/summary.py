"""From samples to a row of summary.csv: the same arithmetic while measuring and when a run is read again."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commbench.plan.collectives import COLLECTIVES, Blocks
from commbench.results.kinds import ITEMSIZES, KINDS
from commbench.results.schema import CaseRecord, GroupRecord, Status, SummaryRow
from commbench.stats import summarize
from commbench.units import GB


@dataclass(slots=True)
class GroupSamples:
    """What was measured of one case on one group, in seconds per call."""

    first_call_seconds: float | None = None
    wrong: int | None = None
    seconds: list[float] = field(default_factory=list)
    enqueue_seconds: list[float] = field(default_factory=list)


def theory_seconds(case: CaseRecord, group: GroupRecord, nbytes: int) -> float | None:
    """steps(N) * alpha_step + factor(N) * S / rate: the ring bound on the group's link; None where no rate is known.

    An alpha that is not known counts as zero, so that the result is a bound from below.
    """
    spec = COLLECTIVES.get(case.collective)
    if spec is None or group.size is None or group.bytes_per_second is None:
        return None
    factor = spec.bus_factor(group.size)
    if factor is None:
        return None
    return spec.steps(group.size) * (group.alpha_step_seconds or 0.0) + factor * nbytes / group.bytes_per_second


def summarize_group(
    case: CaseRecord,
    group: GroupRecord,
    samples: GroupSamples,
    *,
    engine: str,
    backend: str,
    status: Status,
    reason: str = "",
) -> SummaryRow:
    """The row of `case` on `group`; without batches its times are None."""
    count, nbytes = _true_size(case, group)
    summary = summarize(samples.seconds) if samples.seconds else None
    median = summary.median if summary else None
    algbw = nbytes / median / GB if median and nbytes else None
    factor = KINDS[case.collective].bus_factor(group.size)
    theory = theory_seconds(case, group, nbytes) if nbytes is not None else None
    return SummaryRow(
        case=case.index,
        engine=engine,
        backend=backend,
        collective=case.collective,
        in_place=case.in_place,
        size_bytes=nbytes,
        count=count,
        dtype=case.dtype,
        redop=case.redop,
        ranks=group.size,
        nodes=group.nodes,
        layout=case.layout,
        group=group.name,
        concurrency=case.concurrency,
        mode=case.mode,
        link_class=group.link_class,
        samples=summary.samples if summary else 0,
        seconds_median=median,
        seconds_ci_low=summary.ci_low if summary else None,
        seconds_ci_high=summary.ci_high if summary else None,
        seconds_min=summary.minimum if summary else None,
        seconds_p95=summary.p95 if summary else None,
        seconds_p99=summary.p99 if summary else None,
        seconds_max=summary.maximum if summary else None,
        first_call_seconds=samples.first_call_seconds,
        enqueue_seconds=_median(samples.enqueue_seconds),
        algbw_gbps=algbw,
        busbw_gbps=algbw * factor if algbw is not None and factor is not None else None,
        theory_seconds=theory,
        efficiency=theory / median if theory is not None and median else None,
        wrong=samples.wrong,
        status=status,
        reason=reason,
        variant=case.variant,
    )


def relinked(row: SummaryRow, case: CaseRecord, group: GroupRecord) -> SummaryRow:
    """`row` of `case`, now that more is known of the link of its `group`."""
    theory = None if row.size_bytes is None else theory_seconds(case, group, row.size_bytes)
    efficiency = theory / row.seconds_median if theory is not None and row.seconds_median else None
    return replace(row, link_class=group.link_class, theory_seconds=theory, efficiency=efficiency)


def _true_size(case: CaseRecord, group: GroupRecord) -> tuple[int | None, int | None]:
    """Elements in a block and the true S in bytes; what was asked for where a foreign case does not tell more."""
    spec, itemsize = COLLECTIVES.get(case.collective), ITEMSIZES[case.dtype]
    if spec is None or itemsize is None or group.size is None or case.requested_nbytes is None:
        return None, case.requested_nbytes
    count = 0 if spec.send is Blocks.NONE else spec.count(case.requested_nbytes, itemsize, group.size)
    return count, spec.nbytes(count, itemsize, group.size)


def _median(values: Sequence[float]) -> float | None:
    return summarize(values).median if values else None
