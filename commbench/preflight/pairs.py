"""Pairs: rounds of them, who is suspected, and the retests that confirm or clear."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from commbench.analysis.cluster import Cluster
from commbench.analysis.localize import Diagnosis, localize
from commbench.analysis.retests import plan_retests, settle
from commbench.analysis.suspects import Criteria, Verdict
from commbench.plan.rounds import Round, along_rails, circle_round, circle_rounds, pair_rounds
from commbench.plan.trials import LATENCY_NBYTES, TrialResult, pair_trials
from commbench.preflight.bench import Bench
from commbench.preflight.clock import TAIL_SECONDS, Clock
from commbench.report.preflight import PairSearch
from commbench.results.pairs import PairResult, PairTable

_RETEST_ROUNDS = 5
_MOST_RETEST_ROUNDS = 24
_FAILURES_ENOUGH = 2  # meetings that failed, after which one is not met again: each costs a timeout


@dataclass
class PairTests:
    """Measures rounds of pairs on `bench`, and keeps what came of them. `ranks`: of each endpoint of `cluster`."""

    bench: Bench
    cluster: Cluster
    ranks: Sequence[int]
    nbytes: int
    samples: int
    timeout_seconds: float
    clock: Clock
    results: dict[int, list[PairResult]] = field(default_factory=dict)  # by size
    retests: dict[int, list[PairResult]] = field(default_factory=dict)
    rounds: int = 0
    slowest_round_seconds: float = 0.0
    _failed: dict[int, int] = field(default_factory=dict)

    def run_first(self, most: int, seed: int) -> tuple[int, int]:
        """Rounds of all pairs as far as time allows, some of it kept for retests: how many were run, and planned."""
        planned = along_rails(pair_rounds(len(self.cluster.hosts), most, seed), self.cluster.rails)
        for number, pairs in enumerate(planned):
            reserve = _RETEST_ROUNDS * self.slowest_round_seconds + TAIL_SECONDS
            if number and self.clock.left_seconds < reserve + self.slowest_round_seconds:
                return number, len(planned)
            if not self._has_time():
                return number, len(planned)
            self.measure(pairs, self.results)
        return len(planned), len(planned)

    def diagnose(self, allowed_seconds: float | None, criteria: Criteria | None = None) -> list[Diagnosis]:
        """Who stands out at each size, the larger one first; by `criteria`, None: those of the size."""
        return [
            localize(self.cluster, rows, criteria, allowed_seconds if nbytes == self.nbytes else None)
            for nbytes, rows in sorted(self.results.items(), reverse=True)
        ]

    def run_retests(self, diagnoses: Sequence[Diagnosis], seed: int) -> None:
        """Meet suspects again, with good partners, until each is settled or the time is over."""
        for diagnosis in diagnoses:
            for _ in range(_MOST_RETEST_ROUNDS):
                pairs = plan_retests(diagnosis, self.retests.get(diagnosis.nbytes, []), seed)
                if not pairs or not self._has_time():
                    break
                before = self.rounds
                self.measure(pairs, self.retests, is_retest=True)
                if self.rounds == before:
                    break

    def searches(self, diagnoses: Sequence[Diagnosis]) -> tuple[PairSearch, ...]:
        """What is known now; also before all retests are done."""
        found = []
        for diagnosis in diagnoses:
            again = self.retests.get(diagnosis.nbytes, [])
            verdicts = tuple(self._silence_confirms(one) for one in settle(diagnosis, again))
            table = PairTable.of([*self.results[diagnosis.nbytes], *again])
            found.append(PairSearch(diagnosis, table, verdicts))
        return tuple(found)

    def _silence_confirms(self, verdict: Verdict) -> Verdict:
        """One that its partners cannot reach, and that does not answer rank 0 either, needs no third witness."""
        is_silent = all(self.ranks[end] in self.bench.silent for end in verdict.suspect.members)
        if verdict.suspect.kind == "dead" and verdict.state == "open" and is_silent:
            return replace(verdict, state="confirmed")
        return verdict

    def _has_time(self) -> bool:
        return self.clock.left_seconds > max(self.slowest_round_seconds, 1.0) + TAIL_SECONDS

    def next_round(self) -> Round:
        """The circle's rounds, again and again."""
        nodes = len(self.cluster.hosts)
        turn = self.rounds % circle_rounds(nodes)
        return along_rails([circle_round(nodes, turn)], self.cluster.rails)[0]

    def measure(self, pairs: Round, into: dict[int, list[PairResult]], is_retest: bool = False) -> None:
        """One round, its results added to `into` by size. Who has failed too often, or is dead, is not met again.

        What a dead rank did to its partner says nothing of a link.
        """
        most = _FAILURES_ENOUGH + (_FAILURES_ENOUGH if is_retest else 0)
        met = [pair for pair in pairs if all(self._failed.get(end, 0) < most for end in pair) and self._lives(pair)]
        if not met:
            return
        began = self.clock.now()
        trials = pair_trials([(self.ranks[a], self.ranks[b]) for a, b in met], self.nbytes, self.samples)
        both, there, back = self.bench.run(trials, self.timeout_seconds)
        self.slowest_round_seconds = max(self.slowest_round_seconds, self.clock.now() - began)
        for at, (a, b) in enumerate(met):
            if not self._lives((a, b)):
                continue
            self._keep(into, LATENCY_NBYTES, a, b, both[at])
            self._keep(into, LATENCY_NBYTES, b, a, both[at])
            self._keep(into, self.nbytes, a, b, there[at])
            self._keep(into, self.nbytes, b, a, back[at])
            is_failure = bool(there[at].reason or back[at].reason)
            for end in (a, b):  # one success clears: a good partner of several dead ones is good
                self._failed[end] = self._failed.get(end, 0) + 1 if is_failure else 0
        self.rounds += 1

    def _lives(self, pair: tuple[int, int]) -> bool:
        return self.bench.dead.isdisjoint(self.ranks[end] for end in pair)

    def _keep(
        self, into: dict[int, list[PairResult]], nbytes: int, sender: int, receiver: int, result: TrialResult
    ) -> None:
        seconds = None if result.reason else median(result.seconds)
        status = "failed" if result.reason else "ok"
        into.setdefault(nbytes, []).append(
            PairResult(self.rounds, sender, receiver, nbytes, seconds, status)  # type: ignore[arg-type]
        )
