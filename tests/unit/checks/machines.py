"""Jobs on healthy machines, read from the tree of `tests/trees.py`, and how a fault is planted into them.

A job has two ranks on each of its nodes. What a captured tree cannot hold (packages, the CPUs of a rank, how much of
/dev/shm is free) is added here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from commbench.checks.registry import Rule, Scene, load_rules, run_rules
from commbench.machine.facts import Facts, ProcessFacts
from commbench.machine.gpu import read_gpus
from commbench.machine.tree import Tree
from commbench.results.schema import Finding
from commbench.topology.from_facts import make_topology
from tests.trees import Content, FakeNvml, dgx_facts

World = tuple[Facts, ...]
Change = Callable[[Facts], Facts]
RANKS = 2  # on each node
CORES = 4  # that each rank is bound to, near its GPU
CLOCK = 1_800_000_000.0
WORSE = ("warn", "fail")
_ADDED = ("host", "memory", "software", "variables")  # to what the tree says


def read(files: Mapping[str, Content], roce: bool = False) -> Facts:
    """The facts of the machine with these files, and what its tree cannot hold."""
    facts = dgx_facts(files, roce=roce)
    software = replace(
        facts.software,
        python="3.11.9",
        packages={"torch": "2.6.0+cu124", "numpy": "2.2.0", "nvidia-nccl-cu12": "2.21.5"},
        nccl_loadable="2.21.5",
    )
    return replace(
        facts,
        source="/",
        host=replace(facts.host, clock_utc_seconds=CLOCK, disks={"/": 0.4, "/tmp": 0.1}),
        memory=replace(facts.memory, shm_free_nbytes=facts.memory.shm_total_nbytes),
        software=software,
        unseen={path: why for path, why in facts.unseen.items() if not path.startswith(_ADDED)},
    )


@cache
def healthy(roce: bool = False) -> Facts:
    return read({}, roce)


def with_nvml(facts: Facts, gpus: Mapping[int, Any]) -> Facts:
    """The machine with other answers of NVML, by the numbers of its GPUs."""
    tree = Tree(Path("nowhere"))
    found = read_gpus(tree, facts.pci, FakeNvml(gpus))
    return replace(facts, gpus=found, unseen={**facts.unseen, **tree.unseen})


def ranks_of(machine: Facts, node: int, nodes: int) -> World:
    """The ranks of one node, each on the GPU of its number."""
    host = replace(machine.host, name=f"n{node}", boot_id_hash=f"{node:012x}")
    world = []
    for local_rank in range(RANKS):
        rank, gpus = node * RANKS + local_rank, machine.gpus or ()
        first = local_rank * CORES
        process = ProcessFacts(
            launcher="Slurm",
            rank=rank,
            world_size=nodes * RANKS,
            local_rank=local_rank,
            local_size=RANKS,
            cpus=f"{first}-{first + CORES - 1}",
            gpu_address=gpus[local_rank].address if local_rank < len(gpus) else "",
        )
        places = {"RANK": rank, "WORLD_SIZE": nodes * RANKS, "LOCAL_RANK": local_rank, "LOCAL_WORLD_SIZE": RANKS}
        variables = {"MASTER_ADDR": "n0", "MASTER_PORT": "29500", "OMP_NUM_THREADS": "4"}
        variables |= {name: str(number) for name, number in places.items()}
        world.append(replace(machine, host=host, process=process, variables=variables))
    return tuple(world)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a healthy job, and the one rule that must say so.

    `files` and `gpus`: of the tree and of NVML; `change`: facts that are no file. All are of the last node; with more
    than one `nodes` the others are healthy. `rank`: the one local rank that `change` is made to, None for both.
    `everywhere` is made to all ranks of the job, before.
    """

    rule: str
    name: str
    files: Mapping[str, Content] = field(default_factory=dict)
    gpus: Mapping[int, Any] = field(default_factory=dict)
    change: Change | None = None
    everywhere: Change | None = None
    rank: int | None = None
    nodes: int = 1
    roce: bool = False

    def plant(self) -> World:
        machine = read(self.files, self.roce) if self.files else healthy(self.roce)
        machine = with_nvml(machine, self.gpus) if self.gpus else machine
        machines = [healthy(self.roce)] * (self.nodes - 1) + [machine]
        world = [rank for node, one in enumerate(machines) for rank in ranks_of(one, node, self.nodes)]
        return tuple(self._changed(facts, place >= len(world) - RANKS) for place, facts in enumerate(world))

    def _changed(self, facts: Facts, is_last: bool) -> Facts:
        if self.everywhere:
            facts = self.everywhere(facts)
        is_meant = is_last and self.rank in (None, facts.process.local_rank)
        return self.change(facts) if self.change and is_meant else facts


def part(of: str, /, **values: Any) -> Change:
    """Values of one part of the facts, such as `host` or `limits`."""
    return lambda facts: replace(facts, **{of: replace(getattr(facts, of), **values)})


def whole(**values: Any) -> Change:
    return lambda facts: replace(facts, **values)


def one_interface(name: str, /, **values: Any) -> Change:
    return lambda facts: replace(
        facts,
        interfaces=tuple(replace(one, **values) if one.name == name else one for one in facts.interfaces or ()),
    )


def set_variable(name: str, value: str) -> Change:
    return lambda facts: replace(facts, variables={**facts.variables, name: value})


@cache
def _rules() -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The rules of a node's own, and those of consistency."""
    rules = load_rules()
    return tuple(row for row in rules if row.family != "CON"), tuple(row for row in rules if row.family == "CON")


def findings(world: World) -> Iterator[Finding]:
    """What the rules find: those of the last node's own on each of its ranks, those of consistency once."""
    own, consistency = _rules()
    hosts = {facts.host.boot_id_hash for facts in world}
    here = [facts for facts in world if facts.host == world[-1].host]
    topology = make_topology(here[0])
    for facts in here:
        peers = tuple(other for other in here if other is not facts)
        yield from run_rules(own, Scene(facts, topology, len(hosts), peers))
    yield from run_rules(consistency, Scene(world[0], None, len(hosts), world))


def find(rule: str, world: World) -> list[Finding]:
    """What one rule finds."""
    return [finding for finding in findings(world) if finding.rule == rule]


def worse(world: World) -> list[Finding]:
    """Warnings and failures."""
    return [finding for finding in findings(world) if finding.verdict in WORSE]
