"""Facts of this node: its name and identity, CPUs, memory limit and kernel."""

import os
import platform
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commbench.results.schema import Host


ROOT = Path("/")


def read_host() -> "Host":
    """The facts of this node that a run keeps."""
    from commbench.results.schema import Host  # which facts for checks do without

    return Host(
        name=socket.gethostname(),
        cpu=_cpu_model(ROOT),
        cpus=os.cpu_count() or 0,
        kernel=platform.release(),
    )


def node_identity() -> str:
    """The same text on all ranks of one operating system image, another on every other node.

    The host name tells apart nodes that share a kernel (network namespaces), the boot id nodes that share a name.
    """
    return f"{socket.gethostname()}/{_read(ROOT / 'proc/sys/kernel/random/boot_id')}"


def memory_limit_nbytes(root: Path = ROOT) -> int:
    """Bytes that this process's cgroup may still take; a huge number where there is no limit or none can be read."""
    unlimited = 1 << 62
    limit, used = (_read(root / "sys/fs/cgroup" / name) for name in ("memory.max", "memory.current"))
    if not all(text.isascii() and text.isdigit() for text in (limit, used)):
        return unlimited
    return max(0, int(limit) - int(used))


def _cpu_model(root: Path) -> str:
    for line in _read(root / "proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
