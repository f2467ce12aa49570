"""The passive check: the rules on the facts of one process, or on those of all ranks of a job."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from commbench.checks.registry import Rule, Scene, run_rules
from commbench.checks.result import CheckedNode, CheckResult, Placed, merge, sort_worst_first
from commbench.launch.environment import RankPlace
from commbench.machine.facts import Facts, ProcessFacts
from commbench.topology.from_facts import make_topology

if TYPE_CHECKING:
    from commbench.preflight.gather import NodeReport

_OVER_RANKS = "CON"  # the family that compares ranks: its rules run once, on the facts of all


def read_own_facts(place: RankPlace | None, environment: Mapping[str, str], same: Sequence[str]) -> Facts:
    """The facts of this process, at its place as the launcher says; `same`: files to hash."""
    from commbench.machine.digest import hash_files  # a snapshot is checked without these
    from commbench.machine.read_facts import read_facts

    process = ProcessFacts()
    if place is not None:
        process = ProcessFacts(place.launcher, place.rank, place.world_size, place.local_rank, place.local_size)
    return replace(read_facts(environment=environment, process=process), hashes=hash_files(same))


def check_here(facts: Facts, rules: Sequence[Rule], nodes: int) -> CheckResult:
    """What the rules find in the facts of one process, of a job on so many `nodes`."""
    found = [Placed(finding) for finding in run_rules(rules, Scene(facts, make_topology(facts), nodes))]
    return CheckResult(facts.source, facts.taken_utc, (CheckedNode(facts.host.name),), sort_worst_first(found))


def check_node(here: Sequence[Facts], rules: Sequence[Rule], nodes: int) -> list[Placed]:
    """What the rules on one process and its peers find in the facts of all ranks of one node of `nodes`."""
    alone = [rule for rule in rules if rule.family != _OVER_RANKS]

    def found() -> Iterator[Placed]:
        topology = make_topology(here[0])
        for facts in here:
            scene = Scene(facts, topology, nodes, tuple(other for other in here if other is not facts))
            yield from (Placed(finding, (facts.process.rank,)) for finding in run_rules(alone, scene))

    return merge(found())


def judge_world(reports: Sequence["NodeReport"], rules: Sequence[Rule]) -> CheckResult:
    """All nodes' findings as one result, with what the rules of the family CON find in the facts of all ranks."""
    first, *others = chain.from_iterable(report.facts for report in reports)
    over_ranks = [rule for rule in rules if rule.family == _OVER_RANKS]
    over = (Placed(finding) for finding in run_rules(over_ranks, Scene(first, None, len(reports), tuple(others))))
    found = merge(chain(over, *(report.findings for report in reports)))
    nodes = tuple(CheckedNode(report.node.host.name, report.ranks) for report in reports)
    return CheckResult(first.source, first.taken_utc, nodes, sort_worst_first(found))
