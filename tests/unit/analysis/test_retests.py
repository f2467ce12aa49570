"""From suspects to verdicts: the rounds of retests, what they confirm, and the whole of it on paper."""

from itertools import chain

import pytest

from commbench.analysis.cluster import Cluster
from commbench.analysis.localize import Diagnosis, localize
from commbench.analysis.retests import plan_retests, settle
from commbench.analysis.suspects import Verdict
from commbench.engines.fake_pairs import FakePairs
from commbench.plan.rounds import along_rails, pair_rounds
from commbench.results.pairs import PairTable

NOTHING = PairTable.of([])
CALM = {"noise": 0.005, "tail_share": 0.0}


def cluster(nodes: int, **changes) -> Cluster:
    return Cluster.of([f"n{node}" for node in range(nodes)], **changes)


def first_rounds(machine: FakePairs, of: Cluster, most: int | None = None, seed: int = 1, **changes) -> Diagnosis:
    rounds = along_rails(pair_rounds(len(of.hosts), most, seed), of.rails)
    return localize(of, machine.measure(rounds, seed), **changes)


def retested(machine: FakePairs, diagnosis: Diagnosis, seed: int = 1) -> tuple[tuple[Verdict, ...], PairTable]:
    table = NOTHING
    for turn in range(60):
        pairs = plan_retests(diagnosis, table, seed)
        if not pairs:
            return settle(diagnosis, table), table
        assert len({*chain(*pairs)}) == 2 * len(pairs)
        table = table.joined(machine.measure([pairs], 7919 * seed + turn, first_round=1000 + turn))
    raise AssertionError("retests never end")


def named(verdicts: tuple[Verdict, ...], state: str = "confirmed") -> list[tuple[str, tuple[int, ...], str]]:
    return [(one.suspect.kind, one.suspect.members, one.suspect.side) for one in verdicts if one.state == state]


@pytest.mark.parametrize(
    ("faults", "culprit"),
    [
        ({"slow_send": {2: 1.18}, "slow_receive": {2: 1.18}}, ("node", (2,), "both")),
        ({"slow_send": {2: 1.5}}, ("node", (2,), "send")),
        ({"slow_receive": {5: 1.5}}, ("node", (5,), "receive")),
        ({"slow_links": {(1, 4): 1.3}}, ("link", (1, 4), "both")),
        ({"dead": frozenset({3})}, ("dead", (3,), "both")),
        ({"cut": frozenset({(0, 5)})}, ("cut", (0, 5), "both")),
    ],
)
def test_what_stays_is_confirmed(faults, culprit):
    machine = FakePairs(6, **CALM, **faults)
    verdicts, _ = retested(machine, first_rounds(machine, cluster(6)))
    assert named(verdicts) == [culprit]
    assert verdicts[0].again == verdicts[0].retests >= 2


@pytest.mark.parametrize(
    "faults",
    [{"slow_send": {2: 1.5}, "slow_receive": {2: 1.5}}, {"slow_links": {(1, 4): 1.3}}, {"dead": frozenset({3})}],
)
def test_what_goes_away_is_not_reproduced(faults):
    diagnosis = first_rounds(FakePairs(6, **CALM, **faults), cluster(6))
    verdicts, _ = retested(FakePairs(6, **CALM), diagnosis)
    assert [one.state for one in verdicts] == ["not reproduced"]


def test_a_slow_rack_is_confirmed_by_its_members():
    machine = FakePairs(32, **CALM, slow_racks=((tuple(range(8, 12)), 1.3),))
    diagnosis = first_rounds(machine, cluster(32, racks={"r2": ["n8", "n9", "n10", "n11"]}), 10)
    assert named(retested(machine, diagnosis)[0]) == [("group", (8, 9, 10, 11), "both")]


def test_a_slow_rail_is_confirmed_though_it_has_no_good_endpoint():
    slow = dict.fromkeys(range(1, 16, 2), 1.3)
    machine = FakePairs(16, **CALM, slow_send=slow)
    diagnosis = first_rounds(machine, cluster(8, rails=2))
    verdicts, table = retested(machine, diagnosis)
    assert named(verdicts) == [("rail", tuple(range(1, 16, 2)), "both")]
    assert set(table.senders % 2 - table.receivers % 2) == {0}


def test_suspects_meet_good_nodes_and_others_keep_the_load():
    machine = FakePairs(12, **CALM, slow_send={3: 1.3, 8: 1.3}, slow_receive={3: 1.3, 8: 1.3})
    diagnosis = first_rounds(machine, cluster(12), 5)
    pairs = plan_retests(diagnosis, NOTHING)
    assert len(pairs) == 6
    assert (3, 8) not in pairs
    partners = {next(end for end in pair if end != 3) for pair in pairs if 3 in pair}
    assert partners.isdisjoint(diagnosis.suspects[0].partners)


def test_a_suspect_meets_other_partners_each_time():
    machine = FakePairs(12, **CALM, slow_send={3: 1.3}, slow_receive={3: 1.3})
    verdicts, _ = retested(machine, first_rounds(machine, cluster(12), 5))
    assert len(verdicts[0].partners) == verdicts[0].retests >= 5


def test_a_cluster_that_moved_since_the_first_rounds_clears_and_confirms_the_same():
    slow = FakePairs(12, **CALM, slow_send={3: 1.3}, slow_receive={3: 1.3})
    faster = FakePairs(12, **CALM, slow_send={3: 1.3}, slow_receive={3: 1.3}, seconds=5e-3)
    healthy_later = FakePairs(12, **CALM, seconds=2e-2)
    diagnosis = first_rounds(slow, cluster(12))
    assert named(retested(faster, diagnosis)[0]) == [("node", (3,), "both")]
    assert named(retested(healthy_later, diagnosis)[0]) == []


def test_who_is_slower_by_too_little_is_not_accused():
    machine = FakePairs(16, **CALM, slow_send={2: 1.06}, slow_receive={2: 1.06})
    verdicts, _ = retested(machine, first_rounds(machine, cluster(16)))
    assert named(verdicts, "slight") == [("node", (2,), "both")]


def test_without_retests_a_suspect_stays_open():
    machine = FakePairs(6, **CALM, slow_send={2: 1.5})
    verdicts = settle(first_rounds(machine, cluster(6)), NOTHING)
    assert [one.state for one in verdicts] == ["open"]


def test_a_healthy_cluster_needs_no_retests():
    assert plan_retests(first_rounds(FakePairs(6, **CALM), cluster(6)), NOTHING) == ()


def test_who_is_within_the_expectation_is_not_accused():
    machine = FakePairs(6, **CALM, slow_send={2: 1.2}, slow_receive={2: 1.2})
    for allowed, state in ((1.3e-2, "within expectation"), (1.1e-2, "confirmed")):
        diagnosis = first_rounds(machine, cluster(6), allowed_seconds=allowed)
        assert [one.state for one in retested(machine, diagnosis)[0]] == [state]


def test_two_nodes_are_told_apart_by_nothing():
    machine = FakePairs(2, **CALM, slow_send={1: 1.5})
    verdicts, _ = retested(machine, first_rounds(machine, cluster(2)))
    assert named(verdicts) == [("pair", (1, 0), "send")]


def test_a_node_whose_times_scatter_is_noisy():
    noisy = FakePairs(
        16, **CALM, slow_links={(3, other): 1.5 for other in range(4, 16, 2)} | {(1, 3): 1.5, (2, 3): 1.5}
    )
    verdicts, _ = retested(noisy, first_rounds(noisy, cluster(16)))
    assert named(verdicts) == [("noisy", (3,), "both")]


@pytest.mark.parametrize("slow", [{1}, {0, 4}])
def test_six_nodes_with_noise_and_tails(slow):
    """Ten seeds each."""
    factors = dict.fromkeys(slow, 1 / 0.85)
    for seed in range(10):
        machine = FakePairs(6, slow_send=factors, slow_receive=factors)
        found = named(retested(machine, first_rounds(machine, cluster(6), seed=seed), seed)[0])
        assert found == [("node", (node,), "both") for node in sorted(slow)]
        healthy = FakePairs(6)
        assert named(retested(healthy, first_rounds(healthy, cluster(6), seed=seed), seed)[0]) == []


def test_256_nodes_at_ten_rounds_with_noise_and_tails():
    planted = {5: 1.25, 77: 1.25, 200: 1.25}
    for seed in range(2):
        for faults in ({}, {"slow_send": planted, "slow_receive": planted}):
            machine = FakePairs(256, **faults)
            verdicts, _ = retested(machine, first_rounds(machine, cluster(256), 10, seed), seed)
            assert {members for _, members, _ in named(verdicts)} == {(node,) for node in planted if faults}
