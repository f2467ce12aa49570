"""What the wiring promises against what a log shows was used. Pure: the log's record and a machine in, findings out.

The topology is one machine; every host of the log is held against it, or those that it is said to be of.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from commbench.analysis.witness_paths import same_host, setting, why_not_peers
from commbench.results.finding import Finding
from commbench.results.nccl_log.records import Connection, NcclLog, RankSeen
from commbench.topology.affinity import nearest_nics
from commbench.topology.graph import NEARNESS, Topology
from commbench.topology.group_link import gpu_at

# Without settings NCCL lets GPUs reach each other's memory to this far (src/graph/paths.cc, p2pLevel PXB).
_PEERS = ("nvlink", "xgmi", "pix", "pxb")
_WORDS = {
    "nvlink": "NVLink connects",
    "xgmi": "XGMI connects",
    "pix": "one PCIe switch joins",
    "pxb": "PCIe switches join",
}


def judge_against(log: NcclLog, topology: Topology) -> tuple[Finding, ...]:
    """Findings on every pair and NIC that is used otherwise than the wiring promises."""
    ranks = {seen.rank for seen in log.ranks if gpu_of(topology, seen) is not None}
    if log.connections and not ranks:
        return (
            Finding(
                "LOG-EXPECTED",
                "all ranks",
                "skip",
                f"the log does not say which GPU of {topology.source} a rank has",
                action="NCCL 2.18 and newer say it, or set NCCL_DEBUG_SUBSYS=INIT,GRAPH,ENV",
            ),
        )
    return (*_peers(log, topology), *_nics(log, topology), *_absent_nics(log, topology))


def judge_nodes(log: NcclLog, wired: Sequence[tuple[Topology, Collection[str]]]) -> tuple[Finding, ...]:
    """As `judge_against`, where each topology is that of some hosts alone."""
    return tuple(finding for topology, hosts in wired for finding in judge_against(_of_hosts(log, hosts), topology))


def _of_hosts(log: NcclLog, hosts: Collection[str]) -> NcclLog:
    """What the processes on some hosts say."""
    return replace(
        log,
        ranks=tuple(seen for seen in log.ranks if seen.host in hosts),
        connections=tuple(connection for connection in log.connections if connection.host in hosts),
        nics=tuple(nic for nic in log.nics if nic.host in hosts),
    )


def gpu_of(topology: Topology, seen: RankSeen | None) -> str | None:
    """The key of a rank's GPU: by its PCI address, else by its index on the node."""
    if seen is None:
        return None
    by_address = gpu_at(topology, seen.bus_id)
    if by_address:
        return by_address
    if seen.gpu is not None and any(gpu.key == f"GPU{seen.gpu}" for gpu in topology.gpus):
        return f"GPU{seen.gpu}"
    return None


def _peers(log: NcclLog, topology: Topology) -> Iterator[Finding]:
    """Pairs whose GPUs could reach each other's memory, and that go through the host or the network."""
    told: set[tuple[str, str, str]] = set()
    why = why_not_peers(log)
    for connection in log.connections:
        if connection.transport.kind == "P2P" or not same_host(log, connection):
            continue
        ends = [gpu_of(topology, log.rank(connection.comm, rank)) for rank in (connection.source, connection.target)]
        if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
            continue
        wired = topology.link_class(ends[0], ends[1])
        key = (ends[0], ends[1], connection.transport.kind)
        if wired not in _PEERS or key in told:
            continue
        told.add(key)
        yield Finding(
            "LOG-UNEXPECTED-PATH",
            f"{_gpu(ends[0])} → {_gpu(ends[1])}",
            "warn",
            f"went over {connection.transport.label} although {_WORDS[wired]} them: "
            f"{why or 'the log does not say why'}",
            "P2P",
            connection.where,
            f"unset {why.partition('=')[0]}"
            if why.startswith("NCCL_")
            else "nvidia-smi topo -p2p n; containers need a common PID and IPC namespace, virtual machines peer access",
        )


def _gpu(key: str) -> str:
    return key.replace("GPU", "GPU ") if key.startswith("GPU") else key


def _nic_key(log: NcclLog, topology: Topology, connection: Connection, host: str) -> str | None:
    """The key of the NIC that one end of a connection uses; None where it is merged of several, or not named."""
    nic = next((nic for nic in log.nics if nic.host == host and nic.index == connection.transport.device), None)
    if nic is None:
        return None
    return next((device.key for device in topology.nics if nic.name in (device.name, device.key)), None)


def _nics(log: NcclLog, topology: Topology) -> Iterator[Finding]:
    """Ranks that use a NIC which is farther than the nearest, and near NICs without GPUDirect RDMA."""
    nearest = {found.gpu: found for found in nearest_nics(topology)}
    told: set[tuple[str, str, str]] = set()
    for connection in log.connections:
        if connection.transport.kind != "NET" or connection.transport.proxy is not None:
            continue
        seen = log.rank(connection.comm, connection.source if connection.end == "send" else connection.target)
        gpu = gpu_of(topology, seen)
        nic = _nic_key(log, topology, connection, seen.host) if seen else None
        if seen is None or gpu is None or nic is None:
            continue
        wired, best = topology.link_class(gpu, nic), nearest[gpu]
        name = topology_name(topology, nic)
        if (
            (gpu, nic, "far") not in told
            and NEARNESS.index(wired) > NEARNESS.index(best.link_class)
            and wired != "unknown"
        ):
            told.add((gpu, nic, "far"))
            near = ", ".join(topology_name(topology, key) for key in best.nics)
            yield Finding(
                "LOG-FAR-NIC",
                f"rank {seen.rank} ({_gpu(gpu)})",
                "warn",
                f"used {name}, which is {wired} away",
                f"{near}, which is {best.link_class}",
                connection.where,
                f"NCCL_IB_HCA={setting(log, 'NCCL_IB_HCA')} leaves it out, or its port is down"
                if setting(log, "NCCL_IB_HCA")
                else "is the port of the near one up (ibstat), and in the container",
            )
        if (gpu, nic, "gdr") not in told and wired in ("pix", "pxb") and not connection.transport.gdr:
            told.add((gpu, nic, "gdr"))
            yield Finding(
                "LOG-NEAR-NO-GDR",
                f"rank {seen.rank} ({_gpu(gpu)})",
                "warn",
                f"used {name} without GPUDirect RDMA, although it is {wired}",
                "GDRDMA",
                connection.where,
                "load nvidia_peermem, or use DMA-BUF; see NCCL_NET_GDR_LEVEL",
            )


def topology_name(topology: Topology, key: str) -> str:
    """A device's own name where it has one."""
    return next((device.name or key for device in topology.devices if device.key == key), key)


def _absent_nics(log: NcclLog, topology: Topology) -> Iterator[Finding]:
    """NICs near a GPU that NCCL does not list."""
    listed = {part.partition(":")[0] for nic in log.nics for part in nic.members or (nic.name,)}
    if not listed:
        return
    near = {key for found in nearest_nics(topology) if found.link_class in ("pix", "pxb", "phb") for key in found.nics}
    absent = sorted(name for key in near if (name := topology_name(topology, key)) not in listed)
    if absent:
        hca = setting(log, "NCCL_IB_HCA")
        yield Finding(
            "LOG-NIC-NOT-LISTED",
            ", ".join(absent[:16]),
            "warn",
            "the nearest NIC of a GPU, and not in NCCL's list",
            "in the list",
            log.sources[0],
            f"NCCL_IB_HCA={hca} leaves it out" if hca else "is its port up (ibstat), and in the container",
        )
