"""How far apart the ranks of a group are: what the engine knows, else what the facts of their node say."""

from collections.abc import Sequence

from commbench.engines.base import Engine
from commbench.measure.wiring import topology_of
from commbench.plan.groups import Group
from commbench.plan.trials import Ranks
from commbench.preflight.gather import NodeReport
from commbench.topology.group_link import link_of_gpus


def find_link_class(engine: Engine, reports: Sequence[NodeReport], ranks: Ranks) -> str:
    """The slowest kind of link that `ranks` must cross; `unknown` where nobody can say."""
    known = engine.link(Group("", ranks)).link_class
    if known != "unknown":
        return known
    for report in reports:
        if set(ranks) <= set(report.ranks):
            addresses = [part.process.gpu_address for part in report.parts if part.process.rank in ranks]
            return link_of_gpus(topology_of(report.node), addresses)[0]
    return known
