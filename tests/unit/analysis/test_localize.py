"""Who is suspected: a small exact matrix for each verdict, and properties of all."""

from collections.abc import Callable
from math import isinf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commbench.analysis.cluster import Cluster
from commbench.analysis.localize import Diagnosis, localize, retests_needed
from commbench.analysis.suspects import LATENCY
from commbench.engines.fake_pairs import FakePairs
from commbench.errors import CommbenchError
from commbench.plan.rounds import along_rails, pair_rounds
from commbench.results.pairs import PairResult, PairTable

NBYTES = 64 << 20
Seconds = Callable[[int, int], float | None]


def pairs(endpoints: int, seconds: Seconds, *, rails: int = 1, most: int | None = None) -> list[PairResult]:
    """Both directions of all pairs; None is a failure."""
    rounds = along_rails(pair_rounds(endpoints // rails, most), rails)
    return [
        PairResult(turn, a, b, NBYTES, seconds(a, b), "failed" if seconds(a, b) is None else "ok")
        for turn, one in enumerate(rounds)
        for low, high in one
        for a, b in ((low, high), (high, low))
    ]


def cluster(nodes: int, **changes) -> Cluster:
    return Cluster.of([f"n{node}" for node in range(nodes)], **changes)


def told(diagnosis: Diagnosis) -> list[tuple[str, tuple[int, ...], str, float]]:
    return [(one.kind, one.members, one.side, round(one.ratio, 6)) for one in diagnosis.suspects]


SIZES = pytest.mark.parametrize("nodes", [3, 4, 6, 9, 10, 16])


@SIZES
def test_a_healthy_cluster_has_no_suspects(nodes):
    diagnosis = localize(cluster(nodes), pairs(nodes, lambda a, b: 2.0))
    assert told(diagnosis) == []
    assert diagnosis.usual_seconds == pytest.approx(2.0)
    assert (diagnosis.pairs, diagnosis.failed_results) == (nodes * (nodes - 1) // 2, 0)


@SIZES
def test_a_slow_node_is_slow_both_ways(nodes):
    diagnosis = localize(cluster(nodes), pairs(nodes, lambda a, b: 1.25 if 1 in (a, b) else 1.0))
    assert told(diagnosis) == [("node", (1,), "both", 1.25)]
    assert set(diagnosis.suspects[0].partners) == set(range(nodes)) - {1}


@SIZES
@pytest.mark.parametrize("side", ["send", "receive"])
def test_one_direction(nodes, side):
    diagnosis = localize(cluster(nodes), pairs(nodes, lambda a, b: 1.5 if (a if side == "send" else b) == 2 else 1.0))
    assert told(diagnosis) == [("node", (2,), side, 1.5)]


@SIZES
def test_one_link_and_one_direction_of_a_link(nodes):
    both = localize(cluster(nodes), pairs(nodes, lambda a, b: 1.5 if {a, b} == {0, 2} else 1.0))
    one = localize(cluster(nodes), pairs(nodes, lambda a, b: 1.5 if (a, b) == (2, 0) else 1.0))
    assert told(both) == [("link", (0, 2), "both", 1.5)]
    assert told(one) == [("link", (2, 0), "send", 1.5)]


@pytest.mark.parametrize(("nodes", "slow"), [(4, {0, 3}), (5, {1, 2}), (6, {0, 1, 5}), (12, {1, 2, 3, 4, 5})])
def test_several_slow_nodes_are_found_though_most_pairs_are_slow(nodes, slow):
    diagnosis = localize(cluster(nodes), pairs(nodes, lambda a, b: 1.4 if {a, b} & slow else 1.0))
    assert told(diagnosis) == [("node", (node,), "both", 1.4) for node in sorted(slow)]


def test_a_slow_rack_is_named_as_one_and_its_nodes_are_not():
    rack = ["n4", "n5", "n6", "n7", "elsewhere"]
    crosses = pairs(16, lambda a, b: 1.3 if (a in range(4, 8)) != (b in range(4, 8)) else 1.0)
    assert told(localize(cluster(16, racks={"r2": rack, "r1": ["n0", "n1"]}), crosses)) == [
        ("group", (4, 5, 6, 7), "both", 1.3)
    ]
    assert [kind for kind, *_ in told(localize(cluster(16), crosses))] == ["node"] * 4


def test_one_slow_node_does_not_make_its_rack_slow():
    diagnosis = localize(
        cluster(16, racks={"r1": ["n0", "n1", "n2"]}), pairs(16, lambda a, b: 1.3 if 1 in (a, b) else 1.0)
    )
    assert told(diagnosis) == [("node", (1,), "both", 1.3)]


def test_a_slow_rail_and_a_node_that_is_slow_on_one_rail():
    def seconds(a: int, b: int) -> float:
        return (1.2 if a % 4 == 3 else 1.0) * (1.5 if 9 in (a, b) else 1.0)

    diagnosis = localize(cluster(8, rails=4), pairs(32, seconds, rails=4))
    assert sorted(told(diagnosis)) == [
        ("node", (9,), "both", 1.5),
        ("rail", tuple(range(3, 32, 4)), "both", 1.2),
    ]
    assert diagnosis.cluster.name(9) == "n2 rail 1"


def test_a_node_that_is_slow_on_all_rails_is_named_once():
    diagnosis = localize(cluster(6, rails=2), pairs(12, lambda a, b: 1.5 if 2 in (a // 2, b // 2) else 1.0, rails=2))
    assert told(diagnosis) == [("group", (4, 5), "both", 1.5)]
    assert diagnosis.suspects[0].name == "node n2"


def test_a_noisy_node():
    diagnosis = localize(cluster(16), pairs(16, lambda a, b: 1.5 if 3 in (a, b) and (a + b) % 2 else 1.0))
    assert told(diagnosis) == [("noisy", (3,), "both", 1.5)]


def test_a_node_that_does_not_answer_and_two_and_a_link():
    dead = localize(cluster(6), pairs(6, lambda a, b: None if 4 in (a, b) else 1.0))
    two = localize(cluster(6), pairs(6, lambda a, b: None if {1, 4} & {a, b} else 1.0))
    cut = localize(cluster(6), pairs(6, lambda a, b: None if {a, b} == {1, 4} else 1.0))
    assert [(kind, members) for kind, members, *_ in told(dead)] == [("dead", (4,))]
    assert [(kind, members) for kind, members, *_ in told(two)] == [("dead", (1,)), ("dead", (4,))]
    assert [(kind, members) for kind, members, *_ in told(cut)] == [("cut", (1, 4))]
    assert dead.suspects[0].partners == (0, 1, 2, 3, 5)
    assert isinf(dead.suspects[0].effect)
    assert dead.failed_results == 10


def test_the_dead_do_not_hide_the_slow():
    def seconds(a: int, b: int) -> float | None:
        return None if 4 in (a, b) else 1.3 if 2 in (a, b) else 1.0

    assert [one[:2] for one in told(localize(cluster(6), pairs(6, seconds)))] == [("dead", (4,)), ("node", (2,))]


def test_with_two_nodes_it_says_that_it_cannot_tell_which():
    uneven = localize(cluster(2), pairs(2, lambda a, b: 1.5 if a == 1 else 1.0))
    even = localize(cluster(2), pairs(2, lambda a, b: 1.5))
    silent = localize(cluster(2), pairs(2, lambda a, b: None))
    assert told(uneven) == [("pair", (1, 0), "send", 1.5)]
    assert told(even) == []
    assert [one[:2] for one in told(silent)] == [("pair", (0, 1))]
    assert silent.usual_seconds is None


@pytest.mark.parametrize(("ratio", "is_named"), [(1.07, False), (1.08, True)])
def test_among_few_it_is_93_percent_of_the_best_bandwidth(ratio, is_named):
    diagnosis = localize(cluster(6), pairs(6, lambda a, b: ratio if 1 in (a, b) else 1.0))
    assert bool(told(diagnosis)) == is_named


@pytest.mark.parametrize(("ratio", "is_named"), [(2.05, False), (2.15, True)])
def test_latency_is_judged_by_more(ratio, is_named):
    results = [
        PairResult(one.round, one.sender, one.receiver, 8, one.seconds)
        for one in pairs(6, lambda a, b: ratio if 1 in (a, b) else 1.0)
    ]
    diagnosis = localize(cluster(6), results)
    assert diagnosis.criteria is LATENCY
    assert bool(told(diagnosis)) == is_named


def test_faster_is_never_a_failure():
    assert told(localize(cluster(12), pairs(12, lambda a, b: 0.5 if 1 in (a, b) else 1.0))) == []


def test_a_difference_within_the_noise_is_none():
    noisy = FakePairs(32, noise=0.25, tail_share=0.0, slow_send={3: 1.1}, slow_receive={3: 1.1})
    diagnosis = localize(cluster(32), noisy.measure(pair_rounds(32, 10), seed=1))
    assert not any(one.kind in ("node", "group") for one in diagnosis.suspects)
    assert diagnosis.detectable_ratio > 1.1


def test_all_slower_than_expected():
    slow = localize(cluster(6), pairs(6, lambda a, b: 1.0), allowed_seconds=0.9)
    fine = localize(cluster(6), pairs(6, lambda a, b: 1.0), allowed_seconds=1.1)
    assert (slow.is_below_expectation, fine.is_below_expectation) == (True, False)


def test_nothing_measured_is_nothing_known():
    diagnosis = localize(cluster(4), [PairResult(0, 0, 1, NBYTES, None, "skipped")])
    assert (diagnosis.usual_seconds, diagnosis.suspects, diagnosis.pairs) == (None, (), 0)


def test_bad_results_are_refused():
    with pytest.raises(CommbenchError, match=r"sizes \[8, 16\]: judge one size at a time"):
        localize(cluster(2), [PairResult(0, 0, 1, 8, 1.0), PairResult(0, 1, 0, 16, 1.0)])
    for seconds in (0.0, -1.0, float("nan"), float("inf"), None):
        with pytest.raises(CommbenchError, match="is no measurement"):
            localize(cluster(2), [PairResult(0, 0, 1, 8, seconds)])
    with pytest.raises(CommbenchError, match="is no measurement"):
        localize(cluster(2), [PairResult(0, 1, 1, 8, 1.0)])


@pytest.mark.parametrize(("tail", "suspects", "needed"), [(0.0, 1, 5), (0.04, 900, 7), (0.25, 1, 8)])
def test_more_retests_where_noise_could_confirm_somebody(tail, suspects, needed):
    assert retests_needed(tail, suspects) == needed


FAULTS = st.fixed_dictionaries(
    {
        "slow_send": st.dictionaries(st.integers(0, 11), st.floats(1.2, 3.0), max_size=2),
        "slow_receive": st.dictionaries(st.integers(0, 11), st.floats(1.2, 3.0), max_size=2),
        "dead": st.frozensets(st.integers(0, 11), max_size=2),
    }
)


@settings(max_examples=20, deadline=None)
@given(faults=FAULTS, scale=st.sampled_from([1e-6, 0.25, 3.0, 1e3]), order=st.permutations(range(12)))
def test_neither_names_nor_units_change_a_verdict(faults, scale, order):
    table = FakePairs(12, tail_share=0.0, **faults).measure(pair_rounds(12, 7), seed=1)
    renamed = np.array(order)
    other = PairTable(
        table.nbytes, table.rounds, renamed[table.senders], renamed[table.receivers], scale * table.seconds
    )
    want = [(one.kind, {order[end] for end in one.members}, one.side) for one in localize(cluster(12), table).suspects]
    got = [(one.kind, set(one.members), one.side) for one in localize(cluster(12), other).suspects]
    assert sorted(got, key=str) == sorted(want, key=str)
