"""Limits of this process, and of its control group, of which there are two versions."""

import math
import resource

from commbench.machine.facts import LimitFacts
from commbench.machine.tree import Tree, read_number

_UNLIMITED = -1
_NO_LIMIT = 1 << 62  # what control groups of version 1 write where there is none, rounded to pages, is above this
# The root of version 2: a group there without a file of a limit has none.
_VERSION_2 = "sys/fs/cgroup/cgroup.controllers"
_NO_GROUP = "no control group below /sys/fs/cgroup says it"
# The field, getrlimit's name, the line in proc/self/limits.
_LIMITS = (
    ("memlock_nbytes", resource.RLIMIT_MEMLOCK, "Max locked memory"),
    ("nofile", resource.RLIMIT_NOFILE, "Max open files"),
    ("nproc", resource.RLIMIT_NPROC, "Max processes"),
    ("stack_nbytes", resource.RLIMIT_STACK, "Max stack size"),
)


def read_limits(tree: Tree) -> LimitFacts:
    """The limits; of a captured tree those of the process that captured it."""
    limits = _live() if tree.is_live else _captured(tree)
    return LimitFacts(**limits, cgroup_cpus=_cgroup_cpus(tree), cgroup_memory_nbytes=_cgroup_memory(tree))


def _live() -> dict[str, int | None]:
    soft = {name: resource.getrlimit(number)[0] for name, number, _ in _LIMITS}
    return {name: _UNLIMITED if value == resource.RLIM_INFINITY else value for name, value in soft.items()}


def _captured(tree: Tree) -> dict[str, int | None]:
    text = tree.text("proc/self/limits")
    if text is None:
        tree.say_unseen("limits", "the captured tree has no proc/self/limits")
    found: dict[str, int | None] = {}
    for name, _, label in _LIMITS:
        line = next((line for line in (text or "").splitlines() if line.startswith(label)), "")
        soft = (line.removeprefix(label).split() or [""])[0]
        found[name] = _UNLIMITED if soft == "unlimited" else read_number(soft)
    return found


def _groups(tree: Tree, controller: str) -> list[str]:
    """The folders of this process's control group and of those above it, of version 1 for `controller`, or of 2."""
    lines = [line.split(":", 2) for line in (tree.text("proc/self/cgroup") or "0::/").splitlines()[:64]]
    folders = []
    for row in lines:
        if len(row) != 3 or (row[1] and controller not in row[1].split(",")):
            continue
        base = f"sys/fs/cgroup/{controller}" if row[1] else "sys/fs/cgroup"
        parts = [part for part in row[2].split("/") if part not in ("", "..")][:32]
        folders += [f"{base}/{'/'.join(parts[:depth])}".rstrip("/") for depth in range(len(parts), -1, -1)]
    return folders


def _cgroup_cpus(tree: Tree) -> float | None:
    """The least quota on the way up; None where no group says any."""
    quotas = []
    for folder in _groups(tree, "cpu"):
        if words := tree.word(f"{folder}/cpu.max").split():
            quota, period = words[0], words[1] if len(words) > 1 else ""
        else:
            quota, period = (tree.word(f"{folder}/cpu.cfs_{part}_us") for part in ("quota", "period"))
        if quota in ("max", "-1"):
            quotas.append(math.inf)
        elif (used := read_number(quota, 1)) and (whole := read_number(period, 1)):
            quotas.append(used / whole)
    if tree.exists(_VERSION_2):
        quotas.append(math.inf)
    if not quotas:
        tree.say_unseen("limits.cgroup_cpus", _NO_GROUP)
        return None
    least = min(quotas)
    return float(_UNLIMITED) if math.isinf(least) else least


def _cgroup_memory(tree: Tree) -> int | None:
    limits = []
    for folder in _groups(tree, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = tree.word(f"{folder}/{name}")
            value = _NO_LIMIT if text == "max" else read_number(text)
            if value is not None:
                limits.append(min(value, _NO_LIMIT))
    if tree.exists(_VERSION_2):
        limits.append(_NO_LIMIT)
    if not limits:
        tree.say_unseen("limits.cgroup_memory_nbytes", _NO_GROUP)
        return None
    least = min(limits)
    return _UNLIMITED if least == _NO_LIMIT else least
