"""From a tree of places to the link of every pair: which PCIe switches and NUMA nodes lie between two devices."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from commbench.topology.graph import Device, Link, Place


@dataclass(frozen=True, slots=True)
class Way:
    """The way of a device to the top of the tree: the switches above it, from the nearest, and its NUMA node.

    `slot`: what the device shares with other functions of its card. `bytes_per_second`: of the device's own PCIe link
    and then of each switch's link upwards, None where it is not said. `host`: the host bridge; empty if not told.
    """

    slot: str
    switches: tuple[str, ...]
    numa: str
    bytes_per_second: tuple[float | None, ...]
    host: str = ""


def link_devices(devices: Sequence[Device], ways: dict[str, Way], bridges_of_a_port: int = 0) -> list[Link]:
    """The PCIe link of every pair of devices.

    `bridges_of_a_port`: how many bridges below the one that two devices share still belong to the same switch.
    """
    return [
        _link((one.key, other.key), ways[one.key], ways[other.key], bridges_of_a_port)
        for one, other in combinations(devices, 2)
    ]


def _link(pair: tuple[str, str], here: Way, there: Way, bridges_of_a_port: int) -> Link:
    one, other = pair
    if here.slot and here.slot == there.slot:
        return Link(one, other, "pix")
    shared = next((switch for switch in here.switches if switch in there.switches), None)
    if shared is None:
        return Link(one, other, _over_the_host(here, there), bytes_per_second=_host_rate(here, there))
    up, down = here.switches.index(shared), there.switches.index(shared)
    rates = (*here.bytes_per_second[: up + 1], *there.bytes_per_second[: down + 1])
    return Link(one, other, "pxb" if max(up, down) > bridges_of_a_port else "pix", bytes_per_second=_slowest(rates))


def _over_the_host(here: Way, there: Way) -> str:
    if here.host and here.host == there.host:
        return "phb"
    if not here.numa or not there.numa:
        return "unknown"
    if here.numa != there.numa:
        return "sys"
    return "phb" if here.host == there.host else "node"


def _host_rate(here: Way, there: Way) -> float | None:
    """The slower of both ways up to the host bridge that they share; of what joins bridges no rate is said."""
    if _over_the_host(here, there) != "phb":
        return None
    return _slowest((*here.bytes_per_second, *there.bytes_per_second))


def _slowest(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return min(known) if len(known) == len(rates) and rates else None


def order_places(places: Sequence[Place]) -> tuple[Place, ...]:
    """Places with what is above them first, as the input has them otherwise."""
    return tuple(sorted(places, key=lambda place: _depth(place, {one.key: one for one in places})))


def _depth(place: Place, by_key: dict[str, Place]) -> int:
    depth = 0
    while place.parent in by_key and depth < len(by_key):
        place, depth = by_key[place.parent], depth + 1
    return depth
