"""alpha and B of launches, from times whose change is known."""

from dataclasses import replace

import numpy as np
import pytest

from commbench.analysis.coefficients import Coefficients, Values, link_coefficients
from commbench.analysis.matching import CaseKey, launch_timings
from tests.unit.analysis.launches import SIZES, make_launch

RUN = make_launch(0, collectives=("all_reduce",))
KEYS: list[CaseKey] = list(launch_timings(RUN))
NBYTES = np.array(SIZES, dtype=float)
EQUAL = np.ones(len(SIZES))


def coefficients(times: np.ndarray, base: np.ndarray, keys: list[CaseKey] = KEYS) -> Coefficients:
    (found,) = link_coefficients(keys, times, base, np.ones(len(keys)))
    return found


def values(found: Values | None) -> np.ndarray:
    assert found is not None
    return found.launches


def test_the_variance_of_a_coefficient_is_that_of_its_cases() -> None:
    """Where alpha makes all of four times and B all of four others, each is a mean of four."""
    base = np.where(np.arange(8) < 4, 1e-4, NBYTES / 1e3)
    random = np.random.default_rng(0)
    times = base[:, None] * (1 + 0.1 * random.standard_normal((8, 500)))
    (found,) = link_coefficients(KEYS, times, base, np.full(8, 0.01))
    assert found.alpha is not None
    assert found.alpha.variance == pytest.approx(float(values(found.alpha).var()), rel=0.2)


def test_both_changes_are_told_apart_launch_by_launch() -> None:
    base = 1e-4 + NBYTES / 1e9
    times = np.stack([1e-4 * x + y * NBYTES / 1e9 for x, y in ((1, 1), (1.3, 1), (1, 1.25), (0.8, 2))], axis=1)
    found = coefficients(times, base)
    assert values(found.alpha) == pytest.approx([1, 1.3, 1, 0.8], rel=1e-3)
    assert values(found.beta) == pytest.approx([1, 1, 1.25, 2], rel=1e-3)


def test_a_bend_is_in_both_and_cancels() -> None:
    bend = np.where(NBYTES > 1 << 18, 1.4, 1.0)
    base = (1e-4 + NBYTES / 1e9) * bend
    times = ((1e-4 + 1.2 * NBYTES / 1e9) * bend)[:, None]
    found = coefficients(times, base)
    assert values(found.alpha) == pytest.approx([1.0], abs=0.03)
    assert values(found.beta) == pytest.approx([1.2], abs=0.03)


def test_small_messages_that_a_buffer_takes_have_no_beta_whatever_a_line_through_all_sizes_says() -> None:
    """A shaped link lets some pass at once: there no rate shows, and a lower one must not look like less alpha."""
    buffered = NBYTES <= 1 << 14
    base, lower = (1e-4 + np.where(buffered, 0.0, NBYTES / rate) for rate in (1e8, 0.9e8))
    found = coefficients(lower[:, None], base)
    assert values(found.alpha) == pytest.approx([1.0], abs=0.015)
    assert values(found.beta) == pytest.approx([1 / 0.9], abs=0.015)


@pytest.mark.parametrize(("alpha", "lacks"), [(1e-9, "alpha"), (10.0, "beta")])
def test_sizes_that_do_not_speak_of_a_coefficient_leave_it_unknown(alpha: float, lacks: str) -> None:
    base = alpha + NBYTES / 1e9
    found = coefficients(1.1 * base[:, None], base)
    assert getattr(found, lacks) is None
    told = found.beta if lacks == "alpha" else found.alpha
    assert values(told) == pytest.approx([1.1])


def test_two_sizes_make_no_curve() -> None:
    base = 1e-4 + NBYTES[:2] / 1e9
    assert link_coefficients(KEYS[:2], base[:, None], base, EQUAL[:2]) == []


def test_a_noisy_case_counts_little() -> None:
    base = 1e-4 + NBYTES / 1e9
    times = (base * np.where(np.arange(len(SIZES)) == 7, 3.0, 1.0))[:, None]
    variances = np.where(np.arange(len(SIZES)) == 7, 1.0, 1e-4)
    (found,) = link_coefficients(KEYS, times, base, variances)
    assert values(found.beta) == pytest.approx([1.0], abs=0.01)


def test_a_launch_without_some_cases_is_told_from_the_others() -> None:
    base = 1e-4 + NBYTES / 1e9
    times = (1e-4 + 1.2 * NBYTES / 1e9)[:, None].repeat(2, axis=1)
    times[0, 1] = np.nan
    times[1:, 0] = np.nan
    found = coefficients(times, base)
    assert np.isnan(values(found.beta)[0])
    assert values(found.beta)[1] == pytest.approx(1.2, rel=1e-3)


def test_classes_are_apart() -> None:
    keys = [*KEYS, *(replace(key, link_class="nvlink") for key in KEYS)]
    base = np.tile(1e-4 + NBYTES / 1e9, 2)
    found = link_coefficients(keys, base[:, None], base, np.ones(len(keys)))
    assert [one.link_class for one in found] == ["net", "nvlink"]
