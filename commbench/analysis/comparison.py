"""The records of a comparison: plain values, as in its JSON. Ratios are new over base; of times, above 1 is slower."""

from dataclasses import dataclass
from typing import Literal

from commbench.analysis.environment import EnvironmentDifference
from commbench.analysis.matching import CaseKey, Unmatched

Verdict = Literal["slower", "faster", "same", "noisy", "not comparable"]
DEFAULT_LEAST_EFFECT = 0.05
DEFAULT_LEVEL = 0.05
DEFAULT_ASSUMED_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class Rules:
    """`least_effect`: a smaller change is the same. `level`: the chance that two sets of runs of one and the same
    thing differ in any case or coefficient, all claims together. `assumed_spread`: the standard deviation of a launch's
    level, and of a case beside it, where the launches are too few to show it.
    """

    least_effect: float = DEFAULT_LEAST_EFFECT
    level: float = DEFAULT_LEVEL
    assumed_spread: float = DEFAULT_ASSUMED_SPREAD

    def family_level(self, has_links: bool) -> float:
        """Half of the chance of a wrong claim is for the few coefficients, where there are any, so that the many cases
        do not drown them.
        """
        return self.level / 2 if has_links else self.level


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its 95 % interval, which is of this ratio alone, not of all together."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One case. `p`: of no change, before all claims are held together. `deviation`: how far one launch differs from
    another, relative (standard deviation). `method`: `t`, `ranks`, `assumed` or `same runs`.
    """

    key: CaseKey
    base_seconds: float
    new_seconds: float
    base_launches: int
    new_launches: int
    time: Ratio
    verdict: Verdict
    p: float
    deviation: float
    freedom: float
    method: str
    slowest_group: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CoefficientChange:
    """alpha, or B = 1/beta, of all cases of a link class. `verdict`: slower is more alpha, or less B."""

    ratio: Ratio
    verdict: Verdict
    p: float
    deviation: float


@dataclass(frozen=True, slots=True)
class LinkChange:
    """One link class; None where the sizes do not tell the coefficient apart."""

    link_class: str
    alpha: CoefficientChange | None
    rate: CoefficientChange | None


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one side, and when they were measured, from the first."""

    runs: tuple[str, ...]
    created_utc: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is known of base and new. `verdict`: one thing slower makes it `slower`, else one
    thing faster `faster`, else it is what more cases are."""

    base: Side
    new: Side
    rules: Rules
    environment: tuple[EnvironmentDifference, ...]
    links: tuple[LinkChange, ...]
    cases: tuple[CaseChange, ...]
    unmatched: tuple[Unmatched, ...]
    notes: tuple[str, ...]
    verdict: Verdict
