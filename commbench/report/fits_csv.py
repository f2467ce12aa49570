"""Fits as CSV: a row for each line and each regime. Seconds, bytes, bytes per second; errors are fractions."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import fields
from io import StringIO
from typing import Any

from commbench.analysis.predict import Prediction
from commbench.analysis.records import CurveFit, Errors, Estimate, FitRecord

_KEY_COLUMNS = (
    "source", "collective", "link_class", "layout", "ranks", "nodes", "dtype", "redop", "in_place", "concurrency",
    "engine", "backend", "mode",
)  # fmt: skip
FIT_COLUMNS = (
    "part", "first_nbytes", "last_nbytes", "alpha_seconds", "alpha_low", "alpha_high", "alpha_at_most",
    "bytes_per_second", "bytes_per_second_low", "bytes_per_second_high", "bytes_per_second_at_least",
    "alpha_step_seconds", "half_bandwidth_nbytes", "mape", "largest_error", "left_out_mape", "efficiency", "quality",
)  # fmt: skip


def format_fit_csv(records: Sequence[FitRecord], predictions: Sequence[Prediction]) -> str:
    """A row for each line and regime, or for each prediction if there are any. Seconds, bytes, bytes per second."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if predictions:
        names = [field.name for field in fields(Prediction)]
        writer.writerow(names)
        writer.writerows([_csv_cell(getattr(prediction, name)) for name in names] for prediction in predictions)
    else:
        writer.writerow((*_KEY_COLUMNS, *FIT_COLUMNS))
        writer.writerows(row for record in records for fit in record.fits for row in _csv_rows(fit))
    return text.getvalue()


def _csv_rows(fit: CurveFit) -> Iterable[list[Any]]:
    key = [_csv_cell(getattr(fit.key, name)) for name in _KEY_COLUMNS]
    line = fit.line
    if line is not None:
        part = ["line", line.window.first_nbytes, line.window.last_nbytes]
        rest = [
            line.alpha_step.value,
            line.half_bandwidth_nbytes,
            *_csv_errors(line.errors),
            fit.efficiency,
            line.quality,
        ]
        yield [*key, *map(_csv_cell, (*part, *_csv_estimates(line.alpha_total, line.bytes_per_second), *rest))]
    for number, regime in enumerate(fit.regimes.estimates, start=1):
        part = [f"regime {number}", int(regime.first_nbytes), int(regime.last_nbytes)]
        step = None if regime.alpha_total.value is None else regime.alpha_total.value / fit.steps
        rest = [step, None, *_csv_errors(fit.regimes.errors), None, None]
        yield [*key, *map(_csv_cell, (*part, *_csv_estimates(regime.alpha_total, regime.bytes_per_second), *rest))]


def _csv_estimates(alpha: Estimate, rate: Estimate) -> list[float | None]:
    return [getattr(estimate, name) for estimate in (alpha, rate) for name in ("value", "low", "high", "bound")]


def _csv_errors(errors: Errors) -> list[float | None]:
    return [errors.mape, errors.largest, errors.left_out_mape]


def _csv_cell(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else "" if value is None else value
