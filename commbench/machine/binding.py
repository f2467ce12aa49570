"""Binding: which CPUs a rank's threads get, decided purely, then set for all threads that exist.

Where ranks share a few cores, what decides the repeatability is gloo's network thread: it polls without sleeping while
another thread of its rank holds a connection's lock. On the same core as that thread, it burns a whole time slice
(3 to 4 ms) of it; on another core, it takes that core from the other rank. So every rank keeps to its own CPUs, and the
polling thread is put into the kernel's idle class, where it yields to whatever has work to do. Measured by
scripts/bench_binding; its numbers are in docs/measuring.md.
"""

import os
import time
from pathlib import Path
from typing import Literal

from commbench.machine.host import ROOT
from commbench.results.schema import OTHERS_BUSY

Bind = Literal["auto", "none"]

BUSY = 0.25  # from here on other programs take so much of the CPUs that threads had better move about
_WATCH_SECONDS = 0.2

POLLING_THREADS = ("gloo_tcp_loop",)


def choose_cpus(
    allowed: set[int], online: set[int], local_rank: int, local_size: int, near: set[int]
) -> tuple[set[int], str]:
    """The CPUs for one rank's threads, and why in a few words.

    `allowed`: where they may run now; `online`: all CPUs that this node or container has; `near`: those near the
    rank's GPU, empty if unknown. A binding that the launcher made is kept.
    """
    if allowed < online:
        return allowed, "made by the launcher"
    if near & allowed:
        return near & allowed, "near the GPU"
    ordered = sorted(allowed)
    share = len(ordered) // local_size
    if share == 0:
        return {ordered[local_rank % len(ordered)]}, f"{local_size} ranks share {len(ordered)} CPUs"
    return set(ordered[local_rank * share : (local_rank + 1) * share]), "its own"


def busy_fraction(root: Path = ROOT) -> float:
    """The fraction of this process's CPUs that others take, watched for a moment in which this program does nothing."""
    before = _cpu_ticks(root)
    time.sleep(_WATCH_SECONDS)
    after = _cpu_ticks(root)
    total = sum(after) - sum(before)
    return 1.0 - (after[1] - before[1]) / total if total > 0 else 0.0


def _cpu_ticks(root: Path) -> tuple[int, int]:
    """(busy, idle) ticks of the CPUs that this process may run on; zeros if the kernel does not say."""
    allowed = {f"cpu{cpu}" for cpu in os.sched_getaffinity(0)}
    busy = idle = 0
    for line in (root / "proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name in allowed:
            waiting = int(ticks[3]) + int(ticks[4])  # idle, and idle while a disk works
            idle += waiting
            busy += sum(map(int, ticks[:8])) - waiting
    return busy, idle


def bind_threads(bind: Bind, local_rank: int, local_size: int, pci_address: str | None, busy: float = 0.0) -> str:
    """Bind this process's threads as `bind` says, and describe the outcome, like `cpu 3 (its own)`.

    Call when the library has started its threads; later ones inherit from the thread that starts them. Nothing is bound
    where other programs take `BUSY` of the CPUs or more: a thread that must stay beside a busy one waits for it.
    """
    allowed = os.sched_getaffinity(0)
    if bind == "none":
        return f"cpu {_shown(allowed)} (--bind none)"
    if busy >= BUSY:
        return f"cpu {_shown(allowed)} ({OTHERS_BUSY} {busy:.0%} of the CPUs)"
    near = local_cpus(pci_address) if pci_address else set()
    chosen, why = choose_cpus(allowed, online_cpus(), local_rank, local_size, near)
    polling = 0
    for thread, name in _threads().items():
        os.sched_setaffinity(thread, chosen)
        if name in POLLING_THREADS:
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
            polling += 1
    return f"cpu {_shown(chosen)} ({why}{f'; {polling} polling threads yield' if polling else ''})"


def level_threads() -> None:
    """Let polling threads yield to this process no more: all its threads join them in the idle class.

    For what computes beside its calls, which would starve them. There is no way back that needs no privilege.
    """
    threads = _threads()
    if any(os.sched_getscheduler(thread) == os.SCHED_IDLE for thread in threads):
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def _threads(root: Path = ROOT) -> dict[int, str]:
    """The names of this process's threads by their id."""
    folder = root / "proc/self/task"
    return {int(thread.name): (thread / "comm").read_text().strip() for thread in folder.iterdir()}


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
        return {cpu for first, dash, last in runs for cpu in range(int(first), int(last if dash else first) + 1)}
    except (OSError, ValueError):
        return set()


def _shown(cpus: set[int]) -> str:
    ordered = sorted(cpus)
    contiguous = len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1
    return f"{ordered[0]}-{ordered[-1]}" if contiguous else ",".join(map(str, ordered))
