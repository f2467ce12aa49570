"""Rounds of disjoint pairs."""

from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commbench.errors import UsageError
from commbench.plan.rounds import along_rails, circle_rounds, pair_rounds


@settings(max_examples=25)
@given(nodes=st.integers(2, 40))
def test_all_rounds_hold_each_pair_once(nodes):
    rounds = pair_rounds(nodes)
    assert len(rounds) == (nodes if nodes % 2 else nodes - 1)
    assert sorted(chain(*rounds)) == [(a, b) for a in range(nodes) for b in range(a + 1, nodes)]


@settings(max_examples=40)
@given(nodes=st.integers(2, 60), most=st.integers(1, 70), seed=st.integers(0, 99))
def test_rounds_are_disjoint_and_never_repeat_a_pair(nodes, most, seed):
    rounds = pair_rounds(nodes, most, seed)
    assert len(rounds) == min(most, circle_rounds(nodes))
    for pairs in rounds:
        assert len({*chain(*pairs)}) == 2 * len(pairs) == nodes - nodes % 2
        assert all(a < b for a, b in pairs)
    assert len({*chain(*rounds)}) == sum(map(len, rounds))


def test_the_seed_draws_the_rounds():
    assert pair_rounds(100, 3, seed=1) == pair_rounds(100, 3, seed=1)
    assert pair_rounds(100, 3, seed=1) != pair_rounds(100, 3, seed=2)


def test_rails_are_kept():
    assert along_rails([((0, 1),)], rails=2) == [((0, 2), (1, 3))]
    for pairs in along_rails(pair_rounds(5), rails=4):
        assert all(a % 4 == b % 4 for a, b in pairs)
        assert len({*chain(*pairs)}) == 2 * len(pairs)


def test_one_node_has_no_partner():
    with pytest.raises(UsageError, match="at least 2 nodes, found 1"):
        pair_rounds(1)
