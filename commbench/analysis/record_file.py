"""From runs to the record of their fits, and that record on disk: fit.json in each run's directory."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np

from commbench import __version__
from commbench.analysis.curves import Launch, make_curves
from commbench.analysis.efficiency import find_efficiency
from commbench.analysis.fit import fit_curve
from commbench.analysis.joint import fit_joint
from commbench.analysis.records import FIT_SCHEMA_VERSION, MODEL, CurveFit, FitRecord, Window
from commbench.analysis.scaling import fit_scaling
from commbench.errors import CommbenchError
from commbench.results.json_record import read_json_record

FIT_FILE = "fit.json"


def fit_launches(launches: Sequence[Launch], window: Window, seed: int) -> FitRecord:
    """The record of one machine's launches, as grouped by `group_launches`."""
    curves, unfitted = make_curves(launches)
    # A curve's random numbers are its own, so that its intervals do not depend on its neighbours.
    fits = tuple(fit_curve(curve, window, np.random.default_rng((seed, index))) for index, curve in enumerate(curves))
    return FitRecord(
        schema_version=FIT_SCHEMA_VERSION,
        commbench=__version__,
        model=MODEL,
        runs=tuple(launch.run.directory.name for launch in launches),
        window=window,
        seed=seed,
        data_sha256=_hash(fits),
        fits=fits,
        joint=tuple(fit_joint(curves, window, np.random.default_rng((seed, len(curves))))),
        scaling=tuple(fit_scaling(fits, window)),
        findings=tuple(find_efficiency(fits, window)),
        unfitted=tuple(unfitted),
    )


def write_record(directory: Path, record: FitRecord) -> None:
    """Write fit.json into a run's directory, in one step. Raises CommbenchError if it cannot be written."""
    part = directory / (FIT_FILE + ".part")
    try:
        part.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
        part.rename(directory / FIT_FILE)
    except OSError as error:
        raise CommbenchError(
            f"cannot write {directory / FIT_FILE}: {error.strerror}; --no-save writes none."
        ) from error


def load_record(directory: Path) -> FitRecord:
    """The fit.json of a run's directory. Raises CommbenchError if there is none, or if it is of a newer schema."""
    hint = f"run commbench fit {directory} first"
    return read_json_record(directory / FIT_FILE, FitRecord, newest=FIT_SCHEMA_VERSION, noun="fit", hint=hint)


def _hash(fits: Sequence[CurveFit]) -> str:
    return sha256(msgspec.json.encode([(fit.key, fit.points) for fit in fits])).hexdigest()
