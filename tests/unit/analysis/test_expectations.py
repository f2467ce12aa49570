"""What is expected of a link, where it comes from, and how a result stands to it."""

import pytest
from msgspec.structs import replace

from commbench.analysis.expectations import (
    Expectation,
    allowed_seconds,
    expectations_from_run,
    find_expectation,
    judge,
    published_expectations,
    published_platforms,
    read_expectations,
    write_expectations,
)
from commbench.errors import CommbenchError, UsageError
from tests.factories import make_row, make_run

FLOOR = Expectation(
    link_class="net", collective="all_reduce", size="1M", unit="GB/s", lower=40.0, value=45.0, upper=50.0,
    source="a page", measured_with="a tool",
)  # fmt: skip
CEILING = replace(FLOOR, size="8", unit="us", lower=3.0, value=4.0, upper=5.0)
TEXT = write_expectations([FLOOR, CEILING], 'a "title"')


def row(**changes):
    fields = {"link_class": "net", "size_bytes": 1 << 20, "seconds_median": 1e-3, "busbw_gbps": 45.0}
    return make_row(**(fields | changes))


def test_a_file_comes_back():
    assert read_expectations(TEXT, "x.toml") == (FLOOR, CEILING)
    assert (FLOOR.bounds, CEILING.bounds) == ((40e9, 50e9), pytest.approx((3e-6, 5e-6)))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"net"', '"nit"', "expectation 1: link class 'nit' is none of"),
        ('"all_reduce"', '"all_reduced"', "expectation 1: collective 'all_reduced' is none of"),
        ('"GB/s"', '"MB/s"', "Invalid enum value 'MB/s'"),
        ("lower = 40.0", "", "expectation 1: in GB/s it needs lower, the bound that judges"),
        ("lower = 40.0", "lower = 46", "must be above 0 and ascend"),
        ("lower = 40.0", "lower = -1", "must be above 0 and ascend"),
        ("lower = 40.0", "lower = nan", "must be above 0 and ascend"),
        ("lower = 40.0", "lowest = 40", "unknown field `lowest`"),
        ('size = "1M"', 'size = "big"', "expectation 1: cannot read the size 'big'"),
        ("lower = 40.0", "lower = ", "x.toml is no file of expectations"),
    ],
)
def test_a_bad_file_is_refused(before, after, message):
    with pytest.raises(CommbenchError) as caught:
        read_expectations(TEXT.replace(before, after, 1), "x.toml")
    assert "x.toml" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("busbw", "verdict", "is_told_to_refresh"),
    [(39.9, "fail", False), (40.1, "ok", False), (49.0, "ok", False), (51.0, "ok", True)],
)
def test_bandwidth_is_judged_from_below_and_faster_suggests_a_refresh(busbw, verdict, is_told_to_refresh):
    finding = judge("expect", "x", FLOOR, 1 << 20, seconds=1.5 * (1 << 20) / (busbw * 1e9), bus_factor=1.5)
    assert (finding.verdict, finding.where, finding.observed) == (verdict, "a page", f"{busbw:g} GB/s")
    assert ("anew" in finding.action) == is_told_to_refresh
    assert finding.expected == "at least 40 GB/s (a tool)"


@pytest.mark.parametrize(
    ("microseconds", "verdict", "is_told_to_refresh"), [(5.1, "fail", False), (4.9, "ok", False), (2.9, "ok", True)]
)
def test_time_is_judged_from_above(microseconds, verdict, is_told_to_refresh):
    finding = judge("expect", "x", CEILING, 8, seconds=microseconds * 1e-6, bus_factor=1.5)
    assert (finding.verdict, finding.expected) == (verdict, "at most 5 us (a tool)")
    assert ("anew" in finding.action) == is_told_to_refresh


@pytest.mark.parametrize(
    "asked", [("nvlink", "all_reduce", 1 << 20), ("net", "all_gather", 1 << 20), ("net", "all_reduce", 1 << 19)]
)
def test_without_a_reference_there_is_none_to_judge_by(asked):
    assert find_expectation([FLOOR, CEILING], *asked, ranks=2) is None


def test_the_nearest_size_and_the_number_of_ranks_decide():
    larger, of_eight = replace(FLOOR, size="4M"), replace(FLOOR, ranks=8)
    known = [FLOOR, larger, of_eight]
    assert find_expectation(known, "net", "all_reduce", 1 << 21, 2) is FLOOR
    assert find_expectation(known, "net", "all_reduce", 1 << 30, 2) is larger
    assert find_expectation(known, "net", "all_reduce", 1 << 30, 8) is of_eight
    assert find_expectation([CEILING], "net", "all_reduce", 16, 2) is None


def test_what_a_pair_may_take():
    assert allowed_seconds(FLOOR, 40_000_000, bus_factor=1.0) == pytest.approx(1e-3)
    assert allowed_seconds(CEILING, 8, bus_factor=1.0) == pytest.approx(5e-6)


def test_a_run_becomes_a_reference_of_itself_that_says_it_was_measured_here():
    rows = [
        row(case=0, size_bytes=8, seconds_median=4e-5, busbw_gbps=0.1),
        row(case=1, busbw_gbps=45.0),
        row(case=2, size_bytes=1 << 22, status="noisy"),
    ]
    run = make_run(*rows)
    made = read_expectations(write_expectations(expectations_from_run(run, "results/x"), "mine"), "x.toml")
    assert [(one.size, one.unit, one.lower, one.upper) for one in made] == [
        ("8", "us", None, 84.0),
        ("1048576", "GB/s", 41.85, None),
    ]
    assert made[0].measured_with == "measured here by commbench, gloo, 2026-01-02"
    assert [one.ranks for one in made] == [rows[0].ranks] * 2


@pytest.mark.parametrize("platform", published_platforms())
def test_published_floors_load_and_say_where_they_are_from(platform):
    assert published_platforms()[platform]
    for expectation in published_expectations(platform):
        assert expectation.source
        assert expectation.measured_with


def test_an_unknown_platform_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match="unknown platform 'h100': did you mean h100-8"):
        published_expectations("h100")
