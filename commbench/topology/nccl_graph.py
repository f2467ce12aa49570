"""NCCL's graph file (NCCL_GRAPH_DUMP_FILE) is recognised to be refused by name: it says nothing of the wiring."""

from commbench.errors import CommbenchError
from commbench.topology.graph import Topology
from commbench.topology.xml_tree import read_xml, root_tag


def recognises(text: str) -> bool:
    """Whether `text` is XML with the root of a graph file."""
    return root_tag(text) == "graphs"


def read(text: str, source: str) -> Topology:
    """Raises CommbenchError in any case, with what the file is and which one is wanted."""
    root = read_xml(text, source)
    graphs = [*root.named("graph")]
    channels = sum(len([*graph.named("channel")]) for graph in graphs)
    raise CommbenchError(
        f"{source} is a graph file of NCCL ({len(graphs)} graphs, {channels} channels): "
        "what NCCL chose, not how the machine is wired; give the file that NCCL_TOPO_DUMP_FILE writes."
    )
