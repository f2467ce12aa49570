"""What `commbench sweep` was asked for."""

from dataclasses import dataclass
from pathlib import Path

from commbench.machine.binding import Bind
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import PlanRequest

CALLS_PER_GRAPH = 20  # long against the launch of a graph, which then tells in one part of 20


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
    graph: bool = False
    ranks_per_gpu: int = 1

    @property
    def graph_calls(self) -> int | None:
        """Calls in a CUDA graph; None: there is none. One call is what latency is of."""
        if not self.graph:
            return None
        return 1 if self.plan.mode == "latency" else CALLS_PER_GRAPH

    @property
    def variant(self) -> str:
        """What tells these cases from those that are measured the plain way."""
        words = ["graph"] * self.graph
        if self.ranks_per_gpu > 1:
            words.append(f"{self.ranks_per_gpu} ranks per GPU")
        return ", ".join(words)
