"""CON: GPUs and NICs, which nodes must have alike.

What differs within a node has rules of its own, and is not told twice.
"""

from collections import Counter
from collections.abc import Mapping

from commbench.checks.consistency import Agreement, declare, said
from commbench.checks.devices import gpus_of, ports_of
from commbench.machine.facts import Facts
from commbench.units import GB, format_nbytes


def _gpu_models(facts: Facts) -> Mapping[str, str] | None:
    shown = {}
    for name, gpu in (gpus_of(facts) or {}).items():
        memory = f", {format_nbytes(gpu.memory_nbytes)}" if gpu.memory_nbytes else ""
        shown[name] = f"{gpu.name}{memory}" if gpu.name else ""
    return said(shown)


def _gpu_firmware(facts: Facts) -> Mapping[str, str] | None:
    return said(
        {
            f"{name} {what}": value
            for name, gpu in (gpus_of(facts) or {}).items()
            for what, value in (("VBIOS", gpu.vbios), ("GSP", gpu.gsp))
        }
    )


def _gpu_modes(facts: Facts) -> Mapping[str, str] | None:
    shown = {}
    for name, gpu in (gpus_of(facts) or {}).items():
        for what, flag in (("ECC", gpu.ecc_enabled), ("MIG", gpu.mig), ("persistence", gpu.persistence)):
            shown[f"{name} {what}"] = None if flag is None else ("on" if flag else "off")
        shown[f"{name} clock"] = f"{gpu.sm_clock_max_hertz / 1e6:.0f} MHz" if gpu.sm_clock_max_hertz else None
    return said(shown)


def _links(facts: Facts) -> str | None:
    """The most NVLinks that a GPU has active: a GPU with fewer than its siblings is GPU-NVLINK's."""
    counts = [
        sum(link.is_active is True for link in gpu.nvlinks) for gpu in facts.gpus or () if gpu.nvlinks is not None
    ]
    return str(max(counts)) if counts else None


def _nic_names(facts: Facts) -> Mapping[str, str] | None:
    """By their order: how many there are has a rule of its own."""
    return {f"device {place}": device.name for place, device in enumerate(facts.rdma or ())} or None


def _nic_firmware(facts: Facts) -> Mapping[str, str] | None:
    return said({device.name: device.firmware for device in facts.rdma or ()})


def _rates(facts: Facts) -> Mapping[str, str] | None:
    """The best rate of each kind of card: a port below its siblings' is NIC-RATE's."""
    best: dict[str, float] = {}
    for device in facts.rdma or ():
        for port in device.ports:
            kind = device.board or device.driver or "NICs"
            best[kind] = max(best.get(kind, 0.0), port.bytes_per_second or 0.0)
    return said({kind: f"{rate * 8 / GB:g} Gbit/s" for kind, rate in best.items() if rate})


def _mtus(facts: Facts) -> Mapping[str, str] | None:
    """The usual MTU of each kind of link: one interface that differs from its siblings is NIC-MTU's."""
    kinds: dict[str, list[int]] = {}
    for one in facts.interfaces or ():
        if one.is_up and one.mtu_nbytes and one.kind in ("ethernet", "infiniband", "bond"):
            rate = f" of {one.bytes_per_second * 8 / GB:g} Gbit/s" if one.bytes_per_second else ""
            kinds.setdefault(f"{one.kind}{rate}", []).append(one.mtu_nbytes)
    return said({kind: Counter(found).most_common(1)[0][0] for kind, found in kinds.items()})


def _link_layers(facts: Facts) -> Mapping[str, str] | None:
    return said({name: port.link_layer for name, port in (ports_of(facts) or {}).items()})


def _pkeys(facts: Facts) -> Mapping[str, str] | None:
    return said({name: ", ".join(sorted(port.pkeys or ())) for name, port in (ports_of(facts) or {}).items()})


def _traffic_classes(facts: Facts) -> str | None:
    """The usual one of RoCE ports: a port that differs from its siblings is NIC-TRAFFIC-CLASS's."""
    ports = [port for port in (ports_of(facts) or {}).values() if port.link_layer == "Ethernet"]
    found = Counter("not set" if port.traffic_class is None else str(port.traffic_class) for port in ports)
    return found.most_common(1)[0][0] if found else None


_AGREEMENTS = (
    Agreement(
        "CON-GPU-COUNT",
        "fail",
        "number of GPUs",
        lambda f: None if f.gpus is None else str(len(f.gpus)),
        fix="look at GPU-SEEN and GPU-BUS there, and take the node out",
        source="every health check that was read",
        explanation="A node that lost a GPU starts fewer ranks, or ranks without one.",
        where="NVML, PCI devices",
    ),
    Agreement(
        "CON-GPU-MODEL",
        "fail",
        "GPU models",
        _gpu_models,
        fix="keep jobs to nodes of one kind: --constraint of Slurm",
        source="every health check that was read",
        explanation="Collectives run at the pace of the slowest GPU, and memory is planned for all.",
        where="NVML",
    ),
    Agreement(
        "CON-GPU-FIRMWARE",
        "warn",
        "GPU firmware",
        _gpu_firmware,
        fix="update those that differ with the maker's bundle",
        source="imbue-ai/cluster-health; GCM",
        explanation="VBIOS and GSP: other power limits, other NVLink training.",
        where="NVML",
    ),
    Agreement(
        "CON-GPU-MODES",
        "warn",
        "GPU modes",
        _gpu_modes,
        fix="set ECC, MIG, persistence and clocks alike (nvidia-smi)",
        source="imbue-ai/cluster-health; GCM",
        explanation="A GPU without ECC has more bandwidth, one with a locked clock has less speed.",
        where="NVML",
    ),
    Agreement(
        "CON-NVLINK",
        "fail",
        "active NVLinks a GPU",
        _links,
        fix="nvidia-smi nvlink -s; restart the fabric manager there",
        source="oci-hpc (18 on H100)",
        explanation="All GPUs of a node may have lost the same links: a switch that did not start.",
        where="NVML",
    ),
    Agreement(
        "CON-NIC-COUNT",
        "fail",
        "number of RDMA devices",
        lambda f: None if f.rdma is None else str(len(f.rdma)),
        fix="look at NIC-RDMA there, and take the node out",
        source="GCM, gpud, Azure's node health checks",
        explanation="NCCL makes its channels for the node with the fewest NICs, or leaves a rail without one end.",
        where="/sys/class/infiniband",
    ),
    Agreement(
        "CON-NIC-NAMES",
        "warn",
        "names of RDMA devices",
        _nic_names,
        fix="name them by udev's rules, as on the other nodes",
        source="ml-engineering (NCCL_IB_HCA)",
        explanation="NCCL_IB_HCA means other cards where names differ, and rails cross.",
        where="/sys/class/infiniband",
    ),
    Agreement(
        "CON-NIC-FIRMWARE",
        "warn",
        "NIC firmware",
        _nic_firmware,
        fix="update those that differ, then power-cycle",
        source="imbue-ai/cluster-health; GCM",
        explanation="Firmware decides congestion control and adaptive routing, which both ends need.",
        where="/sys/class/infiniband/*/fw_ver",
    ),
    Agreement(
        "CON-NIC-RATE",
        "fail",
        "NIC rate",
        _rates,
        fix="look at cables, switch ports and the negotiated width and speed",
        source="GCM, gpud, Azure's node health checks",
        explanation="All ports of a node may run a generation lower: a wrong switch profile.",
        where="/sys/class/infiniband/*/ports/*/rate",
    ),
    Agreement(
        "CON-MTU",
        "fail",
        "MTU",
        _mtus,
        fix="set the MTU of the others, on interfaces and switches",
        source="GCM's check-ethlink",
        explanation="Packets of the larger MTU are dropped on the way: small messages pass, large ones hang.",
        where="/sys/class/net/*/mtu",
    ),
    Agreement(
        "CON-LINK-LAYER",
        "warn",
        "link layer",
        _link_layers,
        fix="mlxconfig -d DEVICE set LINK_TYPE_P1, then power-cycle",
        source="GCM",
        explanation="A card that came up as Ethernet on one node and as InfiniBand on the others cannot reach them.",
        where="/sys/class/infiniband/*/ports/*/link_layer",
    ),
    Agreement(
        "CON-PKEYS",
        "warn",
        "partition keys",
        _pkeys,
        fix="add the node's ports to the partitions of the others",
        source="ai-infrastructure-on-azure",
        explanation="Ports in different partitions do not see each other.",
        where="/sys/class/infiniband/*/ports/*/pkeys",
    ),
    Agreement(
        "CON-TRAFFIC-CLASS",
        "warn",
        "RoCE traffic class",
        _traffic_classes,
        fix="write the same traffic_class on all nodes",
        source="nccl-doctor; oci-hpc",
        explanation="A node with another class sends in another queue of the switch, which may drop.",
        where="/sys/class/infiniband/*/tc/*/traffic_class",
    ),
)
for _agreement in _AGREEMENTS:
    declare(_agreement)
