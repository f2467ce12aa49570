"""The link class of ranks: the engine's word, else the wiring of the node that they run on."""

from dataclasses import dataclass, replace

from commbench.engines.base import Link
from commbench.machine.facts import ProcessFacts
from commbench.plan.groups import Group
from commbench.preflight.gather import NodeReport, part_of
from commbench.preflight.wiring import find_link_class
from tests import trees
from tests.trees import dgx_facts


@dataclass(frozen=True)
class GpuEngine:
    """What torch's engine knows of GPUs: whether a group leaves its node."""

    ranks_per_node: int

    def link(self, group: Group) -> Link:
        nodes = {rank // self.ranks_per_node for rank in group.ranks}
        return Link("net" if len(nodes) > 1 else "unknown")


def report_of(ranks: range) -> NodeReport:
    facts = dgx_facts()
    parts = tuple(
        part_of(replace(facts, process=ProcessFacts(rank=rank, gpu_address=trees.GPU_ADDRESS[rank - ranks[0]])))
        for rank in ranks
    )
    return NodeReport(facts, parts, ())


def test_ranks_of_one_node_are_as_far_as_their_gpus_and_others_as_the_engine_says() -> None:
    reports = [report_of(range(8)), report_of(range(8, 16))]
    engine = GpuEngine(ranks_per_node=8)
    assert find_link_class(engine, reports, tuple(range(8, 12))) == "nvlink"  # type: ignore[arg-type]
    assert find_link_class(engine, reports, (7, 8)) == "net"  # type: ignore[arg-type]


def test_without_a_report_of_the_node_nobody_can_say() -> None:
    assert find_link_class(GpuEngine(8), [report_of(range(8))], (8, 9)) == "unknown"  # type: ignore[arg-type]
