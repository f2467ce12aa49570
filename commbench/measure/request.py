"""What `commbench sweep` was asked for."""

from dataclasses import dataclass
from pathlib import Path

from commbench.machine.binding import Bind
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import PlanRequest


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Everything that `commbench sweep` was asked for; the same on every rank, but where a run is resumed.

    `link_rates`: nominal bytes per second of one rank's link, by link class.
    """

    plan: PlanRequest
    rules: SamplingRules
    directory: Path
    engine: str = "torch"
    backend: str | None = None
    verify: bool = True
    bind: Bind = "auto"
    timeout_seconds: float | None = None
    command: tuple[str, ...] = ()
    fake: str = ""
    fake_ranks: int = 8
    resume: bool = False
    link_rates: tuple[tuple[str, float], ...] = ()
    overlap: bool = False
