"""What a check found on one node or on many: equal findings of several ranks are one, and the worst come first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from commbench.results.finding import Finding, Verdict

WORST_FIRST: tuple[Verdict, ...] = ("fail", "warn", "skip", "ok")


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding, and the ranks that it is of, in their order; () if it is of the one process, or of all together."""

    finding: Finding
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedNode:
    """A node that was checked, with its ranks; () if no launcher gave it any."""

    name: str
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Everything that a check found, the worst first. `source`: `/`, or the snapshot or tree that was read."""

    source: str
    taken_utc: str
    nodes: tuple[CheckedNode, ...]
    findings: tuple[Placed, ...]

    @property
    def worst(self) -> Verdict:
        """The worst verdict; `skip` if nothing was found at all, for then nothing was seen."""
        found = {placed.finding.verdict for placed in self.findings}
        return next((verdict for verdict in WORST_FIRST[:2] if verdict in found), "ok" if "ok" in found else "skip")

    @property
    def world_size(self) -> int:
        """The ranks that were checked; 0 without a launcher."""
        return sum(len(node.ranks) for node in self.nodes)

    def nodes_of(self, ranks: Sequence[int]) -> tuple[str, ...]:
        """The names of the nodes that `ranks` are on; without a launcher, of the one node."""
        if not self.world_size:
            return tuple(node.name for node in self.nodes)
        wanted = frozenset(ranks)
        return tuple(node.name for node in self.nodes if not wanted.isdisjoint(node.ranks))


def merge(found: Iterable[Placed]) -> list[Placed]:
    """Equal findings once, with the ranks of all of them; in the order in which they first came."""
    ranks: dict[Finding, list[int]] = {}
    for placed in found:
        ranks.setdefault(placed.finding, []).extend(placed.ranks)
    return [Placed(finding, tuple(sorted(set(of)))) for finding, of in ranks.items()]


def sort_worst_first(found: Iterable[Placed]) -> tuple[Placed, ...]:
    """By verdict; those of one verdict stay in the order in which they came."""
    return tuple(sorted(found, key=lambda placed: WORST_FIRST.index(placed.finding.verdict)))


def count_verdicts(findings: Iterable[Finding]) -> dict[Verdict, int]:
    """How many findings have each verdict, the worst first; those that nothing has too."""
    counted = Counter(finding.verdict for finding in findings)
    return {verdict: counted[verdict] for verdict in ("fail", "warn", "ok", "skip")}
