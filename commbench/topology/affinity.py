"""Which NICs are nearest to each GPU."""

from dataclasses import dataclass

from commbench.topology.graph import NEARNESS, Topology

# Azure's name for its accelerated Ethernet, a virtual function for the host's own traffic.
_HOST_TRAFFIC = "mlx5_an"


@dataclass(frozen=True, slots=True)
class NearestNics:
    """The NICs that a GPU reaches over its best link class; `link_class` is `unknown` where it is told of none."""

    gpu: str
    nics: tuple[str, ...]
    link_class: str


def nearest_nics(topology: Topology) -> tuple[NearestNics, ...]:
    """The nearest NICs of every GPU, all of them where several are alike."""
    usable = [nic.key for nic in topology.nics if not carries_host_traffic(nic.name or nic.key)]
    nearest = []
    for gpu in topology.gpus:
        classes = {nic: topology.link_class(gpu.key, nic) for nic in usable}
        best = min(classes.values(), key=NEARNESS.index, default="unknown")
        nics = tuple(nic for nic, link_class in classes.items() if link_class == best != "unknown")
        nearest.append(NearestNics(gpu.key, nics, best))
    return tuple(nearest)


def carries_host_traffic(name: str) -> bool:
    """Whether a NIC of this name is for the host's own traffic, not for collectives."""
    return name.startswith(_HOST_TRAFFIC)
