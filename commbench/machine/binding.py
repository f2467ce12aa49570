"""Binding of the calling thread: which CPUs it gets, decided purely, then set.

Measured with scripts/bench_repeatability: the calling thread on a core of its own, set after gloo has started its
threads, repeats best; a whole process on one core before that repeats worst, for gloo's threads then share the core.
"""

import os
from pathlib import Path
from typing import Literal

from commbench.machine.host import ROOT

Bind = Literal["auto", "none"]


def choose_cpus(
    allowed: set[int], online: set[int], local_rank: int, local_size: int, near: set[int]
) -> tuple[set[int], str]:
    """The CPUs for one rank's calling thread, and why in a few words.

    `allowed`: where the thread may run now; `online`: all CPUs that this node or container has; `near`: those near the
    rank's GPU, empty if unknown. A binding that the launcher made is kept.
    """
    if allowed < online:
        return allowed, "made by the launcher"
    if near & allowed:
        return near & allowed, "near the GPU"
    if local_size > len(allowed):
        return allowed, f"unbound: {local_size} ranks share {len(allowed)} CPUs"
    # Spread over the node: neighbours in number are often siblings of one core or share a cache.
    core = sorted(allowed)[local_rank * (len(allowed) // local_size)]
    return {core}, "a core of its own"


def bind_calling_thread(bind: Bind, local_rank: int, local_size: int, pci_address: str | None) -> str:
    """Bind the calling thread as `bind` says and describe the outcome, like `cpu 3 (a core of its own)`."""
    allowed = os.sched_getaffinity(0)
    if bind == "none":
        return f"cpus {_shown(allowed)} (--bind none)"
    near = local_cpus(pci_address) if pci_address else set()
    chosen, why = choose_cpus(allowed, online_cpus(), local_rank, local_size, near)
    os.sched_setaffinity(0, chosen)
    return f"cpus {_shown(chosen)} ({why})"


def online_cpus(root: Path = ROOT) -> set[int]:
    """The CPUs of this node, or of this container where its cgroup names fewer."""
    for path in ("sys/fs/cgroup/cpuset.cpus.effective", "sys/devices/system/cpu/online"):
        cpus = _parse_cpu_list(root / path)
        if cpus:
            return cpus
    return set(range(os.cpu_count() or 1))


def local_cpus(pci_address: str, root: Path = ROOT) -> set[int]:
    """The CPUs on the NUMA node of a PCI device; empty if the kernel does not say."""
    return _parse_cpu_list(root / "sys/bus/pci/devices" / pci_address / "local_cpulist")


def _parse_cpu_list(path: Path) -> set[int]:
    """The CPUs in a kernel list like `0-3,8`; empty if the file is missing or is no such list."""
    try:
        runs = [run.partition("-") for run in path.read_text().strip().split(",")]
        return {cpu for first, _, last in runs for cpu in range(int(first), int(last or first) + 1)}
    except (OSError, ValueError):
        return set()


def _shown(cpus: set[int]) -> str:
    ordered = sorted(cpus)
    contiguous = len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1
    return f"{ordered[0]}-{ordered[-1]}" if contiguous else ",".join(map(str, ordered))
