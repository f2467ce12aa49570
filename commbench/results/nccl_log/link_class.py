"""The link class of a group of ranks from the transports that a log shows."""

from collections.abc import Callable, Collection, Mapping
from itertools import combinations

from commbench.results.nccl_log.records import Connection, NcclLog

Pair = frozenset[int]
# From the nearest; a group is as far as its farthest pair.
_ORDER = ("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys", "unknown", "net")
_BY_NAME = {"NVL": "nvlink", "NVB": "nvlink", "PIX": "pix", "PXB": "pxb", "PHB": "phb", "SYS": "sys"}


def pair_classes(log: NcclLog, comm: str, link_of_pair: Callable[[int, int], str] | None = None) -> dict[Pair, str]:
    """The link class of every pair of ranks of a communicator that is told of; of several ways the farthest.

    `link_of_pair` is the wiring of two ranks of one node, where it is known: a log says P2P, not whether over NVLink
    or PCIe. Without it, the path type of NCCL's own graph search (NCCL_DEBUG_SUBSYS=GRAPH) stands for P2P, and shared
    memory stays unknown, for it crosses the host in any case.
    """
    found: dict[Pair, str] = {}
    for connection in log.connections:
        if connection.comm == comm:
            pair = frozenset((connection.source, connection.target))
            here = _class_of(log, connection, link_of_pair)
            found[pair] = max(found.get(pair, here), here, key=_ORDER.index)
    return found


def link_class(pairs: Mapping[Pair, str], ranks: Collection[int]) -> str:
    """The slowest kind of link that a group crosses, given those of its `pairs`; `unknown` where not every rank of it
    is told of.
    """
    told = [pair for pair in map(frozenset, combinations(ranks, 2)) if pair in pairs]
    if not told or len(frozenset[int]().union(*told)) < len(ranks):
        return "unknown"
    return max((pairs[pair] for pair in told), key=_ORDER.index)


def _class_of(log: NcclLog, connection: Connection, link_of_pair: Callable[[int, int], str] | None) -> str:
    transport = connection.transport
    if transport.kind == "NET":
        return "net"
    if transport.detail == "MNNVL":
        return "nvlink"
    known = link_of_pair(connection.source, connection.target) if link_of_pair else "unknown"
    if transport.kind == "SHM":  # by way of the host's memory, whatever joins the two
        return known if known in ("phb", "node", "sys", "unknown") else "phb"
    if known == "unknown" and len(log.intra_types) == 1:
        return _BY_NAME.get(log.intra_types[0], "unknown")
    return known if known in _ORDER else "unknown"
