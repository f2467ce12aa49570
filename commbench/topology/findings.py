"""What a machine's wiring says of itself: GPUs far from a NIC, GPUs unlike their siblings, NUMA nodes not seen."""

from collections import Counter, defaultdict
from itertools import combinations

from commbench.results.schema import Finding
from commbench.topology.affinity import carries_host_traffic, nearest_nics
from commbench.topology.graph import FABRICS, MAX_DEVICES, NEARNESS, Topology, enumerate_keys
from commbench.topology.numbers import count_cpus

Profile = tuple[tuple[str, int | None], ...]


def judge(topology: Topology) -> tuple[Finding, ...]:
    """The findings of a machine, whatever format it was read from."""
    return (
        *_far_from_nics(topology),
        *_unlike_siblings(topology),
        *_broken_mesh(topology),
        *_nics_beside(topology),
        *_numa_nodes(topology),
        *_hidden_numa(topology),
    )


def _far_from_nics(topology: Topology) -> list[Finding]:
    """GPUs whose best NIC is not under their own switch, one finding for each link class."""
    far: dict[str, list[str]] = defaultdict(list)
    for nearest in nearest_nics(topology):
        if nearest.link_class in _WHAT_FAR_MEANS or nearest.link_class == "unknown":
            far[nearest.link_class].append(nearest.gpu)
    if not topology.nics or not topology.gpus:
        return []
    findings = []
    for link_class, gpus in sorted(far.items(), key=lambda item: NEARNESS.index(item[0])):
        if link_class == "unknown":
            findings.append(
                Finding(
                    "TOPO-NIC-UNKNOWN",
                    enumerate_keys(gpus),
                    "skip",
                    "how far the NICs are is not said",
                    where=topology.source,
                )
            )
            continue
        findings.append(
            Finding(
                "TOPO-NIC-FAR",
                enumerate_keys(gpus),
                "warn",
                f"no NIC under the same switch: the best is {link_class}",
                "pix or pxb",
                topology.source,
                _WHAT_FAR_MEANS[link_class],
            )
        )
    return findings


_THROUGH_HOST = "traffic to other nodes passes the CPU's host bridge; see NCCL_NET_GDR_LEVEL"
_WHAT_FAR_MEANS = {
    "phb": _THROUGH_HOST,
    "node": _THROUGH_HOST,
    "sys": "traffic to other nodes crosses the sockets, and GPUDirect RDMA is off by default; where CPU and GPU are "
    "joined by C2C (GB200) the matrix does not show that way",
}


def _profiles(topology: Topology) -> dict[Profile, list[str]]:
    """GPUs by how they see the other GPUs: link classes with lanes, sorted from the nearest."""
    alike: dict[Profile, list[str]] = defaultdict(list)
    for gpu in topology.gpus:
        links = [topology.link(gpu.key, other.key) for other in topology.gpus if other is not gpu]
        if any(link is None or link.link_class == "unknown" for link in links):
            continue
        seen = [(link.link_class, link.lanes) for link in links if link]
        alike[tuple(sorted(seen, key=lambda item: (NEARNESS.index(item[0]), -(item[1] or 0))))].append(gpu.key)
    return alike


def _unlike_siblings(topology: Topology) -> list[Finding]:
    """GPUs that see the other GPUs otherwise than most do; all sides where none is the most."""
    alike = sorted(_profiles(topology).items(), key=lambda item: -len(item[1]))
    if len(alike) < 2:
        return []
    (usual, most), *others = alike
    return [
        Finding(
            "TOPO-ASYMMETRY",
            enumerate_keys(gpus),
            "warn",
            f"sees its siblings over {_describe(profile)}",
            f"{_describe(usual)}, as {enumerate_keys(most)}",
            topology.source,
            "collectives run at the pace of the GPU with the slowest way",
        )
        for profile, gpus in others
    ]


def _describe(profile: Profile) -> str:
    counted = Counter(profile)
    return ", ".join(
        f"{link_class}{f' x{lanes}' if lanes else ''}{f' ({times} of them)' if len(counted) > 1 else ''}"
        for (link_class, lanes), times in counted.items()
    )


def _broken_mesh(topology: Topology) -> list[Finding]:
    """Pairs of GPUs without the fabric that other pairs have."""
    pairs = [topology.link_class(one.key, other.key) for one, other in combinations(topology.gpus, 2)]
    fabric = next((link_class for link_class in FABRICS if link_class in pairs), None)
    without = Counter(link_class for link_class in pairs if link_class != fabric and link_class != "unknown")
    if fabric is None or not without:
        return []
    kinds = ", ".join(f"{times} over {link_class}" for link_class, times in without.items())
    return [
        Finding(
            "TOPO-MESH",
            "GPUs",
            "warn",
            f"{sum(without.values())} of {len(pairs)} pairs have no {fabric}: {kinds}",
            f"{fabric} between all",
            topology.source,
            "keep groups that talk most where all pairs have it",
        )
    ]


def _nics_beside(topology: Topology) -> list[Finding]:
    """NICs that are for the host's own traffic: by their name, or because no GPU is near while others are served."""
    named = [nic.key for nic in topology.nics if carries_host_traffic(nic.name)]
    findings = []
    if named:
        findings.append(
            Finding(
                "TOPO-NIC-HOST",
                enumerate_keys(named),
                "warn",
                "an accelerated Ethernet function, by its name",
                "InfiniBand for collectives",
                topology.source,
                "leave it out of NCCL_IB_HCA",
            )
        )
    classes = {
        nic.key: [topology.link_class(nic.key, gpu.key) for gpu in topology.gpus]
        for nic in topology.nics
        if nic.key not in named
    }
    remote = [nic for nic, seen in classes.items() if set(seen) == {"sys"}]
    if remote and len(remote) < len(classes):
        findings.append(
            Finding(
                "TOPO-NIC-REMOTE",
                enumerate_keys(remote),
                "ok",
                "sys to every GPU: for the host rather than for GPUs",
                where=topology.source,
            )
        )
    return findings


def _numa_nodes(topology: Topology) -> list[Finding]:
    """NUMA nodes with fewer CPUs than the others, or that the file leaves out."""
    cpus: dict[int, str] = {}
    for device in topology.gpus:
        if device.numa_node is not None and device.cpus:
            cpus.setdefault(device.numa_node, device.cpus)
    listed = {}
    for place in topology.places:
        node = place.key.removeprefix("numa")
        if place.kind == "numa" and node.isdigit():
            listed[int(node)] = place.cpus
    cpus = {node: text for node, text in listed.items() if text} | cpus
    counts = {node: count_cpus(text) for node, text in cpus.items()}
    full = max(counts.values(), default=0)
    findings = [
        Finding(
            "TOPO-NUMA-CPUS",
            f"NUMA node {node}",
            "warn",
            f"{count} CPUs ({cpus[node]})",
            f"{full}, as others have",
            topology.source,
            "CPUs are offline, reserved, or the list is mistyped",
        )
        for node, count in sorted(counts.items())
        if count < full
    ]
    last = max(listed, default=0)
    absent = [str(node) for node in range(min(last, MAX_DEVICES)) if node not in listed]
    if listed and absent:
        subject, expected = f"NUMA node {', '.join(absent[:16])}", f"nodes 0 to {last}"
        findings.append(Finding("TOPO-NUMA-ABSENT", subject, "skip", "not in the file", expected, topology.source))
    return findings


def _hidden_numa(topology: Topology) -> list[Finding]:
    """GPUs that cross NUMA nodes, and yet all list the same CPUs."""
    lists = {gpu.cpus for gpu in topology.gpus}
    crosses = any(topology.link_class(one.key, other.key) == "sys" for one, other in combinations(topology.gpus, 2))
    if not crosses or len(lists) != 1 or lists == {""}:
        return []
    return [
        Finding(
            "TOPO-NUMA-HIDDEN",
            enumerate_keys(gpu.key for gpu in topology.gpus),
            "skip",
            f"pairs are sys, yet every GPU lists the CPUs {lists.pop()}: NUMA is hidden, as in a VM",
            "the CPUs of its own NUMA node",
            topology.source,
        )
    ]
