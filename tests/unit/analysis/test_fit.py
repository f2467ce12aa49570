"""One curve to its fit: planted coefficients lie in their intervals, and what cannot be known is not claimed."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.analysis.fit import DEFAULT_WINDOW, fit_curve, format_window, judge
from commbench.analysis.records import Errors, Window
from tests.unit.analysis.make import SIZES, line, make_curve

MIB = 1 << 20


def fit(curve, window=DEFAULT_WINDOW, seed=0):
    return fit_curve(curve, window, np.random.default_rng(seed))


def holds(estimate, planted):
    return estimate.value is not None and estimate.low <= planted <= estimate.high


def test_an_exact_line():
    found = fit(make_curve(line(40e-6, 200e9)))
    assert found.line is not None
    assert found.line.window == Window(MIB, 1 << 30)
    assert found.line.sizes == 11
    assert found.line.alpha_total.value == pytest.approx(40e-6)
    assert found.line.alpha_step.value == pytest.approx(40e-6 / 14)
    assert found.line.bytes_per_second.value == pytest.approx(200e9)
    assert found.line.half_bandwidth_nbytes == pytest.approx(40e-6 * 200e9 / 1.75)
    assert found.line.errors.largest < 1e-6
    assert found.line.quality == "ok"
    assert found.small_seconds == pytest.approx(40e-6, rel=0.1)


def test_planted_coefficients_lie_in_their_intervals():
    """A few seeds; `scripts/bench_recovery` has a hundred. 16 draws of 95 % are below 13 once in a hundred."""
    held = Counter()
    border = 128 << 10
    for seed in range(16):

        def cost(q):
            return line(12e-6, 2e9)(q) if q < 1.75 * border else line(120e-6, 20e9)(q)

        found = fit(make_curve(cost, noise=0.02, batches=40, seed=seed), seed=seed)
        held["alpha"] += holds(found.line.alpha_total, 120e-6)
        held["B"] += holds(found.line.bytes_per_second, 20e9)
        two = len(found.regimes.estimates) == 2
        held["two"] += two
        first, second = found.regimes.estimates if two else (None, None)
        held["alpha 1"] += two and holds(first.alpha_total, 12e-6)
        held["B 1"] += two and holds(first.bytes_per_second, 2e9)
        held["alpha 2"] += two and holds(second.alpha_total, 120e-6)
        held["B 2"] += two and holds(second.bytes_per_second, 20e9)
        held["border"] += two and second.starts_low < border <= second.starts_high
    assert {name: count for name, count in held.items() if count < 13} == {}


def test_intervals_shrink_with_batches_and_grow_with_noise():
    def width(**how):
        estimate = fit(make_curve(line(40e-6, 200e9), **how)).line.bytes_per_second
        return estimate.high - estimate.low

    base = width(noise=0.02, batches=50)
    assert width(noise=0.02, batches=800) < 0.7 * base
    assert width(noise=0.08, batches=50) > 1.5 * base


def test_the_misfit_of_one_line_is_in_its_interval():
    """Two regimes in one window, each without noise: only the residuals say that the line is wrong."""
    found = fit(make_curve(lambda q: max(q / 100e9, q / 200e9 + 2e-3), batches=20))
    rate = found.line.bytes_per_second
    assert found.line.errors.mape > 0.02
    assert rate.high - rate.low > 0.02 * rate.high


@pytest.mark.parametrize(
    ("alpha", "rate", "names"), [(1e-9, 200e9, ["alpha_total"]), (1.0, 1e15, ["bytes_per_second"])]
)
def test_not_identified_is_a_bound_that_holds(alpha, rate, names):
    found = fit(make_curve(line(alpha, rate), noise=0.02, batches=30)).line
    for name in ("alpha_total", "bytes_per_second"):
        estimate = getattr(found, name)
        assert estimate.identified == (name not in names)
    assert found.half_bandwidth_nbytes is None
    if names == ["alpha_total"]:
        assert alpha <= found.alpha_total.bound < (1.75 * MIB / rate)
        assert found.alpha_step.bound == pytest.approx(found.alpha_total.bound / 14)
    else:
        assert 0 < found.bytes_per_second.bound <= rate


def test_a_window_without_sizes_has_no_line_but_regimes():
    found = fit(make_curve(line(40e-6, 200e9), SIZES[:8]))
    assert found.line is None
    assert found.no_line == "0 sizes in the window (from 1 MiB), a line needs 3: give --window"
    assert found.efficiency is None
    assert found.regimes.estimates[0].alpha_total.value == pytest.approx(40e-6)


def test_the_window_decides_what_the_line_sees():
    def cost(q):
        return line(12e-6, 2e9)(q) if q < 1.75 * MIB else line(120e-6, 20e9)(q)

    below = fit(make_curve(cost), Window(None, MIB - 1)).line
    above = fit(make_curve(cost), Window(MIB, None)).line
    assert below.bytes_per_second.value == pytest.approx(2e9)
    assert above.bytes_per_second.value == pytest.approx(20e9)


def test_efficiency_is_the_measured_rate_over_the_nominal_one():
    assert fit(make_curve(line(40e-6, 150e9), nominal=200e9)).efficiency == pytest.approx(0.75)
    assert fit(make_curve(line(40e-6, 150e9))).efficiency is None


@pytest.mark.parametrize(
    ("errors", "quality", "reasons"),
    [
        (Errors(0.10, 0.25, None), "ok", 0),
        (Errors(0.11, 0.2, None), "poor", 1),
        (Errors(0.01, 0.26, None), "poor", 1),
        (Errors(0.2, 0.3, None), "poor", 2),
    ],
)
def test_the_verdict_on_a_line(errors, quality, reasons):
    judged = judge(errors)
    assert (judged[0], len(judged[1])) == (quality, reasons)


def test_left_out_errors_are_of_fits_that_did_not_see_the_size():
    """One size is off by 30 %: a line through all is pulled to it a little, one without it not at all."""
    curve = make_curve(lambda q: (40e-6 + q / 200e9) * (1.3 if q == 1.75 * (1 << 24) else 1.0))
    found = fit(curve)
    assert found.line.errors.left_out_mape > found.line.errors.mape
    assert found.regimes.errors.left_out_mape > found.regimes.errors.mape


@given(st.lists(st.floats(1e-6, 1e-1), min_size=3, max_size=9), st.integers(1, 7))
def test_any_times_give_a_fit_that_can_be_stored(seconds, batches):
    times = dict(zip(SIZES[8:], seconds, strict=False))
    curve = make_curve(lambda q: times[round(q / 1.75)], tuple(times), noise=0.01, batches=batches)
    found = fit(curve)
    estimates = [
        estimate for regime in found.regimes.estimates for estimate in (regime.alpha_total, regime.bytes_per_second)
    ]
    estimates += [found.line.alpha_total, found.line.bytes_per_second] if found.line else []
    for estimate in estimates:
        numbers = [estimate.value, estimate.low, estimate.high, estimate.bound]
        assert all(number is None or (np.isfinite(number) and number >= 0) for number in numbers)
        assert estimate.identified == (estimate.bound is None)
        assert estimate.value != 0
    regimes = found.regimes.model.regimes
    assert all(left.last_nbytes < right.first_nbytes for left, right in pairwise(regimes))
    assert (regimes[0].first_nbytes, regimes[-1].last_nbytes) == (min(times), max(times))


def test_the_seed_decides():
    curve = make_curve(line(40e-6, 200e9), noise=0.02, batches=30)
    assert fit(curve, seed=1) == fit(curve, seed=1)
    assert fit(curve, seed=1).line.alpha_total != fit(curve, seed=2).line.alpha_total


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (Window(MIB, None), "from 1 MiB"),
        (Window(None, 1024), "up to 1 KiB"),
        (Window(1024, MIB), "1 KiB to 1 MiB"),
        (Window(None, None), "all"),
    ],
)
def test_windows_for_people(window, text):
    assert format_window(window) == text
