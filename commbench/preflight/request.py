"""What `commbench preflight` was asked for; the same on every rank."""

from dataclasses import dataclass

from commbench.analysis.expectations import Expectation
from commbench.analysis.racks import Racks
from commbench.preflight.levels import Level


@dataclass(frozen=True, slots=True)
class PreflightRequest:
    """`budget_seconds`: from the start of the process to its end. `soak_seconds`: of load, on top; 0 for none.

    `same`: files whose content shall be the same on all nodes. `racks` by name; {} to guess them from host names.
    """

    level: Level
    budget_seconds: float
    command: tuple[str, ...] = ()
    engine: str = "torch"
    backend: str | None = None
    seed: int = 0
    soak_seconds: float = 0.0
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    fake: str = ""
    fake_ranks: int = 8

    @property
    def order(self) -> str:
        """The same text on ranks that were asked to do the same."""
        return repr((self.level.name, self.budget_seconds, self.engine, self.backend, self.seed, self.soak_seconds,
                     self.select, self.ignore, self.same))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hints:
    """What rank 0 alone needs to judge: what is expected, and which nodes share a rack."""

    expectations: tuple[Expectation, ...] = ()
    racks: Racks | None = None
