"""What an exporter is given and what it returns, in seconds, bytes and bytes per second."""

from collections.abc import Mapping
from dataclasses import dataclass

from commbench.analysis.records import CurveFit, FitRecord, PlannerLine
from commbench.errors import CommbenchError
from commbench.plan.collectives import COLLECTIVES
from commbench.results.store import Run
from commbench.units import format_seconds


@dataclass(frozen=True, slots=True)
class Shape:
    """The machine that was measured: `nodes` nodes of `ranks_per_node` ranks, filled node after node."""

    nodes: int
    ranks_per_node: int

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def tiers(self) -> tuple["Tier", ...]:
        """Inside a node, and between nodes (one rank a node, as data parallelism beside tensor parallelism goes)."""
        inside, between = Tier(self.ranks_per_node, 1), Tier(self.nodes, self.ranks_per_node)
        return tuple(tier for tier in (inside, between) if tier.ranks > 1)

    def nodes_of(self, tier: "Tier") -> int:
        """The nodes that a group of the tier touches."""
        return len({rank * tier.stride // self.ranks_per_node for rank in range(tier.ranks)})


UNKNOWN_SHAPE = Shape(0, 0)


@dataclass(frozen=True, slots=True)
class Tier:
    """Groups of `ranks` ranks, `stride` apart: 1 is neighbours, the number of ranks per node is one rank a node."""

    ranks: int
    stride: int

    def __str__(self) -> str:
        return f"{self.ranks} ranks" if self.stride == 1 else f"{self.ranks} ranks, {self.stride} apart"


@dataclass(frozen=True, slots=True)
class Need:
    """A curve that a format cannot do without.

    `only_points`: the measured sizes are written, no line is. `stand_ins`: collectives whose line may stand in for it
    where the run was imported, so that nothing more can be measured.
    """

    collective: str
    tier: Tier
    only_points: bool = False
    stand_ins: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.collective} of {self.tier}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The measured curve that serves a need."""

    need: Need
    fit: CurveFit

    @property
    def planner_line(self) -> PlannerLine:
        """Raises CommbenchError where the window has none."""
        if self.fit.line is None:
            raise CommbenchError(f"{self.need} has no line: {self.fit.no_line}.")
        return self.fit.line

    @property
    def alpha_step_seconds(self) -> float:
        """Fixed cost of one of its steps, were it a ring. Where it is not identified, what the line has: it predicts
        inside its window.
        """
        return self.planner_line.line.alpha_seconds / self.fit.steps

    @property
    def alpha_total_seconds(self) -> float:
        """Fixed cost of the whole collective."""
        return self.alpha_step_seconds * COLLECTIVES[self.need.collective].steps(self.need.tier.ranks)

    @property
    def alpha_is_unknown(self) -> bool:
        """Whether a line is written whose alpha the measured sizes do not tell."""
        return not self.need.only_points and not self.planner_line.alpha_total.identified

    @property
    def said_of_alpha(self) -> str:
        """What stands in the files of an alpha that is not identified."""
        bound, written = self.planner_line.alpha_total.bound, self.planner_line.line.alpha_seconds
        most = "" if bound is None else f" (at most {format_seconds(bound)})"
        return f"alpha of {self.need} is not identified{most}: the line's own, {format_seconds(written)}, is written"

    @property
    def bytes_per_second(self) -> float:
        """Bus bandwidth B."""
        return 1.0 / self.planner_line.line.seconds_per_byte

    def seconds(self, nbytes: float) -> float:
        """The line's time of size S."""
        factor = COLLECTIVES[self.need.collective].factor(self.need.tier.ranks)
        return self.alpha_total_seconds + factor * nbytes / self.bytes_per_second


@dataclass(frozen=True, slots=True)
class Request:
    """All that an exporter may use. `fits`: every curve of the mode that is exported. `chosen`: for each of its needs.

    `base`: the planner's own system file, which holds what is not measured here; `base_name` is how it is called.
    """

    name: str
    shape: Shape
    records: tuple[FitRecord, ...]
    runs: tuple[Run, ...]
    fits: tuple[CurveFit, ...]
    chosen: Mapping[tuple[str, Tier], Chosen]
    base: str | None = None
    base_name: str = ""
    force: bool = False

    def of(self, collective: str, tier: Tier) -> Chosen:
        """The curve that was chosen for a need."""
        return self.chosen[collective, tier]

    def measured(self, collective: str, tier: Tier) -> list[tuple[int, float]]:
        """(S in bytes, seconds) of a need, as measured, by rising size."""
        return [(point.nbytes, point.seconds) for point in self.of(collective, tier).fit.points]

    @property
    def source_line(self) -> str:
        """For a comment in a file: where it comes from."""
        runs = ", ".join(run.directory.name for run in self.runs)
        return f"commbench export of {runs}; window, intervals, errors and assumptions: {SIDE_FILE}"


SIDE_FILE = "commbench-export.json"


@dataclass(frozen=True, slots=True)
class Export:
    """Files by their path below the target, and what they take for granted.

    `used`: curves beside those of the needs. `warnings`: what the user should do something about.
    """

    files: Mapping[str, bytes]
    assumptions: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    used: tuple[Chosen, ...] = ()
