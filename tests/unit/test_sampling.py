"""How many calls make a batch, and when enough is enough: tables of decisions."""

import pytest

from commbench.measure.sampling import MAX_CALLS, SamplingRules, batch_target_seconds, grow_calls


@pytest.mark.parametrize(
    ("calls", "seconds", "target", "grown"),
    [
        (1, 1.0, 1.0, 1),  # long enough
        (1, 0.7, 1.0, 1),  # near enough
        (1, 0.69, 1.0, 2),
        (10, 0.5, 1.0, 20),
        (10, 0.3, 1.0, 34),  # 33.3 calls are 34
        (1, 0.001, 1.0, 10),  # tenfold at most: the first batches are slow
        (50, 0.001, 1.0, 500),
        (5_000, 0.1, 1.0, MAX_CALLS),
        (MAX_CALLS, 0.1, 1.0, MAX_CALLS),
        (7, 0.0, 1.0, 70),  # below the clock's resolution
        (1, 0.0, 0.0, 1),  # a virtual clock wants no long batches
        (1, 5e-324, 1.0, 10),
    ],
)
def test_grow_calls(calls, seconds, target, grown):
    assert grow_calls(calls, seconds, target) == grown


@pytest.mark.parametrize("per_call", [1e-9, 3.7e-6, 0.01, 2.0])
@pytest.mark.parametrize("target", [1e-6, 0.02, 1.0])
def test_grow_calls_comes_to_an_end_and_is_long_enough(per_call, target):
    calls, steps = 1, 0
    while (grown := grow_calls(calls, calls * per_call, target)) != calls:
        assert calls < grown <= MAX_CALLS
        calls, steps = grown, steps + 1
    assert steps <= 6
    assert calls * per_call >= 0.7 * target or calls == MAX_CALLS


@pytest.mark.parametrize(
    ("resolution", "barrier", "target"),
    [(0.0, 0.0, 0.0), (1e-9, 0.0, 1e-6), (1e-9, 50e-6, 0.5e-3), (5e-7, 1e-6, 5e-4)],
)
def test_batch_target(resolution, barrier, target):
    assert batch_target_seconds(resolution, barrier) == pytest.approx(target)


@pytest.mark.parametrize(
    ("seconds", "precise"),
    [
        ([100.0] * 5, False),  # no interval of five values
        ([100.0] * 6, True),
        ([100.0, 101, 102, 103, 104, 105], True),  # median 102.5, arms of 2.5: 2.4 %
        ([95.0, 100, 100, 100, 100, 105], True),  # 5 % is within 5 %
        ([95.0, 100, 100, 100, 100, 105.1], False),
        ([94.9, 100, 100, 100, 100, 101], False),  # the longer arm counts
        ([0.0] * 6, False),  # nothing is a fraction of nothing
        ([50.0, *[100.0] * 10, 900.0], True),  # outliers do not widen the interval of twelve
    ],
)
def test_is_precise(seconds, precise):
    assert SamplingRules(precision=0.05).is_precise(seconds) is precise
    assert SamplingRules(precision=0.05).is_precise(seconds[::-1]) is precise


@pytest.mark.parametrize(
    ("seconds", "warm"),
    [
        ([1.0], False),
        ([1.0, 1.0], False),  # at least three
        ([1.0, 1.0, 1.0], True),
        ([1.0, 1.25, 1.0], True),
        ([1.0, 1.26, 1.0], False),
        ([9.0, 5.0, 1.0, 1.1, 1.2], True),  # the last three
        ([1.0, 1.0, 1.0, 9.0], False),
        ([1.0, 2.0] * 5 + [1.0], False),  # eleven
        ([1.0, 2.0] * 6, True),  # twelve: enough
        ([0.0, 0.0, 0.0], True),
    ],
)
def test_is_warm(seconds, warm):
    assert SamplingRules().is_warm(seconds) is warm


@pytest.mark.parametrize(
    ("mode", "batch_seconds", "batches"),
    [
        ("throughput", 0.0, 6),
        ("throughput", 1e-3, 6),
        ("throughput", 4e-3, 4),
        ("throughput", 1.0, 2),
        ("latency", 1.0, 32),
    ],
)
def test_long_batches_are_few_in_a_visit(mode, batch_seconds, batches):
    assert SamplingRules(mode=mode).batches_per_visit(batch_seconds) == batches


@pytest.mark.parametrize(
    ("spent", "run", "batches", "is_over"),
    [(2.9, 5.0, 6, False), (3.1, 5.0, 6, True), (3.1, 5.0, 5, False), (0.1, 31.0, 6, True), (0.1, 31.0, 4, False),
     (0.1, 5.0, 2000, True)],
)  # fmt: skip
def test_a_case_has_its_share_of_the_budget_and_enough_for_an_interval(spent, run, batches, is_over):
    assert SamplingRules(budget_seconds=30.0).is_over(spent, 10, run, batches) is is_over
