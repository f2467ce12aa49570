"""Fits for readers: tables for people, JSON for programs. Records in, text out."""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass

from commbench.analysis.fit import format_window
from commbench.analysis.predict import Prediction
from commbench.analysis.records import (
    CurveFit,
    Errors,
    Estimate,
    FitRecord,
    JointFit,
    RegimeEstimate,
    ScalingFit,
)
from commbench.report.fits_csv import format_fit_csv
from commbench.report.text_table import format_text_table
from commbench.results.schema import Finding
from commbench.units import GB, format_nbytes

US = 1e-6

# Columns that are left out where all fits agree, with the field of the key that they show.
_CONDITIONS = {
    "link": "link_class",
    "layout": "layout",
    "groups": "concurrency",
    "type": "dtype",
    "redop": "redop",
    "in place": "in_place",
    "mode": "mode",
    "backend": "backend",
    "variant": "variant",
    "run": "source",
}
_OF_A_COLLECTIVE = frozenset({"redop", "in place"})
_IDENTITY = ("collective", "ranks", *_CONDITIONS)
_LINE_HEADINGS = (
    *_IDENTITY, "fit", "sizes", "alpha (us)", "[…]", "alpha/step\n(us)", "B\n(GB/s)", "[…]", "S½", "error", "worst",
    "left\nout", "B / link",
)  # fmt: skip
LINE_SUMMARY_HEADINGS = ("fit", "alpha\n(us)", "[…]", "B\n(GB/s)", "[…]", "error", "B /\nlink")
_REGIME_HEADINGS = (
    *_IDENTITY, "model", "from", "to", "starts\nbetween", "alpha (us)", "[…]", "B\n(GB/s)", "[…]", "error",
    "left\nout", "with\nneighbours",
)  # fmt: skip
_JOINT_HEADINGS = (
    "link", "groups", "type", "mode", "curves", "alpha/step\n(us)", "[…]", "B\n(GB/s)", "[…]", "error", "own\nlines",
    "curve\nleft out",
)  # fmt: skip
_SCALING_HEADINGS = (
    "collective", "link", "groups", "type", "mode", "base\n(us)", "per step\n(us)", "B (GB/s) at N", "N\nleft out",
)  # fmt: skip
_PREDICTION_HEADINGS = (
    "collective", "link", "layout", "type", "basis", "size", "ranks", "time (us)", "busbw\n(GB/s)", "error",
)  # fmt: skip
FIT_LEGEND = (
    "alpha: fixed cost of the whole collective; alpha/step: of each of its steps; B: bus traffic in GB/s of 1e9 bytes;",
    "[…]: 95 % interval. ≤, ≥: not identified by these sizes, a bound. S½: the size with half the bandwidth.",
    "error: mean |relative error| at the measured sizes; worst: the largest; left out: with each size predicted from",
    "the others; with neighbours: and corrected by theirs. A line is poor above 10 % mean or 25 % worst error.",
)


def format_fit_table(records: Sequence[FitRecord], predictions: Sequence[Prediction]) -> str:
    """The planner's lines, the regimes, the joint lines, the N models, the findings: as text, with a legend."""
    parts = [text for record in records for text in _record_parts(record)]
    if predictions:
        rows = tuple(map(_prediction_cells, predictions))
        parts.append(_section(FitTable("Predictions", _PREDICTION_HEADINGS, rows, 5)))
    return "\n\n".join([*parts, "\n".join(FIT_LEGEND)]) + "\n"


def format_fit_json(records: Sequence[FitRecord], predictions: Sequence[Prediction]) -> str:
    """The records as in fit.json, and the predictions."""
    import msgspec

    document = {"records": records, "predictions": predictions}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


FIT_FORMATS: dict[str, Callable[[Sequence[FitRecord], Sequence[Prediction]], str]] = {
    "table": format_fit_table,
    "json": format_fit_json,
    "csv": format_fit_csv,
}


@dataclass(frozen=True, slots=True)
class FitTable:
    """One table of a record: the first `left` columns are words, the others numbers; a column may be empty."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[Sequence[str], ...]
    left: int


def fit_tables(record: FitRecord) -> list[FitTable]:
    """The planner's lines, then, where there are any, the regimes, the joint lines and the N models."""
    common = _common_conditions(record)
    first_number = len(_IDENTITY) + 2
    window = f"One line on sizes {format_window(record.window)}"
    tables = [FitTable(window, _LINE_HEADINGS, tuple(_line_cells(fit, common) for fit in record.fits), first_number)]
    regimes = tuple(cells for fit in record.fits for cells in _regime_cells(fit, common))
    tables += [FitTable("Regimes over all sizes", _REGIME_HEADINGS, regimes, len(_IDENTITY) + 1)] if regimes else []
    if record.joint:
        title = "One alpha/step and B for a link class, if every collective were a ring"
        tables.append(FitTable(title, _JOINT_HEADINGS, tuple(map(_joint_cells, record.joint)), 4))
    if record.scaling:
        title = "Over the number of ranks N: alpha = base + per step × steps(N); for other N an extrapolation"
        tables.append(FitTable(title, _SCALING_HEADINGS, tuple(map(_scaling_cells, record.scaling)), 5))
    return tables


def line_summary(fit: CurveFit) -> tuple[str, ...]:
    """The planner's line in a few cells, under LINE_SUMMARY_HEADINGS."""
    line = fit.line
    if line is None:
        return ("none", *[""] * (len(LINE_SUMMARY_HEADINGS) - 1))
    alpha, rate = line.alpha_total, line.bytes_per_second
    numbers = (_alpha(alpha), _interval(alpha, US), _rate(rate), _interval(rate, GB), _percent(line.errors.mape))
    return (line.quality, *numbers, _percent(fit.efficiency))


def common_conditions(record: FitRecord) -> str:
    """What all fits of the record share, such as `loopback, world, alone, float32`; it has no column then."""
    return _common_text(_common_conditions(record))


def group_findings(findings: Sequence[Finding]) -> dict[tuple[str, str], list[Finding]]:
    """Findings by rule and action, so that an explanation is said once."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.action), []).append(finding)
    return groups


def _record_parts(record: FitRecord) -> Iterable[str]:
    title = f"commbench {record.commbench}: fit of {', '.join(record.runs)}\n{common_conditions(record)}".rstrip("\n")
    lines, *others = map(_section, fit_tables(record))
    yield f"{title}\n\n{lines}"
    yield from others
    if record.findings:
        yield "\n".join(["Findings", *_finding_lines(record.findings)])
    if record.unfitted:
        reasons = (f"  {item.collective}, {item.subject}: {item.reason}." for item in record.unfitted)
        yield "\n".join(["Not fitted", *reasons])


def _section(table: FitTable) -> str:
    return f"{table.title}\n{format_text_table(table.headings, table.rows, table.left)}"


def _finding_lines(findings: Sequence[Finding]) -> Iterable[str]:
    for (rule, action), found in group_findings(findings).items():
        yield f"  {rule}: {action}" if action else f"  {rule}"
        for finding in found:
            expected = f" (expected: {finding.expected})" if finding.expected else ""
            yield f"    {finding.verdict}: {finding.subject}: {finding.observed}{expected}"


def _common_conditions(record: FitRecord) -> dict[str, str]:
    """What all fits share, or all of a collective where it follows from that, by the name of its column."""
    common = {}
    for name, field in _CONDITIONS.items():
        found: dict[str, set[str]] = {}
        for fit in record.fits:
            found.setdefault(fit.key.collective if name in _OF_A_COLLECTIVE else "", set()).add(_condition(fit, field))
        if all(len(values) == 1 for values in found.values()):
            common[name] = ", ".join(sorted(set.union(*found.values()))) if found else ""
    return common


def _condition(fit: CurveFit, field: str) -> str:
    value = getattr(fit.key, field)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _common_text(common: dict[str, str]) -> str:
    """What is said once, above the tables; the run is in the title."""
    said = (name for name in _CONDITIONS if name not in {*_OF_A_COLLECTIVE, "run"})
    return ", ".join(common[name] for name in said if common.get(name))


def _conditions(fit: CurveFit, common: Container[str]) -> list[str]:
    varying = ["" if name in common else _condition(fit, field) for name, field in _CONDITIONS.items()]
    return [fit.key.collective, str(fit.key.ranks), *varying]


def _line_cells(fit: CurveFit, common: Container[str]) -> list[str]:
    line = fit.line
    if line is None:
        cells = [*_conditions(fit, common), f"none: {fit.no_line}"]
        return cells + [""] * (len(_LINE_HEADINGS) - len(cells))
    return [
        *_conditions(fit, common), line.quality, f"{line.sizes}, {format_window(line.window)}",
        _alpha(line.alpha_total), _interval(line.alpha_total, US), _alpha(line.alpha_step),
        _rate(line.bytes_per_second), _interval(line.bytes_per_second, GB),
        "" if line.half_bandwidth_nbytes is None else format_nbytes(line.half_bandwidth_nbytes),
        *_errors(line.errors), _percent(fit.efficiency),
    ]  # fmt: skip


def _regime_cells(fit: CurveFit, common: Container[str]) -> Iterable[list[str]]:
    errors = fit.regimes.errors
    shared = [*_conditions(fit, common), fit.regimes.model.form]
    quality = [_percent(errors.mape), _percent(errors.left_out_mape), _percent(fit.regimes.corrected_left_out_mape)]
    for regime in fit.regimes.estimates:
        yield [
            *shared, format_nbytes(regime.first_nbytes), format_nbytes(regime.last_nbytes), _start(regime),
            _alpha(regime.alpha_total), _interval(regime.alpha_total, US),
            _rate(regime.bytes_per_second), _interval(regime.bytes_per_second, GB), *quality,
        ]  # fmt: skip
        shared, quality = [""] * len(shared), [""] * len(quality)  # said once a curve


def _start(regime: RegimeEstimate) -> str:
    if regime.starts_low is None or regime.starts_high is None:
        return ""
    return f"{format_nbytes(regime.starts_low)} … {format_nbytes(regime.starts_high)}"


def _joint_cells(joint: JointFit) -> list[str]:
    return [
        joint.link_class, joint.concurrency, joint.dtype, joint.mode, str(len(joint.curves)),
        _alpha(joint.alpha_step), _interval(joint.alpha_step, US),
        _rate(joint.bytes_per_second), _interval(joint.bytes_per_second, GB),
        _percent(joint.errors.mape), _percent(joint.own_mape), _percent(joint.errors.left_out_mape),
    ]  # fmt: skip


def _scaling_cells(scaling: ScalingFit) -> list[str]:
    rates = ", ".join(f"{four_digits(at.bytes_per_second / GB)} at {at.ranks}" for at in scaling.rates)
    return [
        scaling.collective, scaling.link_class, scaling.concurrency, scaling.dtype, scaling.mode,
        four_digits(scaling.base_seconds / US), four_digits(scaling.per_step_seconds / US), rates,
        _percent(scaling.left_out_mape) or "unknown",
    ]  # fmt: skip


def _prediction_cells(prediction: Prediction) -> list[str]:
    return [
        prediction.collective, prediction.link_class, prediction.layout, prediction.dtype, prediction.basis,
        format_nbytes(prediction.nbytes), str(prediction.ranks), four_digits(prediction.seconds / US),
        four_digits(prediction.busbw_bytes_per_second / GB), _percent(prediction.error) or "unknown",
    ]  # fmt: skip


def _alpha(estimate: Estimate) -> str:
    return _value(estimate, US, "≤")


def _rate(estimate: Estimate) -> str:
    return _value(estimate, GB, "≥")


def _value(estimate: Estimate, unit: float, sign: str) -> str:
    if estimate.value is not None:
        return four_digits(estimate.value / unit)
    return "" if estimate.bound is None else f"{sign} {four_digits(estimate.bound / unit)}"


def _interval(estimate: Estimate, unit: float) -> str:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return ""
    return f"[{four_digits(estimate.low / unit)}, {four_digits(estimate.high / unit)}]"


def _errors(errors: Errors) -> list[str]:
    return [_percent(errors.mape), _percent(errors.largest), _percent(errors.left_out_mape)]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def four_digits(value: float) -> str:
    """Four significant digits, without an exponent."""
    value = float(f"{value:.4g}")  # first, so that 99.9999 becomes 100.0
    decimals = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 1000 else 0
    return f"{value:.{decimals}f}"
