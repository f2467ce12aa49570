"""Faults, one each, planted into a healthy job: the table that says which rule must find which fault."""

from dataclasses import replace

from commbench.machine.facts import ConfFile, Facts, RdmaDevice
from tests.trees import (
    ETH0,
    GPU,
    GPU_ADDRESS,
    LIMITS,
    NET,
    NIC,
    NIC_ADDRESS,
    NODE,
    PORT,
    RDMA,
    ROCE_NET,
    ROCE_PORT,
    ROOT_PORT,
    SWITCH,
    Link,
    acs_config,
    nccl_library,
)
from tests.unit.checks.machines import CLOCK, Fault, healthy, one_interface, part, set_variable, whole

_CGROUP = "sys/fs/cgroup/user.slice/session-1.scope"
_MEMINFO = (
    "MemTotal: 2113536000 kB\nMemAvailable: {available} kB\nSwapTotal: {swap} kB\n"
    "HugePages_Total: {pages}\nHugePages_Free: {pages}\nHugepagesize: 2048 kB"
)
_LOG = "var/log/dmesg"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def _meminfo(available: int = 2_080_000_000, swap: int = 0, pages: int = 0) -> dict[str, str]:
    return {"proc/meminfo": _MEMINFO.format(available=available, swap=swap, pages=pages)}


def _limit(line: str, value: str) -> dict[str, str]:
    """The limits with another value in one line."""
    text = LIMITS.format(memlock="unlimited")
    old = next(row for row in text.splitlines() if row.startswith(line))
    return {"proc/self/limits": text.replace(old, f"{line:<26}{value:<21}unlimited  units")}


def _without(facts: Facts, modules: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in facts.kernel.modules or () if name not in modules)


HOST = (
    Fault("HOST-MEMLOCK", "memlock 64 KiB", _limit("Max locked memory", "65536")),
    Fault("HOST-MEMLOCK", "memlock 1 GiB", _limit("Max locked memory", "1073741824")),
    Fault("HOST-NOFILE", "1024 files", _limit("Max open files", "1024")),
    Fault("HOST-NPROC", "4096 threads", _limit("Max processes", "4096")),
    Fault("HOST-STACK", "stack unlimited", _limit("Max stack size", "unlimited")),
    Fault("HOST-STACK", "stack 1 MiB", _limit("Max stack size", "1048576")),
    Fault("HOST-SHM", "/dev/shm 64 MiB", {"proc/mounts": "tmpfs /dev/shm tmpfs rw,size=65536k 0 0"}),
    Fault("HOST-SHM-FREE", "/dev/shm full", change=part("memory", shm_free_nbytes=1 << 20)),
    Fault("HOST-SWAP", "swap on", _meminfo(swap=8_388_604)),
    Fault("HOST-MEMORY-FREE", "memory taken", _meminfo(available=100_000_000)),
    Fault("HOST-MEMORY-LIMIT", "a cgroup of 1 GiB", {f"{_CGROUP}/memory.max": "1073741824"}),
    Fault("HOST-HUGEPAGES", "half of the memory reserved", _meminfo(pages=500_000)),
    Fault("HOST-NUMA-BALANCING", "NUMA balancing on", {"proc/sys/kernel/numa_balancing": "1"}),
    Fault("HOST-NUMA-EVEN", "a memory module is missing", {f"{NODE[1]}/meminfo": "Node 1 MemTotal: 704512000 kB"}),
    Fault("HOST-GOVERNOR", "powersave", {"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": "powersave"}),
    Fault(
        "HOST-CLOCKSOURCE",
        "hpet",
        {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
    ),
    Fault("HOST-CPU-QUOTA", "one CPU's time for two ranks", {f"{_CGROUP}/cpu.max": "100000 100000"}),
    Fault("HOST-LOAD", "another job runs", {"proc/loadavg": "14.00 14.00 14.00 15/2345 67890"}),
    Fault("ENV-OWN-NAME", "127.0.1.1 beside the name", change=part("host", resolves_to=("127.0.1.1",)), nodes=2),
    Fault("HOST-PORT-RANGE", "a narrow range", {"proc/sys/net/ipv4/ip_local_port_range": "60000\t60999"}),
    Fault("HOST-OOM", "a process was killed", {_LOG: "[ 99.0] Out of memory: Killed process 4242 (python)"}),
    Fault("HOST-DISK", "/tmp full", change=part("host", disks={"/": 0.4, "/tmp": 0.99})),
    Fault("HOST-UPTIME", "just restarted", {"proc/uptime": "120.00 100.00"}),
)

GPUS = (
    Fault("GPU-SEEN", "NVML cannot open it", gpus={5: {"lost": True}}),
    Fault("GPU-BUS", "fallen off the bus", {f"{GPU[2]}/revision": "0xff"}),
    Fault("GPU-DRIVER", "nouveau", {f"{GPU[2]}/driver": Link("sys/bus/pci/drivers/nouveau")}),
    Fault(
        "GPU-XID", "Xid 79", {_LOG: f"[ 9.0] NVRM: Xid (PCI:{GPU_ADDRESS[3][:-2]}): 79, GPU has fallen off the bus."}
    ),
    Fault("GPU-XID", "an Xid that nobody knows", {_LOG: f"[ 9.0] NVRM: Xid (PCI:{GPU_ADDRESS[3][:-2]}): 999, what"}),
    Fault("GPU-SXID", "NVSwitch", {_LOG: "[ 9.0] nvidia-nvswitch0: SXid (PCI:0000:90:00.0): 20034, Fatal, Link 30"}),
    Fault("GPU-ECC", "ECC off", gpus={4: {"ecc": 0}}),
    Fault("GPU-ECC-UNCORRECTED", "uncorrected errors", gpus={5: {"ecc_uncorrected": 2}}),
    Fault("GPU-ECC-CORRECTED", "many corrected errors", gpus={5: {"ecc_corrected": 123_456}}),
    Fault("GPU-REMAP-PENDING", "a row waits", gpus={5: {"remapped": (0, 1, 1, 0)}}),
    Fault("GPU-REMAP-FAILED", "no spare row", gpus={5: {"remapped": (0, 1, 0, 1)}}),
    Fault("GPU-RETIRED-PENDING", "a page waits", gpus={5: {"retired_pending": 1}}),
    Fault("GPU-RECOVERY", "a reset is asked for", gpus={5: {"recovery": 1}}),
    Fault("GPU-THROTTLE", "hardware slow-down", gpus={1: {"throttled": 0x48}}),
    Fault("GPU-THROTTLE", "the driver slows for heat", gpus={1: {"throttled": 0x20}}),
    Fault("GPU-HOT", "91 °C", gpus={1: {"temperature": 91}}),
    Fault("GPU-CLOCK", "a locked clock", gpus={6: {"sm_clock_max": 1410}}),
    Fault("GPU-VBIOS", "another VBIOS", gpus={6: {"vbios": "96.00.5E.00.03"}}),
    Fault("GPU-GSP", "another GSP", gpus={6: {"gsp": "535.104.05"}}),
    Fault("GPU-MODEL", "another model", gpus={6: {"name": "NVIDIA H100 NVL", "memory_nbytes": 94 << 30}}),
    Fault("GPU-PERSISTENCE", "persistence off", gpus={0: {"persistence": 0}}),
    Fault("GPU-MIG", "MIG on", gpus={7: {"mig": 1}}),
    Fault("GPU-COMPUTE-MODE", "prohibited", gpus={7: {"compute_mode": 2}}),
    Fault("GPU-PROCESSES", "somebody else", gpus={7: {"pids": (4242,), "memory_used_nbytes": 40 << 30}}),
    Fault("GPU-MEMORY", "memory of nobody", gpus={7: {"memory_used_nbytes": 40 << 30}}),
    Fault(
        "GPU-LIBRARY",
        "driver and library differ",
        change=whole(unseen={"gpus": "NVML: Driver/library version mismatch"}),
    ),
    Fault("GPU-NVLINK", "two links down", gpus={3: {"nvlinks": (1,) * 16 + (0, 0)}}),
    Fault("GPU-NVLINK-SPEED", "slow links", gpus={3: {"nvlink_megabytes": 13281}}),
    Fault("GPU-NVLINK-ERRORS", "link errors", gpus={3: {"nvlink_errors": 40}}),
    Fault("GPU-NVLINK-PEERS", "a bridge in place of the switch", gpus={3: {"peers": [4] * 18}}),
    Fault("GPU-FABRIC", "the fabric is not up", gpus={3: {"fabric": (2, 0)}}),
    Fault("GPU-FABRIC", "joining failed", gpus={3: {"fabric": (3, 7)}}),
    Fault(
        "GPU-FABRIC-MANAGER",
        "stopped",
        {
            "sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs": None,
            "usr/lib/systemd/system/nvidia-fabricmanager.service": "[Unit]",
        },
        change=part("software", fabric_manager="stopped"),
    ),
    Fault(
        "GPU-IMEX",
        "stopped",
        gpus={number: {"name": "NVIDIA GB200"} for number in range(8)},
        change=part("software", imex="stopped"),
    ),
    Fault(
        "GPU-DIRECT",
        "no peermem on an old kernel",
        {"proc/modules": "nvidia 1 0 - Live 0x0\nib_uverbs 1 0 - Live 0x0", "proc/sys/kernel/osrelease": "5.4.0-190"},
    ),
)

PCI = (
    Fault("PCI-WIDTH", "a GPU at x8", {f"{GPU[3]}/current_link_width": "8"}),
    Fault("PCI-WIDTH", "a NIC at x8", {f"{NIC[3]}/current_link_width": "8"}),
    Fault("PCI-WIDTH", "a switch at x4", {f"{SWITCH[3]}/current_link_width": "4"}),
    Fault("PCI-SPEED", "a NIC at 16 GT/s", {f"{NIC[3]}/current_link_speed": "16.0 GT/s PCIe"}),
    Fault(
        "PCI-SLOT",
        "a slot of 16 GT/s",
        {
            f"{ROOT_PORT[3]}/max_link_speed": "16.0 GT/s PCIe",
            f"{ROOT_PORT[3]}/current_link_speed": "16.0 GT/s PCIe",
            f"{SWITCH[3]}/current_link_speed": "16.0 GT/s PCIe",
        },
    ),
    Fault(
        "PCI-LIMITED",
        "the kernel says so",
        {
            _LOG: f"[ 2.0] mlx5_core {NIC_ADDRESS[3]}: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe "
            "x8 link at 0000:00:05.0"
        },
    ),
    Fault("PCI-ACS", "ACS on", {f"{SWITCH[3]}/config": acs_config(0x1D)}),
    Fault("PCI-IOMMU", "the IOMMU translates", {"sys/kernel/iommu_groups/1/type": "DMA"}),
    Fault("PCI-NUMA", "no NUMA node", {f"{NIC[3]}/numa_node": "-1"}),
)


NICS = (
    Fault("NIC-RDMA", "mlx5_ib has nothing for it",
          {f"{ETH0.rpartition('/net/')[0]}/driver": Link("sys/bus/pci/drivers/mlx5_core")}),
    Fault("NIC-UVERBS", "no files", {f"dev/infiniband/uverbs{number}": None for number in range(8)}),
    Fault("NIC-STATE", "down", {f"{PORT[2]}/state": "1: DOWN", f"{PORT[2]}/phys_state": "2: Polling"}),
    Fault("NIC-STATE", "no subnet manager", {f"{PORT[2]}/state": "2: INIT"}),
    Fault("NIC-STATE", "disabled", {f"{PORT[2]}/state": "1: DOWN", f"{PORT[2]}/phys_state": "3: Disabled"}),
    Fault("NIC-RATE", "one lane of four", {f"{PORT[2]}/rate": "100 Gb/sec (1X NDR)"}),
    Fault("NIC-FIRMWARE", "older firmware", {f"{RDMA[2]}/fw_ver": "28.36.1010"}),
    Fault("NIC-PKEY", "not joined", {f"{PORT[2]}/pkeys/0": "0x7fff"}),
    Fault("NIC-PKEY", "no key", {f"{PORT[2]}/pkeys/0": "0x0000"}),
    Fault("NIC-LINK-ERRORS", "symbol errors", {f"{PORT[2]}/counters/symbol_error": "48211"}),
    Fault("NIC-LINK-DOWNED", "a link that comes and goes", {f"{PORT[2]}/counters/link_downed": "37"}),
    Fault("NIC-DISCARDS", "discards", {f"{PORT[2]}/counters/port_xmit_discards": "900000"}),
    Fault("NIC-RETRANSMITS", "timeouts", {f"{PORT[2]}/hw_counters/local_ack_timeout_err": "52000"}),
    Fault("NIC-FLAPS", "carrier changes", {f"{ETH0}/carrier_changes": "64"}),
    Fault("NIC-FLAPS", "in the log", {_LOG: "\n".join(f"[{n}.0] eth0: NIC Link is Down" for n in range(9))}),
    Fault("NIC-INTERFACE", "an address on an interface that is down", {f"{ETH0}/operstate": "down"}),
    Fault("NIC-INTERFACE", "nothing but loopback", {f"{ETH0}/operstate": "down", f"{ETH0}/flags": "0x1002"},
          change=one_interface("eth0", addresses=()), nodes=2),
    Fault("NIC-SPEED", "100 Mbit/s", {f"{ETH0}/speed": "100"}),
    Fault("NIC-MTU", "one rail otherwise", {f"{NET[2]}/mtu": "2044"}),
    Fault("NIC-SUBNET", "two rails in one subnet", change=one_interface("ibs1", addresses=("10.0.0.6/24",))),
    Fault("NIC-ROCE-VERSION", "RoCE v1 only",
          {f"{ROCE_PORT[2]}/gid_attrs/types/{index}": "IB/RoCE v1" for index in (1, 3)}, roce=True),
    Fault("NIC-ROCE-ADDRESS", "no address",
          {f"{ROCE_PORT[2]}/gids/{index}": "fe80:0000:0000:0000:a288:c2ff:fe00:0002" for index in (2, 3)}, roce=True),
    Fault("NIC-ROCE-ADDRESS", "IPv6 alone",
          {f"{ROCE_PORT[2]}/gids/{index}": "2001:0db8:0000:0000:0000:0000:0000:0002" for index in (2, 3)}, roce=True),
    Fault("NIC-ROCE-MTU", "an MTU of 1500", {f"{net}/mtu": "1500" for net in ROCE_NET}, roce=True),
    Fault("NIC-TRAFFIC-CLASS", "one port otherwise",
          {f"{device}/tc/1/traffic_class": f"Global tclass={106 if device != RDMA[2] else 0}" for device in RDMA},
          roce=True),
)  # fmt: skip


def _pcie_only(facts: Facts) -> Facts:
    """The machine without NVLink, its GPUs in pairs, and one of them far away."""
    gpus = tuple(replace(gpu, nvlinks=(), fabric_state="not supported", fabric_status="") for gpu in facts.gpus or ())
    far = GPU_ADDRESS[0]
    pci = tuple(replace(one, numa_node=1) if one.address == far else one for one in facts.pci or ())
    return replace(facts, gpus=gpus, pci=pci)


def _under_another_switch(facts: Facts) -> Facts:
    """GPU 1 and GPU 0 under one switch, so that they share mlx5_0 and mlx5_1 is nobody's."""
    lower = next(one.parent for one in facts.pci or () if one.address == GPU_ADDRESS[0])
    pci = tuple(replace(one, parent=lower) if one.address == GPU_ADDRESS[1] else one for one in facts.pci or ())
    return replace(facts, pci=pci)


def _nic_elsewhere(facts: Facts) -> Facts:
    """The NIC of GPU 3 in a slot of its own."""
    pci = tuple(replace(one, parent="") if one.address == NIC_ADDRESS[3] else one for one in facts.pci or ())
    return replace(facts, pci=pci)


def _nics_on_one_socket(facts: Facts) -> Facts:
    """Four NICs, all of them on the first socket: the GPUs of the second have to cross."""
    rdma: tuple[RdmaDevice, ...] = (facts.rdma or ())[:4]
    served = {device.address for device in rdma}
    pci = tuple(one for one in facts.pci or () if one.kind != "nic" or one.address in served)
    return replace(facts, rdma=rdma, pci=pci)


AFFINITY = (
    Fault("AFF-NIC", "a NIC in another slot", change=_nic_elsewhere),
    Fault("AFF-NIC", "all NICs across the sockets", change=_nics_on_one_socket),
    Fault("AFF-NIC-SHARED", "two GPUs under one switch", change=_under_another_switch),
    Fault("AFF-SIBLINGS", "a GPU on the other socket", change=_pcie_only),
    Fault("AFF-CPU", "bound to the other socket", change=part("process", cpus="8-11"), rank=1),
    Fault("AFF-CPU-FEW", "bound to one core", change=part("process", cpus="6"), rank=1),
    Fault("AFF-OVERLAP", "masks that overlap", change=part("process", cpus="3-6"), rank=1),
    Fault(
        "AFF-CPU-RANKS",
        "more ranks than CPUs",
        change=part("process", cpus="0"),
    ),
    Fault("AFF-GPU-SHARED", "two ranks on one GPU", change=part("process", gpu_address=GPU_ADDRESS[0]), rank=1),
    Fault("AFF-GPU-NONE", "a rank too many", change=part("process", gpu_address=""), rank=1),
)

SOFTWARE = (
    Fault("SW-NCCL", "another libnccl", {f"{_LIBRARIES}/libnccl.so.2": nccl_library("2.19.3+cuda12.2")}),
    Fault("SW-NCCL-LOADS", "it does not load", change=part("software", nccl_loadable="libcudart.so.12: cannot open")),
    Fault(
        "SW-NCCL-PACKAGES",
        "for two CUDA versions",
        change=part(
            "software",
            packages={"torch": "2.6.0+cu124", "nvidia-nccl-cu11": "2.21.5", "nvidia-nccl-cu12": "2.21.5"},
        ),
    ),
    Fault("SW-PRELOAD", "preloaded", change=part("software", preload="/opt/profiler/libprof.so")),
    Fault("SW-DRIVER", "too old", change=part("software", driver="470.239.06")),
    Fault("SW-TORCH", "a build for CPUs", change=part("software", packages={"torch": "2.6.0+cpu"})),
    Fault(
        "SW-EFA",
        "no plugin",
        {f"{NIC[7]}/driver": Link("sys/bus/pci/drivers/efa")},
    ),
)


def _seven_gpus(facts: Facts) -> Facts:
    """Without the last GPU, on the bus as well."""
    return replace(
        facts,
        gpus=(facts.gpus or ())[:7],
        pci=tuple(one for one in facts.pci or () if one.address != GPU_ADDRESS[7]),
    )


def _nine_nics(facts: Facts) -> Facts:
    """With one more, of another kind, such as for storage."""
    more = replace((facts.rdma or ())[-1], name="mlx5_8", address="", board="MT_0000000359")
    return part("software", infiniband_devices=9)(replace(facts, rdma=(*(facts.rdma or ()), more)))


# In all of these the last of three nodes differs.
CONSISTENCY = (
    Fault("CON-NCCL", "another NCCL", {f"{_LIBRARIES}/libnccl.so.2": nccl_library("2.19.3+cuda12.4")},
          change=part("software", nccl_loadable="2.19.3", packages={"torch": "2.6.0+cu124", "numpy": "2.2.0",
                                                                    "nvidia-nccl-cu12": "2.19.3"})),
    Fault("CON-TORCH", "another torch", change=part("software", cuda="12.6", packages={
        "torch": "2.7.0+cu126", "numpy": "2.2.0", "nvidia-nccl-cu12": "2.21.5"})),
    Fault("CON-PYTHON", "another Python", change=part("software", python="3.12.3")),
    Fault("CON-PACKAGES", "another numpy", change=part("software", packages={
        "torch": "2.6.0+cu124", "numpy": "1.26.4", "nvidia-nccl-cu12": "2.21.5"})),
    Fault("CON-DRIVER", "another driver", change=part("software", driver="535.183.01")),
    Fault("CON-PLUGINS", "a plugin", {f"{_LIBRARIES}/libnccl-net.so": ""}),
    Fault("CON-TRANSPORTS", "another UCX", {f"{_LIBRARIES}/pkgconfig/ucx.pc": "Name: ucx\nVersion: 1.15.0"}),
    Fault("CON-OFED", "another OFED", {"usr/bin/ofed_info": "echo MLNX_OFED_LINUX-5.8-1.1.2.1:"}),
    Fault("CON-ENV-NCCL", "set on one node", change=set_variable("NCCL_IB_QPS_PER_CONNECTION", "4")),
    Fault("CON-ENV-NCCL", "set on one rank", change=set_variable("NCCL_BUFFSIZE", "8388608"), rank=1),
    Fault("CON-ENV", "otherwise on one node", change=set_variable("OMP_NUM_THREADS", "1")),
    Fault("CON-CONF", "a conf file", change=whole(conf_files=(ConfFile("/etc/nccl.conf", ("NCCL_IB_TC=106",)),))),
    Fault("CON-KERNEL", "another kernel", {"proc/sys/kernel/osrelease": "5.15.0-1042-nvidia"}),
    Fault("CON-OS", "another system", {"etc/os-release": 'PRETTY_NAME="Ubuntu 20.04.6 LTS"'}),
    Fault("CON-PRODUCT", "other hardware", {"sys/class/dmi/id/product_name": "DGXH200"}),
    Fault("CON-COMMAND-LINE", "mitigations off", {"proc/cmdline": "ro iommu=pt mitigations=off"}),
    Fault("CON-CPU", "another CPU", {"proc/cpuinfo": "model name : Intel(R) Xeon(R) Platinum 8468\nflags : fpu"}),
    Fault("CON-NUMA", "CPUs numbered otherwise", {f"{NODE[0]}/cpulist": "0-6,8", f"{NODE[1]}/cpulist": "7,9-15"}),
    Fault("CON-LIMITS", "other limits", _limit("Max open files", "524288")),
    Fault("CON-SETTINGS", "huge pages always",
          {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}),
    Fault("CON-MODULES", "a module is missing", change=lambda facts: part(
        "kernel", modules=_without(facts, ("gdrdrv",)))(facts)),
    Fault("CON-GPU-FIRMWARE", "another VBIOS", gpus={number: {"vbios": "96.00.5E.00.03"} for number in range(8)}),
    Fault("CON-GPU-MODEL", "other GPUs", gpus={number: {"name": "NVIDIA H200"} for number in range(8)}),
    Fault("CON-GPU-MODES", "locked clocks", gpus={number: {"sm_clock_max": 1410} for number in range(8)}),
    Fault("CON-NVLINK", "two links fewer", gpus={number: {"nvlinks": (1,) * 16} for number in range(8)}),
    Fault("CON-NIC-NAMES", "other names", change=lambda facts: whole(rdma=tuple(
        replace(one, name=f"{one.name}_x") for one in facts.rdma or ()))(facts)),
    Fault("CON-NIC-FIRMWARE", "older firmware", {f"{device}/fw_ver": "28.36.1010" for device in RDMA}),
    Fault("CON-NIC-RATE", "a generation lower", {f"{port}/rate": "200 Gb/sec (4X HDR)" for port in PORT}),
    Fault("CON-MTU", "another MTU", {f"{net}/mtu": "2044" for net in NET}),
    Fault("CON-PKEYS", "another partition", {f"{port}/pkeys/0": "0x8001" for port in PORT}),
    Fault("CON-TRAFFIC-CLASS", "another class",
          {f"{device}/tc/1/traffic_class": "Global tclass=106" for device in RDMA}, roce=True),
    Fault("CON-LINK-LAYER", "Ethernet", change=lambda facts: whole(
        rdma=healthy(roce=True).rdma, interfaces=healthy(roce=True).interfaces)(facts)),
    Fault("CON-GPU-COUNT", "seven GPUs", change=_seven_gpus),
    Fault("CON-NIC-COUNT", "a NIC more", change=_nine_nics),
    Fault("CON-MEMORY", "a module is missing", {"proc/meminfo": _MEMINFO.format(
        available=1_900_000_000, swap=0, pages=0).replace("2113536000", "1981440000")}),
    Fault("CON-RANKS", "four ranks", change=part("process", local_size=4)),
    Fault("CON-SAME", "another script", change=whole(hashes={"train.py": "0" * 64}),
          everywhere=whole(hashes={"train.py": "f" * 64})),
    Fault("CON-CLOCK", "a minute late", change=part("host", clock_utc_seconds=CLOCK - 60)),
    Fault("CON-WORLD", "another world size", change=part("process", world_size=4)),
    Fault("CON-WORLD", "one rank twice", change=part("process", rank=0), rank=1),
    Fault("CON-NAMES", "a host name twice", change=part("host", name="n0")),
)  # fmt: skip
CONSISTENCY = tuple(replace(fault, nodes=3) for fault in CONSISTENCY)

FAULTS = (*HOST, *GPUS, *PCI, *NICS, *AFFINITY, *SOFTWARE, *CONSISTENCY)
