"""Which measured curve serves a need of a format, and what is said where none does."""

from collections.abc import Mapping, Sequence

from commbench.analysis.records import CurveFit
from commbench.errors import CommbenchError
from commbench.export.records import Chosen, Need, Shape, Tier
from commbench.export.sweep_command import sweep_command
from commbench.results.store import Run

# What is taken first where a curve was measured under several conditions: as training does.
_DTYPES = ("bfloat16", "float16", "float32")

Strides = Mapping[tuple[str, int], int | None]


def of_one_mode(fits: Sequence[CurveFit]) -> tuple[CurveFit, ...]:
    """The fits of calls back to back where there are any, else those of single calls: the two are never mixed."""
    throughput = tuple(fit for fit in fits if fit.key.mode == "throughput")
    return throughput or tuple(fits)


def preference(fit: CurveFit) -> tuple[object, ...]:
    """Sorts the conditions of a curve: together with its layout's other groups, of a training dtype, summed."""
    key = fit.key
    dtype = _DTYPES.index(key.dtype) if key.dtype in _DTYPES else len(_DTYPES)
    return key.concurrency != "together", dtype, key.redop not in ("sum", "none"), key.variant != "", key.in_place


def choose(
    format_name: str,
    needs: Sequence[Need],
    fits: Sequence[CurveFit],
    strides: Strides,
    shape: Shape,
    runs: Sequence[Run],
) -> tuple[dict[tuple[str, Tier], Chosen], list[str]]:
    """The curve of each need, and the assumptions that stand-ins are.

    Raises CommbenchError with the sweep that would give what is missing.
    """
    chosen: dict[tuple[str, Tier], Chosen] = {}
    assumptions, missing = [], []
    may_stand_in = all(run.record.origin is not None for run in runs)
    for need in needs:
        fit = _measured(need, fits, strides, shape)
        if fit is None and may_stand_in:
            fit = _stand_in(need, fits, shape)
            if fit is not None:
                assumptions.append(f"{need} was not measured: {fit.key.collective} of {fit.key.ranks} ranks stands in")
        if fit is None or (fit.line is None and not need.only_points):
            missing.append(need if fit is None else f"{need} ({fit.no_line})")
        else:
            chosen[need.collective, need.tier] = Chosen(need, fit)
    if missing:
        unmet = [need for need in needs if (need.collective, need.tier) not in chosen]
        raise CommbenchError(_said(format_name, [str(item) for item in missing], sweep_command(unmet, shape, runs)))
    return chosen, assumptions


def check_quality(chosen: Sequence[Chosen]) -> list[str]:
    """What is wrong with the lines that would be written: each a sentence without its end."""
    said = []
    for item in chosen:
        line = item.fit.line
        if item.need.only_points or line is None:
            continue
        reasons = list(line.reasons)
        if not line.bytes_per_second.identified:
            reasons.append("its bandwidth is not identified by these sizes")
        if reasons:
            said.append(f"{item.need}: {', '.join(reasons)}")
    return said


def _measured(need: Need, fits: Sequence[CurveFit], strides: Strides, shape: Shape) -> CurveFit | None:
    nodes = shape.nodes_of(need.tier)
    fitting = [
        fit
        for fit in fits
        if (fit.key.collective, fit.key.ranks) == (need.collective, need.tier.ranks)
        and strides.get((fit.key.layout, fit.key.ranks)) == need.tier.stride
        and fit.key.nodes in (None, nodes)
    ]
    return _best(fitting, need)


def _stand_in(need: Need, fits: Sequence[CurveFit], shape: Shape) -> CurveFit | None:
    """Of an imported run: other ranks of the same number of nodes, then another collective."""
    nodes = shape.nodes_of(need.tier)
    for collective in (need.collective, *need.stand_ins):
        fitting = [
            fit
            for fit in fits
            if (fit.key.collective, fit.key.ranks) == (collective, need.tier.ranks) and fit.key.nodes in (None, nodes)
        ]
        if fitting:
            return _best(fitting, need)
    return None


def _best(fits: Sequence[CurveFit], need: Need) -> CurveFit | None:
    """By preference; a curve without a line only where none has one, if a line is needed."""
    return min(fits, key=lambda fit: (fit.line is None and not need.only_points, *preference(fit)), default=None)


def _said(format_name: str, missing: Sequence[str], command: str) -> str:
    shown = "; ".join(missing[:4]) + (f"; and {len(missing) - 4} more" if len(missing) > 4 else "")
    return f"{format_name} needs what the run does not have: {shown}. Measure it, and export both runs:\n  {command}"
