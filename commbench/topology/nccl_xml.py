"""NCCL's and RCCL's topology file (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): a tree of CPUs, PCI devices, GPUs and NICs.

NCCL draws a switch's ports together, so one bridge on the way is one switch. It knows no host bridges: two devices
below one NUMA node are `phb`, NCCL's word for it, also where nvidia-smi would say NODE.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Link, Place, Topology, enumerate_keys
from commbench.topology.link_rates import nic_gigabits, nvlink_rate, pcie_rate
from commbench.topology.numbers import read_cpu_mask, read_whole
from commbench.topology.tree import Way, link_devices
from commbench.topology.xml_tree import Element, read_xml, root_tag
from commbench.units import GB

FORMAT = "nccl-topology"
_BRIDGE, _DISPLAY, _ACCELERATOR, _NETWORK = "0x06", "0x03", "0x12", "0x02"
_NVSWITCH = "0x0680"
_SLOW_SWITCH = 1e9  # below this a switch would hold back every device under it


def recognises(text: str) -> bool:
    """Whether `text` is XML with NCCL's root."""
    return root_tag(text) == "system"


@dataclass(slots=True)
class _Machine:
    source: str
    devices: list[Device] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    ways: dict[str, Way] = field(default_factory=dict)
    fabric: dict[str, list[Element]] = field(default_factory=dict)
    generation: dict[str, int | None] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def name_once(self, name: str) -> None:
        """Raises CommbenchError where the file has `name` already."""
        if name in self.named:
            raise CommbenchError(f"{self.source} has {name} twice: give the file of one machine.")
        self.named.add(name)

    def add(self, device: Device, way: Way) -> None:
        """One more device. Raises CommbenchError where there are too many."""
        if len(self.devices) >= MAX_DEVICES:
            raise CommbenchError(f"{self.source} has more than {MAX_DEVICES} devices: give the file of one machine.")
        self.devices.append(device)
        self.ways[device.key] = way


def read(text: str, source: str) -> Topology:
    """The machine of a topology file. Raises CommbenchError if it is no XML, or tells of no GPU and no NIC."""
    root = read_xml(text, source)
    if root.tag != "system":
        raise CommbenchError(f"{source} has the root <{shown(root.tag)}>, where NCCL's topology has <system>.")
    machine = _Machine(source)
    for cpu in root.named("cpu"):
        _read_cpu(machine, cpu)
    if not machine.devices:
        raise CommbenchError(f"{source} tells of no GPU and no NIC: give a whole topology file of NCCL.")
    machine.devices.sort(key=lambda device: (device.kind, int(device.key[3:])))
    machine.findings += _odd_rates(machine)
    links = _with_fabric(machine, link_devices(machine.devices, machine.ways))
    return Topology(
        FORMAT, source, tuple(machine.devices), tuple(links), tuple(machine.places), tuple(machine.findings)
    )


def _read_cpu(machine: _Machine, cpu: Element) -> None:
    node = read_whole(cpu.get("numaid"))
    cpus = read_cpu_mask(cpu.get("affinity"))
    key = f"numa{node if node is not None else f'?{len(machine.places)}'}"
    machine.name_once(f"the NUMA node {key.removeprefix('numa')}")
    if node is None:
        machine.findings.append(
            Finding(
                "TOPO-NUMA-UNKNOWN",
                "CPU",
                "skip",
                f"numaid is {shown(cpu.get('numaid'))!r}",
                "a NUMA node",
                machine.source,
                "in a virtual machine give NCCL a topology file",
            )
        )
    machine.places.append(Place(key, "numa", f"NUMA {node if node is not None else '?'}", cpus=cpus))
    above = _Above(key, node, cpus)
    for child in cpu.children:
        if child.tag == "pci":
            _read_pci(machine, child, above)
        elif child.tag == "nic":
            _read_nic(machine, child, above, "", ())


@dataclass(frozen=True, slots=True)
class _Above:
    """What lies above an element: its place, NUMA node and CPUs, the switches from the nearest, and their rates."""

    place: str
    numa_node: int | None
    cpus: str
    switches: tuple[str, ...] = ()
    rates: tuple[float | None, ...] = ()


def _read_pci(machine: _Machine, pci: Element, above: _Above) -> None:
    bus_id, kind = shown(pci.get("busid")), pci.get("class")[:8].lower()
    machine.name_once(f"the PCI bus id {bus_id or 'of no name'}")
    rate = pcie_rate(pci.get("link_speed"), read_whole(pci.get("link_width")))
    gpu = next(pci.named("gpu"), None)
    nics = [*pci.named("nic")]
    if gpu is not None or kind.startswith((_DISPLAY, _ACCELERATOR)):
        _add_gpu(machine, bus_id, gpu, above, (rate, *above.rates))
    for nic in nics:
        _read_nic(machine, nic, above, bus_id, (rate, *above.rates))
    if not nics and kind.startswith(_NETWORK):
        _add_nic(machine, Element("net", {}), above, bus_id, (rate, *above.rates))
    children = [*pci.named("pci")]
    if not children:
        return
    key = f"pci {bus_id}"
    if rate is not None and rate < _SLOW_SWITCH:
        machine.findings.append(
            Finding(
                "TOPO-SLOW-SWITCH",
                bus_id,
                "warn",
                f"{shown(pci.get('link_speed'))} x{shown(pci.get('link_width'))}: {rate / GB:.3g} GB/s for all",
                "the width and speed of its devices",
                machine.source,
                "correct the file, if it was written by hand",
            )
        )
    machine.places.append(Place(key, "switch", bus_id, above.place))
    below = _Above(key, above.numa_node, above.cpus, (key, *above.switches), (rate, *above.rates))
    for child in children:
        _read_pci(machine, child, below)


def _add_gpu(
    machine: _Machine, bus_id: str, gpu: Element | None, above: _Above, rates: tuple[float | None, ...]
) -> None:
    key = _gpu_key(machine, gpu)
    device = Device(key, "gpu", "", bus_id, above.numa_node, above.cpus, above.place)
    machine.add(device, Way(bus_id, above.switches, _numa(above), rates))
    if gpu is not None:
        machine.fabric[key] = [*gpu.named("nvlink"), *gpu.named("xgmi")]
        machine.generation[key] = read_whole(gpu.get("sm"))


def _gpu_key(machine: _Machine, gpu: Element | None) -> str:
    """GPU and its number in the file; where that is not said or taken, the first that is free."""
    taken = {device.key for device in machine.devices}
    said = read_whole(gpu.get("dev"), limit=9999) if gpu is not None else None
    if said is not None and f"GPU{said}" not in taken:
        return f"GPU{said}"
    return next(key for number in count() if (key := f"GPU{number}") not in taken)


def _read_nic(machine: _Machine, nic: Element, above: _Above, bus_id: str, rates: tuple[float | None, ...]) -> None:
    for net in nic.named("net"):
        _add_nic(machine, net, above, bus_id, rates)


def _add_nic(machine: _Machine, net: Element, above: _Above, bus_id: str, rates: tuple[float | None, ...]) -> None:
    name = shown(net.get("name"))
    key = f"NIC{sum(device.kind == 'nic' for device in machine.devices)}"
    megabits = read_whole(net.get("speed"))
    rate = megabits * 1e6 / 8 if megabits else None
    state = "no GPUDirect" if net.get("gdr") == "0" else ""
    device = Device(key, "nic", name, bus_id, above.numa_node, above.cpus, above.place, rate, state)
    machine.add(device, Way(bus_id, above.switches, _numa(above), rates))


def _odd_rates(machine: _Machine) -> list[Finding]:
    """A finding for each line rate that no NIC has, with the NICs that the file gives it to."""
    odd: dict[float, list[str]] = {}
    for nic in machine.devices:
        if nic.bytes_per_second is not None and nic.bytes_per_second * 8 / GB not in nic_gigabits():
            odd.setdefault(nic.bytes_per_second, []).append(nic.key)
    return [
        Finding(
            "TOPO-NIC-RATE",
            enumerate_keys(keys),
            "warn",
            f"{rate * 8 / GB:g} Gbit/s is not a rate that NICs have",
            "10, 25, 40, 50, 56, 100, 200, 400 or 800",
            machine.source,
            "NCCL counts on it when it chooses rings",
        )
        for rate, keys in odd.items()
    ]


def _numa(above: _Above) -> str:
    return "" if above.numa_node is None else str(above.numa_node)


def _with_fabric(machine: _Machine, links: list[Link]) -> list[Link]:
    """The links with NVLink or XGMI where the file has it: to a GPU by its bus id, or through NVSwitches to all."""
    direct: Counter[tuple[str, str, str]] = Counter()
    switched: Counter[str] = Counter()
    by_bus = {device.bus_id: device.key for device in machine.devices if device.kind == "gpu"}
    for key, elements in machine.fabric.items():
        to_itself = 0
        for element in elements:
            link_class = "nvlink" if element.tag == "nvlink" else "xgmi"
            lanes = read_whole(element.get("count"), limit=1000) or 0
            target = by_bus.get(shown(element.get("target")))
            if target == key:
                to_itself += lanes
            elif target is not None:
                direct[key, target, link_class] += lanes
            elif element.get("tclass").lower().startswith(_NVSWITCH):
                switched[key] += lanes
        if to_itself:
            machine.findings.append(
                Finding(
                    "TOPO-NVLINK-SELF",
                    key,
                    "warn",
                    f"{to_itself} links lead to its own bus id",
                    "another GPU's",
                    machine.source,
                    "which GPU they reach is not said; correct the file",
                )
            )
    machine.findings += _one_sided(machine, direct)
    return [_fabric_of(machine, link, direct, switched) for link in links]


def _one_sided(machine: _Machine, direct: Counter[tuple[str, str, str]]) -> list[Finding]:
    """Pairs of GPUs that count the links between them differently."""
    return [
        Finding(
            "TOPO-LANES",
            f"{one} - {other}",
            "warn",
            f"{lanes} links of {link_class} one way, {direct[other, one, link_class]} the other",
            "as many both ways",
            machine.source,
            "a link is down, or the file is not whole; how many there are is not said",
        )
        for (one, other, link_class), lanes in list(direct.items())
        if lanes > direct[other, one, link_class]
    ]


def _fabric_of(machine: _Machine, link: Link, direct: Counter[tuple[str, str, str]], switched: Counter[str]) -> Link:
    one, other = link.first, link.second
    for link_class in ("nvlink", "xgmi"):
        here, there = direct[one, other, link_class], direct[other, one, link_class]
        if here != there:
            return replace(link, link_class=link_class, bytes_per_second=None)
        lanes = here + (min(switched[one], switched[other]) if link_class == "nvlink" else 0)
        if lanes:
            rate = nvlink_rate(machine.generation.get(one), lanes) if link_class == "nvlink" else None
            return replace(link, link_class=link_class, lanes=lanes, bytes_per_second=rate)
    return link
