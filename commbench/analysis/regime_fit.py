"""The regimes of one curve with their intervals, and the error that is left when a size is left out."""

import numpy as np

from commbench.analysis.borders import replicate_starts
from commbench.analysis.curves import Curve
from commbench.analysis.estimates import estimate_alpha, estimate_rate, replicate_line
from commbench.analysis.intervals import BORDER_REPLICATES, REPLICATES, Random, redrawn_seconds, resampled_seconds
from commbench.analysis.lines import Floats, huber_delta, relative_weights
from commbench.analysis.predict import corrected_seconds, modelled
from commbench.analysis.records import Errors, RegimeEstimate, RegimeFit
from commbench.analysis.regimes import Regime, Regimes, find_regimes

MIN_FOR_LEFT_OUT = 5  # sizes: with one of them left out, a regime and a neighbour remain
_MAX_LEFT_OUT = 40  # sizes left out in turn; of more, as many are taken evenly


def fit_regimes(curve: Curve, random: Random) -> RegimeFit:
    """The regimes over all sizes of the curve."""
    nbytes, seconds, half_widths = curve.nbytes, curve.seconds, curve.half_widths
    weights, delta = relative_weights(half_widths), huber_delta(half_widths)
    model = find_regimes(nbytes, seconds, weights, curve.factor, delta)
    predicted = modelled(model, nbytes)
    resampled = resampled_seconds(curve.points, REPLICATES, random)
    starts = _start_intervals(curve, model, predicted, resampled, random)
    estimates = [
        _estimate(curve, regime, owned, resampled, start, random)
        for regime, owned, start in zip(model.regimes, _owned(model, nbytes), starts, strict=True)
    ]
    relative = np.abs(predicted / seconds - 1.0)
    plain, corrected = left_out_errors(nbytes, seconds, half_widths, curve.factor)
    return RegimeFit(
        model=model,
        estimates=tuple(estimates),
        errors=Errors(float(relative.mean()), float(relative.max()), plain),
        corrected_left_out_mape=corrected,
    )


def left_out_errors(
    nbytes: Floats, seconds: Floats, half_widths: Floats, factor: float
) -> tuple[float | None, float | None]:
    """Mean relative error at interior sizes, each left out in turn and the regimes chosen anew without it: of the
    regimes alone, and with the neighbours' correction. None with fewer than five sizes.
    """
    if len(nbytes) < MIN_FOR_LEFT_OUT:
        return None, None
    interior = np.arange(1, len(nbytes) - 1)
    if len(interior) > _MAX_LEFT_OUT:
        interior = np.unique(np.linspace(1, len(nbytes) - 2, _MAX_LEFT_OUT).astype(int))
    plain, corrected = [], []
    for index in interior:
        others = np.arange(len(nbytes)) != index
        x, y, widths = nbytes[others], seconds[others], half_widths[others]
        model = find_regimes(x, y, relative_weights(widths), factor, huber_delta(widths))
        plain.append(abs(model.seconds(nbytes[index]) / seconds[index] - 1.0))
        corrected.append(abs(corrected_seconds(model, x, y, widths, nbytes[index]) / seconds[index] - 1.0))
    return float(np.mean(plain)), float(np.mean(corrected))


def _owned(model: Regimes, nbytes: Floats) -> list[np.ndarray]:
    """For each regime the positions of the sizes that its line stands for."""
    if model.form == "envelope":
        times = [[regime.line.seconds(model.factor * size) for size in nbytes] for regime in model.regimes]
        lowest = np.argmin(times, axis=0)
        return [np.flatnonzero(lowest == index) for index in range(len(model.regimes))]
    return [
        np.flatnonzero((nbytes >= regime.first_nbytes) & (nbytes <= regime.last_nbytes)) for regime in model.regimes
    ]


def _estimate(
    curve: Curve,
    regime: Regime,
    owned: np.ndarray,
    resampled: Floats | None,
    start: tuple[float, float] | None,
    random: Random,
) -> RegimeEstimate:
    seconds, half_widths = curve.seconds[owned], curve.half_widths[owned]
    bus_nbytes, ones = curve.factor * curve.nbytes[owned], np.ones(len(owned))
    line, weights = regime.line, relative_weights(half_widths)
    replicates = replicate_line(
        line, ones, bus_nbytes, seconds, weights, huber_delta(curve.half_widths),
        None if resampled is None else resampled[:, owned], REPLICATES, random,
    )  # fmt: skip
    share = line.alpha_seconds / (line.alpha_seconds + line.seconds_per_byte * bus_nbytes)
    return RegimeEstimate(
        first_nbytes=regime.first_nbytes,
        last_nbytes=regime.last_nbytes,
        alpha_total=estimate_alpha(line.alpha_seconds, share, seconds, replicates),
        bytes_per_second=estimate_rate(line.seconds_per_byte, 1.0 - share, bus_nbytes, seconds, replicates),
        starts_low=start[0] if start else None,
        starts_high=start[1] if start else None,
    )


def _start_intervals(
    curve: Curve, model: Regimes, predicted: Floats, resampled: Floats | None, random: Random
) -> list[tuple[float, float] | None]:
    """For each regime but the first, where it starts: after the low size, at the high one at the latest (95 %).

    The segmentation into as many regimes is repeated on replicates; a start lies between two measured sizes.
    """
    count = len(model.regimes)
    if count == 1:
        return [None]
    nbytes, seconds, half_widths = curve.nbytes, curve.seconds, curve.half_widths
    times = None if resampled is None else resampled[:BORDER_REPLICATES]
    if times is None:
        times = redrawn_seconds(predicted, seconds, 3 * count - 1, BORDER_REPLICATES, random)
    residuals = np.abs(predicted / seconds - 1.0)
    outliers = np.minimum(1.0, huber_delta(half_widths) / np.maximum(residuals, 1e-300))
    weights = relative_weights(half_widths) * outliers
    starts = replicate_starts(nbytes, curve.factor * nbytes, times, weights, count)
    low = np.percentile(starts, 2.5, axis=0, method="lower")
    high = np.percentile(starts, 97.5, axis=0, method="higher")
    return [None, *((float(nbytes[a - 1]), float(nbytes[b])) for a, b in zip(low, high, strict=True))]
