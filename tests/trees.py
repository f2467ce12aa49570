"""A machine on paper: the files of a healthy node like a DGX H100, written below a folder, and NVML's side of it.

Two sockets of eight cores; eight GPUs, each with a NIC under its own PCIe switch, two switches a host bridge;
NVSwitches; an Ethernet card for the host. A fault is a few files that are edited:

    facts = dgx_facts({f"{GPU[3]}/current_link_width": "8"})                    a narrow GPU
    facts = dgx_facts({f"{PORT[2]}/state": "1: DOWN"})                          a port that is down
    facts = dgx_facts({"proc/self/limits": None})                               a file that is not there
    facts = dgx_facts({f"{ROCE_PORT[0]}/gid_attrs/types/3": "IB/RoCE v1"}, roce=True)
    facts = dgx_facts({f"{SWITCH[0]}/config": acs_config(0x1D)})                ACS on
    facts = dgx_facts(nvml=FakeNvml({5: {"ecc_uncorrected": 2}}))               what only NVML says
"""

import atexit
import os
import struct
from collections.abc import Callable, Mapping
from ctypes import Structure, c_uint
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from commbench.machine.facts import Facts
from commbench.machine.read_facts import read_facts


@dataclass(frozen=True)
class Link:
    """A symbolic link to a place in the tree, from its root on."""

    target: str


Content = str | bytes | Link | None
Files = dict[str, Content]

GPUS = range(8)
CORES = 16
_ACS_HEAD = 0x000D | 1 << 16


def _host(gpu: int) -> int:
    return 0x10 + 0x20 * (gpu // 2)


def _bus(gpu: int) -> int:
    """The bus of the root port's secondary side; both switches of a host bridge have eight buses each."""
    return _host(gpu) + 1 + 8 * (gpu % 2)


def _port_address(gpu: int) -> str:
    return f"0000:{_host(gpu):02x}:{1 + gpu % 2:02x}.0"


# Per GPU: addresses, and folders in /sys/devices, of root port, switch (its port upwards), GPU, NIC, the NIC's port.
GPU_ADDRESS = [f"0000:{_bus(gpu) + 2:02x}:00.0" for gpu in GPUS]
NIC_ADDRESS = [f"0000:{_bus(gpu) + 3:02x}:00.0" for gpu in GPUS]
SWITCH_ADDRESS = [f"0000:{_bus(gpu):02x}:00.0" for gpu in GPUS]
ROOT_PORT = [f"sys/devices/pci0000:{_host(gpu):02x}/{_port_address(gpu)}" for gpu in GPUS]
SWITCH = [f"{ROOT_PORT[gpu]}/{SWITCH_ADDRESS[gpu]}" for gpu in GPUS]
_LOWER = [[f"{SWITCH[gpu]}/0000:{_bus(gpu) + 1:02x}:{number:02x}.0" for number in (0, 1)] for gpu in GPUS]
GPU = [f"{_LOWER[gpu][0]}/{GPU_ADDRESS[gpu]}" for gpu in GPUS]
NIC = [f"{_LOWER[gpu][1]}/{NIC_ADDRESS[gpu]}" for gpu in GPUS]
RDMA = [f"{NIC[gpu]}/infiniband/mlx5_{gpu}" for gpu in GPUS]
PORT = [f"{device}/ports/1" for device in RDMA]
INTERFACE = [f"ibs{gpu}" for gpu in GPUS]
NET = [f"{NIC[gpu]}/net/{name}" for gpu, name in enumerate(INTERFACE)]
ROCE_PORT, ROCE_NET = PORT, NET  # the same places; they say that the tree must be one with `roce=True`
ETH0 = "sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0/net/eth0"
NODE = ["sys/devices/system/node/node0", "sys/devices/system/node/node1"]

ADDRESSES = {"eth0": ["10.0.0.5/24"], "lo": ["127.0.0.1/8"], **{name: [] for name in INTERFACE}}
ROCE_ADDRESSES = ADDRESSES | {name: [f"10.1.{gpu}.5/24"] for gpu, name in enumerate(INTERFACE)}

LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max processes             1030000              1030000              processes
Max open files            1048576              1048576              files
Max locked memory         {memlock:<20} unlimited            bytes
"""


def dgx_facts(
    edits: Mapping[str, Content] | None = None, *, roce: bool = False, nvml: "FakeNvml | None" = None, **more: Any
) -> Facts:
    """The facts of the healthy tree with `edits`; `more` goes to `read_facts`.

    The tree is written once; what is edited is put back.
    """
    root, healthy = _written(roce)
    more.setdefault("addresses", ROCE_ADDRESSES if roce else ADDRESSES)
    edited = dict(edits or {})
    folders = write_tree(root, edited)
    try:
        return read_facts(root, nvml=nvml or FakeNvml(), **more)
    finally:
        write_tree(root, {path: healthy.get(path) for path in edited})
        for folder in reversed(folders):
            os.rmdir(folder)


@cache
def _written(roce: bool) -> tuple[Path, Files]:
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    files = dgx_files(roce)
    write_tree(Path(folder.name), files)
    return Path(folder.name), files


def write_tree(root: Path, files: Mapping[str, Content]) -> list[str]:
    """Write `files` below `root`; None is a file that is not there. The folders that had to be made."""
    made: list[str] = []
    for path, content in files.items():
        full = f"{root}/{path}"
        if os.path.lexists(full):
            os.remove(full)
        if content is None:
            continue
        folder = os.path.dirname(full)
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            os.mkdir(folder)
            made.append(folder)
        if isinstance(content, Link):
            os.symlink(os.path.relpath(f"{root}/{content.target}", os.path.dirname(full)), full)
            continue
        with open(full, "wb") as file:
            file.write(content if isinstance(content, bytes) else f"{content}\n".encode())
    return made


def acs_config(control: int) -> bytes:
    """The config space of a bridge with Access Control Services; `control`: its bits, of which firmware leaves 0x1D."""
    config = bytearray(4096)
    config[:4] = b"\xb5\x10\x00\x87"
    struct.pack_into("<I", config, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)  # error reporting comes before
    struct.pack_into("<IHH", config, 0x148, _ACS_HEAD, 0x5F, control)
    return bytes(config)


def cpu_of(socket: int) -> str:
    """The CPUs of a socket, as the kernel lists them."""
    return f"{socket * CORES // 2}-{(socket + 1) * CORES // 2 - 1}"


def dgx_files(roce: bool = False) -> Files:
    """All files of the healthy machine. `roce`: its fabric is Ethernet."""
    files = _system() | _memory_and_cpus() | _host_nic()
    for gpu in GPUS:
        files |= _switch(gpu) | _gpu(gpu) | _nic(gpu, roce)
    return files


def _system() -> Files:
    return {
        "etc/hostname": "dgx-01",
        "etc/hosts": "127.0.0.1 localhost\n10.0.0.5 dgx-01",
        "etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 22.04.5 LTS"',
        "proc/sys/kernel/hostname": "dgx-01",
        "proc/sys/kernel/osrelease": "5.15.0-1055-nvidia",
        "proc/sys/kernel/random/boot_id": "6f0d7a42-0b7e-4c6f-9a3d-2f5b6f1f3a10",
        "proc/sys/kernel/numa_balancing": "0",
        "proc/sys/net/ipv4/ip_local_port_range": "32768\t60999",
        "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=0d1b4a-11 ro iommu=pt",
        "proc/uptime": "864000.00 12000000.00",
        "proc/loadavg": "0.20 0.15 0.10 1/2345 67890",
        "proc/modules": "".join(
            f"{name} 16384 0 - Live 0x0\n"
            for name in ("nvidia", "nvidia_uvm", "nvidia_peermem", "gdrdrv", "mlx5_core", "mlx5_ib", "ib_core",
                         "ib_uverbs", "ib_umad", "rdma_cm", "ext4")
        ),
        "proc/mounts": "tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=1073741824k 0 0",
        "proc/1/cgroup": "0::/init.scope",
        "proc/self/cgroup": "0::/user.slice/session-1.scope",
        "proc/self/limits": LIMITS.format(memlock="unlimited"),
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.127.08  Tue Oct  1 2024",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids",
        "sys/fs/cgroup/user.slice/session-1.scope/cpu.max": "max 100000",
        "sys/fs/cgroup/user.slice/session-1.scope/memory.max": "max",
        "sys/fs/cgroup/system.slice/nvidia-fabricmanager.service/cgroup.procs": "1234",
        "sys/class/dmi/id/sys_vendor": "NVIDIA",
        "sys/class/dmi/id/product_name": "DGXH100",
        "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
        "sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm",
        "sys/kernel/iommu_groups/0/type": "identity",
        "sys/kernel/iommu_groups/1/type": "identity",
        "sys/module/mlx5_core/version": "24.07-0.6.1",
        "usr/bin/ofed_info": "#!/bin/bash\necho MLNX_OFED_LINUX-24.07-0.6.1.0:",
        "usr/lib/x86_64-linux-gnu/libnccl.so.2": nccl_library("2.21.5+cuda12.4"),
        "usr/lib/x86_64-linux-gnu/pkgconfig/ucx.pc": "Name: ucx\nVersion: 1.17.0",
        "usr/local/cuda/version.json": '{"cuda" : {"name" : "CUDA SDK", "version" : "12.4.1"}}',
        "var/log/dmesg": "[    0.000000] Linux version 5.15.0-1055-nvidia",
        **{f"dev/infiniband/uverbs{number}": "" for number in GPUS},
    }  # fmt: skip


def nccl_library(version: str) -> bytes:
    """An ELF file with nothing but the text by which a libnccl is known."""
    names = b"\0.shstrtab\0.rodata\0"
    text = b"\0retrying\0NCCL version %s %%s\0" % version.encode()
    table = 64 + len(names) + len(text)
    head = (
        b"\x7fELF\x02\x01\x01".ljust(40, b"\0") + struct.pack("<Q", table) + bytes(10) + struct.pack("<HHH", 64, 3, 1)
    )
    rows = [(0, 0, 0), (1, 64, len(names)), (11, 64 + len(names), len(text))]
    sections = b"".join(struct.pack("<I20xQQ24x", *row) for row in rows)
    return head + names + text + sections


def _memory_and_cpus() -> Files:
    files: Files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\nflags\t\t: fpu vme sse2\n",
        "proc/meminfo": "MemTotal:       2113536000 kB\nMemAvailable:   2080000000 kB\nSwapTotal:             0 kB\n"
        "HugePages_Total:       0\nHugePages_Free:        0\nHugepagesize:       2048 kB",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/devices/system/cpu/online": f"0-{CORES - 1}",
    }
    for socket, node in enumerate(NODE):
        files |= {
            f"{node}/cpulist": cpu_of(socket),
            f"{node}/distance": "10 21" if socket == 0 else "21 10",
            f"{node}/meminfo": f"Node {socket} MemTotal:       1056768000 kB\nNode {socket} MemFree: 1000000000 kB",
        }
    for cpu in range(CORES):
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        files |= {
            f"{folder}/topology/physical_package_id": str(cpu * 2 // CORES),
            f"{folder}/topology/core_id": str(cpu % (CORES // 2)),
            f"{folder}/cpufreq/scaling_governor": "performance",
        }
    return files


def _pci(folder: str, kind: str, vendor: str, device: str, socket: int, generation: str = "32.0 GT/s PCIe") -> Files:
    address = folder.rpartition("/")[2]
    return {
        f"sys/bus/pci/devices/{address}": Link(folder),
        f"{folder}/class": f"0x{kind}00",
        f"{folder}/vendor": f"0x{vendor}",
        f"{folder}/device": f"0x{device}",
        f"{folder}/revision": "0xa1",
        f"{folder}/numa_node": str(socket),
        f"{folder}/local_cpulist": cpu_of(socket),
        f"{folder}/current_link_speed": generation,
        f"{folder}/max_link_speed": generation,
        f"{folder}/current_link_width": "16",
        f"{folder}/max_link_width": "16",
    }


def _switch(gpu: int) -> Files:
    files: Files = {}
    for folder, vendor in (
        (ROOT_PORT[gpu], "8086"),
        (SWITCH[gpu], "1000"),
        *((lower, "1000") for lower in _LOWER[gpu]),
    ):
        files |= _pci(folder, "0604", vendor, "c030", gpu // 4) | {f"{folder}/config": acs_config(0)}
    return files


def _gpu(gpu: int) -> Files:
    return _pci(GPU[gpu], "0302", "10de", "2330", gpu // 4) | {
        f"{GPU[gpu]}/driver": Link("sys/bus/pci/drivers/nvidia"),
        f"proc/driver/nvidia/gpus/{GPU_ADDRESS[gpu]}/information": (
            f"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-00000000-0000-0000-0000-00000000000{gpu}\n"
            "Video BIOS: \t 96.00.99.00.01\nGPU Firmware: \t 550.127.08"
        ),
    }


def _nic(gpu: int, roce: bool) -> Files:
    port, name = PORT[gpu], INTERFACE[gpu]
    return (
        _pci(NIC[gpu], "0200" if roce else "0207", "15b3", "1021", gpu // 4)
        | _net(NET[gpu], 1 if roce else 32, "4200" if roce else "4092", "400000")
        | (_roce_gids(port, gpu, name) if roce else _infiniband_gids(port, gpu))
        | {
            f"{NIC[gpu]}/driver": Link("sys/bus/pci/drivers/mlx5_core"),
            f"sys/class/infiniband/mlx5_{gpu}": Link(RDMA[gpu]),
            f"{RDMA[gpu]}/device": Link(NIC[gpu]),
            f"{RDMA[gpu]}/fw_ver": "28.39.3004",
            f"{RDMA[gpu]}/board_id": "MT_0000000838",
            f"{port}/state": "4: ACTIVE",
            f"{port}/phys_state": "5: LinkUp",
            f"{port}/rate": "400 Gb/sec (4X NDR)",
            f"{port}/link_layer": "Ethernet" if roce else "InfiniBand",
            **{f"{port}/counters/{counter}": "0" for counter in ("symbol_error", "link_downed", "port_rcv_errors",
                                                                 "port_xmit_discards", "port_xmit_wait")},
            f"{port}/hw_counters/out_of_sequence": "0",
        }
    )  # fmt: skip


def _infiniband_gids(port: str, gpu: int) -> Files:
    return {
        f"{port}/gids/0": f"fe80:0000:0000:0000:a088:c203:0000:000{gpu}",
        f"{port}/gid_attrs/types/0": "IB/RoCE v1",
        f"{port}/pkeys/0": "0xffff",
        f"{port}/pkeys/1": "0x0000",
    }


def _roce_gids(port: str, gpu: int, name: str) -> Files:
    link_local = f"fe80:0000:0000:0000:a288:c2ff:fe00:000{gpu}"
    mapped = f"0000:0000:0000:0000:0000:ffff:0a01:0{gpu}05"
    files: Files = {f"{port}/pkeys/0": "0xffff"}
    for index, (gid, version) in enumerate(
        ((link_local, "IB/RoCE v1"), (link_local, "RoCE v2"), (mapped, "IB/RoCE v1"), (mapped, "RoCE v2"))
    ):
        files |= {
            f"{port}/gids/{index}": gid,
            f"{port}/gid_attrs/types/{index}": version,
            f"{port}/gid_attrs/ndevs/{index}": name,
        }
    return files | {f"{port}/gids/4": "0000:0000:0000:0000:0000:0000:0000:0000"}


def _net(folder: str, kind: int, mtu: str, megabits: str) -> Files:
    return {
        f"sys/class/net/{folder.rpartition('/')[2]}": Link(folder),
        f"{folder}/device": Link(folder.rpartition("/net/")[0]),
        f"{folder}/operstate": "up",
        f"{folder}/flags": "0x1003",
        f"{folder}/mtu": mtu,
        f"{folder}/speed": megabits,
        f"{folder}/type": str(kind),
        f"{folder}/carrier_changes": "2",
    }


def _host_nic() -> Files:
    card = ETH0.rpartition("/net/")[0]
    bridge = card.rpartition("/")[0]
    loopback = "sys/devices/virtual/net/lo"
    return (
        _pci(bridge, "0604", "8086", "352a", 0)
        | {f"{bridge}/config": acs_config(0)}
        | _pci(card, "0200", "8086", "1563", 0, "16.0 GT/s PCIe")
        | _net(ETH0, 1, "1500", "10000")
        | {
            "sys/class/net/lo": Link(loopback),
            f"{loopback}/operstate": "unknown",
            f"{loopback}/flags": "0x9",
            f"{loopback}/mtu": "65536",
            f"{loopback}/type": "772",
        }
    )


# What a healthy GPU answers to NVML. `refused`: functions that this GPU does not support; `lost`: it does not open.
HEALTHY: dict[str, Any] = {
    "name": "NVIDIA H100 80GB HBM3",
    "memory_nbytes": 80 << 30,
    "memory_used_nbytes": 0,
    "vbios": "96.00.99.00.01",
    "gsp": "550.127.08",
    "persistence": 1,
    "mig": 0,
    "compute_mode": 0,
    "temperature": 30,
    "sm_clock": 1980,
    "sm_clock_max": 1980,
    "throttled": 0x1,
    "ecc": 1,
    "ecc_uncorrected": 0,
    "ecc_corrected": 0,
    "remapped": (0, 0, 0, 0),  # corrected, uncorrected, pending, failed
    "retired_pending": 0,
    "nvlinks": (1,) * 18,
    "nvlink_version": 6,  # NVLink 4 in NVML's count
    "nvlink_errors": 0,
    "nvlink_megabytes": 26562,
    "peers": "switch",  # or, for each link, the number of the GPU at its other end
    "fabric": (3, 0),  # state and status
    "pids": (),
    "recovery": 0,
    "lost": False,
    "refused": (),
}


class NvmlError(Exception):
    """NVML's refusal."""


class FabricInfo(Structure):
    """NVML's record of a GPU's registration with the fabric."""

    _fields_ = (("state", c_uint), ("status", c_uint))


class FakeNvml:
    """Stands for the module pynvml. `edits`: what a GPU, by its number, answers otherwise than a healthy one."""

    NVMLError = NvmlError
    NVML_NVLINK_MAX_LINKS = 36
    NVML_FI_DEV_NVLINK_GET_SPEED = 164
    NVML_FI_DEV_GET_GPU_RECOVERY_ACTION = 230
    c_nvmlGpuFabricInfo_v2_t = FabricInfo

    def __init__(
        self, edits: Mapping[int, Mapping[str, Any]] | None = None, *, count: int = 8, driver: str = "550.127.08"
    ) -> None:
        self.gpus = [{**HEALTHY, **(edits or {}).get(number, {})} for number in range(count)]
        self.driver = driver
        self.is_open = False

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in _ANSWERS:
            raise AttributeError(name)

        def call(number: int, *arguments: Any) -> Any:
            if not self.is_open:
                raise NvmlError("Uninitialized")
            gpu = self.gpus[number]
            if name in gpu["refused"]:
                raise NvmlError("Not Supported")
            return _ANSWERS[name](gpu, number, *arguments)

        return call

    def nvmlInit(self) -> None:
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def nvmlDeviceGetHandleByPciBusId(self, address: bytes) -> int:
        return self.nvmlDeviceGetHandleByIndex(GPU_ADDRESS.index(address.decode()))

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        if self.gpus[number]["lost"]:
            raise NvmlError("GPU is lost")
        return number


def _bus_of(number: int) -> Any:
    return SimpleNamespace(busId=f"0000{GPU_ADDRESS[number].upper()}")


def _link_state(gpu: Mapping[str, Any], number: int, link: int) -> int:
    if link >= len(gpu["nvlinks"]):
        raise NvmlError("Invalid Argument" if gpu["nvlinks"] else "Not Supported")
    return int(gpu["nvlinks"][link])


def _link_peer(gpu: Mapping[str, Any], number: int, link: int) -> Any:
    peers = gpu["peers"]
    return SimpleNamespace(busId=f"00000000:{0x90 + link % 4:02X}:00.0") if peers == "switch" else _bus_of(peers[link])


def _field_values(gpu: Mapping[str, Any], number: int, fields: list[Any]) -> list[Any]:
    values = [gpu["nvlink_megabytes"] if isinstance(field, tuple) else gpu["recovery"] for field in fields]
    return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=value)) for value in values]


def _fabric_info(gpu: Mapping[str, Any], number: int, reference: Any) -> int:
    reference._obj.state, reference._obj.status = gpu["fabric"]
    return 0


_ANSWERS: dict[str, Callable[..., Any]] = {
    "nvmlDeviceGetPciInfo": lambda gpu, number: _bus_of(number),
    "nvmlDeviceGetName": lambda gpu, number: gpu["name"],
    "nvmlDeviceGetUUID": lambda gpu, number: f"GPU-00000000-0000-0000-0000-00000000000{number}",
    "nvmlDeviceGetMemoryInfo": lambda gpu, number: SimpleNamespace(
        total=gpu["memory_nbytes"], used=gpu["memory_used_nbytes"]
    ),
    "nvmlDeviceGetVbiosVersion": lambda gpu, number: gpu["vbios"],
    "nvmlDeviceGetGspFirmwareVersion": lambda gpu, number: gpu["gsp"].encode(),
    "nvmlDeviceGetPersistenceMode": lambda gpu, number: gpu["persistence"],
    "nvmlDeviceGetMigMode": lambda gpu, number: [gpu["mig"], gpu["mig"]],
    "nvmlDeviceGetComputeMode": lambda gpu, number: gpu["compute_mode"],
    "nvmlDeviceGetTemperature": lambda gpu, number, sensor: gpu["temperature"],
    "nvmlDeviceGetClockInfo": lambda gpu, number, clock: gpu["sm_clock"],
    "nvmlDeviceGetMaxClockInfo": lambda gpu, number, clock: gpu["sm_clock_max"],
    "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu, number: gpu["throttled"],
    "nvmlDeviceGetEccMode": lambda gpu, number: [gpu["ecc"], gpu["ecc"]],
    "nvmlDeviceGetTotalEccErrors": lambda gpu, number, kind, counter: (
        gpu["ecc_uncorrected"] if kind == 1 else gpu["ecc_corrected"]
    ),
    "nvmlDeviceGetRemappedRows": lambda gpu, number: gpu["remapped"],
    "nvmlDeviceGetRetiredPagesPendingStatus": lambda gpu, number: gpu["retired_pending"],
    "nvmlDeviceGetComputeRunningProcesses": lambda gpu, number: [SimpleNamespace(pid=pid) for pid in gpu["pids"]],
    "nvmlDeviceGetNvLinkState": _link_state,
    "nvmlDeviceGetNvLinkVersion": lambda gpu, number, link: gpu["nvlink_version"],
    "nvmlDeviceGetNvLinkRemotePciInfo": _link_peer,
    "nvmlDeviceGetNvLinkRemoteDeviceType": lambda gpu, number, link: 2 if gpu["peers"] == "switch" else 0,
    "nvmlDeviceGetNvLinkErrorCounter": lambda gpu, number, link, kind: gpu["nvlink_errors"] if kind == 0 else 0,
    "nvmlDeviceGetFieldValues": _field_values,
    "nvmlDeviceGetGpuFabricInfoV": _fabric_info,
}
