"""CON: kernels, CPUs, NUMA nodes, limits and settings, which nodes must have alike."""

from collections.abc import Mapping

from commbench.checks.consistency import Agreement, declare, said
from commbench.checks.devices import gpus_of
from commbench.machine.facts import Facts

_SCANNER = "cluster-health-scanner's configcheck"


def _command_line(facts: Facts) -> Mapping[str, str] | None:
    if not facts.kernel.command_line:
        return {} if "kernel.command_line" not in facts.unseen else None
    words = [word.partition("=") for word in facts.kernel.command_line.split()]
    return {name: value or "set" for name, _, value in words}


def _cpu(facts: Facts) -> Mapping[str, str] | None:
    cpu = facts.cpu
    return said(
        {"model": cpu.model, "sockets": cpu.sockets, "cores": cpu.cores, "threads a core": cpu.threads_per_core}
    )


def _numa(facts: Facts) -> Mapping[str, str] | None:
    """The CPUs of each NUMA node, and where the GPUs and RDMA devices are."""
    if facts.cpu.numa_nodes is None:
        return None
    places = {f"node {node.number}": f"CPUs {node.cpus or 'none'}" for node in facts.cpu.numa_nodes}
    by_address = {device.address: device.numa_node for device in facts.pci or ()}
    places |= said({name: by_address.get(gpu.address) for name, gpu in (gpus_of(facts) or {}).items()}) or {}
    places |= said({device.name: device.numa_node for device in facts.rdma or ()}) or {}
    return places


def _limits(facts: Facts) -> Mapping[str, str] | None:
    limits = facts.limits
    table: dict[str, int | float | None] = {
        "memlock": limits.memlock_nbytes,
        "nofile": limits.nofile,
        "stack": limits.stack_nbytes,
    }
    table |= {"CPUs of the cgroup": limits.cgroup_cpus, "memory of the cgroup": limits.cgroup_memory_nbytes}
    return said({name: "unlimited" if value == -1 else value for name, value in table.items()})


def _settings(facts: Facts) -> Mapping[str, str] | None:
    return said(
        {
            "numa_balancing": facts.kernel.numa_balancing,
            "clocksource": facts.kernel.clocksource,
            "governors": ", ".join(sorted(facts.cpu.governors or {})),
            "transparent huge pages": facts.memory.transparent_huge_pages,
            "huge pages": facts.memory.huge_pages_total,
            "IOMMU": ", ".join(facts.kernel.iommu or ()),
        }
    )


def _modules(facts: Facts) -> Mapping[str, str] | None:
    return None if facts.kernel.modules is None else dict.fromkeys(facts.kernel.modules, "loaded")


_AGREEMENTS = (
    Agreement(
        "CON-KERNEL",
        "warn",
        "kernel",
        lambda f: f.host.kernel,
        fix="update and reboot those that differ",
        source=_SCANNER,
        explanation="Another kernel has other drivers and defaults. A node that was not rebooted after an update "
        "shows here.",
        where="uname -r",
    ),
    Agreement(
        "CON-OS",
        "warn",
        "operating system",
        lambda f: f.host.os,
        fix="install the same image on all nodes",
        source=_SCANNER,
        explanation="Another image on some node, or another container's.",
        where="/etc/os-release",
    ),
    Agreement(
        "CON-PRODUCT",
        "warn",
        "hardware",
        lambda f: f.host.product,
        fix="keep jobs to nodes of one kind: --constraint of Slurm",
        source="Azure's node health checks have a file for each kind of node",
        explanation="Nodes of another model differ in PCIe, NUMA and power; collectives run at the pace of the "
        "slowest.",
        where="/sys/class/dmi/id",
    ),
    Agreement(
        "CON-COMMAND-LINE",
        "warn",
        "kernel's command line",
        _command_line,
        fix="make the boot loaders' settings alike",
        source=_SCANNER,
        explanation="Only the words that decide something here are compared, such as iommu, isolcpus and mitigations.",
        where="/proc/cmdline",
        missing_counts=True,
    ),
    Agreement(
        "CON-CPU",
        "warn",
        "CPU",
        _cpu,
        fix="keep jobs to nodes of one kind; look for disabled cores in the BIOS",
        source="Azure's node health checks (sockets, cores)",
        explanation="Sockets, cores and threads: hyper-threading that is off on one node, or another model.",
        where="/proc/cpuinfo, /sys",
        missing_counts=True,
    ),
    Agreement(
        "CON-NUMA",
        "warn",
        "NUMA layout",
        _numa,
        fix="make the BIOS settings alike (NPS, SNC), and the cards' slots",
        source="Azure's node health checks (NUMA, topology)",
        explanation="The CPUs of NUMA nodes, and where GPUs and RDMA devices are: a binding that fits one node "
        "misses on the other.",
        where="/sys/devices/system/node, /sys/bus/pci/devices",
    ),
    Agreement(
        "CON-LIMITS",
        "warn",
        "limits",
        _limits,
        fix="make limits.conf, slurmd's unit and the containers' options alike",
        source="nccl-tests issue 206",
        explanation="Limits of the ranks, which a node that was installed on another day often has otherwise.",
        where="getrlimit, cgroup",
    ),
    Agreement(
        "CON-SETTINGS",
        "warn",
        "kernel's settings",
        _settings,
        fix="make sysctl.d, the BIOS and tuned's profile alike",
        source=_SCANNER,
        explanation="NUMA balancing, clock source, governor, huge pages, IOMMU: each changes latency on its node "
        "alone.",
        where="/proc/sys, /sys",
    ),
    Agreement(
        "CON-MODULES",
        "warn",
        "kernel modules",
        _modules,
        fix="load the module on all nodes: /etc/modules-load.d",
        source="imbue-ai/cluster-health (lsmod); GCM and AWS (modules)",
        explanation="Without nvidia_peermem on one node, that node alone does without GPUDirect RDMA.",
        where="/proc/modules",
        missing_counts=True,
    ),
)
for _agreement in _AGREEMENTS:
    declare(_agreement)
