"""How the GPUs of all ranks are wired: each rank says which it drives, the first of each node what joins them."""

import os
import socket
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

import msgspec

from commbench.engines.base import Engine, Link
from commbench.errors import CommbenchError
from commbench.machine.facts import Facts
from commbench.machine.read_facts import read_facts
from commbench.plan.groups import Group, World
from commbench.topology.from_facts import LIVE, make_topology
from commbench.topology.graph import Device, Topology
from commbench.topology.graph import Link as Wire
from commbench.topology.group_link import link_of_gpus


@dataclass(frozen=True, slots=True)
class RankTold:
    """What a rank says of itself: its GPU, its process as NCCL's log names it, and whether it keeps that log.

    `machine`: the devices of its node and what joins them, from the node's first rank alone.
    """

    address: str
    host: str
    pid: int
    keeps_log: bool
    machine: str = ""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The GPU and process of every rank, and the topology of every node."""

    world: World
    ranks: tuple[RankTold, ...]
    topologies: tuple[Topology, ...]

    def link(self, group: Group) -> Link | None:
        """What a group inside one node must cross; None for one on several."""
        nodes = {self.world.node_of_rank[rank] for rank in group.ranks}
        if len(nodes) > 1:
            return None
        return Link(*link_of_gpus(self.topologies[nodes.pop()], [self.ranks[rank].address for rank in group.ranks]))

    def link_class(self, one: int, other: int) -> str:
        """What joins two ranks of a node; `unknown` for ranks of two."""
        link = self.link(Group("pair", (one, other)))
        return link.link_class if link else "unknown"


def gather_wiring(engine: Engine, keeps_log: bool) -> Wiring:
    """Call on all ranks of an engine on GPUs. The first rank of each node reads its machine's facts."""
    (rank,) = engine.ranks
    world = engine.world
    is_first = world.node_of_rank.index(world.node_of_rank[rank]) == rank
    host = socket.gethostname().partition(".")[0]
    machine = _pack(topology_of(read_facts())) if is_first else ""
    mine = RankTold(engine.pci_address or "", host, os.getpid(), keeps_log, machine)
    texts = engine.gather_texts(msgspec.json.encode(mine).decode())
    ranks = tuple(msgspec.json.decode(text, type=RankTold) for text in texts)
    machines = {text: _unpack(text) for text in {told.machine for told in ranks} if text}
    topologies = tuple(machines[ranks[members[0]].machine] for members in world.ranks_by_node())
    return Wiring(world, ranks, topologies)


def topology_of(facts: Facts) -> Topology:
    """The machine's topology; an empty one, of which all is unknown, where its facts do not fit together."""
    try:
        return make_topology(facts)
    except CommbenchError:
        return Topology(LIVE, "", ())


@dataclass(frozen=True, slots=True)
class _Machine:
    devices: tuple[Device, ...]
    links: tuple[Wire, ...]


def _pack(topology: Topology) -> str:
    machine = _Machine(topology.devices, topology.links)
    return b64encode(zlib.compress(msgspec.json.encode(machine))).decode()


def _unpack(text: str) -> Topology:
    machine = msgspec.json.decode(zlib.decompress(b64decode(text)), type=_Machine)
    return Topology(LIVE, "the node", machine.devices, machine.links)
