"""The records of a search for the slow one: by what it is judged, who is suspected, what became of the suspicion."""

from dataclasses import dataclass
from math import exp, log
from typing import Literal

Kind = Literal["node", "group", "rail", "link", "pair", "noisy", "dead", "cut"]
SideName = Literal["both", "send", "receive"]
State = Literal["confirmed", "slight", "not reproduced", "open", "within expectation"]

LINKS: tuple[Kind, ...] = ("link", "pair", "cut")  # what two endpoints have between them
FAILURES: tuple[Kind, ...] = ("dead", "cut")
LATENCY_NBYTES = 4096  # a smaller message takes as long as the way, not as the bytes


@dataclass(frozen=True, slots=True)
class Criteria:
    """From which ratio to the usual time one is suspected, and accused; `z`: how far beyond the noise it must be."""

    suspect_ratio: float
    accuse_ratio: float
    z: float = 3.5  # Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993

    @property
    def suspect(self) -> float:
        return log(self.suspect_ratio)

    @property
    def accuse(self) -> float:
        return log(self.accuse_ratio)


# The ratios by which ClusterKit judges pairs: 93 % of the bandwidth, 2.1 times the latency.
BANDWIDTH = Criteria(suspect_ratio=1.05, accuse_ratio=1 / 0.93)
LATENCY = Criteria(suspect_ratio=1.6, accuse_ratio=2.1)


def criteria_for(nbytes: int) -> Criteria:
    """LATENCY for messages below 4 KiB, BANDWIDTH for larger ones."""
    return LATENCY if nbytes < LATENCY_NBYTES else BANDWIDTH


@dataclass(frozen=True, slots=True)
class Suspect:
    """Endpoints (of a link two, of one direction the sender first) that look slow, noisy or dead, before any retest.

    `effect`: log of the time over the usual time. `z`: that over the noise. `usual`: log of the usual seconds.
    `results`: how many directions of pairs speak; `partners`: with whom.
    """

    kind: Kind
    members: tuple[int, ...]
    side: SideName
    effect: float
    z: float
    usual: float
    results: int
    partners: tuple[int, ...] = ()
    name: str = ""

    @property
    def ratio(self) -> float:
        return exp(self.effect)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What retests made of a suspect: `again` of `retests` were slow again, against `partners`.

    `slight`: slow again, but by less than accuses. `open`: too few retests to tell.

    `effect` weighs first results and retests by their number; of failures it is infinite.
    """

    suspect: Suspect
    state: State
    retests: int
    again: int
    effect: float
    partners: tuple[int, ...]

    @property
    def ratio(self) -> float:
        return exp(self.effect)
