"""hwloc's XML (`lstopo --of xml`), versions 1 and 2: objects in one another, with bridges and PCI devices.

A PCIe switch is one bridge upwards and one for each port downwards, so two devices are `pix` where at most one bridge
lies between each of them and the bridge that they share.
"""

from dataclasses import dataclass, field, replace

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Link, Place, Topology, enumerate_keys
from commbench.topology.lstopo_nvlink import add_nvlinks
from commbench.topology.numbers import read_cpu_mask, read_mask, read_whole
from commbench.topology.tree import Way, link_devices
from commbench.topology.xml_tree import Element, read_xml, root_tag

FORMAT = "lstopo"
_GPU_CLASSES = ("0300", "0302", "0380", "1200")
_NIC_CLASSES = ("0200", "0207", "0208")
_GPU_VENDORS = ("10de", "0000")  # what boards have for a display is of others; 0000: somebody took the names out
_GPU_NAMES = ("nvml", "cuda", "rsmi")  # what a display adapter of a board has not


def recognises(text: str) -> bool:
    """Whether `text` is XML with hwloc's root."""
    return root_tag(text) == "topology"


@dataclass(frozen=True, slots=True)
class _Above:
    """What lies above an object: its place, its NUMA nodes, the bridges from the nearest, and the host bridge."""

    place: str = ""
    nodes: tuple[int, ...] = ()
    bridges: tuple[str, ...] = ()
    host: str = ""


@dataclass(slots=True)
class _Machine:
    source: str
    devices: list[Device] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    ways: dict[str, Way] = field(default_factory=dict)
    bridges: int = 0


def read(text: str, source: str) -> Topology:
    """The machine of lstopo's XML. Raises CommbenchError if it is no XML, or tells of no GPU and no NIC."""
    root = read_xml(text, source)
    topology = read_objects(root, source, FORMAT, "lstopo --of xml --whole-io")
    return add_nvlinks(topology, root)


def read_objects(root: Element, source: str, format_name: str, wanted: str) -> Topology:
    """The machine of hwloc's objects below `root`. Raises CommbenchError for none; `wanted`: what to run instead."""
    machine = _Machine(source)
    for child in root.named("object"):
        _collect_nodes(machine, child)
        _walk(machine, child, _Above())
    if not machine.devices:
        raise CommbenchError(
            f"{source} tells of NUMA nodes ({len(machine.places)}), and of no GPU and no NIC: run {wanted} "
            "on the machine itself."
        )
    machine.devices.sort(key=lambda device: (device.kind, int(device.key[3:])))
    links = link_devices(machine.devices, machine.ways, bridges_of_a_port=1)
    findings = _not_seen(machine, links, source)
    return Topology(format_name, source, tuple(machine.devices), tuple(links), _used_places(machine), tuple(findings))


def _not_seen(machine: _Machine, links: list[Link], source: str) -> list[Finding]:
    findings = []
    gpus = [device.key for device in machine.devices if device.kind == "gpu"]
    if len(gpus) > 1:
        findings.append(
            Finding(
                "TOPO-FABRIC",
                enumerate_keys(gpus),
                "skip",
                "lstopo's tree has PCIe only: NVLink and XGMI are not seen",
                "",
                source,
                "nvidia-smi topo -m or rocm-smi --showtopo tell of them",
            )
        )
    lost = [device.key for device in machine.devices if device.numa_node is None]
    if lost:
        findings.append(
            Finding(
                "TOPO-NUMA-UNKNOWN",
                enumerate_keys(lost),
                "skip",
                "hangs on no NUMA node of its own",
                "one NUMA node",
                source,
                "the firmware does not say it, as in a virtual machine",
            )
        )
    return findings


def _used_places(machine: _Machine) -> tuple[Place, ...]:
    """NUMA nodes, and the switches that devices hang on, with what is above those."""
    used: dict[str, None] = {}
    for device in machine.devices:
        key = device.place
        while key in machine.places and key not in used:
            used[key] = None
            key = machine.places[key].parent
    return tuple(place for place in machine.places.values() if place.kind == "numa" or place.key in used)


def _collect_nodes(machine: _Machine, element: Element) -> None:
    """Every NUMA node becomes a place. hwloc 1 nests what is near it in it; hwloc 2 puts it beside."""
    node = read_whole(element.get("os_index"), limit=4095)
    if element.get("type") == "NUMANode" and node is not None:
        cpus = read_cpu_mask(element.get("cpuset"))
        machine.places[f"numa{node}"] = Place(f"numa{node}", "numa", f"NUMA {node}", cpus=cpus)
    for child in element.named("object"):
        _collect_nodes(machine, child)


def _walk(machine: _Machine, element: Element, above: _Above) -> None:
    kind = element.get("type")
    if kind == "PCIDev":
        _add(machine, element, above)
        return
    if kind == "Bridge":
        machine.bridges += 1
        above = _below_bridge(machine, element, above)
    elif nodes := _nodes(element.get("nodeset")):
        known = tuple(node for node in nodes if f"numa{node}" in machine.places)
        above = replace(above, nodes=known, place=f"numa{known[0]}" if len(known) == 1 else "")
    for child in element.named("object"):
        _walk(machine, child, above)


def _below_bridge(machine: _Machine, bridge: Element, above: _Above) -> _Above:
    """Below a host bridge, or below one more PCI bridge."""
    key = f"bridge {shown(bridge.get('pci_busid')) or machine.bridges}"
    if key in machine.places or bridge.get("bridge_type").startswith("0"):
        return replace(above, host=f"host {machine.bridges}")
    machine.places[key] = Place(key, "switch", shown(bridge.get("pci_busid")), above.place)
    return replace(above, bridges=(key, *above.bridges), place=key)


def _nodes(mask: str) -> tuple[int, ...]:
    return read_mask(mask) or ()


def _add(machine: _Machine, pci: Element, above: _Above) -> None:
    """A device for a GPU; for a NIC one for each RDMA device, or for each interface where it has none."""
    kind, vendor, bus_id = pci.get("pci_type")[:4], pci.get("pci_type")[6:10], shown(pci.get("pci_busid"))
    names = [shown(child.get("name")) for child in pci.named("object") if child.get("type") == "OSDev"]
    if kind in _GPU_CLASSES:
        if any(name.startswith(_GPU_NAMES) for name in names) or kind != "0300" or vendor in _GPU_VENDORS:
            _append(machine, "gpu", next((name for name in names if name.startswith(_GPU_NAMES)), ""), bus_id, above)
    elif kind in _NIC_CLASSES:
        rdma = [name for name in names if name.startswith(("mlx", "ibp", "roce", "bnxt_re", "irdma", "efa", "hfi"))]
        for name in rdma or names[:1] or [""]:
            _append(machine, "nic", name, bus_id, above)


def _append(machine: _Machine, kind: str, name: str, bus_id: str, above: _Above) -> None:
    if len(machine.devices) >= MAX_DEVICES:
        raise CommbenchError(f"{machine.source} has more than {MAX_DEVICES} devices: give the file of one machine.")
    number = sum(device.kind == kind for device in machine.devices)
    node = above.nodes[0] if len(above.nodes) == 1 else None
    key = f"{kind.upper()}{number}"
    cpus = machine.places[f"numa{node}"].cpus if node is not None else ""
    machine.devices.append(Device(key, "gpu" if kind == "gpu" else "nic", name, bus_id, node, cpus, above.place))
    numa = "" if node is None else str(node)
    rates = (None,) * (len(above.bridges) + 1)  # hwloc's pci_link_speed is that of now, in power saving too
    machine.ways[key] = Way(bus_id.rpartition(".")[0], above.bridges, numa, rates, above.host)
