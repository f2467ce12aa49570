"""Thresholds and softening of single rules: exact verdicts, of facts with one part replaced."""

from dataclasses import replace

import pytest

from commbench.checks.registry import Scene, load_rules, run_rules
from commbench.machine.facts import Facts, NumaNode, RdmaPort
from commbench.results.schema import Finding
from commbench.topology.from_facts import make_topology
from tests.trees import GPU_ADDRESS, NIC_ADDRESS
from tests.unit.checks.machines import Change, healthy, one_interface, part, ranks_of, set_variable, whole

RULES = {row.id: row for row in load_rules()}
GIB = 1 << 30
VM = part("host", virtual="kvm")
CONTAINER = part("host", container="docker")
NO_DEVICES = whole(gpus=(), rdma=(), pci=())


def look(rule: str, *changes: Change, nodes: int = 1, peers: tuple[Facts, ...] = ()) -> list[Finding]:
    """What a rule finds on the first rank of a healthy node after these changes."""
    facts = ranks_of(healthy(), 0, 1)[0]
    for change in changes:
        facts = change(facts)
    return list(run_rules([RULES[rule]], Scene(facts, make_topology(facts), nodes, peers)))


def verdicts(rule: str, *changes: Change, nodes: int = 1) -> list[str]:
    return sorted(finding.verdict for finding in look(rule, *changes, nodes=nodes))


def gpus(**values: object) -> Change:
    """The same of all GPUs."""
    return lambda facts: replace(facts, gpus=tuple(replace(gpu, **values) for gpu in facts.gpus or ()))  # type: ignore[arg-type]


def devices(address: str, **values: object) -> Change:
    """Of the PCI device at an address."""
    return lambda facts: replace(
        facts,
        pci=tuple(replace(one, **values) if one.address == address else one for one in facts.pci or ()),  # type: ignore[arg-type]
    )


def ports(**values: object) -> Change:
    """The same of all ports of RDMA devices."""

    def changed(port: RdmaPort) -> RdmaPort:
        return replace(port, **values)  # type: ignore[arg-type]

    return lambda facts: replace(
        facts, rdma=tuple(replace(one, ports=tuple(map(changed, one.ports))) for one in facts.rdma or ())
    )


@pytest.mark.parametrize(
    ("rule", "changes", "expected"),
    [
        ("HOST-NOFILE", [part("limits", nofile=65536)], "ok"),
        ("HOST-NOFILE", [part("limits", nofile=65535)], "warn"),
        ("HOST-NOFILE", [part("limits", nofile=1024), NO_DEVICES], "skip"),
        ("HOST-NPROC", [part("limits", nproc=-1)], "ok"),
        ("HOST-NPROC", [part("limits", nproc=16383)], "warn"),
        ("HOST-STACK", [part("limits", stack_nbytes=8 << 20)], "ok"),
        ("HOST-STACK", [part("limits", stack_nbytes=-1)], "warn"),
        ("HOST-STACK", [part("limits", stack_nbytes=-1), set_variable("NCCL_SET_THREAD_STACK_SIZE", "1")], "ok"),
        ("HOST-STACK", [part("limits", stack_nbytes=-1), NO_DEVICES], "skip"),
        ("HOST-SHM", [part("memory", shm_total_nbytes=GIB)], "ok"),
        ("HOST-SHM", [part("memory", shm_total_nbytes=GIB - 1)], "warn"),
        ("HOST-SHM", [part("memory", shm_total_nbytes=64 << 20)], "fail"),
        ("HOST-SHM", [part("memory", shm_total_nbytes=64 << 20), NO_DEVICES], "warn"),
        ("HOST-SWAP", [part("memory", swap_total_nbytes=GIB)], "warn"),
        ("HOST-SWAP", [part("memory", swap_total_nbytes=GIB), NO_DEVICES], "skip"),
        ("HOST-MEMORY-LIMIT", [part("limits", cgroup_memory_nbytes=2 * GIB)], "ok"),
        ("HOST-MEMORY-LIMIT", [part("limits", cgroup_memory_nbytes=2 * GIB - 1)], "warn"),
        ("HOST-NUMA-BALANCING", [part("kernel", numa_balancing=2)], "warn"),
        ("HOST-NUMA-BALANCING", [part("kernel", numa_balancing=1), part("cpu", numa_nodes=(NumaNode(0),))], "skip"),
        ("HOST-GOVERNOR", [part("cpu", governors=None)], "skip"),
        ("HOST-GOVERNOR", [part("cpu", governors={"performance": 15, "schedutil": 1})], "warn"),
        ("HOST-CLOCKSOURCE", [part("kernel", clocksource="kvm-clock")], "warn"),
        ("HOST-CLOCKSOURCE", [part("kernel", clocksource="kvm-clock"), VM], "ok"),
        ("HOST-CPU-QUOTA", [part("limits", cgroup_cpus=2.0)], "ok"),
        ("HOST-CPU-QUOTA", [part("limits", cgroup_cpus=1.5)], "warn"),
        ("HOST-LOAD", [part("cpu", load_average=6.0)], "ok"),
        ("HOST-LOAD", [part("cpu", load_average=6.1)], "warn"),
        ("HOST-UPTIME", [part("host", uptime_seconds=599.0)], "warn"),
        ("HOST-UPTIME", [part("host", uptime_seconds=599.0), NO_DEVICES], "skip"),
        ("GPU-XID", [part("kernel", messages=(f"NVRM: Xid (PCI:{GPU_ADDRESS[1][:-2]}): 31, pid=7",))], "ok"),
        ("GPU-SXID", [part("kernel", messages=("SXid (PCI:0000:90:00.0): 12028, Non-fatal, Link 3",))], "warn"),
        ("GPU-ECC-CORRECTED", [gpus(ecc_corrected=10_000)], "ok"),
        ("GPU-ECC-CORRECTED", [gpus(ecc_corrected=10_001)], "warn"),
        ("GPU-HOT", [gpus(temperature_celsius=84.0)], "ok"),
        ("GPU-HOT", [gpus(temperature_celsius=85.0)], "warn"),
        ("GPU-THROTTLE", [gpus(throttle_reasons=("gpu_idle", "sw_power_cap"))], "ok"),
        ("GPU-COMPUTE-MODE", [gpus(compute_mode="exclusive process")], "ok"),
        ("GPU-NVLINK", [gpus(nvlinks=())], "skip"),
        ("GPU-FABRIC", [gpus(fabric_state="not supported", fabric_status="")], "skip"),
        ("GPU-FABRIC-MANAGER", [part("software", fabric_manager="")], "skip"),
        ("GPU-DIRECT", [part("kernel", modules=("nvidia",))], "skip"),
        ("GPU-DIRECT", [part("kernel", modules=("nvidia",)), part("host", kernel="5.11.9")], "warn"),
        ("GPU-DIRECT", [part("kernel", modules=("nvidia",)), part("host", kernel="5.12.0")], "skip"),
        ("PCI-ACS", [VM], "skip"),
        ("PCI-IOMMU", [part("kernel", iommu=("off",))], "ok"),
        ("PCI-IOMMU", [part("kernel", iommu=("DMA-FQ", "identity"))], "warn"),
        ("PCI-IOMMU", [part("kernel", iommu=("DMA",)), VM], "skip"),
        ("PCI-NUMA", [part("cpu", numa_nodes=(NumaNode(0),))], "skip"),
        ("NIC-UVERBS", [part("software", infiniband_devices=7)], "fail"),
        ("NIC-STATE", [ports(state="armed")], "warn"),
        ("NIC-PKEY", [ports(pkeys=("0x7fff", "0x8001"))], "ok"),
        ("NIC-PKEY", [ports(pkeys=("0x7fff", "garbage"))], "fail"),
        ("NIC-LINK-ERRORS", [ports(counters={"symbol_error": 99})], "ok"),
        ("NIC-LINK-ERRORS", [ports(counters={"symbol_error": 100})], "warn"),
        ("NIC-LINK-ERRORS", [ports(counters={"port_xmit_wait": 5})], "skip"),
        ("NIC-LINK-DOWNED", [ports(counters={"link_downed": 4})], "ok"),
        ("NIC-SPEED", [one_interface("eth0", bytes_per_second=None)], "skip"),
        ("NIC-INTERFACE", [one_interface("eth0", addresses=())], "skip"),
        ("NIC-SUBNET", [whole(interfaces=None)], "skip"),
        ("AFF-CPU", [part("process", cpus="0-15")], "ok"),
        ("AFF-CPU", [part("process", gpu_address="")], "skip"),
        ("AFF-CPU-FEW", [part("process", cpus="0-1")], "ok"),
        ("SW-TORCH", [part("software", packages={})], "skip"),
        ("SW-TORCH", [NO_DEVICES, part("software", packages={"torch": "2.6.0+cpu"})], "skip"),
        ("SW-DRIVER", [part("software", cuda="13.0")], "fail"),
        ("SW-DRIVER", [part("software", cuda="", packages={"torch": "2.6.0"})], "skip"),
        ("SW-NCCL", [part("software", nccl={})], "ok"),
        ("SW-NCCL", [part("software", nccl={}, packages={}, nccl_loadable="")], "skip"),
        ("SW-NCCL-LOADS", [part("software", nccl_loadable="")], "skip"),
    ],
)
def test_the_verdict_of_a_rule(rule: str, changes: list[Change], expected: str) -> None:
    assert set(verdicts(rule, *changes)) == {expected}


@pytest.mark.parametrize(
    ("rule", "changes", "expected"),
    [
        ("GPU-SEEN", [whole(gpus=())], ["fail"]),
        ("GPU-SEEN", [whole(gpus=()), CONTAINER], ["skip"]),
        ("NIC-RDMA", [whole(rdma=())], ["fail", "skip"]),  # eight cards, and one for the host
        ("NIC-RDMA", [whole(rdma=()), CONTAINER], ["skip", "warn"]),
        ("PCI-SPEED", [devices(GPU_ADDRESS[0], speed_gts=2.5)], ["ok", "ok", "skip"]),  # an idle GPU
        ("PCI-SPEED", [devices(NIC_ADDRESS[0], speed_gts=2.5)], ["ok", "ok", "warn"]),
        ("PCI-SLOT", [devices(GPU_ADDRESS[0], width_max=32)], ["ok", "warn"]),
        ("PCI-WIDTH", [devices(GPU_ADDRESS[0], width_max=32)], ["ok"]),  # the slot is the limit: PCI-SLOT tells
        ("PCI-WIDTH", [devices(GPU_ADDRESS[0], width=None)], ["ok", "skip"]),
        ("PCI-NUMA", [devices(GPU_ADDRESS[0], numa_node=None), VM], ["ok", "skip"]),
    ],
)
def test_verdicts_of_several_devices(rule: str, changes: list[Change], expected: list[str]) -> None:
    assert verdicts(rule, *changes) == expected


def test_devices_that_are_alike_are_one_finding() -> None:
    (found,) = look("GPU-ECC")
    assert (found.subject, found.observed) == ("GPU0-7", "on")


def test_a_finding_names_device_value_expectation_and_what_to_do() -> None:
    found = next(one for one in look("PCI-WIDTH", devices(GPU_ADDRESS[3], width=8)) if one.verdict == "fail")
    assert (found.subject, found.observed, found.expected) == ("GPU3", "x8", "x16")
    assert found.where == "/sys/bus/pci/devices/*/current_link_width"
    assert "reseat" in found.action


def test_a_line_of_the_log_names_the_gpu() -> None:
    message = f"[ 12.5] NVRM: Xid (PCI:{GPU_ADDRESS[3][:-2]}): 79, pid=1234, GPU has fallen off the bus."
    (found,) = look("GPU-XID", part("kernel", messages=(message, message)))
    assert (found.subject, found.observed) == ("GPU3", "Xid 79 (GPU has fallen off the bus), 2 times")


def test_ranks_of_whole_numa_nodes_may_share_them() -> None:
    """Four ranks, bound in pairs to the NUMA nodes; then two of four with one mask."""
    one = ranks_of(healthy(), 0, 1)[0]
    masks = ("0-7", "0-7", "8-15", "8-15")
    numa = tuple(part("process", cpus=mask, rank=rank)(one) for rank, mask in enumerate(masks))
    (found,) = run_rules([RULES["AFF-OVERLAP"]], Scene(numa[0], peers=numa[1:]))
    assert (found.verdict, found.subject) == ("ok", "rank 0-3")
    masks = ("0-3", "0-3", "4-7", "8-11")
    typed = tuple(part("process", cpus=mask, rank=rank)(one) for rank, mask in enumerate(masks))
    (found,) = run_rules([RULES["AFF-OVERLAP"]], Scene(typed[0], peers=typed[1:]))
    assert (found.verdict, found.subject, found.observed) == ("warn", "rank 0-1", "share the CPUs 0-3")


def test_ranks_of_other_nodes_are_no_neighbours() -> None:
    here, there = ranks_of(healthy(), 0, 2), ranks_of(healthy(), 1, 2)
    (found,) = run_rules([RULES["AFF-GPU-SHARED"]], Scene(here[0], peers=(*here[1:], *there)))
    assert found.verdict == "ok"


def test_a_gpu_without_a_nic_of_its_own_names_the_idle_one() -> None:
    def under_one_switch(facts: Facts) -> Facts:
        lower = next(one.parent for one in facts.pci or () if one.address == GPU_ADDRESS[0])
        return devices(GPU_ADDRESS[1], parent=lower)(facts)

    (found,) = look("AFF-NIC-SHARED", under_one_switch)
    assert (found.subject, found.observed, found.expected) == (
        "GPU1", "shares mlx5_0", "a NIC of its own: mlx5_1 idle"
    )  # fmt: skip
