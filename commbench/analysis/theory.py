"""Cost formulas of collective algorithms: seconds from alpha (a message), beta (a byte) and gamma (a reduced byte).

All take the size S in bytes (`nbytes`, as in nccl-tests: the larger of one rank's buffers), the number of ranks, and a
`Cost`. Sources, by the name used below:
  TRG   Thakur, Rabenseifner, Gropp: Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005
  PY    Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009
  SST   Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, Par. Comp. 35, 2009
  BRUCK Bruck et al.: Efficient algorithms for all-to-all communications in multiport systems, IEEE TPDS 8(11), 1997
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log2


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one link: seconds per message, per byte, and per byte that is reduced."""

    alpha_seconds: float
    seconds_per_byte: float
    reduce_seconds_per_byte: float = 0.0


def ring_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """2(N-1) messages of S/N bytes, half of them reduced: the least traffic without help of the network. PY."""
    share = (ranks - 1) / ranks
    moved = 2 * share * nbytes * cost.seconds_per_byte
    return 2 * (ranks - 1) * cost.alpha_seconds + moved + share * nbytes * cost.reduce_seconds_per_byte


def recursive_doubling_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """lg N exchanges of the whole buffer: the fewest messages. N that is no power of two takes two more. TRG."""
    rounds = floor(log2(ranks)) + (0 if _is_power_of_two(ranks) else 2)
    each = cost.alpha_seconds + nbytes * (cost.seconds_per_byte + cost.reduce_seconds_per_byte)
    return rounds * each


def rabenseifner_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """Reduce_scatter by recursive halving, then all_gather by recursive doubling. TRG, section 4.5."""
    share = (ranks - 1) / ranks
    if _is_power_of_two(ranks):
        messages, moved, reduced = 2 * log2(ranks), 2 * share, share
    else:  # the surplus ranks first hand their buffers over, and get the result at the end
        messages, moved, reduced = 2 * floor(log2(ranks)) + 2, 2 * share + 2, 1 + share
    return _total(cost, messages, moved * nbytes, reduced * nbytes)


def double_tree_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """Two pipelined binary trees, each of half the data: log latency at full bandwidth (2 S a rank). SST.

    The filling of the pipeline is left out: a bound from below.
    """
    return _total(cost, 2 * ceil(log2(ranks)), 2 * nbytes, nbytes)


def naive_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """Every rank sends its whole buffer to the root, one after another, which then sends the result to each in turn.

    The root's link carries 2(N-1) S bytes, where the ring's carry 2(N-1)/N S.
    """
    return _total(cost, 2 * (ranks - 1), 2 * (ranks - 1) * nbytes, (ranks - 1) * nbytes)


def binomial_all_reduce(nbytes: float, ranks: int, cost: Cost) -> float:
    """Reduce, then broadcast, each over a binomial tree: 2 ceil(lg N) times the whole buffer. TRG."""
    rounds = ceil(log2(ranks))
    return _total(cost, 2 * rounds, 2 * rounds * nbytes, rounds * nbytes)


def ring_all_gather(nbytes: float, ranks: int, cost: Cost) -> float:
    """N-1 messages of S/N bytes to the next rank. TRG."""
    return _total(cost, ranks - 1, (ranks - 1) / ranks * nbytes, 0.0)


def bruck_all_gather(nbytes: float, ranks: int, cost: Cost) -> float:
    """ceil(lg N) messages that double in size: for every N the least messages at the least traffic. BRUCK, TRG."""
    return _total(cost, ceil(log2(ranks)), (ranks - 1) / ranks * nbytes, 0.0)


def ring_reduce_scatter(nbytes: float, ranks: int, cost: Cost) -> float:
    """N-1 messages of S/N bytes, each reduced; pairwise exchange costs the same. TRG."""
    moved = (ranks - 1) / ranks * nbytes
    return _total(cost, ranks - 1, moved, moved)


def recursive_halving_reduce_scatter(nbytes: float, ranks: int, cost: Cost) -> float:
    """lg N exchanges, of S/2, S/4, … bytes; N is rounded up to a power of two. TRG."""
    moved = (ranks - 1) / ranks * nbytes
    return _total(cost, ceil(log2(ranks)), moved, moved)


def pairwise_all_to_all(nbytes: float, ranks: int, cost: Cost) -> float:
    """N-1 exchanges of S/N bytes with another rank each: the least traffic. TRG."""
    return _total(cost, ranks - 1, (ranks - 1) / ranks * nbytes, 0.0)


def bruck_all_to_all(nbytes: float, ranks: int, cost: Cost) -> float:
    """ceil(lg N) messages of S/2 bytes: few messages, lg N / 2 times the traffic. BRUCK, TRG."""
    rounds = ceil(log2(ranks))
    return _total(cost, rounds, nbytes / 2 * rounds, 0.0)


def binomial_broadcast(nbytes: float, ranks: int, cost: Cost) -> float:
    """ceil(lg N) rounds of the whole buffer. TRG."""
    rounds = ceil(log2(ranks))
    return _total(cost, rounds, rounds * nbytes, 0.0)


def scatter_ring_broadcast(nbytes: float, ranks: int, cost: Cost) -> float:
    """Binomial scatter, then ring all_gather (van de Geijn's): for large buffers. TRG."""
    return _total(cost, ceil(log2(ranks)) + ranks - 1, 2 * (ranks - 1) / ranks * nbytes, 0.0)


def hierarchical_all_reduce(nbytes: float, ranks_per_node: int, nodes: int, inner: Cost, outer: Cost) -> float:
    """Reduce_scatter within each node, all_reduce of a rank's share over the nodes, all_gather within each node.

    [2(g-1) a_i + 2 S (g-1)/g b_i] + [2(h-1) a_o + 2 (S/g) (h-1)/h b_o] for g ranks on each of h nodes: PY's ring on
    either level, the outer one on S/g.
    """
    within = ring_all_reduce(nbytes, ranks_per_node, inner)
    return within + ring_all_reduce(nbytes / ranks_per_node, nodes, outer)


Formula = Callable[[float, int, Cost], float]

# By collective and algorithm.
FORMULAS: dict[str, dict[str, Formula]] = {
    "all_reduce": {
        "ring": ring_all_reduce,
        "recursive_doubling": recursive_doubling_all_reduce,
        "rabenseifner": rabenseifner_all_reduce,
        "double_tree": double_tree_all_reduce,
        "binomial": binomial_all_reduce,
        "naive": naive_all_reduce,
    },
    "all_gather": {"ring": ring_all_gather, "bruck": bruck_all_gather},
    "reduce_scatter": {"ring": ring_reduce_scatter, "recursive_halving": recursive_halving_reduce_scatter},
    "all_to_all": {"pairwise": pairwise_all_to_all, "bruck": bruck_all_to_all},
    "broadcast": {"binomial": binomial_broadcast, "scatter_ring": scatter_ring_broadcast},
}


def _total(cost: Cost, messages: float, moved_nbytes: float, reduced_nbytes: float) -> float:
    transfer = moved_nbytes * cost.seconds_per_byte + reduced_nbytes * cost.reduce_seconds_per_byte
    return messages * cost.alpha_seconds + transfer


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
