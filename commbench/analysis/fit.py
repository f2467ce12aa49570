"""One curve to its fit: the planner's line on a stated window, regimes over all sizes, intervals, errors, a verdict."""

import numpy as np

from commbench.analysis.curves import MIN_SIZES, Curve
from commbench.analysis.estimates import estimate_alpha, estimate_rate, replicate_line, scaled
from commbench.analysis.intervals import REPLICATES, Random, resampled_seconds
from commbench.analysis.lines import Floats, fit_line, fit_lines, huber_delta, relative_weights
from commbench.analysis.records import CurveFit, Errors, FittedPoint, PlannerLine, Quality, Window
from commbench.analysis.regime_fit import fit_regimes
from commbench.units import format_nbytes

DEFAULT_WINDOW = Window(1 << 20, None)
MAX_MAPE, MAX_ERROR = 0.10, 0.25  # of a line that a planner may take without asking
_SMALL_SHARE = 0.1  # a size is small while its bytes cost less than this share of its time


def fit_curve(curve: Curve, window: Window, random: Random) -> CurveFit:
    """The fit of one curve of at least three sizes."""
    line, no_line = _planner_line(curve, window, random)
    points = zip(curve.nbytes, curve.seconds, curve.half_widths, strict=True)
    regimes = fit_regimes(curve, random)
    rate = line.bytes_per_second.value if line else None
    nominal = curve.nominal_bytes_per_second
    last_beta = regimes.model.regimes[-1].line.seconds_per_byte
    small = curve.seconds[last_beta * curve.factor * curve.nbytes < _SMALL_SHARE * curve.seconds]
    return CurveFit(
        key=curve.key,
        factor=curve.factor,
        steps=curve.steps,
        groups=curve.groups,
        launches=curve.launches,
        points=tuple(_fitted_point(*values) for values in points),
        line=line,
        no_line=no_line,
        regimes=regimes,
        small_seconds=float(np.median(small)) if len(small) else None,
        nominal_bytes_per_second=nominal,
        efficiency=rate / nominal if rate and nominal else None,
        slowest_ratio=curve.slowest_ratio,
    )


def line_errors(seconds: Floats, predicted: Floats, left_out: Floats | None) -> Errors:
    """Errors of predictions at the measured sizes; `left_out`: predictions by fits to the others."""
    relative = np.abs(predicted / seconds - 1.0)
    left_out_mape = None if left_out is None else float(np.mean(np.abs(left_out / seconds - 1.0)))
    return Errors(float(relative.mean()), float(relative.max()), left_out_mape)


def judge(errors: Errors) -> tuple[Quality, tuple[str, ...]]:
    """Whether a planner may take the line, and why not."""
    reasons = []
    if errors.mape > MAX_MAPE:
        reasons.append(f"the mean error {errors.mape:.1%} is above {MAX_MAPE:.0%}")
    if errors.largest > MAX_ERROR:
        reasons.append(f"the largest error {errors.largest:.1%} is above {MAX_ERROR:.0%}")
    return ("poor" if reasons else "ok"), tuple(reasons)


def _planner_line(curve: Curve, window: Window, random: Random) -> tuple[PlannerLine | None, str]:
    inside = [index for index, point in enumerate(curve.points) if window.contains(point.nbytes)]
    if len(inside) < MIN_SIZES:
        found = f"{len(inside)} {'size' if len(inside) == 1 else 'sizes'} in the window ({format_window(window)})"
        return None, f"{found}, a line needs {MIN_SIZES}: give --window"
    points = [curve.points[index] for index in inside]
    nbytes, seconds, half_widths = curve.nbytes[inside], curve.seconds[inside], curve.half_widths[inside]
    bus_nbytes, ones = curve.factor * nbytes, np.ones(len(inside))
    weights, delta = relative_weights(half_widths), huber_delta(half_widths)
    line = fit_line(bus_nbytes, seconds, weights, delta)
    resampled = resampled_seconds(points, REPLICATES, random)
    replicates = replicate_line(line, ones, bus_nbytes, seconds, weights, delta, resampled, REPLICATES, random)
    predicted = line.alpha_seconds + line.seconds_per_byte * bus_nbytes
    share = line.alpha_seconds / predicted
    alpha = estimate_alpha(line.alpha_seconds, share, seconds, replicates)
    rate = estimate_rate(line.seconds_per_byte, 1.0 - share, bus_nbytes, seconds, replicates)
    errors = line_errors(seconds, predicted, _left_out(bus_nbytes, seconds, weights, delta))
    quality, reasons = judge(errors)
    made = PlannerLine(
        window=Window(int(nbytes[0]), int(nbytes[-1])),
        sizes=len(inside),
        line=line,
        alpha_total=alpha,
        alpha_step=scaled(alpha, curve.steps),
        bytes_per_second=rate,
        half_bandwidth_nbytes=alpha.value * rate.value / curve.factor if alpha.value and rate.value else None,
        errors=errors,
        quality=quality,
        reasons=reasons,
    )
    return made, ""


def _left_out(bus_nbytes: Floats, seconds: Floats, weights: Floats, delta: float) -> Floats | None:
    """Each size predicted by the line through the others; None with too few of them."""
    n = len(seconds)
    if n <= MIN_SIZES:
        return None
    fits = fit_lines(np.ones(n), bus_nbytes, seconds, weights * (1.0 - np.eye(n)), delta)
    predicted: Floats = fits.alpha + fits.beta * bus_nbytes
    return predicted


def _fitted_point(nbytes: float, seconds: float, half_width: float) -> FittedPoint:
    return FittedPoint(int(nbytes), float(seconds), None if np.isnan(half_width) else float(half_width))


def format_window(window: Window) -> str:
    """`from 1 MiB`, `up to 64 KiB`, `1 KiB to 1 MiB`, `all`."""
    first, last = (None if end is None else format_nbytes(end) for end in (window.first_nbytes, window.last_nbytes))
    if first and last:
        return f"{first} to {last}"
    return f"from {first}" if first else f"up to {last}" if last else "all"
