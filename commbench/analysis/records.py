"""The records of a fit, as fit.json holds them. Seconds, bytes, bytes per second; errors are fractions.

Schema history (`schema_version` in fit.json):
  1  commbench 0.1.0: the first.
"""

from dataclasses import dataclass
from typing import Literal

from commbench.analysis.curves import CurveKey, Unfitted
from commbench.analysis.lines import Line
from commbench.analysis.regimes import Regimes
from commbench.results.schema import Finding

FIT_SCHEMA_VERSION = 1
MODEL = "relative Huber line, exact segmentation by BIC, at most 4 regimes"

Quality = Literal["ok", "poor"]


@dataclass(frozen=True, slots=True)
class Window:
    """The sizes S that a planner's line is fitted on; None is open."""

    first_nbytes: int | None
    last_nbytes: int | None

    def contains(self, nbytes: float) -> bool:
        return (self.first_nbytes or 0) <= nbytes <= (self.last_nbytes or float("inf"))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A coefficient with its 95 % interval. Not identified: `value` is None and `bound` says what is known.

    The bound of an alpha is from above (at most), that of a rate from below (at least).
    """

    value: float | None
    low: float | None
    high: float | None
    bound: float | None = None

    @property
    def identified(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Errors:
    """Of a model at the measured sizes: mean and largest absolute relative error; left out: with each size predicted by
    a fit to the others, None where they are too few.
    """

    mape: float
    largest: float
    left_out_mape: float | None


@dataclass(frozen=True, slots=True)
class PlannerLine:
    """One line on the window. `line` predicts inside it, also where a coefficient of it is not identified.

    `alpha_step` = alpha_total / steps. `half_bandwidth_nbytes`: the size with half the bandwidth, alpha B / factor.
    """

    window: Window
    sizes: int
    line: Line
    alpha_total: Estimate
    alpha_step: Estimate
    bytes_per_second: Estimate
    half_bandwidth_nbytes: float | None
    errors: Errors
    quality: Quality
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegimeEstimate:
    """One regime's coefficients. It starts after size `starts_low`, and by `starts_high`; None for the first regime."""

    first_nbytes: float
    last_nbytes: float
    alpha_total: Estimate
    bytes_per_second: Estimate
    starts_low: float | None
    starts_high: float | None


@dataclass(frozen=True, slots=True)
class RegimeFit:
    """All sizes. `errors` are of the lines alone; `corrected_left_out_mape` of `predict`, which leans on neighbours."""

    model: Regimes
    estimates: tuple[RegimeEstimate, ...]
    errors: Errors
    corrected_left_out_mape: float | None


@dataclass(frozen=True, slots=True)
class FittedPoint:
    """A measured size; `half_width` is relative, None without an interval."""

    nbytes: int
    seconds: float
    half_width: float | None


@dataclass(frozen=True, slots=True)
class CurveFit:
    """Everything about one curve. `small_seconds`: the median time of sizes whose bytes cost under a tenth of it.

    `slowest_ratio`: the slowest group's time over the median group's, at the largest size.
    """

    key: CurveKey
    factor: float
    steps: int
    groups: int
    launches: int
    points: tuple[FittedPoint, ...]
    line: PlannerLine | None
    no_line: str
    regimes: RegimeFit
    small_seconds: float | None
    nominal_bytes_per_second: float | None
    efficiency: float | None
    slowest_ratio: float


@dataclass(frozen=True, slots=True)
class JointFit:
    """One alpha_step and one B for all collectives and N of a link class.

    `own_mape`: what lines of their own leave; the difference is the price of the assumption. Left out is a whole curve.
    """

    link_class: str
    concurrency: str
    dtype: str
    mode: str
    window: Window
    line: Line
    curves: tuple[str, ...]
    alpha_step: Estimate
    bytes_per_second: Estimate
    errors: Errors
    own_mape: float


@dataclass(frozen=True, slots=True)
class RateAt:
    """B measured at one N."""

    ranks: int
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class ScalingFit:
    """alpha_total(N) = base + per_step × steps(N), B as measured at each N. For N between or beyond: an extrapolation.

    `left_out_mape`: each N predicted from the others, over the sizes of the window; None with fewer than three N.
    """

    collective: str
    link_class: str
    concurrency: str
    dtype: str
    mode: str
    window: Window
    base_seconds: float
    per_step_seconds: float
    rates: tuple[RateAt, ...]
    left_out_mape: float | None


@dataclass(frozen=True, slots=True)
class FitRecord:
    """fit.json: the fits of the runs of one machine, that is of the same software on the same kind of processor.

    `data_sha256` is over the fitted points, so that an export can say what it was made from.
    """

    schema_version: int
    commbench: str
    model: str
    runs: tuple[str, ...]
    window: Window
    seed: int
    data_sha256: str
    fits: tuple[CurveFit, ...]
    joint: tuple[JointFit, ...]
    scaling: tuple[ScalingFit, ...]
    findings: tuple[Finding, ...]
    unfitted: tuple[Unfitted, ...]
