"""A snapshot of a machine's facts, as `commbench topo --snapshot` writes it."""

from commbench.machine.snapshot import is_snapshot, read_snapshot
from commbench.topology.from_facts import make_topology
from commbench.topology.graph import Topology

FORMAT = "snapshot"


def recognises(text: str) -> bool:
    """Whether `text` is a snapshot."""
    return is_snapshot(text)


def read(text: str, source: str) -> Topology:
    """The machine of a snapshot. Raises CommbenchError if it is none, or is of a newer schema."""
    return make_topology(read_snapshot(text.encode(), source), FORMAT, source)
