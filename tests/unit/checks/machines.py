"""A healthy machine like a DGX as facts, and a job on four of them: what every fault is planted into.

Two NUMA nodes of 56 cores, eight GPUs joined by NVSwitches, and eight InfiniBand NICs, each under the switch of its
GPU. It is made up, after what such machines print.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from commbench.checks.registry import Scene, load_rules, run_rules
from commbench.machine.facts import (
    CpuFacts,
    Facts,
    GpuFacts,
    HostFacts,
    InterfaceFacts,
    KernelFacts,
    LimitFacts,
    MemoryFacts,
    NumaNode,
    NvLinkFacts,
    PciDevice,
    ProcessFacts,
    RdmaDevice,
    RdmaPort,
    SoftwareFacts,
)
from commbench.results.schema import Finding
from commbench.topology.graph import Device, Link, Topology

GPUS = 8
NUMA_CPUS = ("0-55,112-167", "56-111,168-223")
COUNTERS = dict.fromkeys(
    ("symbol_error", "link_downed", "port_rcv_errors", "port_xmit_discards", "local_ack_timeout_err", "packet_seq_err"),
    0,
)
World = tuple[Facts, ...]
Item = TypeVar("Item")


def numa(index: int) -> int:
    return index * 2 // GPUS


def bus(index: int, function: int) -> str:
    """Addresses of one branch: 0 root port, 1 switch, 2 and 3 its ports, 4 GPU, 5 NIC."""
    return f"0000:{16 * index + function:02x}:00.0"


def gpu(index: int) -> GpuFacts:
    links = tuple(NvLinkFacts(n, True, 4, f"0000:f{n % 4}:00.0", "switch", 26.562e9, 0) for n in range(18))
    return GpuFacts(
        index=index,
        address=bus(index, 4),
        name="NVIDIA H100 80GB HBM3",
        uuid_hash=f"{index:012x}",
        memory_nbytes=80 << 30,
        memory_used_nbytes=600 << 20,
        driver="550.90.07",
        vbios="96.00.89.00.01",
        gsp="550.90.07",
        persistence=True,
        mig=False,
        compute_mode="default",
        temperature_celsius=31.0 + index,
        sm_clock_hertz=345e6,
        sm_clock_max_hertz=1980e6,
        throttle_reasons=("gpu_idle",),
        ecc_enabled=True,
        ecc_uncorrected=0,
        ecc_corrected=0,
        remapped_pending=False,
        remapped_failed=False,
        retired_pages_pending=False,
        nvlinks=links,
        fabric_state="completed",
        fabric_status="success",
        processes=0,
        recovery_action="none",
    )


def branch(index: int) -> tuple[PciDevice, ...]:
    cpus = NUMA_CPUS[numa(index)]

    def device(function: int, kind: str, parent: str, **more: str) -> PciDevice:
        is_bridge = kind == "bridge"
        return PciDevice(
            address=bus(index, function),
            kind=kind,
            parent=parent,
            numa_node=numa(index),
            cpus=cpus,
            speed_gts=32.0,
            speed_max_gts=32.0,
            width=16,
            width_max=16,
            revision="a1",
            acs=() if is_bridge else None,
            **more,
        )

    return (
        device(0, "bridge", "", driver="pcieport"),
        device(1, "bridge", bus(index, 0), driver="pcieport"),
        device(2, "bridge", bus(index, 1), driver="pcieport"),
        device(3, "bridge", bus(index, 1), driver="pcieport"),
        device(4, "gpu", bus(index, 2), vendor="10de", device="2330", driver="nvidia"),
        device(5, "nic", bus(index, 3), vendor="15b3", device="1021", driver="mlx5_core"),
    )


def rdma(index: int) -> RdmaDevice:
    port = RdmaPort(
        device=f"mlx5_{index}",
        number=1,
        state="active",
        physical_state="linkup",
        bytes_per_second=50e9,
        rate_text="400 Gb/sec (4X NDR)",
        link_layer="InfiniBand",
        gids=(),
        pkeys=("0xffff",),
        counters=COUNTERS,
    )
    cpus = NUMA_CPUS[numa(index)]
    return RdmaDevice(
        f"mlx5_{index}", bus(index, 5), "mlx5_core", "28.39.3004", "MT_0000000838", numa(index), cpus, (port,)
    )


def interfaces(node: int) -> tuple[InterfaceFacts, ...]:
    return (
        InterfaceFacts("lo", "loopback", "unknown", True, 65536, None, ("127.0.0.1/8",), 0),
        InterfaceFacts(
            "eno1", "ethernet", "up", True, 1500, 25e9 / 8, (f"10.0.0.{node + 1}/24",), 2, "0000:e0:00.0", 0
        ),
        InterfaceFacts("docker0", "bridge", "down", True, 1500, None, ("172.17.0.1/16",), 1),
        *(
            InterfaceFacts(f"ib{n}", "infiniband", "up", True, 4092, 50e9, (), 2, bus(n, 5), numa(n))
            for n in range(GPUS)
        ),
    )


def healthy(node: int = 0, local_rank: int = 0, nodes: int = 1) -> Facts:
    """The facts of one rank; each of the eight ranks of a node is bound to 14 cores near its GPU."""
    first = local_rank * 14
    process = ProcessFacts(
        "Slurm", node * GPUS + local_rank, nodes * GPUS, local_rank, GPUS, f"{first}-{first + 13}", bus(local_rank, 4)
    )
    return Facts(
        host=HostFacts(
            name=f"n{node}", product="Maker Model", os="Ubuntu 22.04.4 LTS", kernel="5.15.0-105-generic", virtual="none",
            container="none", boot_id_hash=f"b{node}", uptime_seconds=864_000.0, clock_utc_seconds=1.7e9,
            resolves_to=(f"10.0.0.{node + 1}",),
        ),
        cpu=CpuFacts(
            "Maker 8480C", "0-223", 2, 112, 2,
            tuple(NumaNode(n, NUMA_CPUS[n], 1 << 40, (10, 21) if n == 0 else (21, 10)) for n in range(2)),
            {"performance": 224}, 1.5,
        ),
        memory=MemoryFacts(2 << 40, 1900 << 30, 0, 0, 0, 2 << 20, "madvise", 1 << 40, 1 << 40),
        limits=LimitFacts(-1, 1 << 20, -1, 8 << 20, -1.0, -1),
        kernel=KernelFacts(
            0, "iommu=pt", ("identity",), "tsc", ("ib_uverbs", "mlx5_ib", "nvidia", "nvidia_peermem"), (32768, 60999), ()
        ),
        pci=tuple(device for index in range(GPUS) for device in branch(index)),
        gpus=tuple(gpu(index) for index in range(GPUS)),
        rdma=tuple(rdma(index) for index in range(GPUS)),
        interfaces=interfaces(node),
        software=SoftwareFacts(
            python="3.11.9",
            packages={"torch": "2.6.0+cu124", "numpy": "2.2.0", "nvidia-nccl-cu12": "2.21.5"},
            driver="550.90.07", cuda="12.4", nccl={"/venv/nvidia/nccl/lib/libnccl.so.2": "2.21.5+cuda12.4"},
            nccl_loadable="2.21.5", nccl_plugins=(), ucx="1.16.0", ofed="MLNX_OFED_LINUX-24.04-0.6.6.0",
            fabric_manager="running", infiniband_devices=GPUS,
        ),
        process=process,
        variables={"MASTER_ADDR": "n0", "MASTER_PORT": "29500", "RANK": str(process.rank), "NCCL_DEBUG": "WARN"},
        conf_files=(),
    )  # fmt: skip


def world(nodes: int = 1) -> World:
    """All ranks of a job, healthy and alike."""
    return tuple(healthy(node, rank, nodes) for node in range(nodes) for rank in range(GPUS))


def topology_of(facts: Facts) -> Topology:
    """The wiring: NVLink between GPUs where they have any; pix under one switch, node and sys over the CPU."""
    by_address = {device.address: device for device in facts.pci or ()}

    def place(address: str) -> tuple[str, int | None]:
        device = by_address.get(address)
        above = by_address.get(device.parent) if device else None
        return (above.parent if above else "", device.numa_node if device else None)

    gpus = [Device(f"GPU{one.index}", "gpu", one.name, one.address) for one in facts.gpus or ()]
    nics = [Device(one.name, "nic", one.name, one.address) for one in facts.rdma or ()]
    nvlink = {f"GPU{one.index}" for one in facts.gpus or () if any(link.is_active for link in one.nvlinks or ())}
    links = []
    for number, one in enumerate(devices := [*gpus, *nics]):
        for other in devices[number + 1 :]:
            (switch, node), (other_switch, other_node) = place(one.bus_id), place(other.bus_id)
            link_class = "pix" if switch and switch == other_switch else "node" if node == other_node else "sys"
            links.append(Link(one.key, other.key, "nvlink" if {one.key, other.key} <= nvlink else link_class))
    return Topology("facts", facts.source, tuple(devices), tuple(links))


def findings(ranks: World) -> Iterator[Finding]:
    """What the rules find: those of the node's own on every rank, those of consistency once."""
    rules = load_rules()
    own = [row for row in rules if row.family != "CON"]
    nodes = len({facts.host.boot_id_hash for facts in ranks})
    for facts in ranks:
        peers = tuple(other for other in ranks if other.host == facts.host and other is not facts)
        yield from run_rules(own, Scene(facts, topology_of(facts), nodes, peers))
    yield from run_rules((row for row in rules if row.family == "CON"), Scene(ranks[0], None, nodes, ranks))


def found(ranks: World) -> set[str]:
    """The rules that warn or fail."""
    return {finding.rule for finding in findings(ranks) if finding.verdict in ("warn", "fail")}


Edit = Callable[[World], World]


def everywhere(change: Callable[[Facts], Facts]) -> Edit:
    """The same change on all ranks."""
    return lambda ranks: tuple(change(facts) for facts in ranks)


def on_rank(rank: int, change: Callable[[Facts], Facts]) -> Edit:
    return lambda ranks: tuple(change(facts) if facts.process.rank == rank else facts for facts in ranks)


def on_node(node: int, change: Callable[[Facts], Facts]) -> Edit:
    return lambda ranks: tuple(change(facts) if facts.host.name == f"n{node}" else facts for facts in ranks)


def part(name: str, **values: object) -> Callable[[Facts], Facts]:
    """Values of one part, such as `host` or `limits`."""
    return lambda facts: replace(facts, **{name: replace(getattr(facts, name), **values)})


def one_gpu(index: int, **values: object) -> Callable[[Facts], Facts]:
    return lambda facts: replace(facts, gpus=_with(facts.gpus or (), index, lambda one: replace(one, **values)))


def one_link(index: int, number: int, **values: object) -> Callable[[Facts], Facts]:
    """Values of one NVLink of one GPU."""

    def change(facts: Facts) -> Facts:
        links = (facts.gpus or ())[index].nvlinks or ()
        return one_gpu(index, nvlinks=_with(links, number, lambda one: replace(one, **values)))(facts)

    return change


def one_port(index: int, **values: object) -> Callable[[Facts], Facts]:
    def change(facts: Facts) -> Facts:
        def device(one: RdmaDevice) -> RdmaDevice:
            return replace(one, ports=(replace(one.ports[0], **values),))

        return replace(facts, rdma=_with(facts.rdma or (), index, device))

    return change


def one_device(index: int, **values: object) -> Callable[[Facts], Facts]:
    return lambda facts: replace(facts, rdma=_with(facts.rdma or (), index, lambda one: replace(one, **values)))


def one_pci(address: str, **values: object) -> Callable[[Facts], Facts]:
    return lambda facts: replace(
        facts,
        pci=tuple(replace(one, **values) if one.address == address else one for one in facts.pci or ()),
    )


def one_interface(name: str, **values: object) -> Callable[[Facts], Facts]:
    return lambda facts: replace(
        facts,
        interfaces=tuple(replace(one, **values) if one.name == name else one for one in facts.interfaces or ()),
    )


def message(*lines: str) -> Callable[[Facts], Facts]:
    """Lines of the kernel's log."""
    return part("kernel", messages=lines)


def both(*changes: Callable[[Facts], Facts]) -> Callable[[Facts], Facts]:
    def change(facts: Facts) -> Facts:
        for one in changes:
            facts = one(facts)
        return facts

    return change


def _with(items: Iterable[Item], index: int, change: Callable[[Item], Item]) -> tuple[Item, ...]:
    return tuple(change(item) if place == index else item for place, item in enumerate(items))
