"""Times that were not measured, from a fit: each says what it rests on, and the error to expect of that."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from commbench.analysis.lines import NOISE_FLOOR, Floats
from commbench.analysis.records import CurveFit, FitRecord, JointFit, ScalingFit
from commbench.analysis.regimes import Regimes
from commbench.analysis.scaling import scaled_seconds
from commbench.errors import CommbenchError
from commbench.plan.collectives import find_collective

BETWEEN = "regimes, between measured sizes"
BEYOND = "regimes, beyond the measured sizes (extrapolation)"
N_MODEL = "N model (extrapolation)"
JOINT = "joint line of the link class (extrapolation)"


@dataclass(frozen=True, slots=True)
class Prediction:
    """`error`: the mean relative error of this basis where something was left out; None where that is not known."""

    collective: str
    nbytes: int
    ranks: int
    link_class: str
    layout: str
    concurrency: str
    dtype: str
    mode: str
    seconds: float
    busbw_bytes_per_second: float
    basis: str
    error: float | None


def predict(records: Sequence[FitRecord], collective: str, nbytes: int, ranks: int) -> list[Prediction]:
    """A prediction for each condition that the records know of, from the nearest basis: a curve at this N, else the N
    model, else the joint line.

    Raises UsageError for an unknown collective or fewer than two ranks, CommbenchError if nothing covers it.
    """
    factor = find_collective(collective).bus_factor(ranks)
    if factor is None:
        raise CommbenchError(f"{collective} on {ranks} ranks moves nothing over a link: there is nothing to predict.")
    for known in (_from_curves, _from_scaling, _from_joint):
        found = [prediction for record in records for prediction in known(record, collective, nbytes, ranks, factor)]
        if found:
            return found
    fitted = sorted({f"{fit.key.collective} {fit.key.ranks}" for record in records for fit in record.fits})
    raise CommbenchError(f"no fit covers {collective} on {ranks} ranks; fitted are {', '.join(fitted) or 'none'}.")


def modelled(model: Regimes, nbytes: Floats) -> Floats:
    """The model's times of these sizes."""
    return np.array([model.seconds(size) for size in nbytes])


def corrected_seconds(model: Regimes, measured: Floats, seconds: Floats, half_widths: Floats, nbytes: float) -> float:
    """The model's time of `nbytes`, times what its neighbours say that the model lacks there.

    A measured size's residual is drawn to zero where it is small against its noise (as in Wiener's filter, by
    r² / (r² + noise²)) and interpolated over log S between the measured sizes; beyond them the outermost holds.
    `half_widths`: relative, NaN where unknown; noise is at least the noise floor.
    """
    residuals = seconds / modelled(model, measured) - 1.0
    noise = np.maximum(np.nan_to_num(half_widths, nan=NOISE_FLOOR), NOISE_FLOOR)
    kept = residuals**3 / (residuals**2 + noise**2)
    return model.seconds(nbytes) * (1.0 + float(np.interp(np.log(nbytes), np.log(measured), kept)))


def _from_curves(record: FitRecord, collective: str, nbytes: int, ranks: int, factor: float) -> Iterable[Prediction]:
    for fit in record.fits:
        if (fit.key.collective, fit.key.ranks) == (collective, ranks):
            yield _from_curve(fit, nbytes, factor)


def _from_curve(fit: CurveFit, nbytes: int, factor: float) -> Prediction:
    """By the regimes, corrected by the neighbours unless that was the worse of the two where sizes were left out."""
    sizes = np.array([point.nbytes for point in fit.points], dtype=float)
    seconds = np.array([point.seconds for point in fit.points])
    widths = np.array([np.nan if point.half_width is None else point.half_width for point in fit.points])
    plain, corrected = fit.regimes.errors.left_out_mape, fit.regimes.corrected_left_out_mape
    helps = plain is None or corrected is None or corrected <= plain
    model, key = fit.regimes.model, fit.key
    predicted = corrected_seconds(model, sizes, seconds, widths, nbytes) if helps else model.seconds(nbytes)
    between = sizes[0] <= nbytes <= sizes[-1]
    return Prediction(
        collective=key.collective,
        nbytes=nbytes,
        ranks=key.ranks,
        link_class=key.link_class,
        layout=key.layout,
        concurrency=key.concurrency,
        dtype=key.dtype,
        mode=key.mode,
        seconds=predicted,
        busbw_bytes_per_second=factor * nbytes / predicted,
        basis=BETWEEN if between else BEYOND,
        error=(corrected if helps else plain) if between else None,
    )


def _from_scaling(record: FitRecord, collective: str, nbytes: int, ranks: int, factor: float) -> Iterable[Prediction]:
    for scaling in record.scaling:
        if scaling.collective == collective:
            seconds = scaled_seconds(scaling, nbytes, ranks)
            yield _of_class(scaling, collective, nbytes, ranks, seconds, factor * nbytes / seconds)


def _from_joint(record: FitRecord, collective: str, nbytes: int, ranks: int, factor: float) -> Iterable[Prediction]:
    steps = find_collective(collective).steps(ranks)
    for joint in record.joint:
        seconds = steps * joint.line.alpha_seconds + factor * nbytes * joint.line.seconds_per_byte
        yield _of_class(joint, collective, nbytes, ranks, seconds, factor * nbytes / seconds)


def _of_class(
    model: ScalingFit | JointFit, collective: str, nbytes: int, ranks: int, seconds: float, busbw: float
) -> Prediction:
    basis, error = (
        (JOINT, model.errors.left_out_mape) if isinstance(model, JointFit) else (N_MODEL, model.left_out_mape)
    )
    return Prediction(
        collective=collective,
        nbytes=nbytes,
        ranks=ranks,
        link_class=model.link_class,
        layout="any",
        concurrency=model.concurrency,
        dtype=model.dtype,
        mode=model.mode,
        seconds=seconds,
        busbw_bytes_per_second=busbw,
        basis=basis,
        error=error,
    )
