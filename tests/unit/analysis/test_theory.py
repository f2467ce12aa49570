"""Worked numbers of the literature, and what any cost formula must obey."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.analysis.theory import (
    FORMULAS,
    Cost,
    hierarchical_all_reduce,
    naive_all_reduce,
    pairwise_all_to_all,
    rabenseifner_all_reduce,
    recursive_doubling_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from commbench.plan.collectives import COLLECTIVES

MIB = 1 << 20
BYTE = Cost(0.0, 1.0)  # seconds are bytes moved
MESSAGE = Cost(1.0, 0.0)  # seconds are messages

ranks_of_two = st.sampled_from([2, 4, 8, 64, 1024])


@pytest.mark.parametrize(
    ("alpha_seconds", "bytes_per_second", "milliseconds"), [(5e-6, 150e9, 0.85), (27e-6, 25e9, 5.1)]
)
def test_64_mib_all_reduce_on_8_ranks(alpha_seconds, bytes_per_second, milliseconds):
    seconds = ring_all_reduce(64 * MIB, 8, Cost(alpha_seconds, 1 / bytes_per_second))
    assert seconds * 1e3 == pytest.approx(milliseconds, rel=0.01)


def test_ring_against_reduce_and_broadcast_from_one_root():
    assert ring_all_reduce(1.0, 8, BYTE) == 1.75
    assert naive_all_reduce(1.0, 8, BYTE) == 14.0


@pytest.mark.parametrize(
    ("collective", "algorithm", "ranks", "messages", "moved", "reduced"),
    [
        ("all_reduce", "ring", 8, 14, 1.75, 0.875),
        ("all_reduce", "recursive_doubling", 8, 3, 3, 3),
        ("all_reduce", "recursive_doubling", 6, 4, 4, 4),
        ("all_reduce", "rabenseifner", 8, 6, 1.75, 0.875),
        ("all_reduce", "rabenseifner", 5, 6, 3.6, 1.8),
        ("all_reduce", "double_tree", 8, 6, 2, 1),
        ("all_reduce", "binomial", 8, 6, 6, 3),
        ("all_reduce", "naive", 8, 14, 14, 7),
        ("all_gather", "ring", 8, 7, 0.875, 0),
        ("all_gather", "bruck", 5, 3, 0.8, 0),
        ("reduce_scatter", "ring", 8, 7, 0.875, 0.875),
        ("reduce_scatter", "recursive_halving", 8, 3, 0.875, 0.875),
        ("all_to_all", "pairwise", 8, 7, 0.875, 0),
        ("all_to_all", "bruck", 8, 3, 1.5, 0),
        ("broadcast", "binomial", 8, 3, 3, 0),
        ("broadcast", "scatter_ring", 8, 10, 1.75, 0),
    ],
)
def test_messages_bytes_and_reductions(collective, algorithm, ranks, messages, moved, reduced):
    formula = FORMULAS[collective][algorithm]
    assert formula(1.0, ranks, MESSAGE) == messages
    assert formula(1.0, ranks, BYTE) == pytest.approx(moved)
    assert formula(1.0, ranks, Cost(0.0, 0.0, 1.0)) == pytest.approx(reduced)


@given(st.integers(2, 5000), st.floats(1, 1e12), st.floats(0, 1e-3), st.floats(1e-13, 1e-6))
def test_the_ring_formulas_are_steps_and_factor_of_the_catalogue(ranks, nbytes, alpha, beta):
    for name, formula in (
        ("all_reduce", ring_all_reduce),
        ("all_gather", ring_all_gather),
        ("reduce_scatter", ring_reduce_scatter),
        ("all_to_all", pairwise_all_to_all),
    ):
        spec = COLLECTIVES[name]
        expected = spec.steps(ranks) * alpha + spec.factor(ranks) * nbytes * beta
        assert formula(nbytes, ranks, Cost(alpha, beta)) == pytest.approx(expected)


@given(st.integers(2, 5000))
def test_no_algorithm_moves_less_than_the_ring(ranks):
    for formula in FORMULAS["all_reduce"].values():
        assert formula(1.0, ranks, BYTE) >= ring_all_reduce(1.0, ranks, BYTE) * (1 - 1e-12)
        assert formula(1.0, ranks, MESSAGE) >= log2(ranks)  # a rank's word spreads to twice as many in a round


@given(ranks_of_two, st.floats(1, 1e10))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(ranks, nbytes):
    cost = Cost(1e-6, 1e-10, 1e-11)
    parts = ring_reduce_scatter(nbytes, ranks, cost) + ring_all_gather(nbytes, ranks, cost)
    assert ring_all_reduce(nbytes, ranks, cost) == pytest.approx(parts)


@given(st.sampled_from([4, 8, 64]))
def test_recursive_doubling_wins_below_its_crossover_with_rabenseifner(ranks):
    """n (lg N - 2(N-1)/N) beta = lg N alpha (Thakur, Rabenseifner, Gropp)."""
    cost, lg = Cost(1e-6, 1e-10), ranks.bit_length() - 1
    crossover = lg * cost.alpha_seconds / ((lg - 2 * (ranks - 1) / ranks) * cost.seconds_per_byte)
    doubling, halving = recursive_doubling_all_reduce, rabenseifner_all_reduce
    assert doubling(0.9 * crossover, ranks, cost) < halving(0.9 * crossover, ranks, cost)
    assert doubling(1.1 * crossover, ranks, cost) > halving(1.1 * crossover, ranks, cost)


def test_hierarchical_crosses_the_network_with_a_share_of_the_data():
    inner, outer = Cost(1e-6, 1e-11), Cost(1e-5, 1e-10)
    assert hierarchical_all_reduce(MIB, 8, 1, inner, outer) == ring_all_reduce(MIB, 8, inner)
    assert hierarchical_all_reduce(MIB, 1, 4, inner, outer) == ring_all_reduce(MIB, 4, outer)
    assert hierarchical_all_reduce(8.0, 8, 2, Cost(0, 0), BYTE) == 1.0
