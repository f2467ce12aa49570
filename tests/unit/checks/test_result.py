"""commbench.checks.result: equal findings are one, and the worst come first."""

import pytest

from commbench.checks.result import Placed, count_verdicts, merge
from commbench.results.schema import Finding
from tests.unit.report.make_check import DEBUG, FOUR_NODES, MEMLOCK, NO_GPU, SWAP, make_result


def test_equal_findings_of_several_ranks_are_one() -> None:
    merged = merge([Placed(SWAP, (3,)), Placed(MEMLOCK, (0,)), Placed(SWAP, (1,)), Placed(SWAP, (3,))])
    assert merged == [Placed(SWAP, (1, 3)), Placed(MEMLOCK, (0,))]


def test_the_worst_come_first() -> None:
    found = make_result(SWAP, NO_GPU, DEBUG, MEMLOCK).findings
    assert [placed.finding.verdict for placed in found] == ["fail", "warn", "skip", "ok"]


@pytest.mark.parametrize(
    ("findings", "worst"),
    [
        ((SWAP, NO_GPU), "ok"),
        ((NO_GPU,), "skip"),  # nothing was seen: that is not ok
        ((), "skip"),
        ((SWAP, DEBUG), "warn"),
        ((DEBUG, MEMLOCK, SWAP), "fail"),
    ],
)
def test_the_worst_verdict(findings: tuple[Finding, ...], worst: str) -> None:
    assert make_result(*findings).worst == worst


def test_counts_have_every_verdict() -> None:
    assert count_verdicts([SWAP, SWAP, MEMLOCK]) == {"fail": 1, "warn": 0, "ok": 2, "skip": 0}


def test_nodes_of_ranks() -> None:
    world = make_result(nodes=FOUR_NODES)
    assert world.world_size == 8
    assert world.nodes_of((1, 6)) == ("n1", "n4")
    assert world.nodes_of(()) == ()
    assert make_result().nodes_of(()) == ("n1",)
