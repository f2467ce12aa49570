"""read_facts: a healthy machine, what single faults change, and this machine."""

import os
import resource
import subprocess
import sys
from dataclasses import replace
from operator import attrgetter

import pytest

from commbench.machine.facts import Facts, PciDevice, ProcessFacts
from commbench.machine.read_facts import read_facts
from tests import trees
from tests.trees import FakeNvml, acs_config, dgx_facts

LIMITS = trees.LIMITS.format(memlock="65536")


@pytest.fixture(scope="module")
def healthy() -> Facts:
    return dgx_facts()


def test_the_healthy_machine_as_a_whole(healthy):
    host = healthy.host
    assert (host.name, host.product, host.os) == ("dgx-01", "NVIDIA DGXH100", "Ubuntu 22.04.5 LTS")
    assert (host.virtual, host.container, host.resolves_to) == ("none", "none", ("10.0.0.5",))
    assert (healthy.cpu.sockets, healthy.cpu.cores, healthy.cpu.threads_per_core) == (2, 16, 1)
    assert healthy.cpu.governors == {"performance": 16}
    assert [(node.cpus, node.distances) for node in healthy.cpu.numa_nodes] == [("0-7", (10, 21)), ("8-15", (21, 10))]
    assert healthy.memory.shm_total_nbytes == 1 << 40
    assert (healthy.limits.memlock_nbytes, healthy.limits.nofile, healthy.limits.cgroup_cpus) == (-1, 1 << 20, -1.0)
    assert (healthy.kernel.iommu, healthy.kernel.port_range) == (("identity",), (32768, 60999))
    assert "nvidia_peermem" in healthy.kernel.modules
    assert "ext4" not in healthy.kernel.modules
    assert healthy.kernel.command_line == "iommu=pt"  # the rest names disks
    assert [gpu.address for gpu in healthy.gpus] == trees.GPU_ADDRESS
    assert [device.address for device in healthy.rdma] == trees.NIC_ADDRESS
    assert {port.state for device in healthy.rdma for port in device.ports} == {"active"}
    assert [interface.name for interface in healthy.interfaces] == ["eth0", *trees.INTERFACE, "lo"]
    assert healthy.software.nccl == {"/usr/lib/x86_64-linux-gnu/libnccl.so.2": "2.21.5+cuda12.4"}
    assert (healthy.software.driver, healthy.software.ucx, healthy.software.cuda) == ("550.127.08", "1.17.0", "12.4.1")
    assert healthy.software.fabric_manager == "running"
    assert list(healthy.unseen) == [
        "host.disks",
        "memory.shm_free_nbytes",
        "software.nccl_loadable",
        "software.packages",
        "variables",
    ]


def test_the_tree_of_pci_devices(healthy):
    devices = {device.address: device for device in healthy.pci}
    assert len(devices) == 2 + 8 * 6
    gpu = devices[trees.GPU_ADDRESS[3]]
    assert (gpu.kind, gpu.numa_node, gpu.cpus, gpu.width, gpu.speed_max_gts) == ("gpu", 0, "0-7", 16, 32.0)
    above = [gpu.parent, devices[gpu.parent].parent]
    assert above == ["0000:3a:00.0", trees.SWITCH_ADDRESS[3]]
    assert devices[devices[above[1]].parent].parent == ""
    assert {device.root for device in healthy.pci} == {f"pci0000:{bus}" for bus in ("00", "10", "30", "50", "70")}


# A fault in the tree: what is edited, the fact, and what it is then; or why it is not seen.
FAULTS = {
    "narrow": ({f"{trees.GPU[3]}/current_link_width": "8"}, lambda f: _pci(f, trees.GPU_ADDRESS[3]).width, 8),
    "no width": ({f"{trees.GPU[3]}/current_link_width": "63"}, lambda f: _pci(f, trees.GPU_ADDRESS[3]).width, None),
    "off the bus": ({f"{trees.NIC[0]}/revision": "0xff"}, lambda f: _pci(f, trees.NIC_ADDRESS[0]).revision, "ff"),
    "no NUMA": ({f"{trees.GPU[0]}/numa_node": "-1"}, lambda f: _pci(f, trees.GPU_ADDRESS[0]).numa_node, None),
    "port down": ({f"{trees.PORT[2]}/state": "1: DOWN"}, lambda f: f.rdma[2].ports[0].state, "down"),
    "polling": ({f"{trees.PORT[2]}/phys_state": "2: Polling"}, lambda f: f.rdma[2].ports[0].physical_state, "polling"),
    "slow port": (
        {f"{trees.PORT[2]}/rate": "2.5 Gb/sec (1X SDR)"},
        lambda f: f.rdma[2].ports[0].bytes_per_second,
        312.5e6,
    ),
    "not joined": ({f"{trees.PORT[2]}/pkeys/0": "0x7fff"}, lambda f: f.rdma[2].ports[0].pkeys, ("0x7fff",)),
    "errors": (
        {f"{trees.PORT[2]}/counters/symbol_error": "17"},
        lambda f: f.rdma[2].ports[0].counters["symbol_error"],
        17,
    ),
    "traffic class": (
        {f"{trees.RDMA[2]}/tc/1/traffic_class": "Global tclass=106"},
        lambda f: f.rdma[2].ports[0].traffic_class,
        106,
    ),
    "interface down": ({f"{trees.NET[1]}/flags": "0x1002"}, lambda f: f.interfaces[2].is_up, False),
    "no carrier": ({f"{trees.ETH0}/speed": "-1"}, lambda f: f.interfaces[0].bytes_per_second, None),
    "bond": ({f"{trees.ETH0}/bonding/mode": "802.3ad 4"}, lambda f: f.interfaces[0].kind, "bond"),
    "memlock": ({"proc/self/limits": LIMITS}, attrgetter("limits.memlock_nbytes"), 65536),
    "shm": ({"proc/mounts": "shm /dev/shm tmpfs rw,size=65536k 0 0"}, attrgetter("memory.shm_total_nbytes"), 64 << 20),
    "balancing": ({"proc/sys/kernel/numa_balancing": "1"}, attrgetter("kernel.numa_balancing"), 1),
    "translated": ({"sys/kernel/iommu_groups/1/type": "DMA-FQ"}, attrgetter("kernel.iommu"), ("DMA-FQ", "identity")),
    "governor": (
        {"sys/devices/system/cpu/cpu5/cpufreq/scaling_governor": "powersave"},
        attrgetter("cpu.governors"),
        {"performance": 15, "powersave": 1},
    ),
    "clock": (
        {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
        attrgetter("kernel.clocksource"),
        "hpet",
    ),
    "swap": ({"proc/meminfo": "SwapTotal: 8 kB"}, attrgetter("memory.swap_total_nbytes"), 8192),
    "quota": ({"sys/fs/cgroup/user.slice/cpu.max": "400000 100000"}, attrgetter("limits.cgroup_cpus"), 4.0),
    "cgroup 1": (
        {
            "proc/self/cgroup": "3:cpu,cpuacct:/job",
            "sys/fs/cgroup/cgroup.controllers": None,
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "250000",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        },
        attrgetter("limits.cgroup_cpus"),
        2.5,
    ),
    "memory group": (
        {"sys/fs/cgroup/user.slice/memory.max": "1073741824"},
        attrgetter("limits.cgroup_memory_nbytes"),
        1 << 30,
    ),
    "docker": ({".dockerenv": ""}, attrgetter("host.container"), "docker"),
    "kubernetes": ({"proc/1/cgroup": "0::/kubepods.slice/pod1"}, attrgetter("host.container"), "kubernetes"),
    "kvm": (
        {"proc/cpuinfo": "flags : fpu hypervisor", "sys/class/dmi/id/sys_vendor": "QEMU"},
        attrgetter("host.virtual"),
        "kvm",
    ),
    "unnamed": ({"proc/cpuinfo": "flags : fpu hypervisor"}, attrgetter("host.virtual"), "unnamed"),
    "cloud's metal": ({"sys/class/dmi/id/sys_vendor": "Amazon EC2"}, attrgetter("host.virtual"), "none"),
    "arm in a cloud": (
        {"proc/cpuinfo": "CPU part: 0xd4f", "sys/class/dmi/id/sys_vendor": "Amazon EC2"},
        attrgetter("host.virtual"),
        "kvm",
    ),
    "loopback name": ({"etc/hosts": "127.0.1.1 dgx-01"}, attrgetter("host.resolves_to"), ("127.0.1.1",)),
    "manager stopped": (
        {
            "sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs": None,
            "lib/systemd/system/nvidia-fabricmanager.service": "",
        },
        lambda f: f.software.fabric_manager,
        "stopped",
    ),
    "two NCCLs": (
        {"usr/local/lib/libnccl.so.2": trees.nccl_library("2.18.1+cuda12.1")},
        lambda f: list(f.software.nccl.values()),
        ["2.21.5+cuda12.4", "2.18.1+cuda12.1"],
    ),
    "in the loader's cache": (
        {
            "etc/ld.so.cache": b"glibc-ld.so.cache1.1\0libnccl.so.2\0/opt/x/libnccl.so.2\0",
            "opt/x/libnccl.so.2": trees.nccl_library("2.19.3+cuda12.3"),
        },
        lambda f: f.software.nccl.get("/opt/x/libnccl.so.2"),
        "2.19.3+cuda12.3",
    ),
    "plugin": ({"usr/lib/libnccl-net.so": b""}, lambda f: f.software.nccl_plugins, ("/usr/lib/libnccl-net.so",)),
    "conf file": (
        {"etc/nccl.conf": "NCCL_DEBUG =WARN\n# a word\nPASSWORD=x\nNCCL_ALGO=Ring"},
        lambda f: f.conf_files and f.conf_files[0].lines,
        ("NCCL_DEBUG =WARN", "NCCL_ALGO=Ring"),
    ),
    "no uverbs": (
        {f"dev/infiniband/uverbs{n}": None for n in trees.GPUS},
        attrgetter("software.infiniband_devices"),
        0,
    ),
}


def _pci(facts: Facts, address: str) -> PciDevice:
    return next(device for device in facts.pci if device.address == address)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_fact(name, healthy):
    edits, fact, value = FAULTS[name]
    assert fact(dgx_facts(edits)) == value
    assert fact(healthy) != value or name == "cloud's metal"


def test_acs_is_read_from_the_config_space_of_bridges():
    facts = dgx_facts({f"{trees.SWITCH[0]}/config": acs_config(0x1D)})
    assert {device.address: device.acs for device in facts.pci if device.acs} == {
        trees.SWITCH_ADDRESS[0]: ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
    }


@pytest.mark.parametrize("config", [acs_config(0)[:64], None])
def test_config_space_that_only_root_may_read_is_unseen(config):
    facts = dgx_facts({f"{trees.SWITCH[0]}/config": config})
    assert _pci(facts, trees.SWITCH_ADDRESS[0]).acs is None
    assert facts.why_unseen("pci.acs").endswith("readable by root only")


def test_a_chain_of_capabilities_that_bites_its_tail_ends():
    config = bytearray(acs_config(0x1F))
    config[0x100:0x104] = (1 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    facts = dgx_facts({f"{trees.SWITCH[0]}/config": bytes(config)})
    assert _pci(facts, trees.SWITCH_ADDRESS[0]).acs == ()


def test_gids_say_their_kind_and_never_their_address():
    ports = [device.ports[0] for device in dgx_facts(roce=True).rdma]
    assert [(gid.index, gid.version, gid.kind, gid.interface) for gid in ports[3].gids] == [
        (0, "IB/RoCE v1", "link-local", "ibs3"),
        (1, "RoCE v2", "link-local", "ibs3"),
        (2, "IB/RoCE v1", "ipv4", "ibs3"),
        (3, "RoCE v2", "ipv4", "ibs3"),
    ]
    assert (ports[0].link_layer, ports[0].mtu_nbytes) == ("Ethernet", 4200)


def test_a_gid_that_is_empty_below_one_in_use_is_there():
    zero = "0000:0000:0000:0000:0000:0000:0000:0000"
    port = dgx_facts({f"{trees.PORT[0]}/gids/2": zero}, roce=True).rdma[0].ports[0]
    assert [gid.kind for gid in port.gids] == ["link-local", "link-local", "zero", "ipv4"]


@pytest.mark.parametrize(
    ("visible", "local_rank", "gpu"),
    [
        (None, 3, 3),
        ("2,5", 1, 5),
        ("2,5", 2, None),
        ("7,99,1", 1, None),  # the list ends at what is none
        ("GPU-00000000-0000-0000-0000-000000000004", 0, 4),
        ("", 0, None),
        ("-1", 0, None),
    ],
)
def test_the_gpu_of_a_local_rank(visible, local_rank, gpu):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    facts = dgx_facts(environment=environment, process=ProcessFacts(local_rank=local_rank))
    assert facts.process.gpu_address == ("" if gpu is None else trees.GPU_ADDRESS[gpu])


def test_only_listed_variables_are_kept():
    environment = {"NCCL_DEBUG": "WARN", "SLURM_PROCID": "3", "AWS_SECRET_ACCESS_KEY": "s3cret", "SLURM_JWT": "s3cret"}
    assert dgx_facts(environment=environment).variables == {"NCCL_DEBUG": "WARN", "SLURM_PROCID": "3"}


def test_a_tree_without_links_has_no_parents(tmp_path):
    device = tmp_path / "sys/bus/pci/devices/0000:3b:00.0"
    device.mkdir(parents=True)
    for name, text in (("class", "0x030200"), ("vendor", "0x10de"), ("numa_node", "1")):
        (device / name).write_text(text)
    facts = read_facts(tmp_path)
    assert [(found.kind, found.parent, found.numa_node) for found in facts.pci] == [("gpu", "", 1)]
    assert "links" in facts.why_unseen("pci.parent")


def test_an_empty_tree_says_why_of_everything(tmp_path):
    facts = read_facts(tmp_path)
    assert (facts.pci, facts.gpus, facts.rdma, facts.interfaces) == (None, None, None, None)
    parts = ("pci", "gpus", "rdma", "interfaces", "limits", "kernel.modules", "kernel.messages", "cpu.numa_nodes",
             "host.resolves_to", "memory.shm_total_nbytes", "limits.cgroup_cpus", "kernel.iommu")  # fmt: skip
    assert [part for part in parts if facts.why_unseen(part).endswith("does not say")] == []


def test_this_process_is_read_live():
    facts = read_facts(process=ProcessFacts(rank=3, world_size=4))
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert facts.limits.nofile == (-1 if soft == resource.RLIM_INFINITY else soft)
    assert facts.host.name == os.uname().nodename
    assert (facts.process.rank, facts.process.world_size) == (3, 4)
    assert facts.process.cpus
    assert any("127.0.0.1/8" in interface.addresses for interface in facts.interfaces)
    assert {"commbench", "torch"} <= set(facts.software.packages)
    assert facts.taken_utc


def test_reading_loads_nothing_heavy():
    program = (
        "import sys; from commbench.machine.read_facts import read_facts; read_facts(); "
        "print([name for name in ('torch', 'numpy', 'pandas', 'msgspec', 'rich', 'pynvml') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_a_captured_tree_is_read_as_it_was(healthy):
    again = dgx_facts(nvml=FakeNvml())
    assert replace(again, source="") == replace(healthy, source="")
