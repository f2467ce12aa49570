"""What a group of GPUs of one machine must cross: the link class and the nominal rate of its pairs."""

from collections.abc import Sequence
from itertools import combinations

from commbench.topology.graph import NEARNESS, Link, Topology


def gpu_at(topology: Topology, address: str) -> str | None:
    """The key of the GPU with this PCI address, however its domain and letters are written; None if there is none."""
    wanted = _plain(address)
    return next((gpu.key for gpu in topology.gpus if gpu.bus_id and _plain(gpu.bus_id) == wanted), None)


def link_of_gpus(topology: Topology, addresses: Sequence[str]) -> tuple[str, float | None]:
    """Link class and bytes per second of a group, by the PCI address of each rank's GPU: as far as its farthest pair,
    as fast as its slowest, where the rate of every pair is known.

    `unknown` where a pair is not told of. What ranks on one GPU send each other crosses no link: they do not make the
    group farther, but what they share is no rank's rate, so it has none; a group on one GPU alone is `unknown`.
    """
    keys = [gpu_at(topology, address) for address in dict.fromkeys(map(_plain, addresses))]
    known = [key for key in keys if key is not None]
    if len(known) < len(keys) or len(known) < 2:
        return "unknown", None
    links = [topology.link(*pair) or Link(*pair, "unknown") for pair in combinations(known, 2)]
    rates = [link.bytes_per_second for link in links]
    slowest = min((rate for rate in rates if rate is not None), default=None)
    all_told = None not in rates and len(keys) == len(addresses)
    return max((link.link_class for link in links), key=NEARNESS.index), slowest if all_told else None


def _plain(address: str) -> str:
    """A PCI address without leading zeros of its domain (4 or 8 digits), in small letters."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain.lstrip('0')}:{rest}"
