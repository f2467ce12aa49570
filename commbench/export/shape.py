"""The shape of the measured machine, and how far apart the ranks of its groups are."""

from collections.abc import Sequence
from itertools import pairwise

from commbench.analysis.records import CurveFit
from commbench.errors import CommbenchError
from commbench.export.records import Shape
from commbench.plan.groups import read_ranks
from commbench.results.schema import GroupRecord
from commbench.results.store import Run


def find_shape(runs: Sequence[Run], fits: Sequence[CurveFit]) -> Shape:
    """The shape of the largest run. Raises CommbenchError where it is not known, or nodes are not alike."""
    by_hosts = [shape for run in runs if (shape := _by_hosts(run)) is not None]
    if by_hosts:
        return max(by_hosts, key=lambda shape: shape.world_size)
    return _by_curves(fits)


def _by_hosts(run: Run) -> Shape | None:
    """None for an imported run: its hosts do not say which ranks they had."""
    if run.record.origin is not None or not run.record.world_size:
        return None
    widths = {len(read_ranks(host.ranks)) for host in run.record.hosts}
    if len(widths) != 1 or sum(widths) * len(run.record.hosts) != run.record.world_size:
        found = ", ".join(f"{host.name} has {host.ranks or 'none'}" for host in run.record.hosts[:4])
        raise CommbenchError(f"planners want as many ranks on every node, and {found}: sweep with equal numbers.")
    return Shape(len(run.record.hosts), widths.pop())


def _by_curves(fits: Sequence[CurveFit]) -> Shape:
    """Of imported runs: the largest group on one node, and the most nodes."""
    known = [(fit.key.ranks, fit.key.nodes) for fit in fits if fit.key.nodes]
    inside = max((ranks for ranks, nodes in known if nodes == 1), default=0)
    nodes = max((nodes for _, nodes in known), default=0)
    if not known or not (inside or all(ranks == nodes for ranks, nodes in known)):
        raise CommbenchError(
            "the run does not say how many ranks a node has: import it again, like commbench import --nodes 1 FILE."
        )
    return Shape(nodes, inside or 1)


def find_strides(runs: Sequence[Run]) -> dict[tuple[str, int], int | None]:
    """By layout and number of ranks: how far apart neighbours in its groups are; None where that is not one number."""
    found: dict[tuple[str, int], set[int | None]] = {}
    for run in runs:
        for group in run.record.groups:
            if group.size is not None and group.size > 1:
                found.setdefault((group.layout, group.size), set()).add(_stride(group))
    return {key: strides.pop() if len(strides) == 1 else None for key, strides in found.items()}


def _stride(group: GroupRecord) -> int | None:
    strides = {right - left for left, right in pairwise(read_ranks(group.ranks))}
    return strides.pop() if len(strides) == 1 else None
