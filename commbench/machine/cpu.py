"""CPUs and memory: sockets, NUMA nodes, clock governors; memory, huge pages, /dev/shm."""

import os
import re
from collections import Counter

from commbench.machine.facts import CpuFacts, MemoryFacts, NumaNode
from commbench.machine.tree import Tree, fields_of, read_number

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def read_cpus(tree: Tree) -> CpuFacts:
    """The CPUs' facts."""
    names = [name for name in tree.names(_CPU) or () if re.fullmatch(r"cpu\d{1,5}", name)]
    places = [_place(tree, name) for name in names]
    known = [place for place in places if place is not None]
    cores = set(known)
    processor = fields_of(tree.text("proc/cpuinfo", limit=16 << 10))
    load = (tree.word("proc/loadavg").split() or [""])[0]
    if not known:
        tree.say_unseen("cpu.sockets", f"no topology below /{_CPU}")
    return CpuFacts(
        model=processor.get("model name", "")[:80],
        online=tree.cpus(f"{_CPU}/online"),
        sockets=len({socket for socket, _ in cores}) or None,
        cores=len(cores) or None,
        threads_per_core=len(known) // len(cores) if cores else None,
        numa_nodes=_numa_nodes(tree),
        governors=_governors(tree, names),
        load_average=float(load) if re.fullmatch(r"\d{1,9}\.\d{1,9}", load, re.ASCII) else None,
    )


def _place(tree: Tree, name: str) -> tuple[int, int] | None:
    """(socket, core) of a CPU; None if it is offline."""
    socket = tree.number(f"{_CPU}/{name}/topology/physical_package_id")
    core = tree.number(f"{_CPU}/{name}/topology/core_id")
    return None if socket is None or core is None else (socket, core)


def _governors(tree: Tree, names: list[str]) -> dict[str, int] | None:
    words = [tree.word(f"{_CPU}/{name}/cpufreq/scaling_governor") for name in names]
    counted = Counter(word for word in words if word)
    if not counted:
        tree.say_unseen("cpu.governors", "no cpufreq: the firmware or the hypervisor sets the clock")
        return None
    return dict(sorted(counted.items()))


def _numa_nodes(tree: Tree) -> tuple[NumaNode, ...] | None:
    names = [name for name in tree.names(_NODE) or () if re.fullmatch(r"node\d{1,4}", name)]
    if not names:
        tree.say_unseen("cpu.numa_nodes", f"/{_NODE} has no node: a kernel without NUMA, or hidden here")
        return None
    return tuple(_numa_node(tree, name) for name in names)


def _numa_node(tree: Tree, name: str) -> NumaNode:
    total = next(
        (line for line in (tree.text(f"{_NODE}/{name}/meminfo") or "").splitlines() if "MemTotal:" in line), ""
    )
    distances = [read_number(word, 0, 255) for word in tree.word(f"{_NODE}/{name}/distance").split()]
    return NumaNode(
        number=int(name.removeprefix("node")),
        cpus=tree.cpus(f"{_NODE}/{name}/cpulist"),
        memory_nbytes=_kibibytes(total.partition(":")[2]),
        distances=tuple(distance for distance in distances if distance is not None) if None not in distances else (),
    )


def _kibibytes(text: str) -> int | None:
    """Bytes in a text like `1024 kB` of /proc/meminfo."""
    number, _, unit = text.strip().partition(" ")
    value = read_number(number, 0, 1 << 50)
    return value * 1024 if value is not None and unit.strip() == "kB" else None


def read_memory(tree: Tree) -> MemoryFacts:
    """The memory's facts."""
    lines = fields_of(tree.text("proc/meminfo"))
    enabled = re.search(r"\[(\w{1,20})\]", tree.word("sys/kernel/mm/transparent_hugepage/enabled"))
    shm = _live_shm(tree) if tree.is_live else _captured_shm(tree)
    return MemoryFacts(
        total_nbytes=_kibibytes(lines.get("MemTotal", "")),
        available_nbytes=_kibibytes(lines.get("MemAvailable", "")),
        swap_total_nbytes=_kibibytes(lines.get("SwapTotal", "")),
        huge_pages_total=read_number(lines.get("HugePages_Total", "")),
        huge_pages_free=read_number(lines.get("HugePages_Free", "")),
        huge_page_nbytes=_kibibytes(lines.get("Hugepagesize", "")),
        transparent_huge_pages=enabled[1] if enabled else "",
        shm_total_nbytes=shm[0],
        shm_free_nbytes=shm[1],
    )


def _live_shm(tree: Tree) -> tuple[int | None, int | None]:
    try:
        status = os.statvfs("/dev/shm")
    except OSError as error:
        tree.say_unseen("memory.shm_total_nbytes", f"/dev/shm: {error.strerror}")
        return None, None
    return status.f_frsize * status.f_blocks, status.f_frsize * status.f_bavail


def _captured_shm(tree: Tree) -> tuple[int | None, None]:
    """The size that the mount of /dev/shm names; without one it is half of the memory, which is not said there."""
    reason = "a captured tree does not say how much of /dev/shm is free"
    tree.say_unseen("memory.shm_free_nbytes", reason)
    mounts = [line.split() for line in (tree.text("proc/mounts", limit=1 << 20) or "").splitlines()]
    options = next((row[3] for row in reversed(mounts) if len(row) > 3 and row[1] == "/dev/shm"), "")
    match = re.search(r"(?:^|,)size=(\d{1,15})([kmg]?)(?:,|$)", options, re.ASCII)
    if match is None:
        tree.say_unseen("memory.shm_total_nbytes", "proc/mounts of the captured tree names no size of /dev/shm")
        return None, None
    return int(match[1]) * _UNITS[match[2]], None
