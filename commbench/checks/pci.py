"""PCI: width, speed, the slot, ACS, IOMMU, and what the kernel said of them."""

import re
from collections.abc import Iterator, Mapping

from commbench.checks.devices import draw_together, is_virtual, judge_each, pci_names, pci_of, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts, PciDevice

_NOTHING = "no GPU and no NIC on the PCI bus"
_LIMITED = re.compile(r"available PCIe bandwidth, limited by", re.IGNORECASE)
_PLACE = re.compile(r"\b([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\b", re.IGNORECASE)
_SYSFS = "/sys/bus/pci/devices/*"
_TRANSLATED = ("DMA", "DMA-FQ")  # kinds of IOMMU domains in which every transfer is translated


def _links(facts: Facts) -> dict[str, tuple[PciDevice, PciDevice | None]] | None:
    """Each GPU, NIC and switch with the port above it, whose link they share.

    From the root down, ports alternate: a root port, a switch's upstream port, its downstream port, and so on; so a
    bridge at an odd depth is the lower end of a link. None if the devices cannot be seen.
    """
    if facts.pci is None:
        return None
    by_address = {device.address: device for device in facts.pci}
    names = pci_names(facts)
    links = {}
    for device in facts.pci:
        if device.kind != "bridge":
            links[names.get(device.address, device.address)] = (device, by_address.get(device.parent))
        elif _depth(device, by_address) % 2:
            links[f"switch {device.address}"] = (device, by_address.get(device.parent))
    return links


def _depth(device: PciDevice, by_address: Mapping[str, PciDevice]) -> int:
    depth = 0
    while device.parent in by_address and depth < len(by_address):
        device, depth = by_address[device.parent], depth + 1
    return depth


@rule(
    "PCI-WIDTH",
    "fail",
    summary="GPUs, NICs and switches use all the PCIe lanes that they and their slot have",
    fix="power-cycle the node; reseat the card or its riser; have it replaced if it comes again",
    source="oci-hpc (16 lanes); Azure's node health checks; gpud",
)
def check_width(scene: Scene) -> Iterator[Seen]:
    """A link that came up with half its lanes has half its bandwidth until it is trained again.

    It is seen in no error, only in numbers: a GPU with x8 of x16 reads from a NIC at half speed, and all others wait.
    """

    def judge(name: str, link: tuple[PciDevice, PciDevice | None]) -> Seen | None:
        device, port = link
        if not device.width or not device.width_max:
            return None
        most = min(device.width_max, (port.width_max if port else None) or device.width_max)
        if device.width < most:
            return fail(name, f"x{device.width}", f"x{most}", f"{_SYSFS}/current_link_width")
        return ok(name, f"x{device.width}", where=f"{_SYSFS}/current_link_width")

    yield from judge_each(scene, "pci.width", _links(scene.facts), _NOTHING, judge)


@rule(
    "PCI-SPEED",
    "warn",
    summary="NICs and switches run at the PCIe speed that they and their slot have",
    fix="power-cycle the node; reseat the card or its riser; look at the BIOS's limit of the link speed",
    source="GCM's PCI manifest; gpud; nvidia-smi's manual: the generation depends on the load",
)
def check_speed(scene: Scene) -> Iterator[Seen]:
    """A link at 16 GT/s instead of 32 has half its bandwidth.

    GPUs lower the speed of an idle link to save power, so a GPU's lower speed is not judged without load.
    """

    def judge(name: str, link: tuple[PciDevice, PciDevice | None]) -> Seen | None:
        device, port = link
        where = f"{_SYSFS}/current_link_speed"
        if not device.speed_gts or not device.speed_max_gts:
            return None
        most = min(device.speed_max_gts, (port.speed_max_gts if port else None) or device.speed_max_gts)
        if device.speed_gts >= most:
            return ok(name, f"{device.speed_gts:g} GT/s", where=where)
        if device.kind == "gpu":
            return skip(name, f"{device.speed_gts:g} of {most:g} GT/s: idle GPUs lower it", where)
        return warn(name, f"{device.speed_gts:g} GT/s", f"{most:g} GT/s", where)

    yield from judge_each(scene, "pci.speed_gts", _links(scene.facts), _NOTHING, judge)


@rule(
    "PCI-SLOT",
    "warn",
    summary="slots are as wide and as fast as the cards in them",
    fix="move the card to a slot with all lanes, or set bifurcation and link speed in the BIOS",
    source="the card's and the board's manual; GCM's PCI manifest",
)
def check_slot(scene: Scene) -> Iterator[Seen]:
    """A card in a slot that is narrower or slower than itself can never reach its bandwidth.

    In a virtual machine the port above the card is made up, and says nothing.
    """

    def judge(name: str, link: tuple[PciDevice, PciDevice | None]) -> Seen | None:
        device, port = link
        where = f"{_SYSFS}/max_link_width, max_link_speed"
        if is_virtual(scene.facts):
            return skip(name, "a virtual machine: the port above is made up", where)
        if not (port and port.width_max and port.speed_max_gts and device.width_max and device.speed_max_gts):
            return None
        if port.width_max < device.width_max or port.speed_max_gts < device.speed_max_gts:
            slot = f"a slot of x{port.width_max} at {port.speed_max_gts:g} GT/s"
            return warn(name, slot, f"x{device.width_max} at {device.speed_max_gts:g} GT/s, as the card", where)
        return ok(name, "the slot is no limit", where=where)

    yield from judge_each(scene, "pci.width_max", _links(scene.facts), _NOTHING, judge)


@rule(
    "PCI-LIMITED",
    "fail",
    summary="the kernel did not say that a card's PCIe bandwidth is limited",
    fix="the line names the device that limits: reseat it, move the card, or power-cycle the node",
    source="imbue-ai/cluster-health: dmesg `available PCIe bandwidth, limited by`",
)
def check_limited(scene: Scene) -> Iterator[Seen]:
    """At start the kernel compares what a card could do with the slowest link on its way, and says so if that is less.

    What PCI-WIDTH, PCI-SPEED and PCI-SLOT see of the same link now is not told of twice.
    """
    facts, where = scene.facts, "the kernel's log"
    if facts.kernel.messages is None:
        yield unseen(scene, "kernel.messages", "PCIe bandwidth", where)
        return
    known = {device.address for device in facts.pci or () if _is_below_its_best(device)}
    names, lines = pci_names(facts), {}
    for line in facts.kernel.messages:
        places = [place.lower() for place in _PLACE.findall(line)]
        if _LIMITED.search(line) and not known.intersection(places):
            address = places[0] if places else "a device"
            lines[names.get(address, address)] = line
    yield from (fail(name, line, "no such line", where) for name, line in lines.items())
    if not lines:
        yield ok(
            "PCIe bandwidth", "no line of a link that is not judged already" if known else "no such line", where=where
        )


def _is_below_its_best(device: PciDevice) -> bool:
    narrow = (device.width or 0) < (device.width_max or 0)
    return narrow or (device.kind != "gpu" and (device.speed_gts or 0.0) < (device.speed_max_gts or 0.0))


@rule(
    "PCI-ACS",
    "warn",
    summary="ACS is off on the bridges above GPUs and NICs",
    fix="switch it off in the BIOS, or at start: setpci -s BRIDGE ECAP_ACS+0x6.w=0000",
    source="NCCL's troubleshooting guide; NCCL issue 606; gpud",
)
def check_acs(scene: Scene) -> Iterator[Seen]:
    """Access Control Services send what one device writes to another up to the CPU and down again.

    Transfers between GPU and NIC under one switch then lose most of their bandwidth, or hang. On the host of virtual
    machines ACS must be on, and within one it cannot be changed.
    """
    if is_virtual(scene.facts):
        yield skip("ACS", f"a virtual machine ({scene.facts.host.virtual}): for its host to decide", "config space")
        return

    def judge(name: str, bridge: PciDevice) -> Seen | None:
        if bridge.acs is None:
            return None
        if bridge.acs:
            return warn(name, f"on: {', '.join(bridge.acs)}", "off", "config space, as lspci -vvv: ACSCtl")
        return ok(name, "off", where="config space")

    yield from judge_each(scene, "pci.acs", pci_of(scene.facts, "bridge"), "no bridge above a GPU or NIC", judge)


@rule(
    "PCI-IOMMU",
    "warn",
    summary="the IOMMU is off, or passes through",
    fix="iommu=pt on the kernel's command line (with intel_iommu=on or amd_iommu=on, if it must stay on)",
    source="RCCL (src/init.cc); ml-engineering; NCCL issue 257",
)
def check_iommu(scene: Scene) -> Iterator[Seen]:
    """Where it translates, every transfer of a device asks it for an address, and peers go through the CPU.

    Within a virtual machine it is the host's matter.
    """
    kinds, where = scene.facts.kernel.iommu, "/sys/kernel/iommu_groups/*/type"
    if is_virtual(scene.facts):
        yield skip("IOMMU", f"a virtual machine ({scene.facts.host.virtual}): for its host to decide", where)
    elif kinds is None:
        yield unseen(scene, "kernel.iommu", "IOMMU", where)
    elif translated := [kind for kind in kinds if kind in _TRANSLATED]:
        yield warn("IOMMU", f"translates ({', '.join(translated)})", "off or identity", where)
    else:
        yield ok("IOMMU", ", ".join(kinds) or "off", where=where)


@rule(
    "PCI-NUMA",
    "warn",
    summary="the firmware says on which NUMA node GPUs and NICs are",
    fix="update the BIOS; NCCL_TOPO_FILE or NCCL_IGNORE_CPU_AFFINITY help until then",
    source="NCCL issues 1464 and 1843",
)
def check_numa(scene: Scene) -> Iterator[Seen]:
    """Without it nobody knows which CPUs are near: NCCL and the launcher bind ranks at random.

    A virtual machine often hides it; NCCL_TOPO_FILE tells NCCL there.
    """
    nodes = scene.facts.cpu.numa_nodes

    def judge(name: str, device: PciDevice) -> Seen | None:
        where = f"{_SYSFS}/numa_node"
        if nodes is None:
            return None
        if len(nodes) < 2:
            return skip(name, "one NUMA node: all are near", where)
        if device.numa_node is not None and device.numa_node >= 0:
            return ok(name, "said", where=where)
        if is_virtual(scene.facts):
            return skip(name, "a virtual machine does not say", where)
        return warn(name, "not said", "a NUMA node", where)

    found = judge_each(scene, "cpu.numa_nodes", pci_of(scene.facts, "gpu", "nic"), _NOTHING, judge)
    yield from draw_together(found)
