"""The wiring of a machine from its facts: PCIe by the bridges that two devices share, NVLink by what NVML says.

A PCIe link is rated at its width now and its highest speed: a GPU at rest lowers the speed, but never the width.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations

from commbench.errors import CommbenchError
from commbench.machine.facts import Facts, GpuFacts, PciDevice
from commbench.results.finding import Finding
from commbench.texts import shown
from commbench.topology.graph import MAX_DEVICES, Device, Link, Place, Topology, enumerate_keys
from commbench.topology.link_rates import lanes_rate, nvml_nvlink_rate
from commbench.topology.numbers import is_cpu_list
from commbench.topology.tree import Way, link_devices

LIVE = "machine"  # the format of a topology that was read here
_MAX_DEPTH = 64


def make_topology(facts: Facts, format_name: str = LIVE, source: str = "") -> Topology:
    """GPUs and NICs with the link of every pair. A NIC is a port of an RDMA device; an interface where there is none.

    Raises CommbenchError for more devices than a machine has, or two of one number.
    """
    pci = {device.address: device for device in facts.pci or ()}
    devices = [*_gpus(facts), *_nics(facts)]
    if len(devices) > MAX_DEVICES:
        raise CommbenchError(f"{source} has {len(devices)} devices: one machine has {MAX_DEVICES} at most.")
    if len({device.key for device in devices}) < len(devices):
        raise CommbenchError(f"{source} has two GPUs of one number: give the snapshot as it was written.")
    nodes = facts.cpu.numa_nodes or ()
    only = nodes[0].number if len(nodes) == 1 else None
    ways, placed = {}, []
    for device in devices:
        way = _way(device, pci.get(device.bus_id), pci, only, parents_seen="pci.parent" not in facts.unseen)
        ways[device.key] = way
        placed.append(_placed(device, pci.get(device.bus_id), way))
    lanes = _lanes(facts)
    links = [_with_nvlink(link, lanes) for link in link_devices(placed, ways)]
    return Topology(
        format_name,
        source or facts.host.name or "this machine",
        tuple(placed),
        tuple(links),
        _places(facts, placed, ways),
        tuple(_not_seen(facts, placed)),
    )


def _gpus(facts: Facts) -> list[Device]:
    return [
        Device(
            f"GPU{gpu.index}",
            "gpu",
            shown(gpu.name).removeprefix("NVIDIA "),
            gpu.address,
            state="" if gpu.address else "lost",
        )
        for gpu in facts.gpus or ()
    ]


def _nics(facts: Facts) -> list[Device]:
    found: list[tuple[str, str, float | None, str]] = []
    for device in facts.rdma or ():
        for port in device.ports:
            name = device.name if len(device.ports) == 1 else f"{device.name}:{port.number}"
            state = ", ".join(word for word in (port.state, port.link_layer) if word)
            found.append((name, device.address, port.bytes_per_second, state))
    if not found:
        nics = {device.address for device in facts.pci or () if device.kind == "nic"}
        found = [
            (interface.name, interface.pci_address, interface.bytes_per_second, interface.state)
            for interface in facts.interfaces or ()
            if interface.pci_address in nics
        ]
    return [
        Device(f"NIC{number}", "nic", shown(name), address, bytes_per_second=rate, state=shown(state))
        for number, (name, address, rate, state) in enumerate(found)
    ]


def _way(
    device: Device, own: PciDevice | None, pci: dict[str, PciDevice], only: int | None, *, parents_seen: bool
) -> Way:
    """The way of a device to its host bridge; an empty one, which makes its links unknown, where it was not seen."""
    if own is None or not parents_seen:
        return Way("", (), "", ())
    above: list[PciDevice] = []
    parent = own.parent
    while parent in pci and len(above) < _MAX_DEPTH:
        above.append(pci[parent])
        parent = pci[parent].parent
    # From the top: the root port, then of each switch its port upwards and one of its ports downwards.
    switches = [bridge for place, bridge in enumerate(reversed(above)) if place % 2 == 1][::-1]
    node = own.numa_node if own.numa_node is not None else only
    rates = tuple(_rate(link) for link in (own, *switches))
    slot = device.bus_id.rpartition(".")[0]
    return Way(slot, tuple(switch.address for switch in switches), "" if node is None else str(node), rates, own.root)


def _rate(device: PciDevice) -> float | None:
    return lanes_rate(device.speed_max_gts, device.width)


def _placed(device: Device, own: PciDevice | None, way: Way) -> Device:
    numa = int(way.numa) if way.numa else None
    place = f"switch {way.switches[0]}" if way.switches else f"numa{numa}" if numa is not None else ""
    cpus = own.cpus if own is not None and is_cpu_list(own.cpus) else ""
    return replace(device, numa_node=numa, cpus=cpus, place=place)


def _places(facts: Facts, devices: list[Device], ways: dict[str, Way]) -> tuple[Place, ...]:
    """NUMA nodes, and the switches that devices hang on, each below the one above it."""
    places = {
        f"numa{node.number}": Place(
            f"numa{node.number}", "numa", f"NUMA {node.number}", cpus=node.cpus if is_cpu_list(node.cpus) else ""
        )
        for node in facts.cpu.numa_nodes or ()
    }
    for device in devices:
        way = ways[device.key]
        parent = f"numa{way.numa}" if f"numa{way.numa}" in places else ""
        for switch in reversed(way.switches):
            key = f"switch {switch}"
            places.setdefault(key, Place(key, "switch", shown(switch).removeprefix("0000:"), parent))
            parent = key
    return tuple(places.values())


def _lanes(facts: Facts) -> dict[frozenset[str], tuple[int, int | None]]:
    """For each pair of GPUs with NVLink: how many links that work, and their version."""
    gpus = facts.gpus or ()
    by_address = {gpu.address: gpu for gpu in gpus if gpu.address}
    direct = {gpu.index: _active(gpu, by_address) for gpu in gpus}
    pairs = {}
    for one, other in combinations(gpus, 2):
        here, there = direct[one.index], direct[other.index]
        lanes = min(here[other.address], there[one.address]) + min(here["switch"], there["switch"])
        if lanes:
            version = next((link.version for link in one.nvlinks or () if link.is_active), None)
            pairs[frozenset((f"GPU{one.index}", f"GPU{other.index}"))] = lanes, version
    return pairs


def _active(gpu: GpuFacts, by_address: dict[str, GpuFacts]) -> Counter[str]:
    """How many links of a GPU work, by the address of the GPU at their other end, or `switch`."""
    return Counter(
        link.peer if link.peer in by_address else link.peer_kind for link in gpu.nvlinks or () if link.is_active
    )


def _with_nvlink(link: Link, lanes: dict[frozenset[str], tuple[int, int | None]]) -> Link:
    found = lanes.get(frozenset((link.first, link.second)))
    if found is None:
        return link
    return replace(link, link_class="nvlink", lanes=found[0], bytes_per_second=nvml_nvlink_rate(found[1], found[0]))


def _not_seen(facts: Facts, devices: list[Device]) -> list[Finding]:
    """A skip for each part of the wiring that could not be seen, with the reason."""
    gpus = [device.key for device in devices if device.kind == "gpu"]
    lost = [device.key for device in devices if device.kind == "gpu" and not device.bus_id]
    without = [f"GPU{gpu.index}" for gpu in facts.gpus or () if gpu.nvlinks is None and gpu.address]
    unplaced = [device.key for device in devices if device.bus_id and device.numa_node is None]
    findings = [
        Finding("TOPO-UNSEEN", subject, "skip", facts.why_unseen(path), where=f"/{where}")
        for subject, path, where, seen in (
            ("GPUs", "gpus", "sys/bus/pci/devices", facts.gpus),
            ("RDMA devices", "rdma", "sys/class/infiniband", facts.rdma),
        )
        if seen is None
    ]
    if facts.gpus == ():
        reason = f"none among the PCI devices, of which {len(facts.pci or ())} are NICs or lie above one"
        findings.append(Finding("TOPO-NO-GPU", "GPUs", "skip", reason, where="/sys/bus/pci/devices"))
    if without and len(gpus) > 1:
        reason = f"NVLink was not seen: {facts.why_unseen('gpus.nvlinks')}"
        findings.append(Finding("TOPO-FABRIC", enumerate_keys(without), "skip", reason))
    if lost:
        reason = facts.why_unseen(f"gpus.{lost[0].removeprefix('GPU')}")
        findings.append(Finding("TOPO-GPU-LOST", enumerate_keys(lost), "fail", reason, "a GPU that answers"))
    if unplaced:
        reason = "hangs on no NUMA node of its own, as in a virtual machine"
        if "pci.parent" in facts.unseen:
            reason = facts.unseen["pci.parent"]
        findings.append(Finding("TOPO-NUMA-UNKNOWN", enumerate_keys(unplaced), "skip", shown(reason)))
    return findings
