"""Which cases are the same question."""

from dataclasses import replace

from commbench.analysis.matching import CaseKey, Timing, launch_timings, match_cases
from tests.factories import make_row, make_run

TIMING = Timing(1e-3, 0.02, "world")


def key(**changes: object) -> CaseKey:
    (found,) = launch_timings(make_run(make_row()))
    return replace(found, **changes)


def test_the_time_of_a_case_is_that_of_its_slowest_group() -> None:
    rows = [
        make_row(group=f"node{i}", seconds_median=s, seconds_ci_low=s, seconds_ci_high=1.1 * s)
        for i, s in enumerate((1e-3, 3e-3, 2e-3))
    ]
    (timing,) = launch_timings(make_run(*rows)).values()
    assert isinstance(timing, Timing)
    assert (timing.seconds, timing.group) == (3e-3, "node1")
    assert timing.half_width is not None
    assert abs(timing.half_width - 0.1) < 1e-9


def test_groups_over_different_links_are_cases_of_their_own() -> None:
    rows = [make_row(group="dp=0", link_class="net"), make_row(group="tp=0", link_class="nvlink")]
    assert {found.link_class for found in launch_timings(make_run(*rows))} == {"net", "nvlink"}


def test_a_group_without_a_time_leaves_the_case_without_one() -> None:
    rows = [
        make_row(group="a"),
        make_row(group="b", seconds_median=None, status="missing", reason="the run is stalled"),
    ]
    assert list(launch_timings(make_run(*rows)).values()) == ["missing (the run is stalled)"]


def test_a_time_that_cannot_be_is_none() -> None:
    (found,) = launch_timings(make_run(make_row(seconds_median=1e-30))).values()
    assert found == "a time of 1e-30 s cannot be"


def test_what_a_foreign_file_does_not_say_matches_anything_once() -> None:
    ours, foreign = key(backend="nccl", link_class="nvlink"), key(backend="nccl", link_class="unknown", nodes=None)
    ((case,), unmatched) = match_cases([{foreign: TIMING}], [{ours: TIMING}])
    assert unmatched == []
    assert case.key == ours


def test_two_candidates_are_not_chosen_between() -> None:
    foreign = key(link_class="unknown")
    matched, unmatched = match_cases(
        [{foreign: TIMING}], [{key(link_class="net"): TIMING, key(link_class="sys"): TIMING}]
    )
    assert matched == []
    assert {case.reason for case in unmatched} == {
        "more than one case of new could be meant", "more than one case of base could be meant",
    }  # fmt: skip


def test_a_size_or_a_collective_of_one_side_is_missing() -> None:
    base = {key(): TIMING, key(size_bytes=4096): TIMING, key(collective="broadcast"): TIMING}
    matched, unmatched = match_cases([base], [{key(): TIMING}])
    assert [case.key for case in matched] == [key()]
    assert [(case.verdict, case.reason) for case in unmatched] == [
        ("missing", "this size is in base alone"),
        ("missing", "broadcast is in base alone"),
    ]


def test_a_launch_that_lacks_a_case_leaves_its_place_empty() -> None:
    ((case,), _) = match_cases([{key(): TIMING}, {key(): "missing"}, {}], [{key(): TIMING}])
    assert case.base == (TIMING, None, None)
