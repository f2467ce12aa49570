"""Regimes: planted ones are found, the segmentation is the best there is, and bridges and envelopes are continuous."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.analysis.lines import HUBER_DELTA, Line, fit_lines
from commbench.analysis.regimes import MIN_POINTS, Regime, Regimes, best_cut, cuts, find_regimes

SIZES = 2.0 ** np.arange(10, 30)


def regimes_of(seconds, sizes=SIZES, factor=1.0):
    return find_regimes(sizes, seconds, np.ones(len(sizes)), factor, HUBER_DELTA)


def test_one_line_is_one_regime():
    found = regimes_of(2e-5 + SIZES / 1e10)
    assert found.form == "line"
    assert len(found.regimes) == 1
    assert not found.convex
    assert found.regimes[0].line.alpha_seconds == pytest.approx(2e-5)


@pytest.mark.parametrize("border", [4, 10, 16])
def test_a_jump_is_found_where_it_is(border):
    early = np.arange(len(SIZES)) < border
    found = regimes_of(np.where(early, 1e-5 + SIZES / 1e9, 9e-5 + 3 * SIZES / 1e9))
    assert found.form == "segments"
    assert [regime.first_nbytes for regime in found.regimes] == [SIZES[0], SIZES[border]]
    assert found.regimes[0].line.seconds_per_byte == pytest.approx(1e-9)
    assert found.regimes[1].line.alpha_seconds == pytest.approx(9e-5, rel=1e-3)
    assert found.convex


def test_the_fastest_of_three_is_an_envelope():
    lines = [Line(5e-6, 1 / 2e8), Line(4e-5, 1 / 5e9), Line(3e-4, 1 / 1e11)]
    seconds = np.array([min(line.seconds(size) for line in lines) for size in SIZES])
    found = regimes_of(seconds)
    assert found.form == "envelope"
    assert not found.convex
    for regime, line in zip(found.regimes, lines, strict=True):
        assert regime.line.alpha_seconds == pytest.approx(line.alpha_seconds, rel=1e-3)
        assert regime.line.seconds_per_byte == pytest.approx(line.seconds_per_byte, rel=1e-3)


def test_four_regimes_at_most():
    steps = np.repeat([1.0, 3.0, 9.0, 27.0, 81.0], 4)
    assert len(regimes_of(steps * (1e-6 + SIZES / 1e12)).regimes) == 4


def test_noise_of_half_a_percent_is_no_regime():
    noise = 1 + 0.005 * np.random.default_rng(1).standard_normal(len(SIZES))
    assert len(regimes_of((2e-5 + SIZES / 1e10) * noise).regimes) == 1


@given(st.lists(st.floats(0.5, 2.0), min_size=6, max_size=10))
def test_the_segmentation_is_the_best_of_all(factors):
    n = len(factors)
    sizes, seconds = SIZES[:n], np.array(factors) * (1e-5 + SIZES[:n] / 1e9)
    weights = np.ones(n)
    for cut in cuts(sizes, sizes, seconds, weights, HUBER_DELTA, most=3):
        count = len(cut.lines)
        tried = []
        for inner in combinations(range(1, n), count - 1):
            borders = (0, *inner, n)
            if all(b - a >= MIN_POINTS for a, b in pairwise(borders)):
                masks = np.array([[a <= i < b for i in range(n)] for a, b in pairwise(borders)])
                tried.append(float(fit_lines(weights, sizes, seconds, masks * weights, HUBER_DELTA, 6).loss.sum()))
        assert cut.loss == pytest.approx(min(tried), rel=1e-6, abs=1e-12)


def test_a_regime_spans_an_octave():
    sizes = np.array([1000.0, 1001.0, 1002.0, 4000.0, 8000.0, 16000.0])
    seconds = np.array([5.0, 5.0, 5.0, 1.0, 2.0, 4.0])
    found = cuts(sizes, sizes, seconds, np.ones(6), HUBER_DELTA)
    assert [len(cut.lines) for cut in found] == [1]


def test_a_thousand_sizes_are_not_tried_one_by_one():
    sizes = np.arange(1.0, 1001.0) * 4096
    seconds = np.where(sizes < 2e6, 1e-5 + sizes / 1e9, 4e-3 + sizes / 1e10)
    found = best_cut(cuts(sizes, sizes, seconds, np.ones(1000), HUBER_DELTA), 1000)
    assert len(found.lines) >= 2
    assert min(abs(sizes[border] - 2e6) for border in found.borders[1:-1]) < 20 * 4096


BRIDGED = Regimes(
    (Regime(1024.0, 4096.0, Line(1.0, 0.0)), Regime(16384.0, 65536.0, Line(5.0, 0.0))), 1.0, "segments", False
)


@pytest.mark.parametrize(
    ("nbytes", "seconds"), [(1, 1.0), (4096, 1.0), (10240, 3.0), (16383, pytest.approx(5.0, rel=1e-3)), (1 << 40, 5.0)]
)
def test_between_two_regimes_is_a_bridge(nbytes, seconds):
    assert BRIDGED.seconds(nbytes) == seconds


@given(st.lists(st.floats(0.7, 1.4), min_size=8, max_size=20), st.floats(1e3, 1e9))
def test_the_model_is_positive_and_continuous(factors, nbytes):
    seconds = np.array(factors) * (1e-5 + SIZES[: len(factors)] / 1e9)
    found = regimes_of(seconds, SIZES[: len(factors)])
    here = found.seconds(nbytes)
    assert here > 0
    assert found.seconds(nbytes * (1 + 1e-9)) == pytest.approx(here, rel=1e-6)


def test_lines_are_of_bus_bytes():
    plain, half = regimes_of(2e-5 + SIZES / 1e10), regimes_of(2e-5 + SIZES / 1e10, factor=0.5)
    assert half.regimes[0].line.seconds_per_byte == pytest.approx(2 * plain.regimes[0].line.seconds_per_byte)
    assert half.seconds(12345.0) == pytest.approx(plain.seconds(12345.0))
