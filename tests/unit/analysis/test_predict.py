"""Predictions: the nearest basis first, each with its error and its name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.analysis.fit import DEFAULT_WINDOW, fit_curve
from commbench.analysis.joint import fit_joint
from commbench.analysis.lines import Line
from commbench.analysis.predict import BETWEEN, BEYOND, JOINT, N_MODEL, corrected_seconds, predict
from commbench.analysis.records import FIT_SCHEMA_VERSION, MODEL, FitRecord
from commbench.analysis.regimes import Regime, Regimes
from commbench.analysis.scaling import fit_scaling
from commbench.errors import CommbenchError, UsageError
from commbench.plan.collectives import COLLECTIVES
from tests.unit.analysis.make import SIZES, line, make_curve

STEP, RATE = 5e-6, 150e9
FLAT = Regimes((Regime(1024.0, 65536.0, Line(1.0, 0.0)),), 1.0, "line", False)
MEASURED = np.array([1024.0, 4096.0, 16384.0, 65536.0])
UNKNOWN = np.full(4, np.nan)


def ring(collective, ranks, **how):
    return make_curve(
        line(COLLECTIVES[collective].steps(ranks) * STEP, RATE), collective=collective, ranks=ranks, **how
    )


def record_of(*curves):
    fits = tuple(fit_curve(curve, DEFAULT_WINDOW, np.random.default_rng(0)) for curve in curves)
    joint = tuple(fit_joint(curves, DEFAULT_WINDOW, np.random.default_rng(0)))
    scaling = tuple(fit_scaling(fits, DEFAULT_WINDOW))
    return FitRecord(FIT_SCHEMA_VERSION, "0", MODEL, ("run",), DEFAULT_WINDOW, 0, "", fits, joint, scaling, (), ())


RECORD = record_of(ring("all_reduce", 2), ring("all_reduce", 4), ring("all_gather", 4))


def expected(collective, nbytes, ranks):
    spec = COLLECTIVES[collective]
    return spec.steps(ranks) * STEP + spec.factor(ranks) * nbytes / RATE


@pytest.mark.parametrize(
    ("collective", "nbytes", "ranks", "basis"),
    [
        ("all_reduce", 3 << 20, 4, BETWEEN),
        ("all_reduce", max(SIZES) * 4, 4, BEYOND),
        ("all_reduce", 64 << 20, 16, N_MODEL),
        ("all_gather", 64 << 20, 16, JOINT),
        ("broadcast", 64 << 20, 4, JOINT),
    ],
)
def test_the_nearest_basis_counts(collective, nbytes, ranks, basis):
    (found,) = predict([RECORD], collective, nbytes, ranks)
    assert found.basis == basis
    assert found.seconds == pytest.approx(expected(collective, nbytes, ranks), rel=1e-3)
    factor = COLLECTIVES[collective].factor(ranks)
    assert found.busbw_bytes_per_second == pytest.approx(factor * nbytes / found.seconds)
    assert (found.error is None) == (basis in (BEYOND, N_MODEL))  # two N: nothing can be left out


def test_every_condition_has_its_prediction():
    record = record_of(ring("all_reduce", 4), ring("all_reduce", 4, dtype="int32"))
    assert [found.dtype for found in predict([record], "all_reduce", 1 << 20, 4)] == ["float32", "int32"]


def test_what_nothing_covers_is_an_error_with_what_there_is():
    with pytest.raises(CommbenchError, match="no fit covers all_reduce on 8 ranks; fitted are all_gather 4"):
        predict([record_of(ring("all_gather", 4))], "all_reduce", 1 << 20, 8)


def test_one_rank_and_unknown_collectives_are_errors():
    with pytest.raises(CommbenchError, match="nothing to predict"):
        predict([RECORD], "all_reduce", 1 << 20, 1)
    with pytest.raises(UsageError, match="did you mean all_reduce"):
        predict([RECORD], "all_reduc", 1 << 20, 4)


def test_a_neighbour_s_residual_counts_half_way():
    seconds = np.array([1.0, 1.5, 1.0, 1.0])
    at = [corrected_seconds(FLAT, MEASURED, seconds, UNKNOWN, size) for size in (4096.0, 8192.0, 16384.0)]
    assert at == pytest.approx([1.5, 1.25, 1.0], rel=0.01)


def test_a_residual_within_its_noise_counts_little():
    seconds = np.array([1.0, 1.5, 1.0, 1.0])
    widths = np.array([0.02, 2.0, 0.02, 0.02])
    assert corrected_seconds(FLAT, MEASURED, seconds, widths, 4096.0) < 1.05


@given(st.lists(st.floats(0.5, 2.0), min_size=4, max_size=4), st.floats(1024, 65536))
def test_the_correction_stays_among_the_measured_times(seconds, nbytes):
    times = np.array(seconds)
    predicted = corrected_seconds(FLAT, MEASURED, times, UNKNOWN, nbytes)
    assert min(1.0, times.min()) - 1e-9 <= predicted <= max(1.0, times.max()) + 1e-9


def test_a_correction_that_made_it_worse_is_not_used():
    """One outlier: its residual would be carried to its neighbours."""
    record = record_of(make_curve(lambda q: (40e-6 + q / 150e9) * (4 if 50e6 < q < 70e6 else 1)))
    fit = record.fits[0]
    (found,) = predict([record], "all_reduce", 24 << 20, 8)
    assert fit.regimes.corrected_left_out_mape > fit.regimes.errors.left_out_mape
    assert found.seconds == fit.regimes.model.seconds(24 << 20)
    assert found.error == fit.regimes.errors.left_out_mape
