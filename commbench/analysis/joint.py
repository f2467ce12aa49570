"""One alpha_step and one B for all collectives and numbers of ranks that cross a link class.

It assumes that every collective is a ring of the same steps on the same link. What that costs is said beside it.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from commbench.analysis.curves import MIN_SIZES, Curve
from commbench.analysis.estimates import estimate_alpha, estimate_rate, replicate_line
from commbench.analysis.intervals import REPLICATES, Random, resampled_seconds
from commbench.analysis.lines import Floats, Line, fit_lines, huber_delta, relative_weights
from commbench.analysis.records import Errors, JointFit, Window

MIN_CURVES = 2


def fit_joint(curves: Sequence[Curve], window: Window, random: Random) -> list[JointFit]:
    """The joint fit of every link class, concurrency, dtype and mode that has two curves or more in the window."""
    classes: dict[tuple[str, str, str, str], list[Curve]] = defaultdict(list)
    for curve in curves:
        if len(_inside(curve, window)) >= MIN_SIZES:
            key = curve.key
            classes[key.link_class, key.concurrency, key.dtype, key.mode].append(curve)
    return [
        _fit_class(*name, window, members, random) for name, members in classes.items() if len(members) >= MIN_CURVES
    ]


def _fit_class(
    link_class: str, concurrency: str, dtype: str, mode: str, window: Window, curves: Sequence[Curve], random: Random
) -> JointFit:
    inside = [_inside(curve, window) for curve in curves]
    owner = np.repeat(np.arange(len(curves)), [len(positions) for positions in inside])
    seconds = np.concatenate([curve.seconds[at] for curve, at in zip(curves, inside, strict=True)])
    half_widths = np.concatenate([curve.half_widths[at] for curve, at in zip(curves, inside, strict=True)])
    bus_nbytes = np.concatenate([curve.factor * curve.nbytes[at] for curve, at in zip(curves, inside, strict=True)])
    steps = np.array([float(curve.steps) for curve in curves])[owner]
    weights, delta = relative_weights(half_widths), huber_delta(half_widths)
    # One fit to all curves, then one without each in turn.
    without = np.vstack([np.ones(len(owner)), owner != np.arange(len(curves))[:, None]])
    fits = fit_lines(steps, bus_nbytes, seconds, without * weights, delta)
    line = Line(float(fits.alpha[0]), float(fits.beta[0]))
    predicted = line.alpha_seconds * steps + line.seconds_per_byte * bus_nbytes
    left_out = fits.alpha[1:][owner] * steps + fits.beta[1:][owner] * bus_nbytes
    relative = np.abs(predicted / seconds - 1.0)
    resampled = _resampled(curves, inside, random)
    replicates = replicate_line(line, steps, bus_nbytes, seconds, weights, delta, resampled, REPLICATES, random)
    share = line.alpha_seconds * steps / predicted
    own = fit_lines(np.ones(len(owner)), bus_nbytes, seconds, ~without[1:].astype(bool) * weights, delta)
    own_predicted = own.alpha[owner] + own.beta[owner] * bus_nbytes
    return JointFit(
        link_class=link_class,
        concurrency=concurrency,
        dtype=dtype,
        mode=mode,
        window=window,
        line=line,
        curves=tuple(f"{curve.key.collective} {curve.key.ranks}" for curve in curves),
        alpha_step=estimate_alpha(line.alpha_seconds, share, seconds / steps, replicates),
        bytes_per_second=estimate_rate(line.seconds_per_byte, 1.0 - share, bus_nbytes, seconds, replicates),
        errors=Errors(float(relative.mean()), float(relative.max()), float(np.mean(np.abs(left_out / seconds - 1.0)))),
        own_mape=float(np.mean(np.abs(own_predicted / seconds - 1.0))),
    )


def _inside(curve: Curve, window: Window) -> list[int]:
    return [index for index, point in enumerate(curve.points) if window.contains(point.nbytes)]


def _resampled(curves: Sequence[Curve], inside: Sequence[list[int]], random: Random) -> Floats | None:
    parts = [
        resampled_seconds([curve.points[index] for index in positions], REPLICATES, random)
        for curve, positions in zip(curves, inside, strict=True)
    ]
    known = [part for part in parts if part is not None]
    return np.concatenate(known, axis=1) if len(known) == len(parts) else None
