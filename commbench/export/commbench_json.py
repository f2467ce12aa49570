"""Our own format: every curve with its line, regimes and points, as coefficients.schema.json describes it."""

from importlib.resources import files
from typing import Any

from commbench import __version__
from commbench.analysis.fit import judge
from commbench.analysis.records import CurveFit, PlannerLine
from commbench.errors import CommbenchError
from commbench.export.records import Export, Need, Request, Shape
from commbench.export.shape import find_strides
from commbench.export.side_file import encode, run_facts

COEFFICIENTS_SCHEMA_VERSION = 1
FILE, SCHEMA_FILE = "commbench-coefficients.json", "coefficients.schema.json"
_KEY = (
    "collective", "ranks", "nodes", "layout", "link_class", "dtype", "redop", "in_place", "concurrency", "mode",
    "engine", "backend", "variant", "source",
)  # fmt: skip


def needs(shape: Shape) -> tuple[Need, ...]:
    """Nothing in particular."""
    return ()


def write(request: Request) -> Export:
    """Raises CommbenchError where no curve has a line that may be written."""
    strides = find_strides(request.runs)
    curves = [_curve(fit, strides.get((fit.key.layout, fit.key.ranks)), request.force) for fit in request.fits]
    if not any(curve["line"] for curve in curves):
        reasons = dict.fromkeys(curve["no_line"] for curve in curves)
        raise CommbenchError(f"no curve has a line to write: {'; '.join(list(reasons)[:3]) or 'nothing was fitted'}.")
    document = {
        "schema_version": COEFFICIENTS_SCHEMA_VERSION,
        "commbench": __version__,
        "units": {"time": "s", "size": "bytes", "rate": "bytes/s", "error": "fraction"},
        "formula": "seconds = alpha_total + traffic_factor * nbytes / bytes_per_second",
        "runs": [run_facts(run) for run in request.runs],
        "window": request.records[0].window,
        "curves": curves,
    }
    withheld = sum(1 for curve in curves if curve["line"] is None)
    warnings = (f"{withheld} of {len(curves)} curves have no line in the file: no_line says why",) if withheld else ()
    schema = files("commbench.export").joinpath(SCHEMA_FILE).read_bytes()
    return Export({FILE: encode(document), SCHEMA_FILE: schema}, (), warnings)


def _curve(fit: CurveFit, stride: int | None, force: bool) -> dict[str, Any]:
    line, no_line = _line(fit, force)
    return {
        **{name: getattr(fit.key, name) for name in _KEY},
        "stride": stride,
        "traffic_factor": fit.factor,
        "steps": fit.steps,
        "launches": fit.launches,
        "line": line,
        "no_line": no_line,
        "regimes": _regimes(fit, force),
        "points": fit.points,
    }


def _line(fit: CurveFit, force: bool) -> tuple[dict[str, Any] | None, str]:
    if fit.line is None:
        return None, fit.no_line
    if fit.line.quality == "poor" and not force:
        return None, f"{', '.join(fit.line.reasons)}: --force writes it"
    return _coefficients(fit.line), ""


def _coefficients(line: PlannerLine) -> dict[str, Any]:
    return {
        "window": line.window,
        "sizes": line.sizes,
        "alpha_total": line.alpha_total,
        "alpha_step": line.alpha_step,
        "bytes_per_second": line.bytes_per_second,
        "alpha_total_as_fitted": line.line.alpha_seconds,
        "seconds_per_bus_byte_as_fitted": line.line.seconds_per_byte,
        "half_bandwidth_nbytes": line.half_bandwidth_nbytes,
        "errors": line.errors,
        "quality": line.quality,
        "reasons": line.reasons,
    }


def _regimes(fit: CurveFit, force: bool) -> dict[str, Any] | None:
    quality, reasons = judge(fit.regimes.errors)
    if quality == "poor" and not force:
        return None
    return {
        "form": fit.regimes.model.form,
        "errors": fit.regimes.errors,
        "quality": quality,
        "reasons": reasons,
        "parts": fit.regimes.estimates,
    }
