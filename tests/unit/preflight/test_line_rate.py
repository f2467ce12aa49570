"""The rate of a node's link, and what pairs reached of it."""

from dataclasses import replace

import pytest

from commbench.analysis.cluster import Cluster
from commbench.analysis.localize import localize
from commbench.machine.facts import Facts, InterfaceFacts, RdmaDevice, RdmaPort
from commbench.preflight.line_rate import LineRate, judge_line_rate, read_line_rate
from commbench.report.preflight import PairSearch
from commbench.results.pairs import PairResult, PairTable

ETH = InterfaceFacts("eth0", bytes_per_second=1.25e9, pci_address="0000:00:05.0")


def port(rate: float, state: str = "active") -> RdmaDevice:
    return RdmaDevice("mlx5_0", ports=(RdmaPort("mlx5_0", 1, state=state, bytes_per_second=rate),))


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        (replace(Facts(), rdma=(port(50e9), port(25e9)), interfaces=(ETH,)), LineRate("mlx5_0:1", 25e9)),
        (replace(Facts(), rdma=(port(50e9, "down"),), interfaces=(ETH,)), LineRate("eth0", 1.25e9)),
        (replace(Facts(), interfaces=(replace(ETH, pci_address=""),)), None),
        (Facts(), None),
    ],
)
def test_whose_rate_it_is(facts: Facts, found: LineRate | None) -> None:
    assert read_line_rate(facts, "eth0") == found


def searched(seconds: float) -> PairSearch:
    ends = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]
    rows = [PairResult(turn // 2, one, other, 1 << 30, seconds) for turn, (one, other) in enumerate(ends)]
    return PairSearch(localize(Cluster.of(["a", "b", "c"]), rows), PairTable.of(rows), ())


@pytest.mark.parametrize(("seconds", "verdict"), [(0.05, "ok"), (0.2, "ok"), (0.3, "warn")])
def test_the_share_of_it(seconds: float, verdict: str) -> None:
    assert judge_line_rate(LineRate("mlx5_0:1", 25e9), searched(seconds)).verdict == verdict


def test_without_rate_or_pairs_there_is_none() -> None:
    assert judge_line_rate(None, searched(1.0)).verdict == "skip"
    assert judge_line_rate(LineRate("eth0", 1e9), None).verdict == "skip"
