"""From samples to a row: bandwidths, theory and efficiency, by hand for every collective."""

import pytest

from commbench.results.schema import Status
from commbench.results.summary import GroupSamples, summarize_group, theory_seconds
from tests.factories import make_case_record, make_group_record

MIB = 1 << 20
US = 1e-6


def summarize(case, group, samples=None, status: Status = "ok", reason=""):
    """The row of `case` on `group`."""
    return summarize_group(
        case, group, samples or GroupSamples(), engine="fake", backend="paper", status=status, reason=reason
    )


# 4 ranks, 1 MiB of float32, 1 ms, alpha_step 10 us, 10 GB/s. algbw = 1048576 / 1e-3 = 1.048576 GB/s; theory is
# steps * 10 us + factor * 104.8576 us. Columns: elements a block, factor, steps.
BY_HAND = [
    ("all_reduce", 262144, 1.5, 6, 1.572864, 217.2864 * US),
    ("all_gather", 65536, 0.75, 3, 0.786432, 108.6432 * US),
    ("reduce_scatter", 65536, 0.75, 3, 0.786432, 108.6432 * US),
    ("all_to_all", 65536, 0.75, 3, 0.786432, 108.6432 * US),
    ("broadcast", 262144, 1.0, 3, 1.048576, 134.8576 * US),
    ("reduce", 262144, 1.0, 3, 1.048576, 134.8576 * US),
    ("gather", 65536, 0.75, 3, 0.786432, 108.6432 * US),
    ("scatter", 65536, 0.75, 3, 0.786432, 108.6432 * US),
    ("send_recv", 262144, 1.0, 1, 1.048576, 114.8576 * US),
]


@pytest.mark.parametrize(("name", "count", "factor", "steps", "busbw", "theory"), BY_HAND)
def test_rates_by_hand(name, count, factor, steps, busbw, theory):
    case = make_case_record(collective=name, requested_nbytes=MIB)
    group = make_group_record(size=4, bytes_per_second=10e9, alpha_step_seconds=10 * US)
    row = summarize(case, group, GroupSamples(seconds=[1e-3]))
    assert (row.count, row.size_bytes) == (count, MIB)
    assert row.algbw_gbps == pytest.approx(1.048576)
    assert row.busbw_gbps == pytest.approx(busbw)
    assert row.busbw_gbps == pytest.approx(factor * 1.048576)
    assert row.theory_seconds == pytest.approx(theory)
    assert row.theory_seconds == pytest.approx(steps * 10 * US + factor * MIB / 10e9)
    assert row.efficiency == pytest.approx(theory / 1e-3)


def test_a_barrier_has_time_and_nothing_else():
    case = make_case_record(collective="barrier", requested_nbytes=0, redop="none")
    group = make_group_record(size=4, bytes_per_second=10e9, alpha_step_seconds=10 * US)
    row = summarize(case, group, GroupSamples(seconds=[5e-6]))
    assert (row.size_bytes, row.count, row.seconds_median) == (0, 0, 5e-6)
    assert (row.algbw_gbps, row.busbw_gbps, row.theory_seconds, row.efficiency) == (None,) * 4


@pytest.mark.parametrize("name", [name for name, *_ in BY_HAND])
def test_one_rank_has_no_bus(name):
    group = make_group_record(size=1, bytes_per_second=10e9, alpha_step_seconds=10 * US)
    row = summarize(make_case_record(collective=name), group, GroupSamples(seconds=[1e-6]))
    assert row.algbw_gbps == pytest.approx(1.024)
    assert (row.busbw_gbps, row.theory_seconds, row.efficiency) == (None, None, None)


@pytest.mark.parametrize(
    ("rate", "alpha", "theory"),
    [(None, None, None), (None, 1e-6, None), (1e9, None, 1024e-9), (1e9, 0.0, 1024e-9), (1e9, 3e-6, 7.024e-6)],
)
def test_theory_needs_a_rate_and_takes_an_unknown_alpha_as_zero(rate, alpha, theory):
    group = make_group_record(bytes_per_second=rate, alpha_step_seconds=alpha)
    expected = None if theory is None else pytest.approx(theory)
    assert theory_seconds(make_case_record(), group, 1024) == expected


@pytest.mark.parametrize(
    ("name", "asked", "dtype", "ranks", "count", "size"),
    [
        ("all_reduce", 1003, "float32", 3, 250, 1000),  # whole elements
        ("all_reduce", 1003, "float64", 3, 125, 1000),
        ("all_reduce", 1003, "int8", 3, 1003, 1003),
        ("all_gather", 1000, "float32", 3, 83, 996),  # as many for every rank: 3 x 83 x 4
        ("all_gather", 1000, "bfloat16", 7, 71, 994),  # 7 x 71 x 2
        ("all_to_all", 1000, "int64", 3, 41, 984),
        ("reduce_scatter", 11, "float32", 3, 0, 0),
        ("broadcast", 3, "float32", 2, 0, 0),
    ],
)
def test_odd_sizes_are_cut_to_whole_elements(name, asked, dtype, ranks, count, size):
    case = make_case_record(collective=name, requested_nbytes=asked, dtype=dtype)
    row = summarize(case, make_group_record(size=ranks), GroupSamples(seconds=[1e-3]))
    assert (row.count, row.size_bytes) == (count, size)
    assert row.algbw_gbps == (pytest.approx(size / 1e6) if size else None)


def test_without_batches_times_are_none_and_the_first_call_is_kept():
    samples = GroupSamples(first_call_seconds=0.5, wrong=3)
    row = summarize(make_case_record(), make_group_record(bytes_per_second=1e9), samples, "wrong", "rank 1 …")
    assert row.samples == 0
    assert {getattr(row, name) for name in row.__slots__ if name.startswith("seconds_")} == {None}
    assert (row.algbw_gbps, row.busbw_gbps, row.efficiency, row.enqueue_seconds) == (None,) * 4
    assert row.theory_seconds == pytest.approx(1024e-9)
    assert (row.first_call_seconds, row.wrong, row.status, row.reason) == (0.5, 3, "wrong", "rank 1 …")


def test_statistics_are_those_of_the_batches():
    samples = GroupSamples(seconds=[7e-6, 1e-6, 3e-6, 4e-6, 2e-6, 6e-6], enqueue_seconds=[2e-6, 1e-6])
    row = summarize(make_case_record(), make_group_record(), samples)
    assert row.samples == 6
    # Of six values the interval is from the smallest to the largest: 2 * (1/2)**6 = 3.1 % is missed.
    assert (row.seconds_ci_low, row.seconds_ci_high) == (1e-6, 7e-6)
    assert row.seconds_median == pytest.approx(3.5e-6)
    assert (row.seconds_min, row.seconds_p95, row.seconds_p99, row.seconds_max) == (1e-6, 7e-6, 7e-6, 7e-6)
    assert row.enqueue_seconds == pytest.approx(1.5e-6)


def test_a_median_of_zero_is_no_rate():
    row = summarize(make_case_record(), make_group_record(bytes_per_second=1e9), GroupSamples(seconds=[0.0] * 6))
    assert (row.seconds_median, row.algbw_gbps, row.busbw_gbps, row.efficiency) == (0.0, None, None, None)


def test_identity_is_that_of_the_case_and_its_group():
    case = make_case_record(5, layout="rail", concurrency="together", mode="latency", in_place=False, dtype="int8")
    group = make_group_record(layout="rail", name="0,8", size=2, nodes=2, link_class="net")
    row = summarize(case, group)
    assert (row.case, row.layout, row.group, row.concurrency, row.mode) == (5, "rail", "0,8", "together", "latency")
    assert (row.engine, row.backend, row.collective, row.dtype, row.redop) == (
        "fake", "paper", "all_reduce", "int8", "sum",
    )  # fmt: skip
    assert (row.ranks, row.nodes, row.link_class, row.in_place) == (2, 2, "net", False)
