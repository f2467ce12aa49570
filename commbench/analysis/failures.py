"""Pairs that did not answer: the smallest set of nodes that explains them, and the links that are left."""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from commbench.analysis.suspects import Suspect
from commbench.results.pairs import PairTable

Pair = tuple[int, int]


def find_failures(table: PairTable) -> list[Suspect]:
    """Suspects `dead` (a node), `cut` (a link between nodes that answer others), `pair` (which of two is not known)."""
    failed = _pairs(table, np.isnan(table.seconds))
    answered = _pairs(table, np.isfinite(table.seconds)) - failed
    dead, links = explain(failed, answered)
    found = [_suspect("dead", (node,), [pair for pair in failed if node in pair]) for node in sorted(dead)]
    answers = Counter(node for pair in answered for node in pair)
    for pair in sorted(links):
        found.append(_suspect("cut" if answers[pair[0]] else "pair", pair, [pair]))
    return found


def explain(failed: set[Pair], answered: set[Pair]) -> tuple[set[int], set[Pair]]:
    """Nodes that explain failed pairs, and the pairs that no node explains.

    A node that fails with several partners, and with more than answer it, is dead; the one that explains most is taken
    first. Of a pair that is left, the end that nobody else heard is dead; where both or neither were, it is the pair.
    """
    fails, answers = (Counter(node for pair in pairs for node in pair) for pairs in (failed, answered))
    dead: set[int] = set()
    left = set(failed)
    while True:
        open_fails = Counter(node for pair in left for node in pair)
        candidates = [node for node, count in open_fails.items() if fails[node] > max(1, answers[node]) and count]
        if not candidates:
            break
        worst = max(candidates, key=lambda node: (open_fails[node], -answers[node], fails[node]))
        dead.add(worst)
        left = {pair for pair in left if worst not in pair}
    for pair in sorted(left):
        silent = [node for node in pair if not answers[node]]
        if len(silent) == 1:
            dead.add(silent[0])
            left.discard(pair)
    return dead, left


def _pairs(table: PairTable, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> set[Pair]:
    rows = table.where(mask)
    ends = np.stack((rows.senders, rows.receivers))
    return set(zip(ends.min(axis=0).tolist(), ends.max(axis=0).tolist(), strict=True))


def _suspect(kind: str, members: tuple[int, ...], pairs: Iterable[Pair]) -> Suspect:
    partners = sorted({node for pair in pairs for node in pair} - set(members))
    return Suspect(
        kind=kind,  # type: ignore[arg-type]  # one of Kind, by the table above
        members=members,
        side="both",
        effect=np.inf,
        z=np.inf,
        usual=np.nan,
        results=max(1, len(partners)),
        partners=tuple(partners),
    )
