"""From bytes to every form of the result, as the fuzzers go."""

from commbench.report.topology import TOPOLOGY_FORMATS
from commbench.topology import read_topology


def show_whole(data: bytes, format_name: str | None) -> None:
    """Read `data` and show it in every form. Raises CommbenchError where it is refused."""
    topology = read_topology(data, "topo.txt", format_name)
    keys = [device.key for device in topology.devices]
    assert len(set(keys)) == len(keys)
    assert {key for link in topology.links for key in (link.first, link.second)} <= set(keys)
    assert all(write(topology) for write in TOPOLOGY_FORMATS.values())
