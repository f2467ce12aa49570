"""Groups against floors, on paper: which groups are judged, at which size, and who is to blame."""

from collections.abc import Callable

import pytest

from commbench.analysis.expectations import Expectation
from commbench.engines.fake import open_engine
from commbench.plan.groups import World
from commbench.preflight.bench import PaperBench
from commbench.preflight.clock import virtual_clock
from commbench.preflight.references import ReferenceTests, group_sets
from commbench.report.preflight import Stage

MACHINE = "ranks-per-node=4,nvlink=1us:100GB/s,net=10us:10GB/s"


def floor(lower: float, link_class: str = "nvlink", size: str = "64M", **changes: object) -> Expectation:
    return Expectation(
        link_class=link_class, collective="all_reduce", size=size, unit="GB/s", lower=lower, source="a page",
        measured_with="a tool", **changes,
    )  # fmt: skip


def judged(
    *expectations: Expectation, machine: str = MACHINE, ranks: int = 16, budget: float = 60.0,
    fits: Callable[[object], bool] | None = None,
) -> Stage:  # fmt: skip
    engine = open_engine(ranks=ranks, spec=machine, seed=0)
    bench = PaperBench(engine, engine.clock)
    if fits:
        bench.fits = fits
    hosts = [f"n{node}" for node in range(ranks // 4)]
    clock = virtual_clock(engine.now_seconds, budget)
    return ReferenceTests(bench, hosts, expectations, 64 << 20, 3.0, clock).run()


def test_nodes_neighbours_and_the_world_are_the_groups() -> None:
    world = World.uniform(12, 2)
    nodes = tuple((first, first + 1) for first in range(0, 12, 2))
    fours = ((0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    assert group_sets(world, {4, 5, 2, 12}) == [nodes, fours, (tuple(range(12)),)]
    assert group_sets(World.uniform(4, 4), {4}) == [((0, 1, 2, 3),)]
    assert group_sets(World((0, 0, 1)), {2}) == [((0, 1),), ((0, 1, 2),)]


def test_what_is_reached_is_ok_and_what_is_not_fails_without_a_culprit() -> None:
    stage = judged(floor(90.0), floor(9.0, "net"))
    assert (stage.verdict, stage.culprits) == ("ok", ())
    assert stage.said.startswith("5 of 5 met: all_reduce of 64 MiB in n0: ")
    missed = judged(floor(110.0), floor(9.0, "net"))
    assert (missed.verdict, missed.culprits) == ("fail", ())  # all nodes alike: no reason to leave one out
    assert missed.said.startswith("1 of 5 met: all_reduce of 64 MiB in n0: ")
    assert "expected at least 110 GB/s (a tool)" in missed.said
    assert {finding.where for finding in missed.findings} == {"a page"}


def test_one_node_below_the_floor_is_named() -> None:
    stage = judged(floor(90.0), machine=f"{MACHINE},slow-rank=9:1.5")
    assert (stage.verdict, stage.culprits) == ("fail", ("n2",))
    assert [finding.verdict for finding in stage.findings] == ["ok", "ok", "fail", "ok"]


def test_noise_that_misses_once_is_measured_again() -> None:
    stage = judged(floor(95.0), machine=f"{MACHINE},noise=2%")
    assert stage.verdict == "ok"


def test_a_time_is_judged_at_its_own_size() -> None:
    time = Expectation(link_class="net", collective="all_reduce", size="1K", unit="us", upper=100.0, source="a page",
                       measured_with="a tool", ranks=16)  # fmt: skip
    [finding] = judged(time).findings
    assert (finding.verdict, finding.subject) == ("fail", "all_reduce of 1 KiB over all ranks")  # 30 steps of 10 us
    assert float(finding.observed.removesuffix(" us")) == pytest.approx(300, rel=0.02)


def test_a_floor_above_the_level_is_measured_at_its_own_size() -> None:
    [finding] = {one.subject: one for one in judged(floor(90.0, size="4G")).findings if "n3" in one.subject}.values()
    assert (finding.subject, finding.verdict) == ("all_reduce of 4 GiB in n3", "ok")


def test_of_floors_up_to_the_level_the_nearest_counts() -> None:
    stage = judged(floor(50.0, size="1K"), floor(110.0, size="1M"), floor(10.0, size="1G"))
    assert {finding.expected for finding in stage.findings} == {"at least 110 GB/s (a tool)"}


def test_what_has_no_room_or_no_time_is_left_out_and_said() -> None:
    stage = judged(floor(90.0, size="4G"), fits=lambda trial: False)
    assert (stage.verdict, stage.said) == (
        "skip", "0 of 1 met: all_reduce of 4 GiB on 4 ranks: its buffers need more memory than is free")  # fmt: skip
    assert "the budget left no time for it" in judged(floor(90.0), budget=4.0).said


def test_a_link_far_too_slow_for_the_size_is_worth_a_look() -> None:
    slow = MACHINE.replace("10GB/s", "100MB/s")
    stage = judged(floor(50.0, "net", size="4G"), machine=slow)
    assert stage.verdict == "warn"
    assert "no time for this size: 64 MiB reaches 0.1 GB/s, expected at least 50 GB/s (a tool)" in stage.said
    as_expected = judged(floor(0.08, "net", size="4G"), machine=slow)
    assert as_expected.verdict == "skip"
    assert "give it a larger --budget" in as_expected.said


@pytest.mark.parametrize(
    ("expectations", "said"),
    [((), "none given (--expect)"), ((floor(1.0, "sys"),), "none of 1 is of a node or a group here")],
)
def test_without_a_fitting_expectation_nothing_is_judged(expectations: tuple[Expectation, ...], said: str) -> None:
    stage = judged(*expectations)
    assert (stage.verdict, stage.findings) == ("skip", ())
    assert said in stage.said
