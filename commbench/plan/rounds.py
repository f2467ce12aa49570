"""Rounds of disjoint pairs: every node meets another one in each round, and no pair comes twice.

The circle method: one player stays, the others move on by a place each round, and players who face each other meet. A
number of rounds below n-1 is drawn at random from the rounds of a shuffled circle, so that pairs still never repeat.
"""

import random
from collections.abc import Iterable, Sequence

from commbench.errors import UsageError

Round = tuple[tuple[int, int], ...]


def circle_rounds(nodes: int) -> int:
    """The number of rounds in which each of `nodes` meets each other once: n-1, or n for odd n, where one rests."""
    return nodes - 1 + nodes % 2


def circle_round(nodes: int, turn: int) -> Round:
    """The pairs of round `turn` of the circle, each and all in ascending order."""
    others = circle_rounds(nodes)
    half = (others + 1) // 2
    places = [0, *(1 + (place - turn) % others for place in range(others))]
    faced = zip(places[:half], reversed(places[half:]), strict=True)
    return tuple(sorted((min(pair), max(pair)) for pair in faced if max(pair) < nodes))


def pair_rounds(nodes: int, most: int | None = None, seed: int = 0) -> list[Round]:
    """All rounds of `nodes`, or `most` of them, drawn by `seed`. Raises UsageError for fewer than 2 nodes."""
    if nodes < 2:
        raise UsageError(f"rounds of pairs need at least 2 nodes, found {nodes}.")
    all_rounds = circle_rounds(nodes)
    if most is None or most >= all_rounds:
        return [circle_round(nodes, turn) for turn in range(all_rounds)]
    drawn = random.Random(seed)
    names = list(range(nodes))
    drawn.shuffle(names)
    return [_rename(circle_round(nodes, turn), names) for turn in drawn.sample(range(all_rounds), most)]


def along_rails(rounds: Iterable[Round], rails: int) -> list[Round]:
    """The same rounds for nodes with `rails` endpoints each: endpoint `node * rails + rail` keeps to its rail."""
    return [tuple((a * rails + rail, b * rails + rail) for a, b in pairs for rail in range(rails)) for pairs in rounds]


def _rename(pairs: Round, names: Sequence[int]) -> Round:
    return tuple(sorted((min(names[a], names[b]), max(names[a], names[b])) for a, b in pairs))
