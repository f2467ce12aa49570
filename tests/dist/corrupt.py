"""Not a test: the command line with an engine that spoils one element of one rank's all_gather.

python -m tests.dist.corrupt sweep --engine corrupt …
"""

from collections.abc import Callable
from dataclasses import replace

from commbench.cli import main
from commbench.engines import ENGINES
from commbench.engines.base import Call
from commbench.engines.torch_dist import TorchEngine
from commbench.engines.torch_dist import open_engine as open_torch
from commbench.plan.groups import Group
from commbench.plan.plan import Case

RANK, INDEX = 1, 7


class CorruptEngine(TorchEngine):
    """Right in everything but element INDEX of what rank RANK gathers."""

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        call = super().prepare(case, group, me)
        if case.collective != "all_gather" or group.ranks[me] != RANK:
            return call
        return replace(call, run=_spoiling(call))


def _spoiling(call: Call) -> Callable[[], object]:
    def run() -> None:
        call.run()
        call.receive[INDEX] += 1

    return run


def open_engine(**arguments: object) -> TorchEngine:
    engine = open_torch(**arguments)
    engine.__class__ = CorruptEngine
    return engine


# In the workers too, which import this module.
ENGINES["corrupt"] = replace(ENGINES["torch"], factory="tests.dist.corrupt:open_engine")

if __name__ == "__main__":
    main()
