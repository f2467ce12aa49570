"""The kernel's settings, modules, and the lines of its log that tell of broken hardware."""

import os
import re
from collections.abc import Iterable

from commbench.machine.facts import KernelFacts
from commbench.machine.tree import Tree

_GROUPS = "sys/kernel/iommu_groups"
# Words of the command line that decide something here. The rest is not kept: it may hold addresses and identities.
_WORDS = re.compile(
    r"(?:iommu|intel_iommu|amd_iommu|pci|pcie_aspm|pcie_acs_override|numa|numa_balancing|isolcpus|nohz_full|rcu_nocbs|"
    r"transparent_hugepage|default_hugepagesz|hugepagesz|hugepages|processor\.max_cstate|intel_idle\.max_cstate|"
    r"intel_pstate|amd_pstate|cpufreq\.\w{1,40}|clocksource|tsc|mitigations|nosmt|maxcpus|nr_cpus|"
    r"nvidia\.\w{1,60}|init_on_alloc)(?:=[^\s]{0,100})?",
    re.ASCII,
)
_MODULES = re.compile(
    r"nvidia\w*|nv_peer_mem|gdrdrv|amdgpu|mlx[45]_\w+|ib_\w+|rdma_\w+|efa|bnxt_re|irdma|hfi1|ionic\w*|knem|xpmem|nouveau"
    r"|vfio_pci",
    re.ASCII,
)
_MESSAGES = re.compile(
    rb"NVRM: Xid|SXid|fallen off the bus|available PCIe bandwidth, limited by|lost carrier|[Ll]ink (?:is )?[Dd]own"
    rb"|[Oo]ut of memory: Kill|oom-kill|AER: .{0,40}(?:Uncorrect|Correct)|Machine [Cc]heck|Hardware Error"
    rb"|health compromised|NETDEV WATCHDOG"
)
_LOGS = ("var/log/dmesg", "var/log/kern.log", "var/log/messages", "var/log/syslog")
_MAX_LOG_NBYTES = 4 << 20
_MAX_MESSAGES, _MAX_CHARACTERS = 200, 240
_MAX_RECORDS = 100_000  # of /dev/kmsg; its buffer has some thousand
# `Aug  1 10:00:00 host kernel: ` and `2025-08-01T10:00:00.000+00:00 host kernel: `: the time is kept, the host not.
_SYSLOG = re.compile(
    r"(\w{3} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^ ]{0,20}) [^ ]{1,80} (?:kernel: )?", re.ASCII
)
_HARDWARE_ADDRESS = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5,19}[0-9a-fA-F]{2}\b")


def read_kernel(tree: Tree) -> KernelFacts:
    """The kernel's facts."""
    modules = tree.text("proc/modules", limit=1 << 20)
    if modules is None:
        tree.say_unseen("kernel.modules", "/proc/modules cannot be read")
    numa_balancing = tree.number("proc/sys/kernel/numa_balancing", highest=3)
    if numa_balancing is None:
        tree.say_unseen("kernel.numa_balancing", "/proc/sys/kernel/numa_balancing is not there: a kernel without it")
    return KernelFacts(
        numa_balancing=numa_balancing,
        command_line=" ".join(word for word in (tree.text("proc/cmdline") or "").split() if _WORDS.fullmatch(word)),
        iommu=_iommu(tree),
        clocksource=tree.word("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        modules=None if modules is None else _kept_modules(modules),
        port_range=_port_range(tree),
        messages=_messages(tree),
    )


def _kept_modules(text: str) -> tuple[str, ...]:
    names = {line.partition(" ")[0] for line in text.splitlines()}
    return tuple(sorted(name for name in names if _MODULES.fullmatch(name)))


def _iommu(tree: Tree) -> tuple[str, ...] | None:
    """The kinds of domains in use, `off` without any group; None where the kernel does not say."""
    groups = tree.names(_GROUPS)
    if groups is None:
        tree.say_unseen("kernel.iommu", f"/{_GROUPS} cannot be listed")
        return None
    kinds = {tree.word(f"{_GROUPS}/{group}/type") for group in groups} - {""}
    if groups and not kinds:
        tree.say_unseen("kernel.iommu", f"the groups below /{_GROUPS} have no type: an old kernel")
        return None
    return tuple(sorted(kinds)) or ("off",)


def _port_range(tree: Tree) -> tuple[int, int] | None:
    words = tree.word("proc/sys/net/ipv4/ip_local_port_range").split()
    ports = [int(word) for word in words if word.isascii() and word.isdecimal() and len(word) <= 5]
    return (ports[0], ports[1]) if len(ports) == 2 else None


def _messages(tree: Tree) -> tuple[str, ...] | None:
    """The lines that matter, the newest last: of the running kernel's buffer, else of the first log that is there."""
    reason = "no log of the kernel in the captured tree"
    if tree.is_live:
        lines = _running()
        if not isinstance(lines, str):
            return _kept(lines)
        reason = lines
    for path in _LOGS:
        data = tree.read_bytes(path, _MAX_LOG_NBYTES, tail=True)
        if data is not None:
            return _kept(data.splitlines())
    tree.say_unseen("kernel.messages", reason)
    return None


def _running(path: str = "/dev/kmsg") -> list[bytes] | str:
    """The records of the kernel's buffer as `[seconds since boot] text`, or why it cannot be read."""
    lines = []
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"{path}: {error.strerror}; root may read it, and /var/log has no log either"
    try:
        for _ in range(_MAX_RECORDS):
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                break
            except BrokenPipeError:  # overwritten while we read: the next one is there
                continue
            if not record:
                break
            head, _, text = record.partition(b"\n")[0].partition(b";")
            if _MESSAGES.search(text):
                lines.append(b"[%s] %s" % (_since_boot(head), text))
    except OSError as error:
        return f"{path}: {error.strerror}"
    finally:
        os.close(descriptor)
    return lines


def _since_boot(head: bytes) -> bytes:
    microseconds = [*head.split(b","), b"", b"", b""][2]
    return b"%.6f" % (int(microseconds) / 1e6) if microseconds.isdigit() else b"?"


def _kept(lines: Iterable[bytes]) -> tuple[str, ...]:
    matching = [line for line in lines if len(line) <= 4096 and _MESSAGES.search(line)][-_MAX_MESSAGES:]
    return tuple(_plain(line) for line in matching)


def _plain(line: bytes) -> str:
    """A line of a log without the host's name and hardware addresses, in characters that print."""
    text = _SYSLOG.sub(r"\1 ", line.decode(errors="replace").strip(), count=1)
    text = _HARDWARE_ADDRESS.sub("[address]", text)
    return "".join(character if character.isprintable() else "?" for character in text)[:_MAX_CHARACTERS]
