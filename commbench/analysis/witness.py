"""What a debug log says went wrong, or went another way than it should: records in, findings out. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from commbench.results.finding import Finding, Verdict
from commbench.results.nccl_log.records import Connection, FaultSeen, NcclLog

_VERDICTS: dict[str, Verdict] = {"warning": "warn", "failure": "fail", "hang": "fail", "crash": "fail"}
_HOST_ONLY = ("virbr", "docker", "veth", "lo", "cni", "flannel", "br-", "vmnet", "cali")


def judge(log: NcclLog) -> tuple[Finding, ...]:
    """All findings, those with a cause of their own before those that follow from others."""
    return (
        *_faults(log),
        *_who_is_missing(log),
        *_ras(log),
        *_open_inits(log),
        *_ends_early(log),
        *_within_nodes(log),
        *_network(log),
        *_gpudirect(log),
        *_nics(log),
        *_interfaces(log),
        *_versions(log),
        *_settings(log),
        *_not_together(log),
        *_several_jobs(log),
        *_lost(log),
    )


def setting(log: NcclLog, name: str) -> str:
    """The value of a variable that NCCL says it has read; empty if it does not."""
    return next((seen.value for seen in log.settings if seen.name == name), "")


def name_ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0, 1, 5`: eight at most, the others counted."""
    listed = sorted(set(ranks))
    more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
    return f"rank{'s' if len(listed) != 1 else ''} {', '.join(map(str, listed[:8]))}{more}"


def _faults(log: NcclLog) -> Iterator[Finding]:
    for fault in sorted(log.faults, key=lambda fault: (fault.secondary, fault.kind == "warning")):
        verdict: Verdict = "warn" if fault.secondary else _VERDICTS[fault.kind]
        times = f" ({fault.times} times)" if fault.times > 1 else ""
        cause = f": {fault.cause}" if fault.cause else ""
        yield Finding(
            f"LOG-{fault.name.upper()}", _whose(fault), verdict, f"{fault.text}{times}{cause}",
            where=fault.where, action=fault.cure,
        )  # fmt: skip
    failed = [fault for fault in log.faults if fault.kind != "warning"]
    if failed and all(fault.secondary for fault in failed):
        yield Finding(
            "LOG-FIRST-FAILURE", "the job", "skip", "every failure here follows from another, which is not in this log",
            where=failed[0].where, action="give the logs of all ranks, from the beginning",
        )  # fmt: skip


def _whose(fault: FaultSeen) -> str:
    if fault.ranks:
        return name_ranks(fault.ranks)
    return ", ".join(fault.hosts[:4]) or "the job"


def _who_is_missing(log: NcclLog) -> Iterator[Finding]:
    """Ranks that no watchdog speaks of, or whose work is behind, where others wait."""
    hang = next((fault for fault in log.faults if fault.name == "watchdog-timeout"), None)
    if hang is None:
        return
    sizes = [comm.size for comm in log.comms] + [seen.ranks for seen in log.ras]
    silent = set(range(max(sizes, default=0))) - set(hang.ranks)
    if silent and len(silent) < max(sizes) and len(silent) <= len(hang.ranks):
        yield Finding(
            "LOG-WHO-IS-LATE", name_ranks(silent), "warn",
            f"no timeout is told of, while {name_ranks(hang.ranks)} waited", where=hang.where,
            action="look here first: these are not in the collective, or ended before",
        )  # fmt: skip
    done = {rank: completed for rank, _, completed in log.progress}
    behind = [rank for rank, completed in done.items() if completed < max(done.values())]
    if behind:
        yield Finding(
            "LOG-WHO-IS-BEHIND", name_ranks(behind), "warn",
            f"completed work {min(done[rank] for rank in behind)}, others {max(done.values())}", where=hang.where,
            action="these are the ones that the others wait for",
        )  # fmt: skip


def _ras(log: NcclLog) -> Iterator[Finding]:
    stopped = any(fault.kind in ("hang", "crash") for fault in log.faults)
    for seen in log.ras:
        if stopped and seen.errors == "OK":
            yield Finding(
                "LOG-RAS", f"{seen.ranks} ranks on {seen.nodes} nodes", "skip",
                "RAS says RUNNING OK: it compares counts of calls, so a stuck kernel or link does not show",
                where=seen.where, action="not a sign of health: the timeout stands; ask RAS again, verbose, while it hangs",
            )  # fmt: skip


def _open_inits(log: NcclLog) -> Iterator[Finding]:
    for comm in log.comms:
        waiting = set(comm.started) - set(comm.completed)
        if waiting:
            absent = set(range(min(comm.size, 100_000))) - set(comm.started)
            said = f"; of {name_ranks(absent)} there is nothing" if absent else ""
            yield Finding(
                "LOG-INIT-OPEN", name_ranks(waiting), "warn",
                f"began the init of a communicator of {comm.size} and did not end it{said}", "Init COMPLETE",
                log.sources[0], "a rank that hangs, died or never came; or the log is cut here",
            )  # fmt: skip


def _ends_early(log: NcclLog) -> Iterator[Finding]:
    """Connections are made, and no rank says that its init is done: where it stopped."""
    begun = log.rings or log.trees
    if not begun or not log.connections or any(comm.completed or comm.started for comm in log.comms):
        return
    last = log.connections[-1]
    peers = last.transport.kind == "P2P"
    yield Finding(
        "LOG-ENDS-CONNECTING", name_ranks((last.source, last.target)), "warn",
        f"the log ends after {last.transport.label} was chosen, before any rank is ready: a hang there, or it is cut",
        "Init COMPLETE, or Connected all rings", last.where,
        "where it hangs: try NCCL_P2P_DISABLE=1; if that helps, IOMMU or PCIe ACS is in the way of peer access "
        "(then look at the size of /dev/shm too)" if peers else "where it hangs: try the network between these nodes alone",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of ranks that share a way, and the first place that says so."""

    pairs: list[tuple[int, int]]
    where: str

    @property
    def words(self) -> str:
        """`0 → 1, 2 → 3 and 4 more`."""
        more = f" and {len(self.pairs) - 6} more" if len(self.pairs) > 6 else ""
        return ", ".join(f"{one} → {other}" for one, other in self.pairs[:6]) + more


def _pairs(connections: Iterable[Connection]) -> dict[str, _Pairs]:
    found: dict[str, _Pairs] = {}
    for connection in connections:
        group = found.setdefault(connection.transport.label, _Pairs([], connection.where))
        pair = (connection.source, connection.target)
        if pair not in group.pairs[-64:]:
            group.pairs.append(pair)
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
        reasons = [reason for reason in (why_not_peers(log), f"NCCL_SHM_DISABLE={shm} is set" if shm not in ("", "0") else "") if reason]
        why = f": {', and '.join(reasons)}" if reasons else ""
        yield Finding(
            "LOG-INTRA-NET", f"ranks {pairs.words}", "warn", f"on one node, and yet over {label}{why}", "P2P or SHM",
            pairs.where, "unset NCCL_SHM_DISABLE and NCCL_P2P_DISABLE; in containers share the PID and IPC namespace and /dev/shm",
        )  # fmt: skip
    value = setting(log, "NCCL_P2P_DISABLE")
    for _, pairs in _pairs(connection for connection in inside if connection.transport.kind == "SHM").items():
        if value not in ("", "0"):
            yield Finding(
                "LOG-INTRA-SHM", f"ranks {pairs.words}", "warn",
                f"through the host's memory: NCCL_P2P_DISABLE={value} is set", "P2P where NVLink or a PCIe switch joins the GPUs",
                pairs.where, "unset NCCL_P2P_DISABLE",
            )  # fmt: skip


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
        why, action = f"NCCL_IB_DISABLE={disabled} is set", "unset NCCL_IB_DISABLE where the nodes have InfiniBand or RoCE"
    elif "ib-open" in names:
        why, action = "an RDMA device is there and could not be opened, so it was lost", "see LOG-IB-OPEN; NCCL_IB_DISABLE=0 does not help"
    elif no_device:
        why, action = (
            "no RDMA device was found",
            "none is in this machine, or a container does not show it: look for /dev/infiniband and ibv_devices inside",
        )
    else:
        why, action = "the log does not say why", "NCCL_DEBUG_SUBSYS=INIT,NET,ENV shows what was tried"
    where = next((connection.where for connection in log.connections if connection.transport.network == "Socket"), log.sources[0])
    yield Finding("LOG-SOCKET", "the network", "warn", f"TCP sockets: {why}", "RDMA, if the nodes have it", where, action)


def _gpudirect(log: NcclLog) -> Iterator[Finding]:
    through = [c for c in log.connections if c.transport.kind == "NET" and c.transport.network != "Socket" and not c.transport.gdr]
    if not through:
        return
    remark = next((text for _, text in log.remarks if "GPU Direct RDMA Disabled" in text), "")
    level = setting(log, "NCCL_NET_GDR_LEVEL")
    why = f"; NCCL says: {remark}" if remark else f"; NCCL_NET_GDR_LEVEL={level} is set" if level else ""
    for label, pairs in _pairs(through).items():
        yield Finding(
            "LOG-NO-GDR", f"ranks {pairs.words}", "warn", f"{label} goes through the host's memory, without GPUDirect RDMA{why}",
            "GDRDMA, where GPU and NIC share a PCIe switch", pairs.where,
            "load nvidia_peermem (or a kernel and driver with DMA-BUF); see NCCL_NET_GDR_LEVEL",
        )  # fmt: skip


def used_nics(log: NcclLog) -> dict[str, set[int]]:
    """By host, the indices of NICs that channels go over. A sender with PXN uses the NIC of its proxy, on the same host."""
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
        found = next((int(part) for at, text in log.remarks if at == host and "(found " in text
                      for part in text.partition("(found ")[2].split()[:1] if part.isdigit() and len(part) < 5), 0)  # fmt: skip
        unused = sorted(set(listed) - indices) if listed else sorted(set(range(found)) - indices)
        names = {listed[index] for index in indices if index in listed}
        unused = [index for index in unused if listed.get(index) not in names]
        if unused:
            words = ", ".join(f"{index} ({listed[index]})" if index in listed else str(index) for index in unused[:16])
            yield Finding(
                "LOG-NICS-IDLE", host or "a host", "ok",
                f"channels go over NIC {', '.join(map(str, sorted(indices)))}; {words} found and not used",
            )  # fmt: skip


def _interfaces(log: NcclLog) -> Iterator[Finding]:
    by_address: dict[tuple[str, str], set[str]] = defaultdict(set)
    for interface in log.interfaces:
        by_address[interface.host, interface.address].add(interface.name)
        try:
            ip_address(interface.address.partition("%")[0])
        except ValueError:
            yield Finding(
                "LOG-ADDRESS", interface.name, "skip", f"{interface.address} is no IP address: the log was edited, or is torn"
            )
    inner = sorted({interface.name for interface in log.interfaces if interface.name.startswith(_HOST_ONLY)})
    if inner:
        yield Finding(
            "LOG-INTERFACE-INNER", ", ".join(inner), "warn", "an interface for virtual machines or containers is in NCCL's list",
            "interfaces that reach the other nodes", log.sources[0], "set NCCL_SOCKET_IFNAME to the one that joins the nodes",
        )  # fmt: skip
    for (_, address), names in sorted(by_address.items()):
        if len(names) > 1:
            yield Finding(
                "LOG-ADDRESS-TWICE", ", ".join(sorted(names)), "warn", f"all have the address {address}", "an address each",
                log.sources[0], "set NCCL_SOCKET_IFNAME to one of them",
            )  # fmt: skip


def _versions(log: NcclLog) -> Iterator[Finding]:
    if len(log.versions) > 1:
        said = "; ".join(f"{version} on {', '.join(hosts[:3]) or 'a host'}" for version, hosts in log.versions[:4])
        yield Finding("LOG-VERSIONS", log.library, "fail", said, "one version on all ranks", log.sources[0],
                      "ranks of one communicator need the same library; or these are logs of several jobs")  # fmt: skip


def _settings(log: NcclLog) -> Iterator[Finding]:
    values: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for seen in log.settings:
        values[seen.name][seen.value] = seen.hosts
    for name, by_value in values.items():
        if len(by_value) > 1:
            said = "; ".join(f"{value!r} on {', '.join(hosts[:3])}" for value, hosts in list(by_value.items())[:4])
            yield Finding("LOG-SETTING-DIFFERS", name, "warn", said, "one value on all ranks", log.sources[0],
                          "ranks with other settings may choose other algorithms, and hang")  # fmt: skip


def _not_together(log: NcclLog) -> Iterator[Finding]:
    alone = {(seen.host, seen.pid) for seen in log.ranks if seen.pid is not None}
    if len(alone) > 1 and log.comms and all(comm.size == 1 for comm in log.comms):
        yield Finding(
            "LOG-NOT-TOGETHER", f"{len(alone)} processes", "fail", "each is rank 0 of 1: they do not communicate at all",
            "one communicator of all", log.sources[0], "nccl-tests needs MPI=1 when it is built, and the launcher's own MPI",
        )  # fmt: skip


def _several_jobs(log: NcclLog) -> Iterator[Finding]:
    if log.processes and not any(comm.size == 1 for comm in log.comms):
        rank, who = log.processes[0]
        names = ", ".join(f"{host}:{pid}" for host, pid in who[:4])
        yield Finding("LOG-SEVERAL-JOBS", name_ranks(rank for rank, _ in log.processes), "skip",
                      f"claimed by several processes (rank {rank}: {names}): several runs or communicators are told of as one")  # fmt: skip


def _lost(log: NcclLog) -> Iterator[Finding]:
    if log.counts.lost:
        lines = ", ".join(str(line.line) for line in log.lost[:12])
        yield Finding(
            "LOG-LOST", f"{log.counts.lost} of {log.counts.messages + log.counts.lost} messages", "skip",
            f"broken off, and not put together for certain (lines {lines}{', …' if len(log.lost) > 12 else ''})",
            action="NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log gives every process a file of its own",
        )  # fmt: skip
