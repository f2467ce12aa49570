"""The records of a machine's wiring: devices, where they sit, and the link of every pair that the input speaks of.

What the input does not say is None, an empty text, or the link class `unknown`: nothing is filled in.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from commbench.results.finding import Finding

DeviceKind = Literal["gpu", "nic"]
PlaceKind = Literal["numa", "switch"]

MAX_DEVICES = 512  # the matrix grows with the square of it
# Link classes within a node, from the nearest.
NEARNESS = ("nvlink", "xgmi", "pix", "pxb", "phb", "node", "sys", "unknown")
FABRICS = ("nvlink", "xgmi")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU, or a NIC as the communication library sees it (a port of a card).

    `key` is unique and what links name; `name` is the system's, such as mlx5_0. `cpus` is a list such as `0-3,8-11`.
    `place`: the key of the switch or NUMA node that it hangs on. `bytes_per_second`: a NIC's line rate.
    """

    key: str
    kind: DeviceKind
    name: str = ""
    bus_id: str = ""
    numa_node: int | None = None
    cpus: str = ""
    place: str = ""
    bytes_per_second: float | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A NUMA node or a PCIe switch; `parent` is the key of the place above it, empty at the top."""

    key: str
    kind: PlaceKind
    name: str
    parent: str = ""
    cpus: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """How two devices reach each other. `lanes` are NVLinks or XGMI links side by side.

    `bytes_per_second` is nominal, in one direction, and None where the input does not say generation and width.
    `peer_access`: what `nvidia-smi topo -p2p` says, in its own word.
    """

    first: str
    second: str
    link_class: str
    lanes: int | None = None
    bytes_per_second: float | None = None
    peer_access: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """One machine. `complete` is False where the text ends or breaks before every GPU was told of."""

    format: str
    source: str
    devices: tuple[Device, ...]
    links: tuple[Link, ...] = ()
    places: tuple[Place, ...] = ()
    findings: tuple[Finding, ...] = ()
    complete: bool = True
    _by_pair: dict[frozenset[str], Link] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_pair = {frozenset((link.first, link.second)): link for link in self.links}
        object.__setattr__(self, "_by_pair", by_pair)

    @property
    def gpus(self) -> tuple[Device, ...]:
        """The GPUs, in the order of the input."""
        return tuple(device for device in self.devices if device.kind == "gpu")

    @property
    def nics(self) -> tuple[Device, ...]:
        """The NICs, in the order of the input."""
        return tuple(device for device in self.devices if device.kind == "nic")

    def link(self, first: str, second: str) -> Link | None:
        """The link of two devices; None where the input says nothing of the pair."""
        return self._by_pair.get(frozenset((first, second)))

    def link_class(self, first: str, second: str) -> str:
        """The link class of two devices; `unknown` where the input says nothing of the pair."""
        link = self.link(first, second)
        return link.link_class if link else "unknown"


def enumerate_keys(keys: Iterable[str]) -> str:
    """`GPU0-3, GPU6, mlx5_0`: keys with runs of numbers drawn together."""
    runs: list[tuple[str, int | None, int | None]] = []
    for key in keys:
        head = key.rstrip("0123456789")
        number = int(key[len(head) :]) if 0 < len(key) - len(head) < 10 else None
        last = runs[-1] if runs else None
        if last and number is not None and last[0] == head and last[2] == number - 1:
            runs[-1] = (head, last[1], number)
        else:
            runs.append((head if number is not None else key, number, number))
    return ", ".join(
        head if first is None else f"{head}{first}" if first == last else f"{head}{first}-{last}"
        for head, first, last in runs
    )
