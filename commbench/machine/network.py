"""Which network interface reaches the other ranks: chosen once, and said.

Left to itself gloo listens on the address that this host's own name resolves to, which on many systems is 127.0.1.1.
"""

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

import psutil

from commbench.errors import RendezvousError

CHOICE_VARIABLE = "GLOO_SOCKET_IFNAME"
_LOOPBACK = "lo"
# A documentation address (RFC 5737): the kernel says by which interface it would go, and nothing is sent.
_FAR_AWAY = "192.0.2.1"


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface of choice, an address that it has, and why it was taken."""

    name: str
    address: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.address} ({self.reason})".replace("  ", " ")


def choose_interface(
    master_addr: str,
    *,
    all_here: bool,
    environment: Mapping[str, str] = os.environ,
    addresses: Mapping[str, str] | None = None,
    route: Callable[[str], str | None] | None = None,
) -> Interface:
    """The interface that reaches the other ranks. `all_here`: they are all on this node.

    `addresses`: one of each interface that is up; `route`: this host's address on the way to another. What the user
    set in GLOO_SOCKET_IFNAME is taken as it is. Raises RendezvousError if that names none, or none but loopback is up.
    """
    found = _addresses() if addresses is None else addresses
    towards = route or _address_towards
    wanted = environment.get(CHOICE_VARIABLE)
    if wanted:
        return _as_asked(wanted, found)
    if all_here or is_loopback(master_addr):
        return Interface(_LOOPBACK, found.get(_LOOPBACK, "127.0.0.1"), "all ranks are on this node")
    names = {address: name for name, address in found.items()}
    for target, reason in ((master_addr, f"on the way to {master_addr}"), (_FAR_AWAY, "it has the default route")):
        own = towards(target)
        if own in names and not is_loopback(own):
            return Interface(names[own], own, reason)
    first = next((name for name, address in found.items() if not is_loopback(address)), None)
    if first is None:
        raise RendezvousError(f"no interface but loopback is up here, and {master_addr} is another node's address.")
    return Interface(first, found[first], "the first one that is up")


def _as_asked(wanted: str, found: Mapping[str, str]) -> Interface:
    names = [name.strip() for name in wanted.split(",")]
    missing = [name for name in names if name not in found]
    if missing:
        raise RendezvousError(
            f"{CHOICE_VARIABLE}={wanted} names {missing[0]!r}, which is no interface with an address on "
            f"{socket.gethostname()}: it has {', '.join(found)}."
        )
    return Interface(wanted, found[names[0]], f"{CHOICE_VARIABLE} says so")


def _addresses() -> dict[str, str]:
    """The first IPv4 address, else the first IPv6 one, of every interface that is up and no container's bridge."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found = {}
    for name, entries in psutil.net_if_addrs().items():
        by_family = {entry.family: entry.address.partition("%")[0] for entry in reversed(entries)}
        address = by_family.get(socket.AF_INET) or by_family.get(socket.AF_INET6)
        if name in up and address and not name.startswith(("docker", "virbr", "cni", "flannel")):
            found[name] = address
    return found


def _address_towards(target: str) -> str | None:
    """This host's address on the route to `target`, as the kernel chooses it; nothing is sent."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def is_loopback(address: str | None) -> bool:
    """Whether an address, or the name localhost, leads every node to itself."""
    try:
        return address is not None and (address == "localhost" or ip_address(address).is_loopback)
    except ValueError:
        return False
