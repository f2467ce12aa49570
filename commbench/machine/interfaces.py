"""Network interfaces: state, speed, and the addresses that ranks may meet at."""

import socket
from collections.abc import Mapping, Sequence
from ipaddress import ip_interface

from commbench.machine.facts import InterfaceFacts
from commbench.machine.tree import Tree

_NET = "sys/class/net"
_IS_UP = 0x1  # IFF_UP of linux/if.h
_HARDWARE = {1: "ethernet", 32: "infiniband", 772: "loopback"}  # ARPHRD_* of linux/if_arp.h
_MAX_INTERFACES = 512
_EUI64 = 0xFFFE  # in the middle of an IPv6 address that is made of a hardware address

Addresses = Mapping[str, Sequence[str]]


def read_interfaces(tree: Tree, addresses: Addresses | None = None) -> tuple[InterfaceFacts, ...] | None:
    """The interfaces by name. `addresses`: with their subnets, for a captured tree, which has none."""
    names = tree.names(_NET)
    if names is None:
        tree.say_unseen("interfaces", f"/{_NET} cannot be listed")
        return None
    if addresses is None and tree.is_live:
        addresses = _live_addresses()
    if addresses is None:
        tree.say_unseen("interfaces.addresses", "a captured tree has no addresses")
    return tuple(
        _interface(tree, name, None if addresses is None else addresses.get(name, ()))
        for name in names[:_MAX_INTERFACES]
        if tree.exists(f"{_NET}/{name}/operstate")
    )


def _interface(tree: Tree, name: str, addresses: Sequence[str] | None) -> InterfaceFacts:
    folder = f"{_NET}/{name}"
    flags = tree.number(f"{folder}/flags")
    megabits = tree.number(f"{folder}/speed", 1, 10_000_000)
    return InterfaceFacts(
        name=name,
        kind=_kind(tree, folder),
        state=tree.word(f"{folder}/operstate"),
        is_up=None if flags is None else bool(flags & _IS_UP),
        mtu_nbytes=tree.number(f"{folder}/mtu", 1, 1 << 20),
        bytes_per_second=None if megabits is None else megabits * 1e6 / 8,
        addresses=None if addresses is None else tuple(kept for text in addresses if (kept := _kept(text))),
        carrier_changes=tree.number(f"{folder}/carrier_changes"),
        pci_address=tree.pci_address(f"{folder}/device"),
        numa_node=tree.number(f"{folder}/device/numa_node"),
    )


def _kind(tree: Tree, folder: str) -> str:
    hardware = _HARDWARE.get(tree.number(f"{folder}/type") or 0, "")
    if hardware == "loopback":
        return hardware
    for name, kind in (("bridge", "bridge"), ("bonding", "bond"), ("wireless", "wireless")):
        if tree.exists(f"{folder}/{name}"):
            return kind
    is_virtual = "devices/virtual/" in tree.link(folder)
    return "virtual" if is_virtual or not hardware else hardware


def _live_addresses() -> dict[str, list[str]]:
    import psutil

    return {
        name: [
            f"{row.address.partition('%')[0]}/{row.netmask or ''}".removesuffix("/")
            for row in rows
            if row.family in (socket.AF_INET, socket.AF_INET6)
        ]
        for name, rows in psutil.net_if_addrs().items()
    }


def _kept(text: str) -> str:
    """An address with its subnet, as 10.0.0.5/24; empty for one of its link alone, and for none.

    An IPv6 address that is made of the hardware address is cut to its network.
    """
    address, _, mask = text.partition("/")
    try:
        if ":" in address and ":" in mask:  # a mask as ffff:ffff::
            mask = str(bin(int(ip_interface(mask).ip)).count("1"))
        interface = ip_interface(f"{address}/{mask}" if mask else address)
    except ValueError:
        return ""
    if interface.ip.is_link_local:
        return ""
    if interface.version == 6 and int(interface.ip) >> 24 & 0xFFFF == _EUI64:
        return str(interface.network)
    return str(interface)
