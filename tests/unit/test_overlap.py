"""Overlap on the fake engine, where what slows what is planted; and the sentence that tells of it."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from commbench.engines.fake import FakeEngine, open_engine
from commbench.measure.overlap import choose_cases, measure_overlap
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import Case, PlanRequest, build_plan
from commbench.report.overlap import overlap_lines
from commbench.results.schema import OverlapRecord, Slowdown
from tests.factories import make_case_record, make_group_record, make_run
from tests.unit.test_session import Watch

REQUEST = PlanRequest(("all_reduce", "all_to_all"), (1024, 1 << 20), ("world",))


def measure(spec: str, request: PlanRequest = REQUEST, kind: type[FakeEngine] = FakeEngine, watch: Watch | None = None,
            ranks: int = 4) -> list[OverlapRecord]:  # fmt: skip
    """What was kept last; the positions of a case's groups are their numbers in it."""
    engine = open_engine(ranks=ranks, spec=spec, seed=0)
    engine.__class__ = kind
    cases = build_plan(request, engine.world)
    kept: list[list[OverlapRecord]] = []

    def keep(records: Sequence[OverlapRecord]) -> None:
        kept.append(list(records))

    measure_overlap(engine, cases, lambda case: range(len(case.groups)), SamplingRules(), watch or Watch(), keep)
    return kept[-1]


@pytest.mark.parametrize(("compute", "collective"), [(1.25, 1.5), (2.0, 1.0), (1.0, 1.0), (3.5, 3.9)])
def test_planted_slowdowns_are_found(compute: float, collective: float) -> None:
    records = measure(f"overlap={compute}:{collective},nvlink=3us:150GB/s")
    assert [record.case for record in records] == [1, 3]  # the larger size of each
    for record in records:
        assert (record.status, record.product) == ("ok", "on paper")
        assert record.compute is not None
        assert record.collective is not None
        assert record.compute.factor == pytest.approx(compute)
        assert record.collective.factor == pytest.approx(collective)
        assert record.compute.alone_seconds == pytest.approx(100e-6)
        assert record.coefficient == pytest.approx(max(compute, collective))
    assert records[0].collective
    assert records[0].collective.alone_seconds == pytest.approx(6 * 3e-6 + 1.5 * (1 << 20) / 150e9)


def test_what_runs_beside_is_made_longer_until_it_covers() -> None:
    """A product eight times slower needs more than four times its own time of collectives beside it."""
    (record, _) = measure("overlap=8:1")
    assert record.compute is not None
    assert (record.status, record.compute.factor) == ("ok", pytest.approx(8.0))


def test_what_cannot_be_covered_is_missing() -> None:
    (record, _) = measure("overlap=1000:1")
    assert (record.status, record.rounds, record.compute, record.coefficient) == ("missing", 0, None, None)
    assert record.reason == "what ran beside it ended first"


class Refusing(FakeEngine):
    """Knows no way to run an all_reduce beside anything."""

    def no_overlap(self, case: Case) -> str | None:
        return "it cannot" if case.collective == "all_reduce" else None


def test_an_engine_that_cannot_says_so() -> None:
    refused, measured = measure("overlap=2:1", kind=Refusing)
    assert (refused.status, refused.reason, refused.compute) == ("unsupported", "it cannot", None)
    assert measured.status == "ok"


def test_one_rank_has_no_link() -> None:
    records = measure("overlap=2:1", ranks=1)
    assert {(record.status, record.reason) for record in records} == {("unsupported", "one rank has no link")}


def test_a_size_that_is_too_small_is_skipped() -> None:
    (record,) = measure("", PlanRequest(("all_gather",), (8,), ("world",)))
    assert record.status == "skipped"
    assert "less than one float32" in record.reason


def test_ctrl_c_keeps_what_was_measured() -> None:
    first, second = measure("overlap=2:1", watch=Watch(interrupt_in=1))
    assert first.status == "ok"
    assert (second.status, second.reason) == ("missing", "the run was interrupted")


def test_all_groups_of_a_layout_are_measured_at_once() -> None:
    request = PlanRequest(("all_reduce",), (1 << 20,), ("halves",))
    records = measure("overlap=1.5:2", request)
    assert [(record.group, record.coefficient) for record in records] == [(0, 2.0), (1, 2.0)]


def test_the_largest_size_on_the_most_ranks_is_chosen() -> None:
    engine = open_engine(ranks=8, spec="", seed=0)
    request = PlanRequest(
        ("all_reduce",), (1024, 4096), ("ladder", "halves"), concurrencies=("alone", "together"), redops=("sum", "max")
    )
    chosen = choose_cases(build_plan(request, engine.world))
    told = [(case.layout, case.redop, case.requested_nbytes, len(case.groups)) for case in chosen]
    assert told == [(layout, redop, 4096, groups) for redop in ("sum", "max")
                    for layout, groups in (("ladder", 1), ("halves", 2))]  # fmt: skip
    assert [case.groups[0].size for case in chosen] == [8, 4, 8, 4]


# -- words -------------------------------------------------------------------------------------------------------------

RECORD = OverlapRecord(0, 0, "2 × 2", 8, Slowdown(1.5, 1.4, 1.61, 1e-4), Slowdown(1.25, 1.2, 1.3, 1e-3), "ok")


def test_a_line_tells_both_slowdowns_and_the_coefficient() -> None:
    assert overlap_lines(make_run(overlap=(RECORD,))) == [
        "overlap of all_reduce 1 KiB float32 sum on world: beside it a matrix product (2 × 2) takes 1.50 times "
        "[1.40, 1.61] as long as alone, beside products it takes 1.25 times [1.20, 1.30]; overlap_coe 1.50."
    ]


def test_a_line_tells_why_there_is_none() -> None:
    refused = OverlapRecord(0, 0, "", 0, None, None, "unsupported", "it cannot")
    assert overlap_lines(make_run(overlap=(refused,))) == [
        "overlap of all_reduce 1 KiB float32 sum on world: unsupported (it cannot)."
    ]
    assert overlap_lines(make_run()) == []


def test_of_several_groups_the_most_slowed_is_told() -> None:
    faster = replace(RECORD, compute=Slowdown(1.1, None, None, 1e-4), collective=Slowdown(0.9, None, None, 1e-3))
    groups = (make_group_record(name="0-1"), make_group_record(name="2-3", ranks="2-3"))
    case = make_case_record(groups=(0, 1), layout="halves", concurrency="together")
    slower = replace(RECORD, group=1, status="noisy")
    (line,) = overlap_lines(make_run(overlap=(faster, slower), groups=groups, cases=(case,)))
    assert line.startswith("overlap of all_reduce 1 KiB float32 sum on halves 2-3: ")
    assert line.endswith("overlap_coe 1.50, noisy.")
    assert faster.coefficient == 1.1


def test_a_coefficient_is_at_least_one() -> None:
    both_faster = replace(RECORD, compute=Slowdown(0.9, None, None, 1e-4), collective=Slowdown(0.8, None, None, 1e-3))
    assert both_faster.coefficient == 1.0
