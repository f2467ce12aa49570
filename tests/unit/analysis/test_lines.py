"""Lines by relative error: exact where they can be, never negative, deaf to outliers, blind to the unit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commbench.analysis.lines import HUBER_DELTA, fit_line, fit_lines, huber_delta, relative_weights

SIZES = 2.0 ** np.arange(10, 30)
ONES = np.ones(len(SIZES))

alphas = st.one_of(st.just(0.0), st.floats(1e-7, 1e-2))
betas = st.one_of(st.just(0.0), st.floats(1e-12, 1e-8))


@given(alphas, betas.filter(lambda beta: beta > 0))
def test_an_exact_line_is_found(alpha, beta):
    seconds = alpha + beta * SIZES
    line = fit_line(SIZES, seconds, ONES, HUBER_DELTA)
    assert np.allclose(line.alpha_seconds + line.seconds_per_byte * SIZES, seconds, rtol=1e-6)
    assert line.alpha_seconds >= 0
    assert line.seconds_per_byte >= 0


@given(st.lists(st.floats(1e-7, 10.0), min_size=3, max_size=12), st.floats(0.01, 0.5))
@example([0.19921875, 0.5, 4.75], 0.03125)  # settles after more than 50 rounds
def test_no_line_in_the_quadrant_is_better(seconds, delta):
    """The loss is convex: a minimum among its neighbours in the quadrant is the least of all."""
    y = np.array(seconds)
    x = 2.0 ** np.arange(10, 10 + len(y))
    batch = fit_lines(np.ones(len(y)), x, y, np.ones((1, len(y))), delta)
    alpha, beta = float(batch.alpha[0]), float(batch.beta[0])
    assert alpha >= 0
    assert beta >= 0
    steps = (0.97, 0.99, 1.01, 1.03)
    nearby = [(a * alpha, b * beta) for a in (1.0, *steps) for b in (1.0, *steps)]
    nearby += [(alpha + 0.01 * min(y), beta), (alpha, beta + 0.01 * min(y / x))]
    assert batch.loss[0] <= min(_loss(a, b, x, y, delta) for a, b in nearby) * (1 + 1e-3) + 1e-9


def _loss(alpha, beta, x, y, delta):
    r = np.abs((alpha + beta * x) / y - 1)
    return float(np.where(r <= delta, r**2, 2 * delta * r - delta**2).sum())


@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3))
def test_the_fit_does_not_depend_on_units(time_unit, byte_unit):
    noisy = (1e-5 + 1e-10 * SIZES) * (1 + 0.03 * np.sin(np.arange(len(SIZES))))
    plain = fit_line(SIZES, noisy, ONES, HUBER_DELTA)
    scaled = fit_line(SIZES * byte_unit, noisy * time_unit, ONES, HUBER_DELTA)
    assert scaled.alpha_seconds == pytest.approx(plain.alpha_seconds * time_unit, rel=1e-6)
    assert scaled.seconds_per_byte == pytest.approx(plain.seconds_per_byte * time_unit / byte_unit, rel=1e-6)


@pytest.mark.parametrize("position", [0, 7, 19])
def test_one_wild_size_moves_the_line_little(position):
    seconds = 1e-5 + 1e-10 * SIZES
    seconds[position] *= 5
    line = fit_line(SIZES, seconds, ONES, HUBER_DELTA)
    assert line.alpha_seconds == pytest.approx(1e-5, rel=0.05)
    assert line.seconds_per_byte == pytest.approx(1e-10, rel=0.05)


def test_small_and_large_sizes_count_alike():
    """Least squares of seconds gives the large sizes all the say, and an alpha that is far off."""
    seconds = 1e-5 + 1e-10 * SIZES
    seconds[-1] *= 1.04
    line = fit_line(SIZES, seconds, ONES, HUBER_DELTA)
    slope, intercept = np.polyfit(SIZES, seconds, 1)
    assert line.alpha_seconds == pytest.approx(1e-5, rel=0.01)
    assert abs(intercept / 1e-5 - 1) > 5
    assert slope > line.seconds_per_byte


def test_a_size_without_weight_has_no_say():
    seconds = 1e-5 + 1e-10 * SIZES
    wrong = seconds.copy()
    wrong[3] *= 100
    weights = np.where(np.arange(len(SIZES)) == 3, 0.0, 1.0)
    line = fit_line(SIZES, wrong, weights, HUBER_DELTA)
    assert line.alpha_seconds == pytest.approx(1e-5, rel=1e-9)


def test_a_batch_is_its_single_fits():
    y = (1e-5 + 1e-10 * SIZES) * (1 + 0.1 * np.cos(np.arange(len(SIZES))))
    masks = np.array([np.arange(len(SIZES)) < 8, np.arange(len(SIZES)) >= 8, np.ones(len(SIZES))], dtype=float)
    batch = fit_lines(ONES, SIZES, y, masks, HUBER_DELTA)
    for row, mask in enumerate(masks):
        single = fit_lines(ONES, SIZES, y, mask[None], HUBER_DELTA)
        assert batch.alpha[row] == pytest.approx(single.alpha[0], rel=1e-4)
        assert batch.beta[row] == pytest.approx(single.beta[0], rel=1e-4)


def test_steps_make_alpha_that_of_a_step():
    steps = np.repeat([2.0, 14.0], len(SIZES))
    sizes = np.tile(SIZES, 2)
    fits = fit_lines(steps, sizes, 3e-6 * steps + 1e-11 * sizes, np.ones((1, len(sizes))), HUBER_DELTA)
    assert fits.alpha[0] == pytest.approx(3e-6)
    assert fits.beta[0] == pytest.approx(1e-11)


def test_weights_and_delta_follow_the_intervals():
    unknown = float("nan")
    assert relative_weights(np.array([0.001, 0.02, 0.04, unknown])).tolist() == [1.0, 1.0, 0.25, 1.0]
    assert huber_delta(np.array([unknown, unknown])) == HUBER_DELTA
    assert huber_delta(np.array([0.01, 0.01, 0.5])) == HUBER_DELTA
    assert huber_delta(np.array([0.1, unknown])) == pytest.approx(0.3)
