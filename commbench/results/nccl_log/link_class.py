"""The link class of a group of ranks from the transports that a log shows."""

from collections.abc import Callable, Iterable

from commbench.results.nccl_log.records import Connection, NcclLog

# From the nearest; a group is as far as its farthest pair.
_ORDER = ("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys", "unknown", "net")
_BY_NAME = {"NVL": "nvlink", "NVB": "nvlink", "PIX": "pix", "PXB": "pxb", "PHB": "phb", "SYS": "sys"}


def link_class(
    log: NcclLog, comm: str, ranks: Iterable[int], link_of_pair: Callable[[int, int], str] | None = None
) -> str:
    """The slowest kind of link that the ranks of one communicator cross; `unknown` where no pair of them is told of.

    `link_of_pair` is the wiring of two ranks of one node, where it is known: a log says P2P, not whether over NVLink
    or PCIe. Without it, the path type of NCCL's own graph search (NCCL_DEBUG_SUBSYS=GRAPH) stands for P2P, and shared
    memory stays unknown, for it crosses the host in any case.
    """
    members = frozenset(ranks)
    return farthest(found for pair, found in pair_classes(log, comm, link_of_pair).items() if pair <= members)


def pair_classes(
    log: NcclLog, comm: str, link_of_pair: Callable[[int, int], str] | None = None
) -> dict[frozenset[int], str]:
    """The link class of every pair of a communicator that is told of, the farther one of several; as `link_class`."""
    found: dict[frozenset[int], str] = {}
    for connection in log.connections:
        if connection.comm == comm:
            pair = frozenset((connection.source, connection.target))
            link_class = _class_of(log, connection, link_of_pair)
            found[pair] = farthest((found.get(pair, link_class), link_class))
    return found


def farthest(link_classes: Iterable[str]) -> str:
    """The link class of a group with these pairs; `unknown` of none."""
    return max(link_classes, key=_ORDER.index, default="unknown")


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
