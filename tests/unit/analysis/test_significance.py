"""Tests of two samples against tables and against enumeration."""

from itertools import combinations
from math import comb, inf

import numpy as np
import pytest

from commbench.analysis.significance import holm, least_rank_p, rank_difference, t_difference


def test_student_t_by_hand() -> None:
    """variance 0.0004, 3 and 3 launches: the error is 0.02 sqrt(2/3); t(4) at 0.975 is 2.776."""
    found = t_difference(0.1, 0.0004, 4, (3, 3))
    error = 0.02 * (2 / 3) ** 0.5
    assert found.high - found.estimate == pytest.approx(2.7764451 * error)
    assert found.p == pytest.approx(0.003598, rel=0.02)


def test_the_rank_test_is_that_of_all_orders() -> None:
    """p by counting: in how many of the ways to choose the first sample's places are so few, or so many, pairs won."""
    random = np.random.default_rng(1)
    for m, n in ((3, 4), (5, 5), (6, 3)):
        base, new = random.normal(size=m), random.normal(size=n)
        wins = sum(b > a for a in base for b in new)
        least = min(wins, m * n - wins)
        orders = [
            sum(place > other for place in chosen for other in set(range(m + n)) - set(chosen))
            for chosen in combinations(range(m + n), n)
        ]
        expected = min(1.0, 2 * sum(order <= least for order in orders) / comb(m + n, n))
        assert rank_difference(base, new).p == pytest.approx(expected)


def test_the_rank_interval_and_its_estimate() -> None:
    base, new = np.zeros(8), np.full(8, 0.2)
    found = rank_difference(base, new)
    assert (found.estimate, found.low, found.high) == (0.2, 0.2, 0.2)
    assert found.p == pytest.approx(least_rank_p((8, 8)))
    assert rank_difference(base[:2], new[:2]).high == inf  # 2 and 2 bound nothing with 95 %


def test_equal_samples_show_nothing() -> None:
    assert rank_difference(np.ones(8), np.ones(8)).p == 1.0


def test_the_rank_interval_holds_the_truth() -> None:
    random = np.random.default_rng(2)
    held = 0
    for _ in range(400):
        found = rank_difference(random.standard_t(3, size=7), random.standard_t(3, size=7) + 1)
        held += found.low <= 1 <= found.high
    assert held >= 0.93 * 400


def test_three_a_side_cannot_go_below_a_tenth() -> None:
    assert least_rank_p((3, 3)) == pytest.approx(0.1)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005], 0.05) == [True, False, False, True]
    assert holm([0.02, 0.03], 0.05) == [True, True]
    assert holm([], 0.05) == []
