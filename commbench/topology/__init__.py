"""How a machine is wired, from what other tools say of it. Bytes or facts in, records out; nothing here opens a file.

`FORMATS` is the table of what can be read. A module of it has two functions: `recognises`, of a text, and `read`, of a
text and the name of its source. To add a format: a module, a line here, and a file of tests.
"""

from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from commbench.errors import CommbenchError, unknown_name
from commbench.topology.graph import Topology
from commbench.units import format_nbytes

MAX_LINES = 200_000
MAX_NBYTES = 8 << 20  # the largest machines' XML is some hundred KB


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table of formats."""

    name: str
    module: str
    summary: str


# In the order in which they are asked: those with an unmistakable mark come first.
FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("snapshot", "snapshot", "what commbench topo --snapshot wrote on some machine"),
        Format("nccl-topology", "nccl_xml", "NCCL's and RCCL's topology file, the XML of NCCL_TOPO_DUMP_FILE"),
        Format("nccl-graph", "nccl_graph", "NCCL's graph file: recognised, and refused by name"),
        Format("lstopo", "lstopo", "hwloc's lstopo --of xml"),
        Format("lstopo-text", "lstopo_text", "hwloc's lstopo --of console, also -v"),
        Format("lspci-tree", "lspci_tree", "lspci -tv: the tree of PCI buses with the names of devices"),
        Format("rocm-smi", "rocm_smi", "rocm-smi --showtopo and its parts"),
        Format("ibstat", "ibstat", "ibstat: ports of NICs, their state and rate"),
        Format("ibv_devinfo", "ibv_devinfo", "ibv_devinfo, also with -v: ports of NICs and their GIDs"),
        Format("show_gids", "show_gids", "show_gids: the GIDs of every port"),
        Format("ifconfig", "ifconfig", "ifconfig: network interfaces, and which reach other nodes"),
        Format("nvidia-smi-p2p", "nvidia_p2p", "nvidia-smi topo -p2p, which GPUs reach each other's memory"),
        Format("nvidia-smi-topo", "nvidia_smi", "nvidia-smi topo -m, the matrix of every version"),
        Format("nvidia-smi-list", "nvidia_smi_list", "nvidia-smi -L: GPUs, and which are cut by MIG"),
    )
}


def read_topology(data: bytes, source: str, format_name: str | None = None) -> Topology:
    """The machine that `data` tells of; `format_name` overrides what it is recognised as.

    Raises UsageError for a format that is not known, CommbenchError for data of no format, too large, or with nothing
    in it that can be read.
    """
    if format_name is not None and format_name not in FORMATS:
        raise unknown_name("format", format_name, FORMATS)
    if len(data) > MAX_NBYTES:
        limit = format_nbytes(MAX_NBYTES)
        raise CommbenchError(f"{source} is larger than {limit}: cut it to the part with the topology.")
    from commbench.results.importers.lines import decode  # with all that reads lines, which facts do not need

    text = decode(data)
    if not text.strip():
        raise CommbenchError(f"{source} is empty: there is no topology in it.")
    if text.count("\n") + text.count("\r") > MAX_LINES:
        raise CommbenchError(f"{source} has more than {MAX_LINES} lines: cut it to the part with the topology.")
    row = FORMATS[format_name] if format_name else _recognise(text, source)
    topology: Topology = _module(row).read(text, source)
    return with_judgement(topology)


def with_judgement(topology: Topology) -> Topology:
    """A machine with the findings that follow from its wiring, behind those of its source."""
    from commbench.topology.findings import judge

    return replace(topology, findings=(*topology.findings, *judge(topology)))


def _recognise(text: str, source: str) -> Format:
    for row in FORMATS.values():
        if _module(row).recognises(text):
            return row
    raise CommbenchError(f"{source} is of no format that is known here: give --as, one of {', '.join(FORMATS)}.")


def _module(row: Format) -> Any:
    return import_module(f"{__name__}.{row.module}")
