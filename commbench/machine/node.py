"""Which node this is: its name, hardware and kernel, and whether it is a virtual machine or a container."""

import hashlib
import os
import socket
import threading
import time
from collections.abc import Mapping

from commbench.machine.facts import HostFacts
from commbench.machine.tree import Tree, fields_of

_RESOLVE_SECONDS = 0.25
_DISKS = ("/", "/tmp", "/var")
# Words in the firmware's vendor and product by which hypervisors name themselves.
_HYPERVISORS = {
    "qemu": "kvm",
    "kvm": "kvm",
    "openstack": "kvm",
    "google compute engine": "kvm",
    "amazon ec2": "kvm",
    "firecracker": "firecracker",
    "microsoft corporation": "hyperv",
    "vmware": "vmware",
    "virtualbox": "virtualbox",
    "xen": "xen",
    "parallels": "parallels",
    "bochs": "bochs",
}
_CLOCKS = {"kvm-clock": "kvm", "hyperv_clocksource": "hyperv", "xen": "xen"}
# Files that container runtimes leave, and words of theirs in the control group of process 1.
_CONTAINER_FILES = {".dockerenv": "docker", "run/.containerenv": "podman", ".singularity.d": "apptainer"}
_CONTAINER_GROUPS = {"kubepods": "kubernetes", "docker": "docker", "libpod": "podman", "containerd": "containerd",
                     "lxc": "lxc"}  # fmt: skip
_CONTAINER_VARIABLES = {"KUBERNETES_SERVICE_HOST": "kubernetes", "APPTAINER_CONTAINER": "apptainer",
                        "SINGULARITY_CONTAINER": "apptainer"}  # fmt: skip


def read_node(tree: Tree, environment: Mapping[str, str]) -> HostFacts:
    """The node's facts."""
    name = socket.gethostname() if tree.is_live else _captured_name(tree)
    resolves_to = _Resolver(name) if tree.is_live else None
    dmi = [tree.word(f"sys/class/dmi/id/{part}") for part in ("sys_vendor", "product_name")]
    release = fields_of(tree.text("etc/os-release"), "=")
    boot_id = tree.word("proc/sys/kernel/random/boot_id")
    uptime = (tree.word("proc/uptime").split() or [""])[0]
    return HostFacts(
        name=name,
        product=" ".join(word for word in dmi if word),
        os=release.get("PRETTY_NAME", "").strip('"')[:80],
        kernel=tree.word("proc/sys/kernel/osrelease"),
        virtual=_hypervisor(tree, " ".join(dmi).lower()),
        container=_container(tree, environment),
        boot_id_hash=hashed(boot_id),
        uptime_seconds=float(uptime) if uptime.replace(".", "", 1).isdecimal() else None,
        clock_utc_seconds=time.time() if tree.is_live else None,
        disks=_disks(tree),
        resolves_to=resolves_to.wait(tree) if resolves_to else _from_hosts(tree, name),
    )


def _disks(tree: Tree) -> dict[str, float] | None:
    """The fraction in use of each file system, as df reckons it: of what users may write."""
    if not tree.is_live:
        tree.say_unseen("host.disks", "a captured tree does not say how full its disks were")
        return None
    found: dict[str, float] = {}
    for path in _DISKS:
        try:
            status = os.statvfs(path)
        except OSError:
            continue
        used = status.f_blocks - status.f_bfree
        if status.f_blocks:
            found[path] = used / max(1, used + status.f_bavail)
    return found


def hashed(identity: str) -> str:
    """Twelve hexadecimal digits that tell identities apart and do not give them away; empty for an empty one."""
    return hashlib.sha256(identity.encode()).hexdigest()[:12] if identity else ""


def _captured_name(tree: Tree) -> str:
    return tree.word("proc/sys/kernel/hostname") or tree.word("etc/hostname")


def _hypervisor(tree: Tree, firmware: str) -> str:
    """The hypervisor, `none` on bare metal, empty where neither can be told.

    On x86 the processor has a flag for it. A cloud's bare-metal machines lack the flag, and their firmware has the
    name of the cloud as that of its virtual machines.
    """
    processor = tree.text("proc/cpuinfo", limit=16 << 10) or ""
    flags = fields_of(processor).get("flags")
    if flags is not None and "hypervisor" not in flags.split():
        return "none"
    named = next((name for word, name in _HYPERVISORS.items() if word in firmware), "")
    clocks = tree.word("sys/devices/system/clocksource/clocksource0/available_clocksource").split()
    clock = next((_CLOCKS[word.partition("_tsc")[0]] for word in clocks if word.partition("_tsc")[0] in _CLOCKS), "")
    if flags is None:  # not an x86
        return named or clock or ("none" if firmware.strip() else "")
    return named or tree.word("sys/hypervisor/type") or clock or "unnamed"


def _container(tree: Tree, environment: Mapping[str, str]) -> str:
    """The container's runtime, `none` outside, empty where it cannot be told."""
    for name, runtime in _CONTAINER_VARIABLES.items():
        if name in environment:
            return runtime
    groups = tree.text("proc/1/cgroup") or ""
    for word, runtime in _CONTAINER_GROUPS.items():
        if word in groups:
            return runtime
    for path, runtime in _CONTAINER_FILES.items():
        if tree.exists(path):
            return runtime
    return "none" if groups else ""


class _Resolver:
    """Asks for the addresses of a name on a thread: a resolver whose server is away takes seconds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: tuple[str, ...] | str = f"the resolver took longer than {_RESOLVE_SECONDS:g} s"
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            rows = socket.getaddrinfo(self._name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            self._found = f"{self._name} does not resolve: {getattr(error, 'strerror', None) or error}"
        else:
            self._found = tuple(dict.fromkeys(str(row[4][0]) for row in rows))

    def wait(self, tree: Tree) -> tuple[str, ...] | None:
        self._thread.join(_RESOLVE_SECONDS)
        found = self._found
        if isinstance(found, str):
            tree.say_unseen("host.resolves_to", found)
            return None
        return found


def _from_hosts(tree: Tree, name: str) -> tuple[str, ...] | None:
    """The addresses of a name in the captured etc/hosts."""
    text = tree.text("etc/hosts")
    if text is None:
        tree.say_unseen("host.resolves_to", "a captured tree without etc/hosts does not say how names resolve")
        return None
    rows = [line.partition("#")[0].split() for line in text.splitlines()]
    found = tuple(row[0] for row in rows if row and name in row[1:])
    if not found:
        tree.say_unseen("host.resolves_to", f"{name or 'the host name'} is not in the captured etc/hosts")
    return found or None
