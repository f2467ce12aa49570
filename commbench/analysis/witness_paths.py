"""Which ways a debug log shows, and which of them are slower than they should be. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from commbench.results.finding import Finding
from commbench.results.nccl_log.records import Connection, NcclLog

_HOST_ONLY = ("virbr", "docker", "veth", "cni", "flannel", "br-", "vmnet", "cali")


def judge_paths(log: NcclLog) -> tuple[Finding, ...]:
    """Findings on transports, the network, NICs and interfaces."""
    return (*_within_nodes(log), *_network(log), *_gpudirect(log), *_nics(log), *_interfaces(log))


def setting(log: NcclLog, name: str) -> str:
    """The value of a variable that NCCL says it has read; empty if it does not."""
    return next((seen.value for seen in log.settings if seen.name == name), "")


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of ranks that share a way, and the first place that says so."""

    seen: dict[tuple[int, int], None]
    where: str

    @property
    def words(self) -> str:
        """`0 → 1, 2 → 3 and 4 more`."""
        more = f" and {len(self.seen) - 6} more" if len(self.seen) > 6 else ""
        return ", ".join(f"{one} → {other}" for one, other in list(self.seen)[:6]) + more


def _pairs(connections: Iterable[Connection]) -> dict[str, _Pairs]:
    found: dict[str, _Pairs] = {}
    for connection in connections:
        group = found.setdefault(connection.transport.label, _Pairs({}, connection.where))
        group.seen.setdefault((connection.source, connection.target))
    return found


def same_host(log: NcclLog, connection: Connection) -> str:
    """The host that both ends run on; empty where they do not, or it is not told."""
    ends = [log.rank(connection.comm, rank) for rank in (connection.source, connection.target)]
    hosts = {end.host if end else "" for end in ends}
    return hosts.pop() if len(hosts) == 1 else ""


def why_not_peers(log: NcclLog) -> str:
    """What the log says of why two GPUs of a node do not reach each other's memory; empty if nothing."""
    value = setting(log, "NCCL_P2P_DISABLE")
    if value not in ("", "0"):
        return f"NCCL_P2P_DISABLE={value} is set"
    level = setting(log, "NCCL_P2P_LEVEL")
    if level:
        return f"NCCL_P2P_LEVEL={level} is set"
    for _, text in log.remarks:
        if text.startswith(("P2P is disabled", "Could not enable P2P")):
            return f"NCCL says: {text[:120]}"
    return ""


def _within_nodes(log: NcclLog) -> Iterator[Finding]:
    inside = [connection for connection in log.connections if same_host(log, connection)]
    for label, pairs in _pairs(connection for connection in inside if connection.transport.kind == "NET").items():
        shm = setting(log, "NCCL_SHM_DISABLE")
        reasons = [
            reason
            for reason in (why_not_peers(log), f"NCCL_SHM_DISABLE={shm} is set" if shm not in ("", "0") else "")
            if reason
        ]
        why = f": {', and '.join(reasons)}" if reasons else ""
        yield Finding(
            "LOG-INTRA-NET",
            f"ranks {pairs.words}",
            "warn",
            f"on one node, and yet over {label}{why}",
            "P2P or SHM",
            pairs.where,
            "unset NCCL_SHM_DISABLE and NCCL_P2P_DISABLE; containers need a common PID and IPC namespace and /dev/shm",
        )
    value = setting(log, "NCCL_P2P_DISABLE")
    for _, pairs in _pairs(connection for connection in inside if connection.transport.kind == "SHM").items():
        if value not in ("", "0"):
            yield Finding(
                "LOG-INTRA-SHM",
                f"ranks {pairs.words}",
                "warn",
                f"through the host's memory: NCCL_P2P_DISABLE={value} is set",
                "P2P where NVLink or a PCIe switch joins the GPUs",
                pairs.where,
                "unset NCCL_P2P_DISABLE",
            )


def is_one_node(log: NcclLog) -> bool:
    """Whether the log shows for certain that all ranks share a node."""
    size = max([comm.size for comm in log.comms] + [len(ring.ranks) for ring in log.rings], default=0)
    hosts = {seen.host for seen in log.ranks}
    ranks = {seen.rank for seen in log.ranks}
    return size > 0 and len(ranks) == size and len(hosts) == 1 and "" not in hosts


def _network(log: NcclLog) -> Iterator[Finding]:
    uses = {network for _, network in log.networks} | {
        connection.transport.network for connection in log.connections if connection.transport.kind == "NET"
    }
    if "Socket" not in uses:
        return
    if is_one_node(log) and not any(connection.transport.kind == "NET" for connection in log.connections):
        yield Finding("LOG-SOCKET", "the network", "ok", "Socket, which carries nothing: all ranks share a node")
        return
    names = {fault.name for fault in log.faults}
    disabled = setting(log, "NCCL_IB_DISABLE")
    no_device = any("No device found" in text for _, text in log.remarks)
    if disabled not in ("", "0"):
        why, action = (
            f"NCCL_IB_DISABLE={disabled} is set",
            "unset NCCL_IB_DISABLE where the nodes have InfiniBand or RoCE",
        )
    elif "ib-open" in names:
        why, action = (
            "an RDMA device is there and could not be opened, so it was lost",
            "see LOG-IB-OPEN; NCCL_IB_DISABLE=0 does not help",
        )
    elif no_device:
        why, action = (
            "no RDMA device was found",
            "none is in this machine, or a container does not show it: look for /dev/infiniband and ibv_devices inside",
        )
    else:
        why, action = "the log does not say why", "NCCL_DEBUG_SUBSYS=INIT,NET,ENV shows what was tried"
    where = next(
        (connection.where for connection in log.connections if connection.transport.network == "Socket"), log.sources[0]
    )
    yield Finding(
        "LOG-SOCKET", "the network", "warn", f"TCP sockets: {why}", "RDMA, if the nodes have it", where, action
    )


def _gpudirect(log: NcclLog) -> Iterator[Finding]:
    through = [
        c
        for c in log.connections
        if c.transport.kind == "NET" and c.transport.network != "Socket" and not c.transport.gdr
    ]
    if not through:
        return
    remark = next((text for _, text in log.remarks if "GPU Direct RDMA Disabled" in text), "")
    level = setting(log, "NCCL_NET_GDR_LEVEL")
    why = f"; NCCL says: {remark}" if remark else f"; NCCL_NET_GDR_LEVEL={level} is set" if level else ""
    for label, pairs in _pairs(through).items():
        yield Finding(
            "LOG-NO-GDR",
            f"ranks {pairs.words}",
            "warn",
            f"{label} goes through the host's memory, no GPUDirect RDMA{why}",
            "GDRDMA, where GPU and NIC share a PCIe switch",
            pairs.where,
            "load nvidia_peermem (or a kernel and driver with DMA-BUF); see NCCL_NET_GDR_LEVEL",
        )


def used_nics(log: NcclLog) -> dict[str, set[int]]:
    """By host, the indices of NICs that channels go over; with PXN the proxy's NIC, which is of the same host."""
    used: dict[str, set[int]] = defaultdict(set)
    for connection in log.connections:
        transport = connection.transport
        if transport.kind == "NET" and transport.device is not None:
            here = log.rank(connection.comm, connection.source if connection.end == "send" else connection.target)
            used[here.host if here else ""].add(transport.device)
    return used


def _nics(log: NcclLog) -> Iterator[Finding]:
    used = used_nics(log)
    for host, indices in sorted(used.items()):
        listed = {nic.index: nic.name for nic in log.nics if nic.host == host}
        found = max((_nics_found(text) for at, text in log.remarks if at == host), default=0)
        unused = sorted(set(listed) - indices) if listed else sorted(set(range(found)) - indices)
        names = {listed[index] for index in indices if index in listed}
        unused = [index for index in unused if listed.get(index) not in names]
        if unused:
            words = ", ".join(f"{index} ({listed[index]})" if index in listed else str(index) for index in unused[:16])
            yield Finding(
                "LOG-NICS-IDLE",
                host or "a host",
                "ok",
                f"channels go over NIC {', '.join(map(str, sorted(indices)))}; {words} found and not used",
            )


def _nics_found(text: str) -> int:
    """How many NICs a plugin says it has found: `Selected Provider is cxi (found 4 nics)`."""
    word = text.partition("(found ")[2].partition(" ")[0]
    return int(word) if word.isascii() and word.isdigit() and len(word) < 4 else 0


def _is_inner(name: str) -> bool:
    return name == "lo" or name.startswith(_HOST_ONLY)


def _interfaces(log: NcclLog) -> Iterator[Finding]:
    by_address: dict[tuple[str, str], set[str]] = defaultdict(set)
    for interface in log.interfaces:
        by_address[interface.host, interface.address].add(interface.name)
        try:
            ip_address(interface.address.partition("%")[0])
        except ValueError:
            yield Finding(
                "LOG-ADDRESS",
                interface.name,
                "skip",
                f"{interface.address} is no IP address: edited, or torn",
            )
    inner = sorted({interface.name for interface in log.interfaces if _is_inner(interface.name)})
    if inner:
        yield Finding(
            "LOG-INTERFACE-INNER",
            ", ".join(inner),
            "warn",
            "an interface that ends within this host (loopback, virtual machines, containers) is in the list",
            "interfaces that reach the other nodes",
            log.sources[0],
            "set NCCL_SOCKET_IFNAME to the one that joins the nodes",
        )
    for (_, address), names in sorted(by_address.items()):
        if len(names) > 1:
            yield Finding(
                "LOG-ADDRESS-TWICE",
                ", ".join(sorted(names)),
                "warn",
                f"all have the address {address}",
                "an address each",
                log.sources[0],
                "set NCCL_SOCKET_IFNAME to one of them",
            )
