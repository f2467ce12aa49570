"""The facts of one machine, as one process of it sees them: what the checks compare, and what a snapshot keeps.

Nothing here reads or judges. None, and an empty text, mean: could not be seen. Where the reason is known, `unseen`
holds it under the fact's path, such as `limits.memlock_nbytes` or `pci.acs`; the longest path that fits counts. A tuple
that was seen and has nothing in it is empty; one that could not be seen is None.

Schema history (`schema_version` of a snapshot):
  1  commbench 0.1.0: the first.
"""

from dataclasses import dataclass, field

FACTS_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The node. `virtual`: the hypervisor (`kvm`, `hyperv`, …), `none` on bare metal; `container`: likewise.

    `boot_id_hash` tells nodes of one name apart and is a hash, `uptime_seconds` since the kernel started.
    """

    name: str = ""
    product: str = ""
    os: str = ""
    kernel: str = ""
    virtual: str = ""
    container: str = ""
    boot_id_hash: str = ""
    uptime_seconds: float | None = None
    clock_utc_seconds: float | None = None
    resolves_to: tuple[str, ...] | None = None  # the addresses of its own host name


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node: its CPUs as `0-3,8-11`, its memory, and its distances to all nodes in their order."""

    number: int
    cpus: str = ""
    memory_nbytes: int | None = None
    distances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CpuFacts:
    """CPUs and their memory. `governors`: how many CPUs have each; None where there is no cpufreq."""

    model: str = ""
    online: str = ""
    sockets: int | None = None
    cores: int | None = None
    threads_per_core: int | None = None
    numa_nodes: tuple[NumaNode, ...] | None = None
    governors: dict[str, int] | None = None
    load_average: float | None = None  # of one minute


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """Memory of the node. Huge pages are of `huge_page_nbytes` each; `transparent_huge_pages`: the word in brackets."""

    total_nbytes: int | None = None
    available_nbytes: int | None = None
    swap_total_nbytes: int | None = None
    huge_pages_total: int | None = None
    huge_pages_free: int | None = None
    huge_page_nbytes: int | None = None
    transparent_huge_pages: str = ""
    shm_total_nbytes: int | None = None
    shm_free_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """Limits of this process; -1 is unlimited. `cgroup_cpus`: CPUs' worth of time, `inf` as -1.0."""

    memlock_nbytes: int | None = None
    nofile: int | None = None
    nproc: int | None = None
    stack_nbytes: int | None = None
    cgroup_cpus: float | None = None
    cgroup_memory_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Settings of the kernel. `iommu`: the kinds of its groups' domains (`identity`, `DMA`, …), `off` if there is none.

    `messages`: lines of the kernel's log that a check looks for (XID, SXid, PCIe limited, lost carrier, OOM), the
    newest last. `modules`: the names of those that matter here and are loaded.
    """

    numa_balancing: int | None = None
    command_line: str = ""
    iommu: tuple[str, ...] | None = None
    clocksource: str = ""
    modules: tuple[str, ...] | None = None
    port_range: tuple[int, int] | None = None  # net.ipv4.ip_local_port_range
    messages: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI device that matters: GPU, NIC, or a bridge or switch above one. `kind`: `gpu`, `nic`, `bridge`.

    `address` as 0000:3b:00.0; `parent`: the address above it, empty at a root port. Speeds in GT/s, width in lanes.
    `acs`: the controls that are on, such as SrcValid; None: config space could not be read, () none on.
    """

    address: str
    kind: str
    parent: str = ""
    vendor: str = ""
    device: str = ""
    driver: str = ""
    numa_node: int | None = None
    cpus: str = ""
    speed_gts: float | None = None
    speed_max_gts: float | None = None
    width: int | None = None
    width_max: int | None = None
    revision: str = ""  # `ff`: the device has fallen off the bus
    acs: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NvLinkFacts:
    """One NVLink of a GPU; `peer`: the PCI address at the other end, of a GPU or a switch."""

    number: int
    is_active: bool | None = None
    version: int | None = None
    peer: str = ""
    peer_kind: str = ""  # gpu, switch, cpu
    bytes_per_second: float | None = None
    errors: int | None = None


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU. Clocks in Hz. `throttle_reasons`: names that are active; `processes`: how many others use it now.

    `uuid_hash`: tells GPUs apart without their serial. `fabric_state`: of NVSwitch machines, such as `completed`.
    """

    index: int
    address: str
    name: str = ""
    uuid_hash: str = ""
    memory_nbytes: int | None = None
    memory_used_nbytes: int | None = None
    driver: str = ""
    vbios: str = ""
    gsp: str = ""
    persistence: bool | None = None
    mig: bool | None = None
    compute_mode: str = ""
    temperature_celsius: float | None = None
    sm_clock_hertz: float | None = None
    sm_clock_max_hertz: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected: int | None = None  # volatile: since the driver was loaded
    ecc_corrected: int | None = None
    remapped_pending: bool | None = None
    remapped_failed: bool | None = None
    retired_pages_pending: bool | None = None
    nvlinks: tuple[NvLinkFacts, ...] | None = None
    fabric_state: str = ""
    fabric_status: str = ""
    processes: int | None = None
    recovery_action: str = ""


@dataclass(frozen=True, slots=True)
class GidFacts:
    """One GID of a port; `version` is `IB/RoCE v1` or `RoCE v2`; `kind`: zero, link-local, ipv4, global. No address."""

    index: int
    version: str
    kind: str
    interface: str = ""


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """A port of an RDMA device. `state`: active, down, init, armed; `physical_state`: linkup, disabled, polling, …

    `counters`: those that a check compares, by the kernel's name. `pkeys`: hexadecimal as the kernel writes them.
    """

    device: str
    number: int
    state: str = ""
    physical_state: str = ""
    bytes_per_second: float | None = None
    rate_text: str = ""
    link_layer: str = ""  # InfiniBand, Ethernet
    interface: str = ""
    gids: tuple[GidFacts, ...] | None = None
    pkeys: tuple[str, ...] | None = None
    counters: dict[str, int] | None = None
    traffic_class: int | None = None
    mtu_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class RdmaDevice:
    """An RDMA device, such as mlx5_0. `address`: of its PCI device; `cpus`: near it."""

    name: str
    address: str = ""
    driver: str = ""
    firmware: str = ""
    board: str = ""
    numa_node: int | None = None
    cpus: str = ""
    ports: tuple[RdmaPort, ...] = ()


@dataclass(frozen=True, slots=True)
class InterfaceFacts:
    """A network interface. `kind`: ethernet, infiniband, loopback, bridge, bond, virtual, wireless. Speed in bytes/s.

    `addresses`: needed to compare with MASTER_ADDR and subnets.
    """

    name: str
    kind: str = ""
    state: str = ""  # operstate: up, down, unknown
    is_up: bool | None = None
    mtu_nbytes: int | None = None
    bytes_per_second: float | None = None
    addresses: tuple[str, ...] | None = None
    carrier_changes: int | None = None
    pci_address: str = ""
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class SoftwareFacts:
    """Versions. `nccl`: of each libnccl that can be found, by path; `nccl_loadable`: the version that really loads.

    `packages`: Python packages that matter, by name. `fabric_manager`, `imex`: running, stopped, or empty.
    """

    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    driver: str = ""
    cuda: str = ""
    nccl: dict[str, str] | None = None
    nccl_loadable: str = ""
    nccl_plugins: tuple[str, ...] | None = None
    libfabric: str = ""
    ucx: str = ""
    ofed: str = ""
    fabric_manager: str = ""
    imex: str = ""
    preload: str = ""  # LD_PRELOAD
    infiniband_devices: int | None = None  # /dev/infiniband/uverbs*


@dataclass(frozen=True, slots=True)
class ConfFile:
    """A file of NCCL's settings that exists. `lines`: those that set something, as they are written."""

    path: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """This process's place: rank and node as the launcher says, and the CPUs that it may run on.

    `gpu_address`: of the GPU that its local rank takes, empty if none.
    """

    launcher: str = ""
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_size: int = 1
    cpus: str = ""
    gpu_address: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything. `variables`: the allow-listed environment, never the whole; `hashes`: of files given by --same."""

    schema_version: int = FACTS_SCHEMA_VERSION
    taken_utc: str = ""
    source: str = "/"
    host: HostFacts = HostFacts()
    cpu: CpuFacts = CpuFacts()
    memory: MemoryFacts = MemoryFacts()
    limits: LimitFacts = LimitFacts()
    kernel: KernelFacts = KernelFacts()
    pci: tuple[PciDevice, ...] | None = None
    gpus: tuple[GpuFacts, ...] | None = None
    rdma: tuple[RdmaDevice, ...] | None = None
    interfaces: tuple[InterfaceFacts, ...] | None = None
    software: SoftwareFacts = SoftwareFacts()
    process: ProcessFacts = ProcessFacts()
    variables: dict[str, str] = field(default_factory=dict)
    conf_files: tuple[ConfFile, ...] | None = None
    hashes: dict[str, str] = field(default_factory=dict)
    unseen: dict[str, str] = field(default_factory=dict)

    def why_unseen(self, path: str) -> str:
        """Why the fact at `path` could not be seen: the reason of the path itself or of the nearest one above it."""
        while path:
            if path in self.unseen:
                return self.unseen[path]
            path = path.rpartition(".")[0]
        return f"{self.source} does not say"
