"""Pairs as a square: rank by rank, each cell as dark as the pair is slower than usual. Names stand at the edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from commbench.report.reported import Reported
from commbench.report.slow_groups import SLOW, Compared, TimedGroup, compare_groups, hosts_by_rank
from commbench.units import format_seconds

MOST_MAPS = 8
MOST_ROWS = 40  # more ranks share a row, which shows its slowest pair
_MOST_WITH_TEXT = 16
_DARKEST = 4.0  # times the usual time
_LONGEST_NAME = 28
_SIDE = 620  # of the square, in the picture's units


@dataclass(frozen=True, slots=True)
class Cell:
    """The pairs of two blocks of ranks: `shade` from 0 (usual) to 1; `text` is busbw in GB/s where there is room."""

    row: int
    column: int
    text: str
    tooltip: str
    shade: float
    is_slow: bool


@dataclass(frozen=True, slots=True)
class Edge:
    """A row and column: its ranks, their host, and whether a rank of it is in all slow pairs."""

    ranks: str
    host: str
    is_slow: bool


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A square of `len(edges)` rows. `ranks_per_row` above 1: rows were put together."""

    title: str
    edges: tuple[Edge, ...]
    cells: tuple[Cell, ...]
    usual: str
    ranks_per_row: int

    @property
    def cell_side(self) -> float:
        return min(56.0, _SIDE / len(self.edges))

    @property
    def has_text(self) -> bool:
        return len(self.edges) <= _MOST_WITH_TEXT


def make_heat_maps(reported: Sequence[Reported]) -> list[HeatMap]:
    """A map for every collective on pairs at its largest size, of all runs; [] without pairs."""
    maps = []
    for one in reported:
        by_question: dict[object, list[Compared]] = {}
        for compared in compare_groups(one.run):
            by_question.setdefault(compared.question, []).append(compared)
        prefix = f"{one.label}: " if len(reported) > 1 else ""
        for members in by_question.values():
            pairs = [(group, like) for like in members for group in like.groups]
            if _is_square([group for group, _ in pairs]):
                maps.append(_heat_map(prefix, pairs, hosts_by_rank(one.run.record)))
    return maps


def _is_square(groups: Sequence[TimedGroup]) -> bool:
    """Whether all groups are pairs and some rank is in several: else there is nothing to see across."""
    ranks = [rank for group in groups for rank in group.ranks]
    return len(set(ranks)) < len(ranks) and all(len(group.ranks) == 2 for group in groups)


def _heat_map(prefix: str, pairs: Sequence[tuple[TimedGroup, Compared]], hosts: dict[int, str]) -> HeatMap:
    first = pairs[0][1]
    ranks = sorted({rank for group, _ in pairs for rank in group.ranks})
    per_row = -(-len(ranks) // MOST_ROWS)
    blocks = [ranks[start : start + per_row] for start in range(0, len(ranks), per_row)]
    row_of = {rank: row for row, block in enumerate(blocks) for rank in block}
    suspects = {rank for _, like in pairs for rank in like.suspects}
    worst: dict[tuple[int, int], tuple[TimedGroup, Compared]] = {}
    for group, like in pairs:
        a, b = sorted(row_of[rank] for rank in group.ranks)
        held = worst.get((a, b))
        if held is None or _ratio(group, like) > _ratio(*held):
            worst[a, b] = group, like
    has_text = len(blocks) <= _MOST_WITH_TEXT
    cells = [
        _cell(*place, group, like, has_text) for (a, b), (group, like) in worst.items() for place in {(a, b), (b, a)}
    ]
    usual = {like.link_class: format_seconds(like.usual_seconds) for _, like in pairs}
    question = first.question
    return HeatMap(
        title=f"{prefix}{question.words(first.nbytes)}, layout {question.layout}, {question.concurrency}",
        edges=tuple(_edge(block, hosts, suspects) for block in blocks),
        cells=tuple(sorted(cells, key=lambda cell: (cell.row, cell.column))),
        usual=", ".join(f"{seconds} over {link_class}" for link_class, seconds in usual.items()),
        ranks_per_row=per_row,
    )


def _ratio(group: TimedGroup, like: Compared) -> float:
    return group.seconds / like.usual_seconds


def _cell(row: int, column: int, group: TimedGroup, like: Compared, has_text: bool) -> Cell:
    ratio, busbw = _ratio(group, like), group.row.busbw_gbps
    rate = "" if busbw is None else f", {busbw:.3g} GB/s"
    return Cell(
        row=row,
        column=column,
        text=f"{busbw:.3g}" if has_text and busbw is not None else "",
        tooltip=f"{group.row.group}: {format_seconds(group.seconds)}{rate}, {ratio:.2f} times the usual time",
        shade=min(1.0, log2(max(1.0, ratio)) / log2(_DARKEST)),
        is_slow=ratio >= SLOW,
    )


def _edge(block: Sequence[int], hosts: dict[int, str], suspects: set[int]) -> Edge:
    names = list(dict.fromkeys(hosts.get(rank, "") for rank in block))
    host = names[0] if len(names) == 1 else f"{names[0]} …"
    host = host if len(host) <= _LONGEST_NAME else host[: _LONGEST_NAME - 1] + "…"
    ranks = str(block[0]) if len(block) == 1 else f"{block[0]}–{block[-1]}"
    return Edge(ranks, host, not suspects.isdisjoint(block))
