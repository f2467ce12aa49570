"""Comparisons whose answer is known: what is called, what is not, and what is said of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from commbench.analysis.compare import compare_runs
from commbench.analysis.comparison import Comparison, LinkChange, Rules
from commbench.errors import UsageError
from commbench.results.schema import Host
from commbench.results.store import Run
from tests.factories import UNMEASURED, make_group_record
from tests.unit.analysis.launches import COLLECTIVES, SIZES, make_launch, make_launches

NOISE = {"level": 0.01, "noise": 0.01}


def net(comparison: Comparison) -> LinkChange:
    (link,) = comparison.links
    return link


def verdicts(comparison: Comparison) -> set[str]:
    return {case.verdict for case in comparison.cases}


def test_a_lower_rate_is_found_and_named_with_three_runs_a_side() -> None:
    held = 0
    for seed in range(20):
        base = make_launches(3, 100 * seed, **NOISE)
        comparison = compare_runs(base, make_launches(3, 100 * seed + 50, rate=0.9e9, **NOISE), Rules())
        link = net(comparison)
        assert comparison.verdict == "slower"
        assert link.rate is not None
        assert link.alpha is not None
        assert link.rate.verdict == "slower"
        assert link.alpha.verdict not in ("slower", "faster")
        held += link.rate.ratio.low < 0.9 < link.rate.ratio.high
    assert held >= 17  # a 95 % interval: 19 are expected


def test_more_alpha_is_alpha() -> None:
    comparison = compare_runs(make_launches(4, **NOISE), make_launches(4, 50, alpha=130e-6, **NOISE), Rules())
    link = net(comparison)
    assert link.alpha is not None
    assert link.rate is not None
    assert (link.alpha.verdict, link.rate.verdict) == ("slower", "same")
    assert link.alpha.ratio.value == pytest.approx(1.3, rel=0.03)
    small = {case.verdict for case in comparison.cases if case.key.size_bytes == SIZES[0]}
    large = {case.verdict for case in comparison.cases if case.key.size_bytes == SIZES[-1]}
    assert small == {"slower"}
    assert large == {"same"}


def test_faster_is_faster() -> None:
    comparison = compare_runs(make_launches(4, **NOISE), make_launches(4, 50, rate=1.3e9, **NOISE), Rules())
    assert comparison.verdict == "faster"
    assert verdicts(comparison) <= {"faster", "same", "noisy"}
    assert {case.verdict for case in comparison.cases if case.key.size_bytes == SIZES[-1]} == {"faster"}


@pytest.mark.parametrize("runs", [1, 2, 3, 10])
def test_the_drift_of_whole_launches_is_noise(runs: int) -> None:
    """All cases of a launch are off together: a test case by case would take that for many changes."""
    called = 0
    for seed in range(20):
        base = make_launches(runs, 1000 * seed, level=0.04, noise=0.01)
        called += compare_runs(
            base, make_launches(runs, 1000 * seed + 500, level=0.04, noise=0.01), Rules()
        ).verdict in (
            "slower",
            "faster",
        )
    assert called <= 2  # 1 is expected at most


def test_many_runs_are_compared_by_ranks() -> None:
    comparison = compare_runs(make_launches(10, **NOISE), make_launches(10, 50, rate=0.85e9, **NOISE), Rules())
    assert {case.method for case in comparison.cases} == {"ranks"}
    assert comparison.verdict == "slower"
    assert any("no distribution assumed" in note for note in comparison.notes)


def test_one_run_a_side_says_what_it_cannot_know() -> None:
    comparison = compare_runs([make_launch(0)], [make_launch(1, rate=0.9e9)], Rules())
    assert {case.method for case in comparison.cases} == {"assumed"}
    assert comparison.verdict == "noisy"
    assert any("do not show how far launches differ: 5%" in note for note in comparison.notes)


def test_one_run_a_side_calls_what_no_launch_does_by_itself() -> None:
    comparison = compare_runs([make_launch(0)], [make_launch(1, rate=0.3e9)], Rules())
    assert comparison.verdict == "slower"


def test_one_run_a_side_whose_batches_scatter_calls_nothing_of_alpha() -> None:
    def wide(run: Run) -> Run:
        rows = (replace(row, seconds_ci_high=row.seconds_median * 3) for row in run.rows)
        return replace(run, rows=tuple(rows))

    pair = make_launch(0), make_launch(1, alpha=250e-6)
    assert compare_runs([pair[0]], [pair[1]], Rules()).verdict == "slower"
    assert compare_runs([wide(pair[0])], [wide(pair[1])], Rules()).verdict == "noisy"


def test_a_spread_that_the_user_knows_is_taken() -> None:
    pair = [make_launch(0)], [make_launch(1, rate=0.8e9)]
    assert compare_runs(*pair, Rules()).verdict == "noisy"
    assert compare_runs(*pair, Rules(assumed_spread=0.005)).verdict == "slower"


def test_the_spread_of_a_baseline_serves_one_new_run() -> None:
    base, new = make_launches(5, level=0.003, noise=0.003), [make_launch(50, rate=0.9e9, level=0.003, noise=0.003)]
    comparison = compare_runs(base, new, Rules())
    assert comparison.verdict == "slower"
    assert {case.method for case in comparison.cases} == {"t"}


def test_small_changes_are_the_same_however_sure() -> None:
    quiet = {"level": 0.0005, "noise": 0.0005}
    pair = make_launches(4, **quiet), make_launches(4, 50, rate=0.96e9, **quiet)
    assert compare_runs(*pair, Rules()).verdict == "same"
    assert compare_runs(*pair, Rules(least_effect=0.02)).verdict == "slower"


def test_a_size_alone_among_its_neighbours_is_not_called() -> None:
    base, new = make_launches(4, **NOISE), make_launches(4, 50, **NOISE)
    odd = [
        replace(
            run, rows=tuple(replace(r, seconds_median=r.seconds_median * 2) if r.case == 3 else r for r in run.rows)
        )
        for run in new
    ]
    comparison = compare_runs(base, odd, Rules())
    (case,) = [case for case in comparison.cases if case.reason]
    assert (case.verdict, case.reason) == ("noisy", "the sizes beside it do not agree")
    assert case.time.value == pytest.approx(2, rel=0.1)


def test_alpha_that_most_of_its_sizes_do_not_bear_out_is_not_called() -> None:
    """One precise case of eight makes the mean; their median has not changed."""
    base, new = make_launches(4, level=0.001, noise=0.02), make_launches(4, 50, level=0.001, noise=0.02)

    def with_steady_case(runs: list[Run], times: float) -> list[Run]:
        return [
            replace(
                run,
                rows=tuple(
                    replace(row, seconds_median=100e-6 * times) if row.case in (0, 1) else row for row in run.rows
                ),
            )
            for run in runs
        ]

    pair = with_steady_case(base, 1.0), with_steady_case(new, 1.3)
    link = net(compare_runs(*pair, Rules()))
    assert link.alpha is not None
    assert link.alpha.ratio.value > 1.1
    assert link.alpha.verdict == "noisy"


def test_a_run_against_itself_and_its_copy() -> None:
    run = make_launch(0)
    for other in (run, replace(run, directory=Path("copy"))):
        comparison = compare_runs([run], [other], Rules())
        assert (comparison.verdict, verdicts(comparison)) == ("same", {"same"})
        assert "same runs" in comparison.notes[0]


def test_a_run_on_both_sides_beside_others_is_refused() -> None:
    with pytest.raises(UsageError, match="run-1 is on both sides"):
        compare_runs(make_launches(2), make_launches(2, 1), Rules())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"row": {"ranks": 4}}, "ranks 2 in base, 4 in new"),
        ({"row": {"dtype": "bfloat16"}}, "dtype float32 in base, bfloat16 in new"),
        ({"row": {"layout": "node"}}, "layout world in base, node in new"),
        ({"row": {"mode": "latency"}}, "mode throughput in base, latency in new"),
        ({"row": {"backend": "nccl"}}, "backend gloo in base, nccl in new"),
    ],
)
def test_an_unlike_run_is_not_comparable_and_says_why(changes: dict[str, dict[str, object]], reason: str) -> None:
    comparison = compare_runs([make_launch(0)], [make_launch(1, **changes)], Rules())
    assert comparison.verdict == "not comparable"
    assert comparison.cases == ()
    ours = [case for case in comparison.unmatched if "in base, " in case.reason]
    assert {(case.verdict, case.reason) for case in ours} == {("not comparable", reason)}
    assert len(ours) == len(COLLECTIVES) * len(SIZES)


def test_a_half_written_run_compares_what_it_has() -> None:
    base, whole = make_launches(3, **NOISE), make_launches(3, 50, **NOISE)
    torn = [
        replace(
            run,
            record=replace(run.record, outcome="interrupted"),
            rows=tuple(
                replace(row, **UNMEASURED, status="missing", reason="the run is interrupted") if row.case > 5 else row
                for row in run.rows
            ),
        )
        for run in whole
    ]
    comparison = compare_runs(base, torn, Rules())
    assert len(comparison.cases) == 6
    assert {(case.verdict, case.reason) for case in comparison.unmatched} == {
        ("missing", "not measured in new: missing (the run is interrupted)")
    }
    assert any("is interrupted: of 24 rows 18 were not measured" in note for note in comparison.notes)


def test_a_link_class_that_changed_is_compared_and_told() -> None:
    record = {"groups": (make_group_record(link_class="sys"),)}
    comparison = compare_runs([make_launch(0)], [make_launch(1, row={"link_class": "sys"}, **record)], Rules())
    assert len(comparison.cases) == len(COLLECTIVES) * len(SIZES)
    (link,) = [found for found in comparison.environment if found.name.startswith("link of")]
    assert (link.base, link.new) == ("net", "sys")


def test_only_nccl_algo_changed() -> None:
    base = make_launches(3, **NOISE)
    new = make_launches(3, 50, environment={"NCCL_ALGO": "Tree"}, **NOISE)
    comparison = compare_runs(base, new, Rules())
    (found,) = comparison.environment
    assert (found.name, found.base, found.new) == ("NCCL_ALGO", "not set", "Tree")
    assert comparison.verdict in ("same", "noisy")


def test_a_run_that_shares_nothing_counts_for_nothing() -> None:
    base = make_launches(3, **NOISE)
    stranger = make_launch(9, row={"dtype": "int32"})
    new = make_launches(3, 50, rate=0.85e9, **NOISE)
    alone, beside = compare_runs(base, new, Rules()), compare_runs([stranger, *base], new, Rules())
    assert beside.cases == alone.cases
    assert beside.links == alone.links
    assert any("run-9 has none of the compared cases" in note for note in beside.notes)


def test_launches_with_one_case_each_tell_no_coefficient() -> None:
    def torn(seed: int, kept: int) -> Run:
        run = make_launch(seed, **NOISE)
        rows = (replace(r, **UNMEASURED, status="missing") if r.case != kept else r for r in run.rows)
        return replace(run, rows=tuple(rows))

    comparison = compare_runs([torn(case, case) for case in range(8)], make_launches(3, 50, **NOISE), Rules())
    assert len(comparison.cases) == 8
    assert [(link.alpha, link.rate) for link in comparison.links] == [(None, None)]


def test_wrong_data_is_said_and_not_compared() -> None:
    run = make_launch(1)
    wrong = replace(run, rows=tuple(replace(r, status="wrong", **UNMEASURED) if r.case == 0 else r for r in run.rows))
    comparison = compare_runs([make_launch(0)], [wrong], Rules())
    assert any("has wrong data in 1 of 24 rows" in note for note in comparison.notes)
    assert [case.key.size_bytes for case in comparison.unmatched] == [SIZES[0]]


def test_runs_of_one_side_that_are_not_of_one_set_up_are_told() -> None:
    base = [make_launch(0), make_launch(1, environment={"NCCL_PROTO": "LL"})]
    comparison = compare_runs(base, make_launches(2, 50), Rules())
    assert any("the runs of base are not of one set-up: NCCL_PROTO" in note for note in comparison.notes)


BUSY_HOST = Host("node1", "a CPU", 2, "6.1", binding="rank 0: cpu 0-1 (not bound: others take 54% of the CPUs)")


def test_a_run_beside_other_programs_does_not_count_where_others_do() -> None:
    base, new = make_launches(3, **NOISE), make_launches(3, 50, rate=0.85e9, **NOISE)
    disturbed = make_launch(9, alpha=300e-6, hosts=(BUSY_HOST,))
    alone, beside = compare_runs(base, new, Rules()), compare_runs([disturbed, *base], new, Rules())
    assert (beside.cases, beside.links, beside.verdict) == (alone.cases, alone.links, "slower")
    assert any("run-9 of base: other programs took the CPUs" in note for note in beside.notes)


@pytest.mark.parametrize("on_base", [True, False])
def test_of_runs_beside_other_programs_alone_nothing_is_called(on_base: bool) -> None:
    quiet, disturbed = make_launches(1), make_launches(1, 50, alpha=400e-6, hosts=(BUSY_HOST,))
    assert compare_runs(quiet, make_launches(1, 50, alpha=400e-6), Rules()).verdict == "slower"
    pair = (disturbed, quiet) if on_base else (quiet, disturbed)
    comparison = compare_runs(*pair, Rules())
    assert comparison.verdict == "noisy"
    assert any(f"every run of {'base' if on_base else 'new'} was measured while" in note for note in comparison.notes)
