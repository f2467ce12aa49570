"""A preflight's outcome: the records, and what follows from them: the verdict, whom to leave out, the exit code."""

from dataclasses import dataclass
from itertools import chain

from commbench.analysis import suspects
from commbench.analysis.localize import Diagnosis
from commbench.checks.result import CheckResult
from commbench.report.culprits import excluded_hosts
from commbench.results.finding import Finding, Verdict
from commbench.results.pairs import PairTable

_HANG = 124
_COULD_NOT = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """One step: what came of it in a line. A `skip` says why.

    `culprits`: hosts that it shows to be at fault; `findings`: of a step that judges many things, each of them.
    """

    name: str
    verdict: Verdict
    seconds: float
    said: str
    culprits: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PairSearch:
    """The pairs at one size: all results, retests included, and what became of each suspicion."""

    diagnosis: Diagnosis
    table: PairTable
    verdicts: tuple[suspects.Verdict, ...]

    @property
    def confirmed(self) -> tuple[suspects.Verdict, ...]:
        return tuple(one for one in self.verdicts if one.state == "confirmed")


@dataclass(frozen=True, slots=True, eq=False)
class Preflight:
    """Everything that a preflight found. `ended`: why it ended before its time, empty if it did not.

    `checks`: what the rules found on all ranks; None where the ranks did not come together. `link_class`: of all ranks
    together, empty where they did not.
    """

    created_utc: str
    command: tuple[str, ...]
    level: str
    budget_seconds: float
    spent_seconds: float
    hosts: tuple[str, ...]
    world_size: int
    backend: str
    stages: tuple[Stage, ...]
    searches: tuple[PairSearch, ...] = ()
    checks: CheckResult | None = None
    ended: str = ""
    is_hang: bool = False
    link_class: str = ""

    @property
    def exclude(self) -> tuple[str, ...]:
        """The hosts to leave out of the next job, in the order of the nodes."""
        named = set(chain.from_iterable(stage.culprits for stage in self.stages))
        for search in self.searches:
            named.update(excluded_hosts(search.diagnosis, search.verdicts))
        return (*(host for host in self.hosts if host in named), *sorted(named - set(self.hosts)))

    @property
    def verdict(self) -> Verdict:
        """`fail`: something is at fault; `skip`: could not be measured; `warn`: healthy, with something to look at."""
        verdicts = {stage.verdict for stage in self.stages}
        if "fail" in verdicts or any(search.confirmed for search in self.searches):
            return "fail"
        if self.ended or not self.searches:
            return "skip"
        return "warn" if "warn" in verdicts else "ok"

    @property
    def exit_code(self) -> int:
        if self.verdict == "skip":
            return _HANG if self.is_hang else _COULD_NOT
        return 1 if self.verdict == "fail" else 0
