"""How many times slower groups are when all of a layout run together than when each runs alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from commbench.results.schema import CaseRecord, SummaryRow


def measured_both_ways(cases: Iterable[CaseRecord]) -> bool:
    """Whether some layout of the plan is measured alone and together, so that there is contention to tell."""
    found = {(case.layout, case.concurrency) for case in cases}
    return any(concurrency == "together" and (layout, "alone") in found for layout, concurrency in found)


def add_contention(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    """`rows` with `contention` = median together / median alone, on the rows measured together; elsewhere it is None.

    The two rows agree in everything but the concurrency; None also where one of them has no time.
    """
    alone = {_twin(row): row.seconds_median for row in rows if row.concurrency == "alone"}
    return [replace(row, contention=_contention(row, alone)) for row in rows]


def _contention(row: SummaryRow, alone: Mapping[tuple[object, ...], float | None]) -> float | None:
    if row.concurrency != "together" or row.seconds_median is None:
        return None
    seconds_alone = alone.get(_twin(row))
    return row.seconds_median / seconds_alone if seconds_alone else None


def _twin(row: SummaryRow) -> tuple[object, ...]:
    """What a row together and its like alone have in common."""
    return row.collective, row.in_place, row.size_bytes, row.dtype, row.redop, row.mode, row.layout, row.group
