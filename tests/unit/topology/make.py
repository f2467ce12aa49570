"""Small machines for the tests, and short words for what they were read as."""

from commbench.results.schema import Finding
from commbench.topology import read_topology
from commbench.topology.graph import Topology

MATRIX = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV4\tNV4\tNV4\tPIX\tSYS\t0-7\t0\t\tN/A
GPU1\tNV4\t X \tNV4\tNV4\tPXB\tSYS\t0-7\t0\t\tN/A
GPU2\tNV4\tNV4\t X \tNV4\tSYS\tPIX\t8-15\t1\t\tN/A
GPU3\tNV4\tNV4\tNV4\t X \tSYS\tPIX\t8-15\t1\t\tN/A
NIC0\tPIX\tPXB\tSYS\tSYS\t X \tSYS\t\t\t
NIC1\tSYS\tSYS\tPIX\tPIX\tSYS\t X \t\t\t

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_2
"""


def read(text: str | bytes, format_name: str | None = None) -> Topology:
    """The machine that `text` tells of."""
    return read_topology(text.encode() if isinstance(text, str) else text, "topo.txt", format_name)


def matrix(topology: Topology) -> str:
    """A line for each device, with a word for each link: `nvlink4` has four lanes, `-` is no link that was told of."""
    return "\n".join(
        " ".join("x" if one is other else _word(topology, one.key, other.key) for other in topology.devices)
        for one in topology.devices
    )


def _word(topology: Topology, one: str, other: str) -> str:
    link = topology.link(one, other)
    return f"{link.link_class}{link.lanes or ''}" if link else "-"


def found(topology: Topology) -> dict[str, list[str]]:
    """The subjects of the findings of each rule."""
    rules: dict[str, list[str]] = {}
    for finding in topology.findings:
        rules.setdefault(finding.rule, []).append(finding.subject)
    return rules


def finding(topology: Topology, rule: str) -> Finding:
    """The one finding of a rule."""
    (one,) = [finding for finding in topology.findings if finding.rule == rule]
    return one
