"""The PCI devices that matter: GPUs, NICs, and what lies between them and their root port."""

import re
import struct

from commbench.machine.facts import PciDevice
from commbench.machine.tree import PCI_ADDRESS, Tree

_DEVICES = "sys/bus/pci/devices"
_ROOT = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_DISPLAY, _ACCELERATOR = ("0300", "0302", "0380"), ("1200",)
_NIC_CLASSES = ("0200", "0207", "0208")
_BRIDGE = "0604"
GPU_VENDORS = ("10de", "1002")
_MAX_DEVICES = 2048
# PCI Express Base Specification: extended capabilities begin at 0x100; that of Access Control Services has the id
# 0x000d, and its control register is 6 bytes behind its head. Names as lspci writes them.
_EXTENDED, _ACS, _ACS_CONTROL = 0x100, 0x000D, 6
_ACS_BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")


def read_pci(tree: Tree) -> tuple[PciDevice, ...] | None:
    """The devices, in the order of their addresses; None where the kernel shows no PCI."""
    addresses = tree.names(_DEVICES)
    if addresses is None:
        tree.say_unseen("pci", f"/{_DEVICES} cannot be listed")
        return None
    addresses = sorted(address for address in addresses if PCI_ADDRESS.fullmatch(address))[:_MAX_DEVICES]
    kinds = {address: _kind(tree, address) for address in addresses}
    ways = {address: _way(tree, address) for address in addresses if kinds[address] in ("gpu", "nic")}
    kept = {address for way in ways.values() for address in way} | set(ways)
    if any(not tree.link(f"{_DEVICES}/{address}") for address in ways):
        tree.say_unseen("pci.parent", f"the links of /{_DEVICES} were not kept, and with them what hangs on what")
    return tuple(_device(tree, address, kinds[address]) for address in addresses if address in kept)


def _kind(tree: Tree, address: str) -> str:
    number = tree.word(f"{_DEVICES}/{address}/class").removeprefix("0x")[:4]
    if number in _NIC_CLASSES:
        return "nic"
    if number == _BRIDGE:
        return "bridge"
    vendor = tree.word(f"{_DEVICES}/{address}/vendor").removeprefix("0x") if number in _DISPLAY + _ACCELERATOR else ""
    return "gpu" if vendor in GPU_VENDORS else ""


def _way(tree: Tree, address: str) -> list[str]:
    """The addresses above a device, from the root port on."""
    return [part for part in tree.link(f"{_DEVICES}/{address}").split("/")[:-1] if PCI_ADDRESS.fullmatch(part)]


def _device(tree: Tree, address: str, kind: str) -> PciDevice:
    folder = f"{_DEVICES}/{address}"
    place = tree.link(folder).split("/")
    above = [part for part in place[:-1] if PCI_ADDRESS.fullmatch(part)]
    return PciDevice(
        address=address,
        kind=kind or "bridge",
        parent=above[-1] if above else "",
        vendor=tree.word(f"{folder}/vendor").removeprefix("0x"),
        device=tree.word(f"{folder}/device").removeprefix("0x"),
        driver=tree.link(f"{folder}/driver").rpartition("/")[2],
        numa_node=tree.number(f"{folder}/numa_node"),
        cpus=tree.cpus(f"{folder}/local_cpulist"),
        speed_gts=_speed(tree.word(f"{folder}/current_link_speed")),
        speed_max_gts=_speed(tree.word(f"{folder}/max_link_speed")),
        width=tree.number(f"{folder}/current_link_width", 1, 32),
        width_max=tree.number(f"{folder}/max_link_width", 1, 32),
        revision=tree.word(f"{folder}/revision").removeprefix("0x"),
        acs=_acs(tree, folder) if kind == "bridge" else None,
        root=next((part for part in place if _ROOT.fullmatch(part)), ""),
    )


def _speed(text: str) -> float | None:
    """GT/s in a text like `16.0 GT/s PCIe`."""
    match = re.match(r"(\d{1,3}(?:\.\d{1,2})?) GT/s", text, re.ASCII)
    return float(match[1]) if match else None


def _acs(tree: Tree, folder: str) -> tuple[str, ...] | None:
    """The controls of Access Control Services that are on; none for a bridge without the capability."""
    config = tree.read_bytes(f"{folder}/config", limit=4096)
    if config is None or len(config) <= _EXTENDED:
        tree.say_unseen("pci.acs", "config space beyond the first 64 bytes is readable by root only")
        return None
    if config[:2] == b"\xff\xff":
        return None
    place, seen = _EXTENDED, set[int]()
    while _EXTENDED <= place <= len(config) - 8 and place not in seen:
        seen.add(place)
        (head,) = struct.unpack_from("<I", config, place)
        if head & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", config, place + _ACS_CONTROL)
            return tuple(name for bit, name in enumerate(_ACS_BITS) if control >> bit & 1)
        place = head >> 20
    return ()
