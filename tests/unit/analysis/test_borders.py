"""The quick segmentation of replicates is that of the curve, where there are no outliers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.analysis.borders import replicate_starts
from commbench.analysis.regimes import cuts

SIZES = 2.0 ** np.arange(10, 26)
ONES = np.ones(len(SIZES))


@given(st.integers(0, 1000), st.sampled_from([2, 3, 4]))
def test_it_cuts_where_the_dynamic_programme_cuts(seed, count):
    times = (1e-5 + SIZES / 1e9) * np.random.default_rng(seed).uniform(0.7, 1.4, (3, len(SIZES)))
    quick = replicate_starts(SIZES, SIZES, times, ONES, count)
    for row, found in zip(times, quick, strict=True):
        slow = cuts(SIZES, SIZES, row, ONES, 10.0)[count - 1]  # with a delta that makes Huber's loss a square
        assert found.tolist() == list(slow.borders[1:-1])


@pytest.mark.parametrize("border", [3, 8, 13])
def test_a_planted_start_is_found(border):
    early = np.arange(len(SIZES)) < border
    times = np.where(early, 1e-5 + SIZES / 1e9, 1e-4 + SIZES / 1e8)[None]
    assert replicate_starts(SIZES, SIZES, times, ONES, 2).tolist() == [[border]]


def test_a_size_without_weight_does_not_move_it():
    times = np.where(np.arange(len(SIZES)) < 8, 1e-5 + SIZES / 1e9, 1e-4 + SIZES / 1e8)[None]
    times[0, 3] *= 50
    weights = np.where(np.arange(len(SIZES)) == 3, 0.0, 1.0)
    assert replicate_starts(SIZES, SIZES, times, weights, 2).tolist() == [[8]]
