"""Groups of ranks against what is expected of them: floors of a platform, of a file, or of an earlier run.

A floor holds for its size and larger ones. Where the floors begin above the size that the level measures, their first
size is measured too, if memory and time are enough for it. A group that misses is measured again, and its best time
counts. What is expected of two ranks that send to each other is judged with the pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from commbench.analysis.expectations import Expectation, find_expectation, judge
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.groups import World, format_ranks
from commbench.plan.trials import Ranks, Trial, TrialResult
from commbench.preflight.bench import Bench
from commbench.preflight.clock import TAIL_SECONDS, Clock
from commbench.report.preflight import Stage
from commbench.results.finding import Finding, Verdict
from commbench.units import GB, format_nbytes

OF_PAIRS = ("send_recv", "point_to_point", "broadcast")  # of two ranks: one sends, the other receives
_NAME = "references"
_TRIES = 3
_SHARE = 1 / 3  # of the time that is left, for one trial
_MOST_TOLD = 3
_WORST_FIRST: tuple[Verdict, ...] = ("fail", "warn", "ok", "skip")


@dataclass
class ReferenceTests:
    """Judges the groups of `bench` that `expectations` speak of. `nbytes`: of one transfer at this level."""

    bench: Bench
    hosts: Sequence[str]  # of each node
    expectations: Sequence[Expectation]
    nbytes: int
    timeout_seconds: float
    clock: Clock
    findings: list[Finding] = field(default_factory=list)
    culprits: list[str] = field(default_factory=list)

    def run(self) -> Stage:
        """Measure and judge what there is time for."""
        began = self.bench.now_seconds()
        for groups, expected in find_work(self.bench, self.expectations, self.nbytes):
            planned = self._plan(groups, expected)
            if isinstance(planned, Finding):
                self.findings.append(planned)
            else:
                self._judge(*planned, expected)
        verdict, said = sum_up(self.findings, len(self.expectations))
        seconds = self.bench.now_seconds() - began
        return Stage(_NAME, verdict, seconds, said, tuple(dict.fromkeys(self.culprits)), tuple(self.findings))

    def _plan(self, groups: Sequence[Ranks], expected: Expectation) -> tuple[Trial, float] | Finding:
        """What to run and how long it may take, or why it is not run."""
        subject = f"{expected.collective} of {format_nbytes(expected.nbytes)} on {len(groups[0])} ranks"
        if self.bench.silent:
            return Finding(_NAME, subject, "skip", "not all ranks answer")
        if self.clock.left_seconds < TAIL_SECONDS + self.timeout_seconds:
            return Finding(_NAME, subject, "skip", "the budget left no time for it")
        usual = _trial(groups, expected, expected.nbytes if expected.is_time else self.nbytes)
        if expected.nbytes <= self.nbytes:
            return usual, self.timeout_seconds
        large = _trial(groups, expected, expected.nbytes)
        if not self.bench.fits(large):
            return Finding(_NAME, subject, "skip", "its buffers need more memory than is free")
        [results] = self.bench.run([usual], self.timeout_seconds)
        if failed := next((result.reason for result in results if result.reason), ""):
            return Finding(_NAME, subject, "fail", f"failed at {format_nbytes(self.nbytes)}: {failed}")
        slowest = max(median(result.seconds) for result in results)
        return self._plan_large(large, slowest, expected, subject)

    def _plan_large(
        self, trial: Trial, slowest: float, expected: Expectation, subject: str
    ) -> tuple[Trial, float] | Finding:
        """A large size takes the time in proportion that the level's size takes: `slowest` seconds a call."""
        calls, allowed = trial.samples + trial.warmups, _SHARE * self.clock.left_seconds
        if calls * slowest * trial.nbytes / self.nbytes <= allowed:
            return trial, max(self.timeout_seconds, allowed)
        factor, lower = _bus_factor(trial), expected.bounds[0] or 0.0
        takes_long = calls * factor * trial.nbytes > allowed * lower  # also where all is as expected
        reached = factor * self.nbytes / slowest / GB
        return Finding(
            _NAME,
            subject,
            "skip" if takes_long else "warn",
            f"no time for this size: {format_nbytes(self.nbytes)} reaches {reached:.3g} GB/s",
            f"at least {lower / GB:g} GB/s ({expected.measured_with})",
            expected.source,
            "give it a larger --budget" if takes_long else "look why it is so slow",
        )

    def _judge(self, trial: Trial, timeout_seconds: float, expected: Expectation) -> None:
        fastest: dict[Ranks, float] = {}
        for _ in range(_TRIES):
            results = dict(zip(trial.groups, self.bench.run([trial], timeout_seconds)[0], strict=True))
            for ranks, result in results.items():
                if result.seconds:
                    fastest[ranks] = min(median(result.seconds), fastest.get(ranks, float("inf")))
            found = {
                ranks: self._finding(trial, ranks, fastest.get(ranks), results[ranks], expected) for ranks in results
            }
            missed = [ranks for ranks in found if found[ranks].verdict == "fail"]
            if not missed or self.bench.silent or self.clock.left_seconds < TAIL_SECONDS + timeout_seconds:
                break
        self.findings += found.values()
        if len(missed) < len(trial.groups):  # what all have in common is nobody's fault
            nodes = self.bench.world.node_of_rank
            self.culprits += [self.hosts[nodes[ranks[0]]] for ranks in missed if self._is_in_one_node(ranks)]

    def _finding(
        self, trial: Trial, ranks: Ranks, seconds: float | None, last: TrialResult, expected: Expectation
    ) -> Finding:
        subject = f"{trial.collective} of {format_nbytes(trial.nbytes)} {self._where(ranks)}"
        if seconds is None:
            return Finding(_NAME, subject, "fail", f"failed: {last.reason}")
        return judge(_NAME, subject, expected, trial.nbytes, seconds, _bus_factor(trial))

    def _where(self, ranks: Ranks) -> str:
        world = self.bench.world
        if self._is_in_one_node(ranks):
            return f"in {self.hosts[world.node_of_rank[ranks[0]]]}"
        return "over all ranks" if len(ranks) == world.size else f"over ranks {format_ranks(ranks)}"

    def _is_in_one_node(self, ranks: Ranks) -> bool:
        return self.bench.world.nodes_of(ranks) == 1


def find_work(
    bench: Bench, expectations: Sequence[Expectation], nbytes: int
) -> Iterator[tuple[tuple[Ranks, ...], Expectation]]:
    """Groups that run at the same time, and what is expected of each: of a collective one time and one bandwidth."""
    for groups in group_sets(bench.world, {one.ranks for one in expectations if one.ranks}):
        link_class, ranks = bench.link_class(groups[0]), len(groups[0])
        for collective in COLLECTIVES:
            about = [one for one in expectations if one.is_of(link_class, collective, ranks)]
            if ranks == 2 and collective in OF_PAIRS:
                continue
            times = [one for one in about if one.is_time]
            floors = [one for one in about if not one.is_time]
            floor = find_expectation(floors, link_class, collective, nbytes, ranks)
            chosen = (_smallest(times), floor or _smallest(floors))
            yield from ((groups, one) for one in chosen if one is not None)


def group_sets(world: World, sizes: set[int]) -> list[tuple[Ranks, ...]]:
    """The ranks of each node, nodes alike together; neighbouring nodes with `sizes` ranks together; all ranks."""
    nodes = [tuple(ranks) for ranks in world.ranks_by_node()]
    widths = sorted({len(ranks) for ranks in nodes})
    sets = [tuple(ranks for ranks in nodes if len(ranks) == width) for width in widths if width > 1]
    if len(nodes) == 1:
        return sets
    if len(widths) == 1:
        for count in (size // widths[0] for size in sorted(sizes) if size % widths[0] == 0):
            if 1 < count < len(nodes):
                starts = range(0, len(nodes) - count + 1, count)
                sets.append(tuple(tuple(rank for node in nodes[at : at + count] for rank in node) for at in starts))
    return [*sets, (tuple(range(world.size)),)]


def sum_up(findings: Sequence[Finding], expectations: int) -> tuple[Verdict, str]:
    """The verdict and a line: what is not as expected, or what is."""
    if not expectations:
        return "skip", "none given (--expect): nodes are only compared with each other"
    if not findings:
        return "skip", f"none of {expectations} is of a node or a group here; those of pairs are judged with the pairs"
    worst = next(one for one in _WORST_FIRST if any(found.verdict == one for found in findings))
    told = [_tell(found) for found in findings if found.verdict == worst]
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    met = sum(found.verdict == "ok" for found in findings)
    return worst, f"{met} of {len(findings)} met: {'; '.join(told[:_MOST_TOLD])}{more}"


def _tell(found: Finding) -> str:
    expected = f", expected {found.expected}" if found.expected else ""
    action = f", {found.action}" if found.action else ""
    return f"{found.subject}: {found.observed}{expected}{action}"


def _smallest(expectations: Sequence[Expectation]) -> Expectation | None:
    return min(expectations, key=lambda one: one.nbytes, default=None)


def _trial(groups: Sequence[Ranks], expected: Expectation, nbytes: int) -> Trial:
    samples, calls = (9, 5) if expected.is_time else (3, 1)
    return Trial(expected.collective, nbytes, tuple(groups), samples=samples, calls=calls, warmups=calls)


def _bus_factor(trial: Trial) -> float:
    return COLLECTIVES[trial.collective].bus_factor(len(trial.groups[0])) or 1.0
