"""Which nodes share a rack or a switch: from a file of the user, from Slurm's topology, or from the names of hosts."""

import re
from collections.abc import Sequence

import hostlist

from commbench.errors import UsageError

Racks = dict[str, tuple[str, ...]]

_LONGEST_LINE = 1 << 20
_SWITCH = re.compile(r"^\s*SwitchName=(\S+)", re.IGNORECASE)
_NODES = re.compile(r"\sNodes=(\S+)", re.IGNORECASE)
_BELOW = re.compile(r"\sSwitches=(\S+)", re.IGNORECASE)
_NUMBERS = re.compile(r"\d+")


def read_racks(text: str, source: str) -> Racks:
    """The racks of a file with a line `NAME: HOSTLIST` each, such as `rack1: n[01-16]`; `#` begins a comment.

    Raises UsageError with the line's number for one that does not read so, and for a host in two racks.
    """
    racks: Racks = {}
    rack_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, hosts = (part.strip() for part in line.partition("#")[0].partition(":"))
        if not (name or colon):
            continue
        if not (name and hosts):
            raise UsageError(
                f"{source} line {number}: cannot read {line[:60]!r}: write NAME: HOSTLIST, like r1: n[1-16]."
            )
        if name in racks:
            raise UsageError(f"{source} line {number}: rack {name!r} is there twice: put its hosts into one line.")
        racks[name] = expand_hosts(hosts, f"{source} line {number}")
        for host in racks[name]:
            if rack_of.setdefault(host, name) != name:
                raise UsageError(f"{source} line {number}: {host} is in {rack_of[host]} and in {name}: leave one.")
    return racks


def read_slurm_topology(text: str) -> Racks:
    """The leaf switches in Slurm's `topology.conf`, or in what `scontrol show topology` prints, with their nodes.

    A switch above others is passed over, for it is no rack; so is a line that names no switch or no readable nodes.
    """
    racks: Racks = {}
    for line in text.splitlines():
        line = line.partition("#")[0][:_LONGEST_LINE]
        switch, nodes, below = (pattern.search(line) for pattern in (_SWITCH, _NODES, _BELOW))
        if switch is None or nodes is None or (below is not None and below[1] != "(null)"):
            continue
        try:
            racks[switch[1]] = expand_hosts(nodes[1], "the topology")
        except UsageError:
            continue
    return racks


def guess_racks(hosts: Sequence[str]) -> Racks:
    """Racks by host names with several numbers: those alike but for the last number, like r1-n03 and r1-n07.

    Only if that makes at least two groups, each of two hosts or more: else a number is no rack. A guess is a hint,
    never a reason to accuse: a group is only named when nearly all of its members are slow.
    """
    found: dict[str, list[str]] = {}
    for host in hosts:
        short = host.partition(".")[0]
        numbers = list(_NUMBERS.finditer(short))
        if len(numbers) < 2:
            return {}
        found.setdefault(short[: numbers[-1].start()].rstrip("-_") or short, []).append(host)
    if len(found) < 2 or min(map(len, found.values())) < 2:
        return {}
    return {name: tuple(members) for name, members in found.items()}


def expand_hosts(text: str, where: str) -> tuple[str, ...]:
    """The hosts in a text like `n[01-16],gpu3`. Raises UsageError if it is no such list, or of over 100,000 hosts."""
    try:
        hosts = hostlist.expand_hostlist(text)
    except hostlist.BadHostlist as error:
        raise UsageError(
            f"{where}: cannot read the hosts {text[:60]!r} ({error}): write them like n[01-16],n20."
        ) from error
    return tuple(hosts)


def collect_hosts(hosts: Sequence[str]) -> str:
    """`n[2,7]`: the shortest list that Slurm's --exclude and --nodelist take; empty for none."""
    return str(hostlist.collect_hostlist(list(hosts))) if hosts else ""
