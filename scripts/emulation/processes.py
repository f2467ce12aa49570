"""Entering a node, and ending what runs on one."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from emulation.cluster import Cluster, Refused

_KILL_PATIENCE_SECONDS = 10.0
# Not `ip netns exec`, which remounts /sys and so takes the cgroups away from slurmd. The mounts are slaves: what is
# mounted or removed outside (another node's namespace, a test's disk) is so in here too.
_BECOME = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'


def entering(cluster: Cluster, host: str, command: Sequence[str]) -> list[str]:
    """The arguments that run a command on a host: every step execs the next, so the pid stays the same."""
    cpus = cluster.cpus(host)
    return [
        *(("taskset", "--cpu-list", cpus) if cpus else ()),
        *("nsenter", f"--net={cluster.namespace(host)}"),
        *("unshare", "--uts", "--mount", "--propagation", "slave"),
        *("sh", "-c", _BECOME, "sh", host, str(cluster.hosts_file)),
        *command,
    ]


def become(arguments: list[str], environment: dict[str, str]) -> None:
    """Turns this process into the command. Python ignores SIGPIPE and SIGXFSZ, and a command would inherit that."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(arguments[0], arguments, environment)


def call(arguments: Sequence[str], text: str | None = None) -> str:
    """Runs a command that has to work, and returns what it printed."""
    ended = subprocess.run(arguments, input=text or "", capture_output=True, text=True)
    if ended.returncode:
        said = " ".join(ended.stderr.split()) or f"exit code {ended.returncode}"
        raise Refused(f"`{' '.join(arguments)}` failed: {said}")
    return ended.stdout


def processes_in(namespaces: Iterable[Path]) -> dict[Path, list[int]]:
    """The processes whose network is one of these namespaces; this process is not counted."""
    found: dict[Path, list[int]] = {namespace: [] for namespace in namespaces if namespace.exists()}
    by_identity = {_identity(namespace): pids for namespace, pids in found.items()}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                by_identity.get(_identity(entry / "ns/net"), []).append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ended meanwhile; or it is above us, as a container's process 1, and not ours
    return found


def _identity(namespace: Path) -> tuple[int, int]:
    found = namespace.stat()
    return found.st_dev, found.st_ino


def kill_all_in(namespaces: Sequence[Path]) -> None:
    """Kills until nothing is left, as what is killed may have forked meanwhile."""
    give_up = time.monotonic() + _KILL_PATIENCE_SECONDS
    while pids := [pid for some in processes_in(namespaces).values() for pid in some]:
        if time.monotonic() > give_up:
            raise Refused(f"processes {pids} survive SIGKILL; look at /proc/{pids[0]}/stack, then try again")
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
