"""The bootstrap: its shortcut for medians is the bootstrap, two levels are two levels, and intervals cover."""

import numpy as np
import pytest

from commbench.analysis.curves import Point
from commbench.analysis.intervals import interval, redrawn_seconds, resampled_seconds


def point(*launches):
    arrays = tuple(np.sort(np.array(launch, dtype=float)) for launch in launches)
    return Point(1024, float(np.median([np.median(launch) for launch in arrays])), arrays)


@pytest.mark.parametrize("count", [5, 6, 31, 32])
def test_medians_are_those_of_resamples(count):
    values = np.random.default_rng(3).gamma(2.0, size=count)
    quick = resampled_seconds([point(values)], 40_000, np.random.default_rng(0))
    drawn = np.random.default_rng(1).choice(values, size=(40_000, count))
    slow = np.median(drawn, axis=1)
    assert quick is not None
    grid = np.unique(slow)
    shares = [np.searchsorted(np.sort(medians), grid, side="right") / 40_000 for medians in (quick[:, 0], slow)]
    assert np.abs(shares[0] - shares[1]).max() < 0.015  # Kolmogorov and Smirnov: 0.0115 at 99 %
    assert quick.std() == pytest.approx(slow.std(), rel=0.05)


def test_one_value_a_size_cannot_be_resampled():
    assert resampled_seconds([point([1.0]), point([2.0])], 10, np.random.default_rng(0)) is None


def test_launches_are_drawn_first():
    """Each launch repeats itself exactly: all that varies is which launches are drawn."""
    found = resampled_seconds([point([1.0] * 50, [2.0] * 50)], 4000, np.random.default_rng(0))
    assert found is not None
    values, counts = np.unique(found[:, 0], return_counts=True)
    assert values.tolist() == [1.0, 1.5, 2.0]
    assert counts / 4000 == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


def test_redrawn_times_have_the_residuals_of_the_fit():
    modelled, seconds = np.full(10, 2.0), np.full(10, 2.0) * (1 + 0.05 * np.tile([1, -1], 5))
    found = redrawn_seconds(modelled, seconds, 2, 1000, np.random.default_rng(0))
    widened = 0.05 * np.sqrt(10 / 8)
    assert np.allclose(np.abs(found / 2.0 - 1.0), widened)
    assert (found > 2.0).mean() == pytest.approx(0.5, abs=0.02)


def test_redrawn_times_stay_positive():
    found = redrawn_seconds(np.ones(4), np.array([1.0, 5.0, 1.0, 1.0]), 2, 100, np.random.default_rng(0))
    assert found.min() > 0


def test_the_wider_interval_counts():
    narrow, wide = np.linspace(4, 6, 1001), np.linspace(0, 5, 1001)
    assert interval(narrow, None) == pytest.approx((4.05, 5.95))
    assert interval(narrow, wide) == pytest.approx((0.125, 5.95))
