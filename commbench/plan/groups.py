"""How the world is cut into groups: layouts as pure functions of the world's size and its nodes.

A layout is a list of waves; the groups of a wave share no rank, so they can run together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from commbench.errors import UsageError, unknown_name
from commbench.plan.rounds import circle_round, circle_rounds

_MOST_READ = 1 << 20  # ranks in a text of a file


@dataclass(frozen=True, slots=True)
class World:
    """The ranks of a run: `node_of_rank[r]` is the index of the node that rank r runs on."""

    node_of_rank: tuple[int, ...]

    @classmethod
    def uniform(cls, size: int, ranks_per_node: int) -> "World":
        """A world of `size` ranks that fills node after node."""
        return cls(tuple(rank // ranks_per_node for rank in range(size)))

    @property
    def size(self) -> int:
        return len(self.node_of_rank)

    def nodes_of(self, ranks: Iterable[int]) -> int:
        """The number of nodes that `ranks` run on."""
        return len({self.node_of_rank[rank] for rank in ranks})

    def ranks_by_node(self) -> list[list[int]]:
        """The ranks of every node, nodes in the order of their first rank."""
        nodes: dict[int, list[int]] = {}
        for rank, node in enumerate(self.node_of_rank):
            nodes.setdefault(node, []).append(rank)
        return list(nodes.values())


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks that take part in one collective, in the order of their index in it."""

    name: str
    ranks: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.ranks)


@dataclass(frozen=True, slots=True)
class Wave:
    """Groups without a common rank. `layout`: the word that the table shows, such as `node` or `mesh:tp`."""

    layout: str
    groups: tuple[Group, ...]


def _world(world: World, _: str) -> Iterator[Wave]:
    yield Wave("world", (Group("world", tuple(range(world.size))),))


def _node(world: World, _: str) -> Iterator[Wave]:
    yield _wave("node", world.ranks_by_node())


def _rail(world: World, _: str) -> Iterator[Wave]:
    nodes = world.ranks_by_node()
    widths = {len(ranks) for ranks in nodes}
    if len(widths) > 1:
        raise UsageError(f"layout rail needs as many ranks on every node, found {sorted(widths)}: use ranks:….")
    yield _wave("rail", list(zip(*nodes, strict=True)))


def _mesh(world: World, spec: str) -> Iterator[Wave]:
    axes = _parse_axes(spec)
    product = prod(length for _, length in axes)
    if product != world.size:
        shown = " x ".join(f"{axis}={length}" for axis, length in axes)
        raise UsageError(f"mesh {shown} is {product} ranks, but the world has {world.size}: make the product match.")
    stride = product
    for axis, length in axes:
        stride //= length
        lines = [
            range(start, start + length * stride, stride) for start in range(product) if start // stride % length == 0
        ]
        yield _wave(f"mesh:{axis}", lines)


def _pairs(world: World, _: str) -> Iterator[Wave]:
    """Every pair once, in n-1 rounds of disjoint pairs (n rounds for odd n)."""
    if world.size < 2:
        raise UsageError("layout pairs needs at least 2 ranks, the world has 1.")
    for turn in range(circle_rounds(world.size)):
        yield Wave("pairs", tuple(Group(f"{a}-{b}", (a, b)) for a, b in circle_round(world.size, turn)))


def _halves(world: World, _: str) -> Iterator[Wave]:
    if world.size < 2:
        raise UsageError("layout halves needs at least 2 ranks, the world has 1.")
    middle = world.size // 2
    yield _wave("halves", [range(middle), range(middle, world.size)])


def _strided(world: World, spec: str) -> Iterator[Wave]:
    if not re.fullmatch(r"\d{1,9}", spec, re.ASCII) or not 1 <= int(spec) <= world.size:
        raise UsageError(f"strided:{spec}: the stride is a whole number from 1 to the world size {world.size}.")
    stride = int(spec)
    yield _wave(f"strided:{stride}", [range(first, world.size, stride) for first in range(stride)])


def _ladder(world: World, _: str) -> Iterator[Wave]:
    """All ranks of the first 2, 4, 8, … nodes, on one node the first 2, 4, 8, … ranks, and at last all.

    Each rung is a wave, for they share ranks.
    """
    if world.size < 2:
        raise UsageError("layout ladder needs at least 2 ranks, the world has 1.")
    nodes = world.ranks_by_node()
    if len(nodes) == 1:
        for rung in _rungs(world.size):
            yield Wave("ladder", (Group(f"first {rung}", tuple(range(rung))),))
        return
    for rung in _rungs(len(nodes)):
        yield Wave("ladder", (Group(f"{rung} nodes", tuple(sorted(chain(*nodes[:rung])))),))


def _rungs(top: int) -> list[int]:
    """2, 4, 8, … below `top`, and `top`."""
    return [*(1 << power for power in range(1, top.bit_length()) if 1 << power < top), top]


def _ranks(world: World, spec: str) -> Iterator[Wave]:
    groups = [_parse_ranks(part, world.size) for part in spec.split("/")]
    times = Counter(rank for group in groups for rank in group)
    rank, count = times.most_common(1)[0]
    if count > 1:
        raise UsageError(f"ranks:{spec} names rank {rank} {count} times: the groups of one layout share no rank.")
    yield _wave(f"ranks:{spec}", groups)


@dataclass(frozen=True, slots=True)
class Layout:
    """One row of the table of layouts; `argument` is its form after the colon, empty if it takes none."""

    name: str
    argument: str
    summary: str
    cut: Callable[[World, str], Iterator[Wave]]


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout("world", "", "all ranks as one group", _world),
        Layout("node", "", "one group per node", _node),
        Layout("rail", "", "the same local rank on every node", _rail),
        Layout("mesh", "AXIS=N,AXIS=N…", "every axis of a mesh in turn, the last axis fastest", _mesh),
        Layout("pairs", "", "every pair of ranks, in rounds of disjoint pairs", _pairs),
        Layout("halves", "", "the first and the second half of the world", _halves),
        Layout("strided", "N", "N groups: every N-th rank", _strided),
        Layout("ladder", "", "the first 2, 4, 8, … nodes and all, or ranks on one node, for scaling", _ladder),
        Layout("ranks", "LIST/LIST…", "explicit ranks, like ranks:0-3/4-7", _ranks),
    )
}


def check_layout(text: str) -> None:
    """Raise UsageError if `text` cannot be a layout of any world: an unknown name, or an argument too many or few."""
    name, colon, argument = text.partition(":")
    if name not in LAYOUTS:
        raise unknown_name("layout", name, LAYOUTS)
    form = LAYOUTS[name].argument
    if form and not argument:
        raise UsageError(f"layout {name} needs an argument: write {name}:{form}.")
    if colon and not form:
        raise UsageError(f"layout {name} takes no argument, found {text!r}: write {name}.")


def cut_world(world: World, text: str) -> list[Wave]:
    """The waves of the layout that `text` names. Raises UsageError if the layout does not fit the world."""
    check_layout(text)
    name, _, argument = text.partition(":")
    return list(LAYOUTS[name].cut(world, argument))


def format_ranks(ranks: Sequence[int]) -> str:
    """`0-3,8,10`: runs of consecutive ranks, in the given order."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read_ranks(text: str) -> tuple[int, ...]:
    """The ranks that `format_ranks` wrote; () where a file holds something else, or more than 2^20 ranks."""
    runs = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part, re.ASCII)
        if match is None:
            return ()
        runs.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(chain(*runs)) if sum(map(len, runs)) <= _MOST_READ else ()


def _wave(layout: str, groups: Iterable[Sequence[int]]) -> Wave:
    cut = [tuple(ranks) for ranks in groups]
    return Wave(layout, tuple(Group(format_ranks(ranks), ranks) for ranks in cut if ranks))


def _parse_axes(spec: str) -> list[tuple[str, int]]:
    axes: dict[str, int] = {}
    for part in spec.split(","):
        match = re.fullmatch(r"\s*([A-Za-z_]\w*)=([1-9]\d{0,8})\s*", part, re.ASCII)
        if match is None:
            raise UsageError(f"cannot read the mesh axis {part!r}: write NAME=LENGTH, like mesh:dp=2,tp=4.")
        if match[1] in axes:
            raise UsageError(f"mesh:{spec} names the axis {match[1]!r} twice.")
        axes[match[1]] = int(match[2])
    return list(axes.items())


def _parse_ranks(part: str, size: int) -> list[int]:
    ranks: list[int] = []
    for run in part.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", run, re.ASCII)
        if match is None:
            raise UsageError(f"cannot read the ranks {run!r}: write 0-3 or 0,2,4, groups apart by a slash.")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise UsageError(f"the ranks {run!r} run backwards: write {last}-{first}.")
        if last >= size:
            raise UsageError(f"the ranks {run!r} leave the world: its ranks are 0 to {size - 1}.")
        ranks += range(first, last + 1)
    return ranks
