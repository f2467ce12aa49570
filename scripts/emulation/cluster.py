"""What a cluster is asked to be: names, addresses, rates. Pure, and kept as JSON beside what was built from it."""

import json
import os
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

STATE = Path("/run/emulated-cluster")  # short, as sockets lie below it; belongs to root, as munged demands
HEAD = "head"
MOST_NODES = 250
_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}


class Refused(Exception):
    """What stands in the way, in one sentence."""

    exit_code = 3


class Misused(Refused):
    """The command line asks for what cannot be."""

    exit_code = 2


def rate_bits(rate: str) -> float:
    """Bits per second of a rate as tc writes it, or a ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmg]bit)", rate)
    if match is None or not float(match[1]):
        raise ValueError(f"{rate!r} is no rate; give a number and kbit, mbit or gbit, as in 400mbit")
    return float(match[1]) * _UNITS[match[2]]


@dataclass(frozen=True)
class Cluster:
    """Nodes n1, n2, … on `rails` switches; the switches, and the login node, are the host `head`."""

    name: str
    nodes: int = 4
    rate: str = "400mbit"
    slow: dict[str, str] = field(default_factory=dict)  # node to rate
    rails: int = 1
    burst_us: int = 500  # what may pass at once, as time at the link's rate
    delay: str | None = None
    loss: str | None = None
    slurm: bool = False
    prolog: str | None = None  # what Slurm runs on a node before a job starts there
    pin: bool = False  # every node has CPUs of its own, as far as they go

    @property
    def node_names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    @property
    def hosts(self) -> list[str]:
        return [HEAD, *self.node_names]

    def address(self, host: str, rail: int = 0) -> str:
        return f"10.77.{rail}.{254 if host == HEAD else int(host[1:])}"

    def rate_of(self, node: str) -> str:
        return self.slow.get(node, self.rate)

    def cpus(self, host: str) -> str:
        """The CPUs of a pinned node, as taskset takes them; empty for a host that may run on all."""
        if not self.pin or host == HEAD:
            return ""
        known, place = sorted(os.sched_getaffinity(0)), int(host[1:]) - 1
        share = max(1, len(known) // self.nodes)
        return ",".join(str(known[(place * share + more) % len(known)]) for more in range(share))

    def namespace(self, host: str) -> Path:
        return Path("/run/netns", f"{self.name}-{host}")

    @property
    def folder(self) -> Path:
        return STATE / self.name

    @property
    def hosts_file(self) -> Path:
        return self.folder / "hosts"

    def hosts_text(self) -> str:
        """A name means the first rail; n1-rail1 is the same node on the second."""
        lines = ["127.0.0.1 localhost"]
        lines += [f"{self.address(host)} {host} {host}-rail0" for host in self.hosts]
        for rail in range(1, self.rails):
            lines += [f"{self.address(host, rail)} {host}-rail{rail}" for host in self.hosts]
        return "\n".join(lines) + "\n"

    def save(self) -> None:
        """The last step of building: with this file, a cluster is whole."""
        saved_in(self.name).write_text(json.dumps(asdict(self)))


def saved_in(name: str) -> Path:
    return STATE / name / "cluster.json"


def load_cluster(name: str) -> Cluster:
    try:
        return Cluster(**json.loads(saved_in(name).read_text()))
    except FileNotFoundError:
        there = ", ".join(name for name in known_names() if saved_in(name).exists()) or "none"
        raise Refused(f"no cluster {name} is up (up: {there}); start it with `emulated_cluster up`") from None


def known_names() -> list[str]:
    """Every cluster of which something is there, be it whole or the remains of an `up` that was killed."""
    return sorted(folder.name for folder in STATE.glob("*"))
