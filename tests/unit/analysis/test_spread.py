"""How far launches differ, from launches whose spread is known."""

import numpy as np
import pytest

from commbench.analysis.spread import ASSUMED_FREEDOM, FLOOR, measure_spread

NONE = np.full(40, np.nan)


def sides(level: float, own: float, runs: tuple[int, int] = (30, 30), seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    base, new = (
        level * random.standard_normal((1, count)) + own * random.standard_normal((40, count)) for count in runs
    )
    return base, new


def test_level_and_cases_are_told_apart() -> None:
    spread = measure_spread(sides(0.05, 0.02), NONE, 0.05)
    assert not spread.is_assumed
    assert spread.level_variance**0.5 == pytest.approx(0.05, rel=0.2)
    assert np.median(spread.case_variances) ** 0.5 == pytest.approx(0.02, rel=0.1)
    variance, freedom = spread.of_case(0)
    assert variance**0.5 == pytest.approx(0.054, rel=0.2)
    assert 58 <= freedom <= 100  # little more than the launches' own 58: the level makes most of it


def test_a_small_variance_is_not_believed_and_a_large_one_is() -> None:
    base, new = sides(0.0, 0.02, (3, 3))
    base[0], new[0] = base[0].mean(), new[0].mean()  # by luck without any spread
    base[1] *= 20
    spread = measure_spread((base, new), NONE, 0.05)
    assert spread.case_variances[0] ** 0.5 > 0.01
    assert spread.case_variances[1] ** 0.5 > 0.1
    assert spread.case_freedoms[1] == 4
    assert spread.case_freedoms[0] > 4


@pytest.mark.parametrize("runs", [(1, 1), (2, 1)])
def test_too_few_launches_are_assumed_to_differ(runs: tuple[int, int]) -> None:
    spread = measure_spread(sides(0.0, 0.0, runs), NONE, 0.04)
    assert spread.is_assumed
    assert spread.of_case(0) == (pytest.approx(2 * 0.04**2), ASSUMED_FREEDOM)


def test_a_case_whose_batches_scatter_is_assumed_to_differ_more() -> None:
    widths = NONE.copy()
    widths[0] = 0.6
    spread = measure_spread(sides(0.0, 0.0, (1, 1)), widths, 0.05)
    assert spread.case_variances[0] ** 0.5 == pytest.approx(2 * 0.6 / 1.96)
    assert spread.case_variances[1] ** 0.5 == pytest.approx(0.05)


def test_launches_without_any_noise_keep_a_floor() -> None:
    spread = measure_spread(sides(0.0, 0.0, (3, 3)), NONE, 0.05)
    assert spread.level_variance == FLOOR**2


def test_a_launch_that_lacks_cases_counts_where_it_has_them() -> None:
    base, new = sides(0.01, 0.01, (3, 3))
    base[:10, 2] = np.nan
    spread = measure_spread((base, new), NONE, 0.05)
    assert np.isfinite(spread.case_variances).all()
    assert min(spread.case_freedoms[:10]) < 4 + spread.case_freedoms[-1]


def test_one_case_is_its_own_level() -> None:
    random = np.random.default_rng(0)
    base, new = 0.03 * random.standard_normal((1, 20)), 0.03 * random.standard_normal((1, 20))
    variance, freedom = measure_spread((base, new), NONE[:1], 0.05).of_case(0)
    assert variance**0.5 == pytest.approx(0.03, rel=0.3)
    assert freedom == pytest.approx(38, rel=0.05)
