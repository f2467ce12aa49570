"""HOST: settings of the kernel, CPUs, clocks, the host's own name, and what else runs here."""

import re
from collections.abc import Iterator

from commbench.checks.devices import is_cluster_node, is_virtual, unseen
from commbench.checks.registry import Scene, Seen, ok, rule, skip, warn
from commbench.topology.numbers import count_cpus
from commbench.units import format_nbytes

_BUSY_SHARE = 0.25  # of the CPUs, beyond one for each local rank; ours
_FEW_PORTS = 16384  # ours: Linux gives 28,232 unasked
_FULL_DISK = 0.95  # imbue-ai/cluster-health and GCM
_JUST_STARTED_SECONDS = 600.0  # GCM checks the uptime too; the number is ours
_ALIKE_NUMA = 0.8  # the least of the NUMA nodes' memory over the most; ours
# Clocks that the CPU reads itself, without a system call.
_FAST_CLOCKS = ("tsc", "arch_sys_counter")
_VIRTUAL_CLOCKS = ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")
_OUT_OF_MEMORY = re.compile(r"out of memory|oom-kill|invoked oom", re.IGNORECASE)


@rule(
    "HOST-NUMA-BALANCING",
    "warn",
    summary="automatic NUMA balancing is off",
    fix="sysctl kernel.numa_balancing=0",
    source="RCCL warns of it itself (src/init.cc); ml-engineering",
)
def check_numa_balancing(scene: Scene) -> Iterator[Seen]:
    """The kernel unmaps pages now and then to see who touches them, and moves them towards that CPU.

    Each such fault stalls a thread that polls or copies, and pinned buffers cannot be moved at all: latency gets tails.
    """
    facts, where = scene.facts, "/proc/sys/kernel/numa_balancing"
    if facts.kernel.numa_balancing is None:
        yield unseen(scene, "kernel.numa_balancing", where=where)
    elif facts.cpu.numa_nodes is not None and len(facts.cpu.numa_nodes) < 2:
        yield skip("numa balancing", "one NUMA node: nothing to balance", where)
    elif facts.kernel.numa_balancing:
        yield warn("numa balancing", str(facts.kernel.numa_balancing), "0", where)
    else:
        yield ok("numa balancing", "0", where=where)


@rule(
    "HOST-NUMA-EVEN",
    "warn",
    summary="NUMA nodes have as many CPUs and as much memory as their siblings",
    fix="look for failed memory modules (dmidecode -t memory, ipmitool sel list) and for CPUs taken offline",
    source="Azure's node health checks (sockets, cores, memory); the number is ours",
)
def check_numa_even(scene: Scene) -> Iterator[Seen]:
    """A module of memory that failed at start is missing from one NUMA node, with its share of bandwidth.

    NUMA nodes without CPUs, as of GPUs joined by C2C and of CXL memory, are left out.
    """
    where = "/sys/devices/system/node"
    if scene.facts.cpu.numa_nodes is None:
        yield unseen(scene, "cpu.numa_nodes", "NUMA nodes", where)
        return
    nodes = [node for node in scene.facts.cpu.numa_nodes if node.cpus]
    if len(nodes) < 2:
        yield skip("NUMA nodes", "one with CPUs: no sibling to compare with", where)
        return
    most = max(node.memory_nbytes or 0 for node in nodes)
    cpus = max(count_cpus(node.cpus) for node in nodes)
    uneven = [
        node
        for node in nodes
        if count_cpus(node.cpus) < cpus or (node.memory_nbytes is not None and node.memory_nbytes < _ALIKE_NUMA * most)
    ]
    for node in uneven:
        memory = "" if node.memory_nbytes is None else f", {format_nbytes(node.memory_nbytes)}"
        observed = f"{count_cpus(node.cpus)} CPUs{memory}"
        yield warn(f"NUMA node {node.number}", observed, f"{cpus} CPUs, {format_nbytes(most)}, as a sibling", where)
    if not uneven:
        yield ok("NUMA nodes", f"{len(nodes)} alike", where=where)


@rule(
    "HOST-GOVERNOR",
    "warn",
    summary="the CPUs' frequency governor is `performance`",
    fix="cpupower frequency-set -g performance",
    source="oci-hpc's and GCM's health checks",
)
def check_governor(scene: Scene) -> Iterator[Seen]:
    """Another governor lowers the clock of a CPU that waits, and small messages wait most of the time.

    The thread that polls the network then starts slow after each pause. In a virtual machine the host decides.
    """
    governors, where = scene.facts.cpu.governors, "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    if not governors:
        yield unseen(scene, "cpu.governors", "governor", where)
        return
    observed = ", ".join(f"{name} on {cpus} CPUs" for name, cpus in sorted(governors.items()))
    if set(governors) == {"performance"}:
        yield ok("governor", observed, where=where)
    else:
        yield warn("governor", observed, "performance on all", where)


@rule(
    "HOST-CLOCKSOURCE",
    "warn",
    summary="the kernel's clock is the CPU's own counter",
    fix="look for `tsc: Marking TSC unstable` in dmesg; where the hardware is sound, boot with tsc=reliable",
    source="GCM's check-clocksource",
)
def check_clocksource(scene: Scene) -> Iterator[Seen]:
    """With hpet or acpi_pm every reading of the clock is a system call and a slow access to a device.

    All that polls with a timeout, and all that measures, gets slower by microseconds. Hypervisors bring fast clocks of
    their own, which are fine there.
    """
    clock, where = scene.facts.kernel.clocksource, "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    if not clock:
        yield unseen(scene, "kernel.clocksource", where=where)
    elif clock in _FAST_CLOCKS or (clock in _VIRTUAL_CLOCKS and is_virtual(scene.facts)):
        yield ok("clocksource", clock, where=where)
    else:
        yield warn("clocksource", clock, "tsc", where)


@rule(
    "HOST-CPU-QUOTA",
    "warn",
    summary="the cgroup gives each local rank a CPU's time",
    fix="raise the quota: resources.limits.cpu of Kubernetes (or none), docker --cpus, CPUQuota= of systemd",
    source="the kernel's documentation of cpu.max",
)
def check_cpu_quota(scene: Scene) -> Iterator[Seen]:
    """A cgroup that used up its quota sleeps until the next period, up to 100 ms, in the middle of a collective.

    All other ranks wait. It looks like a slow network and is seen in nr_throttled of cpu.stat.
    """
    quota, where = scene.facts.limits.cgroup_cpus, "cpu.max of the cgroup"
    ranks = scene.facts.process.local_size
    if quota is None:
        yield unseen(scene, "limits.cgroup_cpus", "CPU quota", where)
    elif quota < 0:
        yield ok("CPU quota", "none", where=where)
    elif quota < ranks:
        yield warn("CPU quota", f"{quota:g} CPUs for {ranks} local ranks", f"{ranks} at least", where)
    else:
        yield ok("CPU quota", f"{quota:g} CPUs", where=where)


@rule(
    "HOST-LOAD",
    "warn",
    summary="nothing else keeps the CPUs busy",
    fix="look with top for what else runs; ask the scheduler for the node alone (--exclusive)",
    source="awsome-distributed-training's --exclusive; GCM; the number is ours",
)
def check_load(scene: Scene) -> Iterator[Seen]:
    """The load of the last minute, beyond one for each rank that runs here.

    Measurements on a busy node say more of its neighbours than of its network.
    """
    load, where = scene.facts.cpu.load_average, "/proc/loadavg"
    cpus, ranks = count_cpus(scene.facts.cpu.online), scene.facts.process.local_size
    if load is None or not cpus:
        yield unseen(scene, "cpu.load_average", "load", where)
        return
    observed = f"{load:.1f} on {cpus} CPUs"
    if load > ranks + _BUSY_SHARE * cpus:
        yield warn("load", observed, f"{ranks + _BUSY_SHARE * cpus:g} at most", where)
    else:
        yield ok("load", observed, where=where)


@rule(
    "HOST-PORT-RANGE",
    "warn",
    summary="there are 16,384 ports for outgoing connections",
    fix="sysctl net.ipv4.ip_local_port_range='32768 60999', the kernel's own",
    source="the kernel's documentation of ip_local_port_range; the number is ours",
)
def check_port_range(scene: Scene) -> Iterator[Seen]:
    """Sockets of gloo, NCCL and the store take their ports from this range, several for each pair of ranks.

    A firewall's administrator narrows it now and then; large jobs then fail with `Cannot assign requested address`.
    """
    found, where = scene.facts.kernel.port_range, "/proc/sys/net/ipv4/ip_local_port_range"
    if found is None:
        yield unseen(scene, "kernel.port_range", where=where)
        return
    first, last = found
    if last - first + 1 < _FEW_PORTS:
        yield warn("port range", f"{first}-{last}: {last - first + 1} ports", f"{_FEW_PORTS} at least", where)
    else:
        yield ok("port range", f"{first}-{last}", where=where)


@rule(
    "HOST-OOM",
    "warn",
    summary="the kernel ended no process for want of memory",
    fix="look at the lines of dmesg for what took the memory; reboot if processes were left half dead",
    source="GCM's check of syslogs",
)
def check_out_of_memory(scene: Scene) -> Iterator[Seen]:
    """Lines of the out-of-memory killer in the kernel's log, since it started.

    They explain ranks that vanished, and point to a node whose memory something else takes.
    """
    where = "the kernel's log"
    if scene.facts.kernel.messages is None:
        yield unseen(scene, "kernel.messages", "out of memory", where)
        return
    lines = [line for line in scene.facts.kernel.messages if _OUT_OF_MEMORY.search(line)]
    if lines:
        yield warn("out of memory", f"{len(lines)} lines, the last: {lines[-1]}", "none", where)
    else:
        yield ok("out of memory", "no such line", where=where)


@rule(
    "HOST-UPTIME",
    "warn",
    summary="the node has been up for ten minutes",
    fix="wait until its services are up; look why it restarted (last -x reboot)",
    source="GCM's check of uptime; the number is ours",
)
def check_uptime(scene: Scene) -> Iterator[Seen]:
    """A node that restarts in the middle of things is the commonest sign of a hardware fault.

    For some minutes after a start, fabric manager, subnet manager and mounts may still be on their way.
    """
    uptime, where = scene.facts.host.uptime_seconds, "/proc/uptime"
    if uptime is None:
        yield unseen(scene, "host.uptime_seconds", "uptime", where)
    elif uptime >= _JUST_STARTED_SECONDS:
        yield ok("uptime", f"{uptime / 3600:.1f} h", where=where)
    elif not is_cluster_node(scene):
        yield skip("uptime", f"{uptime / 60:.0f} min; matters for nodes of a cluster", where)
    else:
        yield warn("uptime", f"{uptime / 60:.0f} min", "10 min at least", where)


@rule(
    "HOST-DISK",
    "warn",
    summary="the file systems of /, /tmp and /var are less than 95 % full",
    fix="du -xh --max-depth=2 / | sort -h | tail shows what takes the room: old containers, logs, core dumps",
    source="imbue-ai/cluster-health; GCM",
)
def check_disk(scene: Scene) -> Iterator[Seen]:
    """A full disk ends jobs in odd places: no lock, no log, no socket below /tmp, no core dump to look at."""
    disks, where = scene.facts.host.disks, "statvfs"
    if not disks:
        yield unseen(scene, "host.disks", "disks", where)
        return
    for path, used in disks.items():
        if used >= _FULL_DISK:
            yield warn(path, f"{used:.0%} full", f"below {_FULL_DISK:.0%}", where)
    if all(used < _FULL_DISK for used in disks.values()):
        yield ok(", ".join(disks), f"{max(disks.values()):.0%} full at most", where=where)
