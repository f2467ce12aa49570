"""The order of a preflight, as rank 0 conducts it: right before fast, all before pairs, suspicion before verdict.

Each stage says what came of it in a line, or why it was left out; what is known is known at any time, so that the
deadline always finds a verdict.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from commbench.analysis.cluster import Cluster
from commbench.analysis.expectations import allowed_seconds, find_expectation
from commbench.analysis.localize import Diagnosis
from commbench.analysis.racks import guess_racks
from commbench.analysis.suspects import LATENCY
from commbench.checks.result import CheckResult
from commbench.measure.whereabouts import name_ranks
from commbench.plan.collectives import COLLECTIVES
from commbench.preflight.bench import Bench
from commbench.preflight.clock import TAIL_SECONDS, Clock
from commbench.preflight.line_rate import LineRate, judge_line_rate
from commbench.preflight.pairs import PairTests
from commbench.preflight.references import OF_PAIRS, ReferenceTests
from commbench.preflight.request import Hints, PreflightRequest
from commbench.preflight.soak import run_soak
from commbench.preflight.world_trials import everyone, first_answer, inside_nodes, ladder, right_data
from commbench.report.preflight import PairSearch, Preflight, Stage
from commbench.results.finding import Verdict
from commbench.units import format_nbytes

_LEAST_NBYTES, _UNKNOWN_NBYTES = 256 << 10, 1 << 20
_LEAST_TIMEOUT_SECONDS, _TIMEOUT_CALLS = 3.0, 12.0
_FIRST_TIMEOUT_SECONDS = 8.0  # of the first collectives: connections are made, and nothing is known of the link

Say = Callable[[str], None]


@dataclass
class Conductor:
    """Runs the stages on `bench`. `say` is told of each, as it ends."""

    request: PreflightRequest
    hints: Hints
    clock: Clock
    hosts: tuple[str, ...]  # of each rank
    say: Say
    stages: list[Stage] = field(default_factory=list)
    checks: CheckResult | None = None
    line_rate: LineRate | None = None
    _bench: Bench | None = None
    _pairs: PairTests | None = None
    _diagnoses: Sequence[Diagnosis] = ()

    def add(self, stage: Stage) -> None:
        """A stage has ended."""
        self.stages.append(stage)
        self.say(f"[{self.clock.spent_seconds:.0f} s] {stage.name}: {stage.said}")

    def run(self, bench: Bench) -> None:
        """All stages that the level has, as far as the time goes."""
        self._bench = bench
        level = self.request.level
        stage, is_right = first_answer(bench, min(_FIRST_TIMEOUT_SECONDS, self.clock.left_seconds / 3))
        self.add(stage)
        rate: float | None = None
        if is_right:
            timeout = min(_FIRST_TIMEOUT_SECONDS, self.clock.left_seconds / 3)
            stage, rate = right_data(bench, level.correct_nbytes, timeout)
            self.add(stage)
        else:
            self.add(Stage("right data", "skip", 0.0, "there was no first answer"))
        nbytes = choose_nbytes(rate, level.call_seconds, level.most_nbytes)
        self._inside(bench, nbytes, rate)
        self._between(bench, nbytes, rate)
        timeout = self._timeout(nbytes, rate)
        hosts, expectations = self._node_hosts(bench), self.hints.expectations
        self.add(ReferenceTests(bench, hosts, expectations, nbytes, timeout, self.clock).run())
        self._ladder(bench, nbytes, rate, is_right)
        if self.request.soak_seconds and self._pairs is not None:
            self.add(run_soak(self._pairs, min(self.request.soak_seconds, self.clock.left_seconds - TAIL_SECONDS)))
        if bench.dead:
            self.add(life_stage(bench.dead, bench.find_dead_still(), self.hosts))

    def outcome(self, ended: str = "", is_hang: bool = False) -> Preflight:
        """What is known by now. `ended`: why it is over before its time."""
        return Preflight(
            created_utc=datetime.now(UTC).isoformat(timespec="seconds"),
            command=self.request.command,
            level=self.request.level.name,
            budget_seconds=self.request.budget_seconds,
            spent_seconds=self.clock.spent_seconds,
            hosts=tuple(dict.fromkeys(self.hosts)),
            world_size=len(self.hosts),
            backend=self._bench.backend if self._bench else "",
            stages=tuple(self.stages),
            searches=self._searches(),
            checks=self.checks,
            ended=ended,
            is_hang=is_hang,
            link_class=self._bench.link_class(everyone(self._bench.world)) if self._bench else "",
        )

    def _searches(self) -> tuple[PairSearch, ...]:
        return self._pairs.searches(self._diagnoses) if self._pairs else ()

    def _inside(self, bench: Bench, nbytes: int, rate: float | None) -> None:
        if max(len(ranks) for ranks in bench.world.ranks_by_node()) < 2:
            self.add(Stage("inside nodes", "skip", 0.0, "there is one rank a node"))
        elif bench.silent:
            self.add(Stage("inside nodes", "skip", 0.0, f"{len(bench.silent)} ranks do not answer"))
        else:
            self.add(inside_nodes(bench, self._node_hosts(bench), nbytes, self._timeout(nbytes, rate)))

    def _between(self, bench: Bench, nbytes: int, rate: float | None) -> None:
        """Pairs of nodes, rail by rail; on one node, pairs of its ranks."""
        began = bench.now_seconds()
        cluster, ranks = self._cluster(bench)
        if cluster.endpoints < 2:
            self.add(Stage("pairs", "skip", 0.0, "there is one rank"))
            return
        tests = PairTests(
            bench, cluster, ranks, nbytes, self.request.level.samples, self._timeout(nbytes, rate), self.clock
        )
        self._pairs = tests
        done, planned = tests.run_first(self.request.level.most_rounds, self.request.seed)
        # Ranks that share a node's cores get in each other's way: only what is far off says something of the machine.
        criteria = LATENCY if bench.backend == "gloo" and bench.world.nodes_of(ranks) == 1 else None
        self._diagnoses = tests.diagnose(self._allowed_seconds(bench, ranks, nbytes), criteria)
        tests.run_retests(self._diagnoses, self.request.seed)
        if not tests.results:
            reason = "no two ranks that live" if done else "the budget left no time for a round"
            self.add(Stage("pairs", "skip", 0.0, reason))
            self._pairs = None
            return
        named = sum(len(search.confirmed) for search in self._searches())
        said = f"{done} of {planned} rounds at {format_nbytes(nbytes)}, and {tests.rounds - done} of retests: "
        verdict: Verdict = "fail" if named or any(d.is_below_expectation for d in self._diagnoses) else "ok"
        said += f"{named} to blame" if named else "all below expectation" if verdict == "fail" else "nobody to blame"
        self.add(Stage("pairs", verdict, bench.now_seconds() - began, said))
        if bench.world.nodes_of(ranks) > 1:
            self.add(judge_line_rate(self.line_rate, next(iter(self._searches()), None)))

    def _ladder(self, bench: Bench, nbytes: int, rate: float | None, is_right: bool) -> None:
        reason = ""
        if not self.request.level.has_ladder:
            reason = f"not in --level {self.request.level.name}"
        elif not is_right or bench.silent:
            reason = "not all ranks answer"
        elif bench.world.size < 2:
            reason = "there is one rank"
        elif self.clock.left_seconds < 4 * 4 * self.request.level.call_seconds + 2.0:
            reason = "the budget left no time for it"
        if reason:
            self.add(Stage("ladder", "skip", 0.0, reason))
        else:
            self.add(ladder(bench, nbytes, self._timeout(nbytes, rate)))

    def _cluster(self, bench: Bench) -> tuple[Cluster, list[int]]:
        """Who is compared, and the rank of each endpoint. Nodes with unlike numbers of ranks send their first one."""
        nodes = bench.world.ranks_by_node()
        if len(nodes) == 1:
            return Cluster.of([f"rank {rank}" for rank in nodes[0]]), list(nodes[0])
        rails = len(nodes[0]) if len({len(ranks) for ranks in nodes}) == 1 else 1
        hosts = self._node_hosts(bench)
        racks = guess_racks(hosts) if self.hints.racks is None else self.hints.racks
        return Cluster.of(hosts, rails=rails, racks=racks), [rank for ranks in nodes for rank in ranks[:rails]]

    def _node_hosts(self, bench: Bench) -> tuple[str, ...]:
        return tuple(self.hosts[ranks[0]] for ranks in bench.world.ranks_by_node())

    def _timeout(self, nbytes: int, rate: float | None) -> float:
        """Of one call: a dead partner costs so much each time that it is met."""
        expected = nbytes / rate if rate else 1.0
        return min(max(_LEAST_TIMEOUT_SECONDS, _TIMEOUT_CALLS * expected), max(1.0, self.clock.left_seconds / 3))

    def _allowed_seconds(self, bench: Bench, ranks: Sequence[int], nbytes: int) -> float | None:
        """Up to which time a transfer of a pair is as expected; None without a reference."""
        link_class = bench.link_class(tuple(ranks))
        for collective in OF_PAIRS:
            expected = find_expectation(self.hints.expectations, link_class, collective, nbytes, 2)
            if expected is not None:
                factor = COLLECTIVES["broadcast"].bus_factor(2) or 1.0
                return allowed_seconds(expected, nbytes, factor)
        return None


def life_stage(silent: Collection[int], dead: Collection[int], hosts: Sequence[str]) -> Stage:
    """Ranks that gave no sign of life when they did not answer, and those of them that give none now."""
    name = "signs of life"
    if not dead:
        return Stage(name, "warn", 0.0, f"{name_ranks(sorted(silent), hosts)} gave none for a while, and does again")
    told = f"none from {name_ranks(sorted(dead), hosts)}: dead, stopped, or its link is down"
    return Stage(name, "fail", 0.0, told, tuple(dict.fromkeys(hosts[rank] for rank in sorted(dead))))


def choose_nbytes(rate: float | None, call_seconds: float, most_nbytes: int) -> int:
    """The power of two of bytes that takes `call_seconds` or less at `rate` bytes per second, within bounds."""
    if rate is None:
        return _UNKNOWN_NBYTES
    wanted = int(rate * call_seconds)
    return min(most_nbytes, max(_LEAST_NBYTES, 1 << max(0, wanted.bit_length() - 1)))
