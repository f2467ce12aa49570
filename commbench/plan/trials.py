"""Trials: a few calls of a collective on groups that share no rank, for a verdict rather than for a curve."""

from collections.abc import Sequence
from dataclasses import dataclass

from commbench.plan.collectives import COLLECTIVES
from commbench.plan.dtypes import NO_REDOP
from commbench.plan.groups import Group
from commbench.plan.plan import Case

Ranks = tuple[int, ...]
LATENCY_NBYTES = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """`samples` batches of `calls` calls each, after `warmups` calls; with `verify` first one whose data is checked.

    A `broadcast` on the group (a, b) sends from a to b, and nothing back.
    """

    collective: str
    nbytes: int
    groups: tuple[Ranks, ...]
    samples: int = 0
    calls: int = 1
    warmups: int = 0
    verify: bool = False

    def case(self, group: Group) -> Case:
        """The case of one group; what an engine only offers in place is in place."""
        spec = COLLECTIVES[self.collective]
        redop = "sum" if spec.reduces else NO_REDOP
        in_place = self.collective in ("all_reduce", "broadcast")
        return Case(0, self.collective, self.nbytes, "float32", redop, in_place, "throughput", "", "alone", (group,))


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What one group brought: seconds per call of each sample, on its slowest rank; `reason`: why there are none."""

    seconds: tuple[float, ...] = ()
    wrong: int = 0
    reason: str = ""


def pair_trials(pairs: Sequence[tuple[int, int]], nbytes: int, samples: int) -> tuple[Trial, ...]:
    """What two ranks do in a round: the latency of both together, then the time of each direction."""
    there = tuple(tuple(pair) for pair in pairs)
    back = tuple((other, one) for one, other in pairs)
    return (
        Trial("all_reduce", LATENCY_NBYTES, there, samples=9, calls=5, warmups=5),
        Trial("broadcast", nbytes, there, samples=samples, warmups=1),
        Trial("broadcast", nbytes, back, samples=samples, warmups=1),
    )
