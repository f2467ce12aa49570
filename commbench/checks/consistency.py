"""CON: whether all ranks agree in a fact, and who does not.

A fact is a text, or a table of texts by name (devices, variables), of which only what differs is told. One finding
names the nodes, or the ranks, that are in the minority; without a majority all sides are told.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Literal

from commbench.checks.registry import Scene, Seen, Severity, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts
from commbench.topology.graph import enumerate_keys

Value = str | Mapping[str, str] | None
_MAX_CHARACTERS = 240  # of a value that is told
_ABSENT = "not there"
_SEVERITIES = {"warn": warn, "fail": fail}


@dataclass(frozen=True, slots=True)
class Agreement:
    """One fact that ranks must agree in. `value`: the fact, None or an empty text if it was not seen.

    `of`: whether each node has one, or each rank. `missing_counts`: whether a name that is in the table of some and not
    of others is a difference; where devices are counted by a rule of their own it is not. `by_minority`: a finding
    for each set of names in which the same ones differ, so that one node is told of once.
    """

    id: str
    severity: Severity
    what: str
    value: Callable[[Facts], Value]
    fix: str
    source: str
    explanation: str
    where: str
    of: Literal["node", "rank"] = "node"
    missing_counts: bool = False
    by_minority: bool = False


def declare(agreement: Agreement) -> None:
    """Make the agreement a rule."""

    def check(scene: Scene) -> Iterator[Seen]:
        yield from judge_agreement(scene, agreement)

    check.__doc__ = agreement.explanation
    everybody = "all ranks" if agreement.of == "rank" else "all nodes"
    summary = f"{everybody} agree: {agreement.what}"
    rule(agreement.id, agreement.severity, summary=summary, fix=agreement.fix, source=agreement.source)(check)


def everyone(scene: Scene) -> list[Facts]:
    """The facts of all ranks that are known, each once, in the order of their ranks."""
    known = {(*_node(facts), facts.process.rank): facts for facts in (*scene.peers, scene.facts)}
    return sorted(known.values(), key=lambda facts: (facts.process.rank, _node(facts)))


def _node(facts: Facts) -> tuple[str, str]:
    return facts.host.name, facts.host.boot_id_hash


def one_per_node(ranks: Sequence[Facts]) -> list[Facts]:
    """The first rank of each node."""
    first: dict[tuple[str, str], Facts] = {}
    for facts in ranks:
        first.setdefault(_node(facts), facts)
    return list(first.values())


def said(table: Mapping[str, object]) -> Mapping[str, str] | None:
    """Only what was seen of a table, as texts; None if that is nothing."""
    return {name: str(value) for name, value in table.items() if value not in (None, "", ())} or None


def judge_agreement(scene: Scene, agreement: Agreement) -> Iterator[Seen]:
    """What is to be said of the agreement: one `ok`, or who differs, and who could not be seen."""
    ranks = everyone(scene)
    compared = one_per_node(ranks) if agreement.of == "node" else ranks
    if len(compared) < 2:
        yield skip(agreement.what, f"one {agreement.of}: nothing to compare with", agreement.where)
        return
    values = [agreement.value(facts) for facts in compared]
    seen = [(facts, value) for facts, value in zip(compared, values, strict=True) if value not in (None, "")]
    blind = [facts for facts, value in zip(compared, values, strict=True) if value in (None, "")]
    if len(seen) < 2:
        yield skip(agreement.what, "not seen on enough of them to compare", agreement.where)
        return
    if blind:
        yield skip(agreement.what, f"not seen on {name_ranks(blind, ranks, agreement.of)}", agreement.where)
    tables = [(facts, value if isinstance(value, Mapping) else {"": str(value)}) for facts, value in seen]
    different = _different([table for _, table in tables], agreement.missing_counts)
    together = [different] if different else []
    for names in _by_minority([table for _, table in tables], different) if agreement.by_minority else together:
        texts = [(facts, _text(table, names)) for facts, table in tables]
        yield _judge_texts(agreement, texts, ranks)
    if not different:
        yield ok(agreement.what, _common(seen[0][1], len(seen), agreement.of), where=agreement.where)


def _different(tables: list[Mapping[str, str]], missing_counts: bool) -> list[str]:
    """The names whose values are not the same in all tables, in order."""
    every = {name for table in tables for name in table}
    if not missing_counts:
        every = {name for name in every if all(name in table for table in tables)}
    return sorted(name for name in every if len({table.get(name, _ABSENT) for table in tables}) > 1)


def _by_minority(tables: list[Mapping[str, str]], names: list[str]) -> list[list[str]]:
    """The names in groups: those of one group divide the tables in the same way."""
    groups: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name in names:
        sides: dict[str, int] = {}
        groups[tuple(sides.setdefault(table.get(name, _ABSENT), len(sides)) for table in tables)].append(name)
    return list(groups.values())


def _text(table: Mapping[str, str], names: Sequence[str]) -> str:
    return ", ".join(f"{name}{': ' if name else ''}{table.get(name, _ABSENT)}" for name in names)


def _cut(text: str, most: int = _MAX_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _common(value: Value, count: int, of: str) -> str:
    shown = _text(value, sorted(value)) if isinstance(value, Mapping) else value
    return f"{_cut(shown or 'none', 80)} on all {count} {of}s"


def _judge_texts(agreement: Agreement, texts: Sequence[tuple[Facts, str]], ranks: Sequence[Facts]) -> Seen:
    """The finding that names the minority, or all sides where the most frequent value is not alone at the top."""
    sides: dict[str, list[Facts]] = defaultdict(list)
    for facts, text in texts:
        sides[text].append(facts)
    ordered = sorted(sides.items(), key=lambda side: -len(side[1]))
    (usual, most), *others = ordered
    worse = _SEVERITIES[agreement.severity]
    if len(most) == len(others[0][1]):
        observed = "; ".join(f"{name_ranks(side, ranks, agreement.of)}: {_cut(text)}" for text, side in ordered)
        return worse(agreement.what, f"no majority: {observed}", "one value", agreement.where)
    minority = [facts for _, side in others for facts in side]
    if len(others) == 1:
        observed = _cut(others[0][0])
    else:
        observed = "; ".join(f"{name_ranks(side, ranks, agreement.of)}: {_cut(text)}" for text, side in others)
    noun = agreement.of if len(most) == 1 else f"{agreement.of}s"
    expected = f"{_cut(usual)}, as the other {len(most)} {noun}"
    return worse(name_ranks(minority, ranks, agreement.of), f"{agreement.what}: {observed}", expected, agreement.where)


def name_ranks(some: Sequence[Facts], ranks: Sequence[Facts], of: str = "rank") -> str:
    """Such as `node n3 (ranks 8-15)`, or `rank 5 on n2` where not all ranks of a node are meant.

    With `of` node, each of `some` stands for its whole node.
    """
    sizes = Counter(_node(facts) for facts in ranks)
    chosen = Counter(_node(facts) for facts in some)
    whole = dict.fromkeys(node for node in sizes if node in chosen and (of == "node" or chosen[node] == sizes[node]))
    parts = []
    if whole:
        names = enumerate_keys(_shown(node, sizes) for node in whole)
        numbers = [str(facts.process.rank) for facts in ranks if _node(facts) in whole]
        parts.append(f"node{_s(whole)} {names} (rank{_s(numbers)} {enumerate_keys(numbers)})")
    for node in chosen:
        if node not in whole:
            numbers = [str(facts.process.rank) for facts in some if _node(facts) == node]
            parts.append(f"rank{_s(numbers)} {enumerate_keys(numbers)} on {_shown(node, sizes)}")
    return ", ".join(parts)


def _s(some: Sized) -> str:
    return "s" if len(some) > 1 else ""


def _shown(node: tuple[str, str], nodes: Mapping[tuple[str, str], int]) -> str:
    """A node's name, with its boot id where another has the same name."""
    name, boot = node
    is_alone = sum(1 for other, _ in nodes if other == name) == 1
    return (name or "unnamed") if is_alone else f"{name}[{boot}]"
