"""Whole preflights on paper: a virtual clock, known culprits, and a budget that ends."""

from dataclasses import replace

import pytest

from commbench.analysis.expectations import read_expectations
from commbench.engines.fake import open_engine
from commbench.preflight.bench import PaperBench
from commbench.preflight.clock import virtual_clock
from commbench.preflight.conductor import Conductor, choose_nbytes, life_stage
from commbench.preflight.levels import LEVELS, expected_seconds
from commbench.preflight.request import Hints, PreflightRequest
from commbench.preflight.worker import run_on_paper
from commbench.report.preflight import Preflight

NET = "ranks-per-node=2,net=10us:10GB/s,noise=1%"


def run(fake: str, ranks: int = 16, level: str = "quick", hints: Hints | None = None, **changes: object) -> Preflight:
    request = PreflightRequest(LEVELS[level], LEVELS[level].budget_seconds, engine="fake", fake=fake, fake_ranks=ranks)
    return run_on_paper(replace(request, **changes), hints or Hints(), lambda message: None)  # type: ignore[arg-type]


def verdicts(found: Preflight) -> dict[str, str]:
    return {stage.name: stage.verdict for stage in found.stages}


def test_a_healthy_cluster_is_healthy() -> None:
    found = run(NET)
    assert (found.verdict, found.exit_code, found.exclude) == ("ok", 0, ())
    assert verdicts(found) == {"first answer": "ok", "right data": "skip", "inside nodes": "ok", "pairs": "ok",
                               "line rate": "skip", "references": "skip", "ladder": "skip"}  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_rank_is_named_with_its_node(seed: int) -> None:
    found = run(f"{NET},slow-rank=9:1.25", seed=seed)
    assert (found.verdict, found.exit_code, found.exclude) == ("fail", 1, ("node4",))
    [culprit] = found.searches[0].confirmed
    assert culprit.suspect.members == (9,)
    assert culprit.ratio == pytest.approx(1.25, rel=0.05)


def test_one_node_compares_its_ranks() -> None:
    found = run("ranks-per-node=8,nvlink=1us:100GB/s,noise=1%,slow-rank=5:1.5", ranks=8)
    assert found.searches[0].confirmed[0].suspect.members == (5,)
    assert found.verdict == "fail"


def test_the_ladder_is_climbed_at_the_standard_level() -> None:
    found = run(NET, level="standard")
    [ladder] = [stage for stage in found.stages if stage.name == "ladder"]
    assert ladder.verdict == "ok"
    assert "2 nodes" in ladder.said
    assert "8 nodes" in ladder.said


def test_a_soak_says_how_it_went() -> None:
    [soak] = [stage for stage in run(NET, soak_seconds=5.0).stages if stage.name == "soak"]
    assert soak.verdict == "ok"
    assert "0 failed" in soak.said


def test_the_budget_leaves_rounds_out_and_says_so() -> None:
    found = run("ranks-per-node=1,net=1ms:20MB/s", ranks=32, budget_seconds=8.0)
    [pairs] = [stage for stage in found.stages if stage.name == "pairs"]
    done, planned = (int(word) for word in pairs.said.split(" rounds")[0].split(" of "))
    assert 1 <= done < planned
    assert found.spent_seconds < 8.0


def test_all_slow_is_not_healthy_where_something_is_expected() -> None:
    expectations = read_expectations(
        '[[expectation]]\nlink_class="net"\ncollective="broadcast"\nsize="1M"\nunit="GB/s"\nlower=20.0\nranks=2\n'
        'source="test"\nmeasured_with="paper"\n',
        "test",
    )
    found = run(NET, hints=Hints(expectations))
    assert (found.verdict, found.exclude, found.exit_code) == ("fail", (), 1)
    assert found.searches[0].diagnosis.is_below_expectation
    assert run(NET).verdict == "ok"  # without a reference there is nothing to miss


def test_a_floor_of_all_ranks_is_judged_too() -> None:
    text = (
        '[[expectation]]\nlink_class="net"\ncollective="all_reduce"\nsize="1M"\nunit="GB/s"\nlower=20.0\n'
        'source="test"\nmeasured_with="paper"\n'
    )
    found = run(NET, hints=Hints(read_expectations(text, "test")))
    assert (found.verdict, verdicts(found)["references"], verdicts(found)["pairs"]) == ("fail", "fail", "ok")
    met = run(NET, hints=Hints(read_expectations(text.replace("20.0", "5.0"), "test")))
    assert (met.verdict, verdicts(met)["references"]) == ("ok", "ok")


def test_who_is_dead_is_to_blame_and_who_came_back_is_not() -> None:
    hosts = ("n0", "n0", "n1", "n1")
    gone = life_stage({2, 3}, {3}, hosts)
    assert (gone.verdict, gone.culprits) == ("fail", ("n1",))
    assert "none from rank 3 on n1" in gone.said
    back = life_stage({2}, set(), hosts)
    assert (back.verdict, back.culprits) == ("warn", ())
    assert back.said == "rank 2 on n1 gave none for a while, and does again"


@pytest.mark.parametrize(("rate", "nbytes"), [(None, 1 << 20), (25e6, 2 << 20), (1.0, 256 << 10), (1e12, 64 << 20)])
def test_the_message_follows_from_the_rate(rate: float | None, nbytes: int) -> None:
    assert choose_nbytes(rate, 0.15, 64 << 20) == nbytes


def test_more_nodes_and_higher_levels_take_longer() -> None:
    quick, standard, full = (expected_seconds(LEVELS[name], 6) for name in ("quick", "standard", "full"))
    assert quick < standard < full
    assert expected_seconds(LEVELS["quick"], 2) < quick < LEVELS["quick"].budget_seconds


def test_without_two_ranks_that_live_the_pairs_are_left_out_and_the_dead_named() -> None:
    engine = open_engine(ranks=2, spec="ranks-per-node=1,net=10us:10GB/s", seed=0)
    bench = PaperBench(engine, engine.clock)
    bench.dead = frozenset({1})
    request = PreflightRequest(LEVELS["quick"], 60.0, engine="fake")
    clock = virtual_clock(engine.now_seconds, 60.0)
    conductor = Conductor(request, Hints(), clock, ("n0", "n1"), lambda line: None)
    conductor.run(bench)
    found = conductor.outcome()
    said = {stage.name: (stage.verdict, stage.said) for stage in found.stages}
    assert said["pairs"] == ("skip", "no two ranks that live")
    assert (found.verdict, found.exclude) == ("fail", ("n1",))
