"""commbench.stats: order statistics against exact binomial sums and values worked out by hand."""

from fractions import Fraction
from itertools import accumulate, pairwise, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.stats import MIN_FOR_INTERVAL, Summary, median_interval_ranks, nearest_rank, summarize

TIMES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


@pytest.mark.parametrize(
    ("count", "ranks"),
    [
        (1, None),
        (5, None),
        (6, (0, 5)),
        (8, (0, 7)),
        (9, (1, 7)),
        (10, (1, 8)),
        (15, (3, 11)),
        (20, (5, 14)),
        (25, (7, 17)),
        (50, (17, 32)),
        (100, (39, 60)),
    ],
)
def test_interval_of_the_median_as_in_published_tables(count: int, ranks: tuple[int, int] | None) -> None:
    assert median_interval_ranks(count) == ranks


def test_interval_is_the_narrowest_symmetric_one_that_covers_the_median() -> None:
    row = [1]
    for count in range(1, 1000):
        row = [1, *(a + b for a, b in pairwise(row)), 1]  # Pascal's triangle: row[k] of 2**count ways
        # P(fewer than `low` values below the median) must be at most 2.5 % = 1/40.
        low = sum(1 for _ in takewhile(lambda tail, most=(1 << count) // 40: tail <= most, accumulate(row)))
        assert median_interval_ranks(count) == ((low - 1, count - low) if low else None), count


def test_fewest_values_with_an_interval() -> None:
    assert [median_interval_ranks(count) is None for count in (MIN_FOR_INTERVAL - 1, MIN_FOR_INTERVAL)] == [True, False]


@pytest.mark.parametrize("count", [1000, 1001, 1999, 2500, 10_000])
def test_interval_of_many_values_covers_and_is_at_most_two_ranks_too_wide(count: int) -> None:
    low, high = median_interval_ranks(count)
    assert abs(low + high - (count - 1)) <= 1
    assert _coverage(count, low, high) >= Fraction(95, 100)
    assert _coverage(count, low + 2, high - 2) < Fraction(95, 100)


def _coverage(count: int, low: int, high: int) -> Fraction:
    """P(the median is between the sorted values at `low` and `high`): from low+1 to high values lie below it."""
    ways, covered = 1, 0
    for below in range(high + 1):
        if below > low:
            covered += ways
        ways = ways * (count - below) // (below + 1)
    return Fraction(covered, 1 << count)


@pytest.mark.parametrize(
    ("count", "quantile", "value"),
    [
        (1, 0.5, 1),
        (1, 0.99, 1),
        (10, 0.0, 1),
        (10, 0.5, 5),
        (11, 0.5, 6),
        (10, 0.95, 10),
        (20, 0.95, 19),
        (21, 0.95, 20),
        (100, 0.95, 95),
        (100, 0.99, 99),
        (101, 0.99, 100),
        (10, 1.0, 10),
    ],
)
def test_nearest_rank(count: int, quantile: float, value: int) -> None:
    assert nearest_rank(range(1, count + 1), quantile) == value


@pytest.mark.parametrize(("percent", "quantile"), [(50, 0.5), (95, 0.95), (99, 0.99)])
def test_nearest_rank_is_the_smallest_value_with_enough_at_or_below_it(percent: int, quantile: float) -> None:
    for count in range(1, 501):
        expected = next(value for value in range(1, count + 1) if 100 * value >= percent * count)
        assert nearest_rank(range(1, count + 1), quantile) == expected, count


@pytest.mark.parametrize(
    ("values", "summary", "half_width"),
    [
        ([2.5], Summary(1, 2.5, None, None, 2.5, 2.5, 2.5, 2.5), None),
        ([3, 1, 2], Summary(3, 2, None, None, 1, 3, 3, 3), None),
        ([4, 1, 3, 2], Summary(4, 2.5, None, None, 1, 4, 4, 4), None),
        ([6, 5, 4, 3, 2, 1], Summary(6, 3.5, 1, 6, 1, 6, 6, 6), 2.5 / 3.5),
        (list(range(20, 0, -1)), Summary(20, 10.5, 6, 15, 1, 19, 20, 20), 4.5 / 10.5),
        ([0, 1, 4, 4, 4, 4, 4, 4, 5, 9], Summary(10, 4, 1, 5, 0, 9, 9, 9), 0.75),
        ([0, 0, 0, 0, 0, 0], Summary(6, 0, 0, 0, 0, 0, 0, 0), None),
    ],
)
def test_summarize(values: list[float], summary: Summary, half_width: float | None) -> None:
    assert summarize(values) == summary
    assert summary.relative_half_width == (half_width if half_width is None else pytest.approx(half_width))


def test_no_values_are_no_summary() -> None:
    with pytest.raises(ValueError, match="no values"):
        summarize([])


@given(TIMES)
def test_what_is_kept_is_in_order(values: list[float]) -> None:
    kept = summarize(values)
    assert kept.minimum <= kept.median <= kept.p95 <= kept.p99 <= kept.maximum
    if len(values) >= 6:
        assert kept.minimum <= kept.ci_low <= kept.median <= kept.ci_high <= kept.maximum


@given(TIMES.flatmap(lambda values: st.tuples(st.just(values), st.permutations(values))))
def test_order_does_not_matter(both: tuple[list[float], list[float]]) -> None:
    assert summarize(both[0]) == summarize(both[1])
