"""What warnings mean: a table of patterns with cause, cure and source. The first that fits is the one.

Texts: src/misc/ibvwrap.cc, src/transport/*.cc, src/init.cc, src/bootstrap.cc and src/misc/*.cc of NCCL 2.3 to 2.30.
`secondary`: such a warning follows from another, often on another rank, that is to be looked for first.
"""

import re
from dataclasses import dataclass

from commbench.results.nccl_log.records import FaultKind


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One row. `info`: also looked for in messages that are not warnings."""

    name: str
    pattern: re.Pattern[str]
    cause: str
    cure: str
    source: str
    kind: FaultKind = "failure"
    secondary: bool = False
    info: bool = False


def _row(
    name: str, pattern: str, cause: str, cure: str, source: str, kind: FaultKind = "failure", *, secondary: bool = False
) -> KnownFault:
    return KnownFault(name, re.compile(pattern), cause, cure, source, kind, secondary)


_GUIDE = "NCCL user guide, troubleshooting"
_QP = r"ibv_modify_qp failed with (?:error )?"
_DONE = r"Got (?:completion|CQE).{0,160}?(?:error |status=)(?:\w{1,40}\()?"

KNOWN_FAULTS: tuple[KnownFault, ...] = (
    # InfiniBand and RoCE: setting up
    _row(
        "ib-gid-empty", _QP + r"(?:61\b|No data available)",
        "the GID at the index that NCCL uses is empty (errno 61): indexes move when a port goes down or an address changes",
        "unset NCCL_IB_GID_INDEX (2.21 and newer choose by themselves), or give the port its address again; show_gids lists them",
        "NVIDIA/nccl src/misc/ibvwrap.cc; user guide, NCCL_IB_GID_INDEX",
    ),
    _row(
        "ib-unreachable", _QP + r"(?:101\b|Network is unreachable|113\b|No route to host)",
        "the peer's RoCE address cannot be routed from this port: wrong GID, or ports in subnets that do not reach each other",
        "use a GID of RoCE v2 with a routable address on both sides; leave out ports of other networks with NCCL_IB_HCA; "
        "try rping or ib_write_bw between these two",
        "NVIDIA/nccl-tests#185; " + _GUIDE,
    ),
    _row(
        "ib-connect-timeout", _QP + r"(?:110\b|Connection timed out)",
        "the peer's address does not answer: GID of a wrong version or network, or a firewall or switch between them",
        "try NCCL_IB_GID_INDEX of RoCE v2 with an IPv4 address (show_gids), or unset it from 2.21 on; check the VLAN and routes",
        "NVIDIA/nccl#769",
    ),
    _row(
        "ib-qp-invalid", _QP + r"(?:22\b|Invalid argument)",
        "both ends do not fit: MTU, link layer (InfiniBand against Ethernet), or GID index",
        "use ports of one kind: NCCL_IB_HCA; compare ibv_devinfo -v of both nodes", _GUIDE,
    ),
    _row(
        "ib-open", r"ibv_open_device failed|NET/IB : Unable to open device",
        "the NIC is seen, but cannot be opened: in a container /dev/infiniband is missing, or the limit of locked memory is low",
        "start the container with --device /dev/infiniband --ulimit memlock=-1 (Kubernetes: the RDMA device plugin)",
        "NVIDIA/nccl#451; " + _GUIDE,
    ),
    _row(
        "ib-memlock", r"ibv_(?:reg_mr\w{0,16}|create_cq|create_qp|alloc_pd) failed.{0,40}(?:12\b|Cannot allocate memory)",
        "memory cannot be locked for the NIC: the limit is low",
        "ulimit -l unlimited, for the daemon that starts jobs too (Slurm: LimitMEMLOCK=infinity, PropagateResourceLimitsExcept=MEMLOCK)",
        _GUIDE,
    ),
    _row(
        "ib-register-gpu", r"ibv_reg_(?:mr|dmabuf_mr)\w{0,16} failed.{0,40}(?:14\b|22\b|Bad address|Invalid argument)",
        "the GPU's memory cannot be registered with the NIC: nvidia_peermem is not loaded, or DMA-BUF does not work here",
        "modprobe nvidia_peermem, or try NCCL_DMABUF_ENABLE=0; without GPUDirect: NCCL_NET_GDR_LEVEL=LOC",
        "NCCL user guide, GPUDirect RDMA",
    ),
    # InfiniBand and RoCE: in use. Numbers: enum ibv_wc_status of rdma-core
    _row(
        "ib-flushed", _DONE + r"(?:5\b|IBV_WC_WR_FLUSH_ERR)",
        "a request was thrown away because its connection had failed before (status 5, flushed)",
        "look for the first completion with another status, on any rank; this one only follows it",
        "rdma-core, enum ibv_wc_status", secondary=True,
    ),
    _row(
        "ib-retry-exceeded", _DONE + r"(?:12\b|IBV_WC_RETRY_EXC_ERR)",
        "the peer did not answer for all retries (status 12): a link that drops or flaps, a dead peer, or congestion without PFC",
        "look at that port's counters and cable; then the switch; a larger NCCL_IB_TIMEOUT (20) only bridges short outages",
        "rdma-core, enum ibv_wc_status; user guide, NCCL_IB_TIMEOUT",
    ),
    _row(
        "ib-receiver-not-ready", _DONE + r"(?:13\b|IBV_WC_RNR_RETRY_EXC_ERR)",
        "the receiver was not ready for all retries (status 13)", "look at the peer: is it stuck, or out of memory",
        "rdma-core, enum ibv_wc_status",
    ),
    _row(
        "ib-access", _DONE + r"(?:4|9|10|11)\b",
        "the NIC refused an access to memory (status 4: local protection; 9, 10, 11: the remote side)",
        "ACS or IOMMU in the way of GPUDirect, or a driver's fault: try NCCL_NET_GDR_LEVEL=LOC; then dmesg on both nodes",
        "rdma-core, enum ibv_wc_status; " + _GUIDE,
    ),
    _row(
        "ib-port-event", r"async (?:fatal )?event|Got (?:fatal|non-fatal) async event",
        "the NIC reported an event: a port went down, its GID table changed, or the device failed",
        "look at the link: dmesg, ethtool or ibstat on this host at that time", "NVIDIA/nccl src/transport/net_ib", "warning",
    ),
    _row(
        "nic-fused-across-numa", r"Fusing NET devices from different NUMA",
        "NICs of different NUMA nodes were asked to be merged, which NCCL does not do",
        "name NICs of one NUMA node in NCCL_NET_FORCE_MERGE, or leave it unset", "NVIDIA/nccl src/graph/topo.cc",
    ),
    _row(
        "nic-no-pci-path", r"Could not find real path of",
        "the NIC has no PCI device (a software or virtual one): NCCL cannot tell which GPU is near it",
        "harmless for software RoCE and virtual interfaces; else leave it out with NCCL_IB_HCA or NCCL_SOCKET_IFNAME",
        "NVIDIA/nccl src/transport/net_ib", "warning",
    ),
    # Plugins and networks
    _row(
        "net-not-found", r"network .{1,64} not found",
        "NCCL_NET names a network whose plugin was not found or not loaded",
        "put the plugin's library (libnccl-net.so, or libnccl-net-NAME.so with NCCL_NET_PLUGIN=NAME) into LD_LIBRARY_PATH of "
        "every rank, in the container too; or unset NCCL_NET",
        "eth-cscs/cscs-docs, NCCL",
    ),
    _row(
        "net-none", r"Failed to initialize any NET plugin|[nN]o socket interface found|NET/Socket : no interface found",
        "no interface fits: NCCL_SOCKET_IFNAME names none that is here, or all are excluded",
        "compare NCCL_SOCKET_IFNAME with `ip -brief address` on this host; names differ from node to node", _GUIDE,
    ),
    # Rendezvous and sockets
    _row(
        "socket-refused", r"(?:[Cc]onnect|Call to connect).{0,120}(?:Connection refused|No route to host|Connection timed out)",
        "the other rank's address does not answer: it has not started, died, a firewall is between, or it gave an address of "
        "an interface that this host does not reach",
        "set NCCL_SOCKET_IFNAME to the interface that joins the nodes; open the ports between nodes", _GUIDE,
    ),
    _row(
        "socket-closed", r"Connection closed by (?:remote )?peer|Connection reset by peer",
        "the process at the other end closed its socket: it failed or was killed before",
        "look at that peer's own log for its first warning, and for the out-of-memory killer", _GUIDE, secondary=True,
    ),
    _row(
        "proxy-operation", r"Failed to execute operation|Socket recv failed while polling|proxy\w* .{0,40}failed",
        "the helper thread of a process could not do what it was asked, because something failed before",
        "look for the first warning above it", "NVIDIA/nccl src/proxy.cc", secondary=True,
    ),
    _row(
        "bootstrap-mismatch", r"Bootstrap Root : mismatch|has already checked in|magic mismatch|Mismatched NCCL version",
        "the ranks do not fit together: another number of ranks, a rank twice, another job at the same address, or versions differ",
        "compare world size, rank and NCCL version of all ranks; use a port of its own for each job", "NVIDIA/nccl src/bootstrap.cc",
    ),
    _row(
        "message-truncated", r"[mM]essage truncated|message truncated",
        "sender and receiver do not agree in the size: other sizes, another order of calls, or other NCCL versions or settings",
        "compare NCCL's version and environment over ranks, and that all ranks call the same collectives", _GUIDE,
    ),
    # The machine
    _row(
        "shm-full", r"posix_fallocate failed|No space left on device|(?:[Ee]rror|Failed).{0,40}shared memory",
        "/dev/shm is too small", "--shm-size=1g or more for a container (Kubernetes: an emptyDir with medium Memory at /dev/shm)",
        _GUIDE + ", shared memory",
    ),
    _row(
        "gpu-duplicate", r"Duplicate GPU detected",
        "two ranks use the same GPU", "one GPU a rank: look at CUDA_VISIBLE_DEVICES and the local rank",
        "NVIDIA/nccl src/init.cc",
    ),
    _row(
        "nvswitch-not-ready", r"system not yet initialized|Cuda failure 802",
        "CUDA is not ready: on machines with NVSwitch the fabric manager does not run, or is of another version than the driver",
        "systemctl status nvidia-fabricmanager", "CUDA, cudaErrorSystemNotReady",
    ),
    _row(
        "imex", r"MNNVL .{0,40}available but not working|IMEX",
        "memory cannot be shared over NVLink between nodes: IMEX channels are missing or closed",
        "nvidia-imex-ctl -H -N; give the job an IMEX channel; or NCCL_MNNVL_ENABLE=0", _GUIDE,
    ),
    _row(
        "nvls-bind", r"Failed to bind NVLink SHARP|NVLS.{0,80}(?:failed|error)",
        "multicast memory of NVLink SHARP could not be bound: fabric manager, or too little of it is left",
        "check the fabric manager; NCCL_NVLS_ENABLE=0 works around it at the cost of NVLS", "NVIDIA/nccl src/transport/nvls.cc",
    ),
    _row(
        "p2p-nvlink-disabled", r"P2P is disabled between (?:NVLINK )?connected GPUs",
        "NVLink joins these GPUs, but the driver refuses peer access: a virtual machine, MIG, or a broken link",
        "nvidia-smi topo -p2p n; nvidia-smi nvlink -s; dmesg for Xid", "NVIDIA/nccl src/graph/paths.cc", "warning",
    ),
    _row(
        "cuda-memory", r"Cuda failure.{0,24}out of memory|Failed to CUDA (?:malloc|calloc)",
        "the GPU's memory is full", "other processes on this GPU, or a framework that keeps it all", _GUIDE,
    ),
    _row(
        "cuda-peer-resources", r"peer mapping resources exhausted",
        "more peers than a GPU can map (8 without NVSwitch)", "NCCL_P2P_LEVEL lower, or fewer GPUs a process", "CUDA, cudaErrorTooManyPeers",
    ),
    _row(
        "cuda-driver", r"driver version is insufficient|CUDA Driver version found",
        "the driver is older than this NCCL's CUDA needs", "a newer driver, or NCCL built for an older CUDA", "CUDA compatibility",
    ),
    _row(
        "cuda-failure", r"Cuda failure", "a CUDA call failed, often in the program's own kernels before",
        "CUDA_LAUNCH_BLOCKING=1 shows where; dmesg for Xid errors", _GUIDE,
    ),
    _row(
        "files-or-threads", r"Too many open files|pthread_create failed|Resource temporarily unavailable",
        "a limit of this user: open files, or processes", "ulimit -n 131072, ulimit -u; for the daemon that starts jobs too", _GUIDE,
    ),
    _row(
        "no-transport", r"No transport found for rank",
        "no way is left between two ranks: P2P, SHM and network are all switched off or unusable",
        "unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_IB_DISABLE", "NVIDIA/nccl src/transport.cc",
    ),
    _row(
        "no-algorithm", r"[nN]o algorithm/protocol available|Unrecognized element token|Invalid .{0,40}NCCL_(?:ALGO|PROTO)",
        "NCCL_ALGO or NCCL_PROTO leaves nothing for this collective", "unset them", "NCCL user guide, NCCL_ALGO",
    ),
    # RCCL
    _row(
        "rccl-iommu", r'Missing "?iommu=pt|iommu=pt',
        "the IOMMU translates every access of a GPU: slow, or hangs", "iommu=pt on the kernel's command line", "ROCm/rccl src/init.cc", "warning",
    ),
    _row(
        "rccl-numa-balancing", r"NUMA auto balancing enabled",
        "the kernel moves pages while the GPU uses them", "sysctl kernel.numa_balancing=0", "ROCm/rccl src/init.cc", "warning",
    ),
    _row(
        "rccl-fine-grain", r"HSA_FORCE_FINE_GRAIN_PCIE",
        "PCIe peers cannot share memory without it", "HSA_FORCE_FINE_GRAIN_PCIE=1", "ROCm/rccl src/init.cc", "warning",
    ),
)  # fmt: skip


def explain(text: str) -> KnownFault | None:
    """The row that a warning belongs to."""
    return next((row for row in KNOWN_FAULTS if row.pattern.search(text)), None)
