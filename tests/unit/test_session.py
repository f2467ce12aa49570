"""A session on the fake engine: its order, its end, its faults, on a virtual clock where every second is planned."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from commbench.engines.base import Call, Elapsed
from commbench.engines.fake import FakeEngine, open_engine
from commbench.errors import TransportError
from commbench.measure.case_state import CaseState, Measured, describe
from commbench.measure.loop import time_batch
from commbench.measure.sampling import SamplingRules
from commbench.measure.session import Session
from commbench.plan.groups import Group
from commbench.plan.plan import Case, PlanRequest, build_plan
from commbench.results.resume import DoneCase
from tests.factories import make_case, make_group

MACHINE = "ranks-per-node=4,nvlink=1us:100GB/s,net=10us:10GB/s"
ENDLESS = {"precision": 0.0, "budget_seconds": 1.0}  # only the budget ends it


@dataclass
class Watch:
    """Counts visits; Ctrl-C comes during visit number `interrupt_in`, 0 being the barrier before the first."""

    interrupt_in: int | None = None
    visits: list[str] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)

    @property
    def interrupted(self) -> bool:
        return self.interrupt_in is not None and len(self.visits) > self.interrupt_in

    @contextmanager
    def watching(self, what: str, expected_seconds: float = 0.0) -> Iterator[None]:
        self.visits.append(what)
        yield

    def step(self, expected_seconds: float) -> None:
        self.expected.append(expected_seconds)

    def blame(self, what: str, reason: str) -> TransportError:
        return TransportError(f"{what} failed: somebody is gone ({reason}).")


class Recording:
    """An observer that keeps everything in order: ("sampled", case, batches) and ("closed", case, status)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int, Any]] = []
        self.seconds: list[float] = []

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        self.events.append(("sampled", case.index, list(measured)))
        self.seconds.append(seconds)

    def closed(self, state: CaseState) -> None:
        self.events.append(("closed", state.case.index, state.status))

    @property
    def visited(self) -> list[int]:
        return [index for kind, index, _ in self.events if kind == "sampled"]

    @property
    def closed_cases(self) -> list[int]:
        return [index for kind, index, _ in self.events if kind == "closed"]

    def batches(self, index: int, *kinds: str) -> list[Measured]:
        return [one for kind, case, found in self.events if kind == "sampled" and case == index
                for one in found if one.kind in (kinds or (one.kind,))]  # fmt: skip

    def comparable(self) -> list[Any]:
        """Everything that was measured, in a form that compares."""
        return [
            (case, [(one.kind, one.round, one.calls, one.seconds.tolist()) for one in found])
            for kind, case, found in self.events
            if kind == "sampled"
        ]


def engine_of(extra: str = "", seed: int = 0, ranks: int = 8) -> FakeEngine:
    return open_engine(ranks=ranks, spec=f"{MACHINE},{extra}", seed=seed)


def plan(engine: FakeEngine, **changes: Any) -> list[Case]:
    """Three collectives at two sizes on the world, unless changed."""
    asked = PlanRequest(("all_reduce", "all_gather", "all_to_all"), (1024, 65536), ("world",))
    return build_plan(replace(asked, **changes), engine.world)


def measure(
    engine: FakeEngine, cases: Sequence[Case], *, seed: int = 0, verify: bool = True, watch: Watch | None = None,
    **rules: Any,
) -> tuple[Session, Recording]:  # fmt: skip
    """A session that has run."""
    observer = Recording()
    session = Session(
        engine, cases, rules=SamplingRules(**rules), seed=seed, verify=verify, observer=observer, watch=watch or Watch()
    )
    session.run()
    assert sorted(observer.closed_cases) == [case.index for case in cases]  # each exactly once
    assert all(state.status is not None for state in session.states)
    return session, observer


# -- the timed region --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [0, 1, 2, 17])
def test_a_batch_is_its_calls_between_start_and_stop(calls):
    events: list[str] = []

    class Clock:
        resolution_seconds = 0.0

        def start(self) -> None:
            events.append("start")

        def stop(self) -> Elapsed:
            events.append("stop")
            return Elapsed(2.5)

    assert time_batch(Clock(), lambda: events.append("call"), calls) == Elapsed(2.5)
    assert events == ["start", *["call"] * calls, "stop"]


# -- order -------------------------------------------------------------------------------------------------------------


def test_equal_seeds_measure_the_same():
    runs = []
    for engine_seed, seed in ((1, 1), (1, 1), (2, 1), (1, 2)):
        engine = engine_of("noise=5%", engine_seed)
        runs.append(measure(engine, plan(engine), seed=seed, precision=0.02, budget_seconds=0.1)[1])
    first, again, other_noise, other_order = runs
    assert first.comparable() == again.comparable()
    assert first.comparable() != other_noise.comparable()
    assert first.visited[:6] == other_noise.visited[:6] != other_order.visited[:6]


def test_every_round_visits_all_open_cases_before_any_case_again():
    engine = engine_of("noise=5%")
    _, observer = measure(engine, plan(engine), precision=0.0, budget_seconds=0.05)
    visits, still_open = Counter(dict.fromkeys(range(6), 0)), set(range(6))
    for kind, case, found in observer.events:
        if kind == "closed":
            still_open.remove(case)
            continue
        assert visits[case] == min(visits[other] for other in still_open)
        assert {one.round for one in found} == {visits[case]}
        visits[case] += 1
    assert min(visits.values()) > 5
    orders = {tuple(observer.visited[start : start + 6]) for start in range(0, 30, 6)}
    assert len(orders) == 5  # each round has an order of its own


def test_a_visit_is_watched_by_name():
    engine, watch = engine_of(), Watch()
    cases = plan(engine)
    _, observer = measure(engine, cases, watch=watch)
    assert watch.visits == ["the barrier before the first case", *(describe(cases[case]) for case in observer.visited)]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (make_case("all_reduce", 1024), "all_reduce 1 KiB float32 sum on the world"),
        (make_case("all_gather", 1536, make_group(4, name="0-3"), layout="node"),
         "all_gather 1.5 KiB float32 on node 0-3"),
        (make_case("barrier", 0, make_group(2), make_group(2, 2)), "barrier on 2 groups of node"),
    ],
)  # fmt: skip
def test_describe(case, words):
    assert describe(case) == words


# -- resumed -----------------------------------------------------------------------------------------------------------


def test_a_case_that_is_done_is_not_touched_and_the_others_are_measured_as_ever():
    done = (DoneCase(1, "noisy", "the budget ended", (0,)), DoneCase(4, "wrong", "rank 1 element 2", (7,)))
    engine, observer = engine_of(), Recording()
    session = Session(engine, plan(engine), rules=SamplingRules(), seed=0, verify=True, observer=observer,
                      watch=Watch(), done=done)  # fmt: skip
    session.run()
    assert set(observer.visited) == set(observer.closed_cases) == {0, 2, 3, 5}
    states = [(state.status, state.reason, state.samples[0].wrong) for state in session.states]
    assert states[1] == ("noisy", "the budget ended", 0)
    assert states[4] == ("wrong", "rank 1 element 2", 7)
    other_engine = engine_of()
    _, uncut = measure(other_engine, plan(other_engine))
    for case in (0, 2, 3, 5):
        assert observer.batches(case)[-1].seconds == pytest.approx(uncut.batches(case)[-1].seconds)


def test_a_case_that_is_left_keeps_its_share_of_the_budget():
    spent = []
    for done in ((), tuple(DoneCase(index, "ok", "", (None,)) for index in range(1, 6))):
        engine = engine_of("noise=5%")
        session = Session(engine, plan(engine), rules=SamplingRules(**ENDLESS), seed=0, verify=True,
                          observer=Recording(), watch=Watch(), done=done)  # fmt: skip
        session.run()
        spent.append(session.states[0].spent_seconds)
    assert spent[1] == pytest.approx(spent[0], rel=0.05)


# -- how often ---------------------------------------------------------------------------------------------------------


def test_a_visit_is_first_call_warm_up_and_batches():
    engine = engine_of("noise=0.01%")
    _, observer = measure(engine, plan(engine))
    for case in range(6):
        shape = [(one.kind, one.round, one.calls, one.seconds.shape, one.wrong) for one in observer.batches(case)]
        assert shape == [
            ("first", 0, (1,), (1, 1), None),
            ("warmup", 0, (1,), (1, 3), None),
            *(("batch", number, (1,), (1, 6), None) for number in range(8)),
        ]


def test_a_case_that_never_agrees_is_warmed_up_twelve_times():
    engine = engine_of()
    engine.prepare = lambda case, group, me: Call(group, me, rising(engine), None, None)  # type: ignore[method-assign]
    _, observer = measure(engine, [make_case()], budget_seconds=1e-9)
    assert sum(one.seconds.size for one in observer.batches(0, "warmup")) == 12


def rising(engine: FakeEngine) -> Callable[[], None]:
    """Each call takes twice as long as the one before."""

    def run() -> None:
        engine.clock.seconds += engine.clock.seconds or 1e-6

    return run


def test_exact_times_are_kept_per_call():
    engine = engine_of()
    cases = plan(engine)
    session, _ = measure(engine, cases)
    for state in session.states:
        seconds = pytest.approx(engine.seconds(state.case, state.case.groups[0]), rel=1e-9)
        assert state.samples[0].seconds == [seconds] * 6  # without noise one visit says it all
        assert state.samples[0].first_call_seconds == seconds
        assert state.samples[0].wrong is None


@pytest.mark.parametrize(("noise", "precision", "rounds"), [("noise=0", 1e-6, 1), ("noise=5%", 0.9, 8)])
def test_it_stops_when_it_is_precise_but_not_before_eight_rounds_of_noise(noise, precision, rounds):
    engine = engine_of(noise)
    session, _ = measure(engine, plan(engine), precision=precision, budget_seconds=1e6)
    assert [(state.status, state.rounds, state.reason) for state in session.states] == [("ok", rounds, "")] * 6
    assert session.seconds == pytest.approx(engine.now_seconds())


def test_it_goes_on_until_it_is_precise():
    engine = engine_of("noise=20%")
    session, _ = measure(engine, plan(engine), precision=0.02, budget_seconds=1e6)
    rules = SamplingRules(precision=0.02)
    for state in session.states:
        assert (state.status, state.rounds > 8) == ("ok", True)
        assert rules.is_precise(state.samples[0].seconds)
        assert not rules.is_precise(state.samples[0].seconds[:-6])


@pytest.mark.parametrize("budget", [1e-3, 0.02, 0.2])
@pytest.mark.parametrize("sizes", [(1024, 65536), (1024, 1 << 26)], ids=["alike", "one far larger"])
def test_a_case_is_closed_when_its_share_or_the_budget_is_spent(budget, sizes):
    engine = engine_of("noise=5%")
    session, observer = measure(engine, plan(engine, sizes_nbytes=sizes), precision=0.0, budget_seconds=budget)
    spent: Counter[int] = Counter()
    batches: Counter[int] = Counter()
    times, before, to_close = iter(observer.seconds), 0.0, None
    for kind, case, found in observer.events:
        if kind == "closed":
            assert (case, found) == (to_close, "noisy")
            to_close = None
            continue
        assert to_close is None
        now = next(times)
        spent[case] += now - before
        batches[case] += sum(one.seconds.shape[1] for one in found if one.kind == "batch")
        before = now
        is_spent = spent[case] >= budget / 6 or now >= budget
        to_close = case if is_spent and batches[case] >= 6 else None  # so many an interval needs
    assert to_close is None
    assert {state.reason for state in session.states} == {"the budget ended before it was precise"}
    assert session.seconds == before


@pytest.mark.parametrize(("noise", "status"), [("noise=0", "ok"), ("noise=5%", "noisy")])
def test_every_case_has_at_least_one_visit(noise, status):
    engine = engine_of(noise)
    session, _ = measure(engine, plan(engine), precision=0.001, budget_seconds=1e-12)
    assert [(state.status, state.rounds) for state in session.states] == [(status, 1)] * 6


@pytest.mark.parametrize(
    ("mode", "visits", "batches", "calls"),
    # all_reduce of 1 KiB: 140 us + 0.18 us; a clock that resolves 10 us wants batches of 10 ms, at least 7.
    [("throughput", 3, 2, range(50, 73)), ("latency", 1, 32, range(1, 2))],
)
def test_modes(mode, visits, batches, calls):
    engine = engine_of()
    engine.clock.resolution_seconds = 10e-6
    cases = plan(engine, collectives=("all_reduce",), sizes_nbytes=(1024,), mode=mode)
    session, observer = measure(engine, cases, mode=mode)
    measured = observer.batches(0, "batch")
    assert [one.seconds.shape for one in measured] == [(1, batches)] * visits
    assert {one.calls[0] for one in measured} <= set(calls)
    assert session.states[0].samples[0].seconds == pytest.approx([140.1792e-6] * visits * batches, rel=1e-9)
    assert {one.calls for one in observer.batches(0, "first")} == {(1,)}


def test_every_group_has_calls_of_its_own():
    engine = engine_of("slow-rank=5:20")
    engine.clock.resolution_seconds = 10e-6
    cases = plan(engine, collectives=("all_reduce",), sizes_nbytes=(1024,), layouts=("node",))
    session, _ = measure(engine, cases)
    fast, slow = session.states[0].runs
    seconds = [engine.seconds(cases[0], group) for group in cases[0].groups]
    assert fast > 10 * slow
    assert all(7e-3 <= calls * each < 20e-3 for calls, each in zip((fast, slow), seconds, strict=True))


# -- closed before or early --------------------------------------------------------------------------------------------


class Picky(FakeEngine):
    """Refuses all_gather, and counts what it is asked to prepare."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.prepared: set[str] = set()

    def unsupported(self, case: Case) -> str | None:
        return "not on paper" if case.collective == "all_gather" else None

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        self.prepared.add(describe(case))
        return super().prepare(case, group, me)


def test_what_cannot_run_is_closed_with_a_reason_before_measuring():
    paper = engine_of()
    engine = Picky(paper.world, paper.machine)
    cases = plan(engine, sizes_nbytes=(20, 1024))
    session, observer = measure(engine, cases)
    small = "20 B is less than one float32 for each of the 8 ranks"
    assert [(state.status, state.reason) for state in session.states] == [
        ("ok", ""),
        ("ok", ""),
        ("skipped", small),
        ("unsupported", "not on paper"),
        ("skipped", small),
        ("ok", ""),
    ]
    assert observer.events[:3] == [("closed", 2, "skipped"), ("closed", 3, "unsupported"), ("closed", 4, "skipped")]
    assert engine.prepared == {describe(cases[index]) for index in (0, 1, 5)}
    assert [state.samples[0].seconds for state in session.states[2:5]] == [[], [], []]


def test_nothing_to_measure_is_fine():
    session, observer = measure(engine_of(), [])
    assert (session.states, observer.events) == ([], [])


@pytest.mark.parametrize("visits", [0, 1, 4, 6, 9])
def test_an_interrupted_run_keeps_what_it_has(visits):
    engine = engine_of("noise=5%")
    session, observer = measure(engine, plan(engine), watch=Watch(interrupt_in=visits), **ENDLESS)
    assert session.interrupted
    assert len(observer.visited) == visits
    for state in session.states:
        rounds = observer.visited.count(state.case.index)
        assert state.status == ("partial" if rounds else "missing")
        assert state.reason == "the run was interrupted"
        assert len(state.samples[0].seconds) == 6 * rounds


def test_a_case_that_was_done_before_the_interrupt_stays_done():
    engine = engine_of("noise=0.01%")
    session, observer = measure(engine, plan(engine), watch=Watch(interrupt_in=7 * 6 + 2))
    done = Counter(observer.visited)
    assert sorted(done.values()) == [7, 7, 7, 7, 8, 8]
    for state in session.states:
        assert state.status == ("ok" if done[state.case.index] == 8 else "partial")


# -- groups ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layouts", [("world", "node", "rail", "halves"), ("pairs",), ("ladder", "mesh:dp=2,tp=4")])
@pytest.mark.parametrize("concurrency", ["together", "alone"])
def test_a_slow_rank_shows_in_exactly_the_groups_that_hold_it(layouts, concurrency):
    asked = {"layouts": layouts, "concurrencies": (concurrency,), "collectives": ("all_reduce",)}
    sound, faulty = (engine_of(fault) for fault in ("", "slow-rank=5:3"))
    seconds = [measure(engine, plan(engine, **asked))[0].states for engine in (sound, faulty)]
    slow = 0
    for before, after in zip(*seconds, strict=True):
        for group, one, other in zip(before.case.groups, before.samples, after.samples, strict=True):
            factor = 3 if 5 in group.ranks else 1
            assert other.seconds == pytest.approx([factor * value for value in one.seconds], rel=1e-6), group
            slow += factor == 3
    assert slow > 0


class Barriers(FakeEngine):
    """Notes who waits, and each batch after it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.log: list[str] = []

    def barrier(self, group: Group | None = None) -> None:
        self.log.append(f"barrier {group.name if group else 'of all'}")

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        paper = super().prepare(case, group, me)
        return replace(paper, run=lambda: (paper.run(), self.log.append(f"{group.name}[{me}]")))


def test_together_starts_all_groups_after_one_barrier_of_all():
    paper = engine_of()
    engine = Barriers(paper.world, paper.machine)
    cases = plan(engine, collectives=("all_reduce",), sizes_nbytes=(1024,), layouts=("node",))
    _, observer = measure(engine, cases, budget_seconds=1e-9)
    batches = 1 + 3 + 6
    assert engine.log[15:] == ["barrier of all", "0-3[0]", "4-7[0]"] * batches  # 15 barriers are timed before
    assert [one.seconds.shape for one in observer.batches(0)] == [(2, 1), (2, 3), (2, 6)]


def test_alone_waits_for_its_own_group_only():
    paper = engine_of()
    engine = Barriers(paper.world, paper.machine)
    asked = {"collectives": ("all_reduce",), "sizes_nbytes": (1024,), "layouts": ("node",), "concurrencies": ("alone",)}
    cases = plan(engine, **asked)
    assert [[group.name for group in case.groups] for case in cases] == [["0-3"], ["4-7"]]
    measure(engine, cases, budget_seconds=1e-9)
    one, other = ([f"barrier {name}", f"{name}[0]"] * 10 for name in ("0-3", "4-7"))
    assert engine.log[15:] in (one + other, other + one)


class OneOfEight(Barriers):
    """Speaks for rank 6 alone, as a process of a real engine does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ranks = (6,)


@pytest.mark.parametrize(
    ("concurrency", "batch"),
    [("together", ["barrier of all", "4-7[2]"]), ("alone", ["barrier 4-7", "4-7[2]"])],
)
def test_a_rank_calls_its_own_groups_only(concurrency, batch):
    paper = engine_of()
    engine = OneOfEight(paper.world, paper.machine)
    asked = {"collectives": ("all_reduce",), "sizes_nbytes": (1024,), "layouts": ("node",)}
    cases = plan(engine, **asked, concurrencies=(concurrency,))
    engine.max_reduce = lambda values: np.where(np.isfinite(values), values, 7e-6)  # type: ignore[method-assign]
    session, _ = measure(engine, cases, budget_seconds=1e-9)
    assert engine.log[15:] == batch * 10
    theirs = session.states[0].samples[0]  # of ranks 0-3: learned from the others
    assert {theirs.first_call_seconds, *theirs.seconds} == {7e-6}


# -- data --------------------------------------------------------------------------------------------------------------


class Copying(FakeEngine):
    """A world of one rank that really moves data, and spoils element 7 of every all_reduce."""

    class data:
        write = staticmethod(
            lambda buffer, start, values: buffer.__setitem__(slice(start, start + len(values)), values)
        )
        read = staticmethod(lambda buffer, start, stop: buffer[start:stop])

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        send, receive = np.zeros(case.count(group), np.float32), np.zeros(case.count(group), np.float32)
        paper = super().prepare(case, group, me)

        def run() -> None:
            paper.run()
            receive[:] = send
            receive[7] += case.collective == "all_reduce"

        return Call(group, me, run, send, receive)


@pytest.mark.parametrize("verify", [True, False])
def test_wrong_data_ends_its_case_and_no_other(verify):
    paper = engine_of(ranks=1)
    engine = Copying(paper.world, paper.machine)
    session, observer = measure(engine, plan(engine, sizes_nbytes=(1024,)), verify=verify)
    bad, *good = session.states
    assert [(state.status, state.samples[0].wrong) for state in good] == [("ok", 0 if verify else None)] * 2
    if not verify:
        assert (bad.status, bad.samples[0].wrong) == ("ok", None)
        return
    # One rank sends 0, 1, 2, …: element 7 is 7.
    assert (bad.status, bad.reason) == ("wrong", "rank 0 element 7: expected 7, got 8")
    assert (bad.samples[0].wrong, bad.samples[0].seconds, bad.rounds) == (1, [], 1)
    assert [(one.kind, one.wrong) for one in observer.batches(0)] == [("first", (1,))]


def test_a_lost_peer_is_a_transport_error_that_names_the_case():
    engine = engine_of()
    engine.transport_errors = (ConnectionError,)

    def lost() -> None:
        raise ConnectionError("connection reset by peer")

    engine.prepare = lambda case, group, me: Call(group, me, lost, None, None)  # type: ignore[method-assign]
    with pytest.raises(TransportError) as error:
        measure(engine, [make_case()])
    assert "all_reduce 1 KiB float32 sum on the world failed: somebody is gone (connection reset by peer)" in str(
        error.value
    )


def test_any_other_error_is_not_hidden():
    engine = engine_of()
    engine.transport_errors = (ConnectionError,)
    engine.prepare = lambda case, group, me: Call(group, me, lambda: 1 // 0, None, None)  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        measure(engine, [make_case()])


def test_a_peer_lost_before_the_first_case_is_a_transport_error_too():
    engine = engine_of()
    engine.transport_errors = (ConnectionError,)

    def lost(group: Group | None = None) -> None:
        raise ConnectionError("connection reset by peer")

    engine.barrier = lost  # type: ignore[method-assign]
    with pytest.raises(
        TransportError, match=r"^the barrier before the first case failed: somebody is gone \(connection reset"
    ):
        measure(engine, [make_case()])


class Blind(Watch):
    """Counts nothing."""

    @contextmanager
    def watching(self, what: str, expected_seconds: float = 0.0) -> Iterator[None]:
        yield

    def step(self, expected_seconds: float) -> None:
        pass


class Forgetful:
    """An observer that keeps nothing, as every rank but rank 0 has."""

    def sampled(self, case: Case, measured: Sequence[Measured], seconds: float) -> None:
        pass

    def closed(self, state: CaseState) -> None:
        pass


def peak_nbytes(ranks: int, batches: int) -> int:
    """The most memory that a session of so many batches takes, on a world of `ranks` ranks."""
    engine = open_engine(ranks=ranks, spec="noise=5%", seed=1)
    cases = plan(engine, collectives=("all_reduce",), sizes_nbytes=(1 << 20,))
    rules = SamplingRules(precision=0.0, budget_seconds=1e9, max_batches=batches)
    session = Session(engine, cases, rules=rules, seed=0, verify=True, observer=Forgetful(), watch=Blind())
    tracemalloc.start()
    session.run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(session.states[0].samples[0].seconds) >= batches
    return peak


def test_what_samples_take_does_not_grow_with_the_ranks_that_have_them():
    for ranks in (2, 4000):
        peak_nbytes(ranks, 1500)  # what is made once, such as the ranks of an interval for every number of samples
    few, many = (peak_nbytes(ranks, 1500) - peak_nbytes(ranks, 500) for ranks in (2, 4000))
    assert 1000 * 8 <= few <= 1000 * 200  # the samples are seen, and a few numbers each
    assert many <= 1.2 * few


def test_a_step_is_expected_to_take_what_the_slowest_call_took() -> None:
    watch, case = Watch(), make_case(nbytes=1 << 20)
    engine = engine_of()
    measure(engine, [case], watch=watch)
    seconds = engine.seconds(case, case.groups[0])
    assert watch.expected[:2] == [case.nbytes(case.groups[0]) / 100e6] * 2  # nothing is known yet
    assert watch.expected[-1] >= seconds
    assert watch.expected[-1] / seconds == pytest.approx(round(watch.expected[-1] / seconds))  # so many calls


class InGraphs(FakeEngine):
    """Counts what is captured, and refuses a barrier."""

    captured: tuple[int, ...] = ()

    def no_graph(self, case: Case) -> str | None:
        return "it waits" if case.collective == "barrier" else None

    def capture(self, call: Call, calls: int) -> Callable[[], object]:
        self.captured += (calls,)
        return super().capture(call, calls)


def test_all_but_the_first_call_are_made_in_graphs() -> None:
    engine = open_engine(ranks=2, spec="nvlink=1us:100GB/s", seed=0)
    engine.__class__ = InGraphs
    cases = build_plan(PlanRequest(("all_reduce", "barrier"), (1024,), ("world",)), engine.world)
    observer = Recording()
    session = Session(engine, cases, rules=SamplingRules(), seed=0, verify=True, observer=observer, watch=Watch(),
                      graph_calls=20)  # fmt: skip
    session.run()
    timed, refused = session.states
    assert (refused.status, refused.reason) == ("unsupported", "it waits")
    assert set(engine.captured) == {20}
    measured = [batches for kind, _, found in observer.events if kind == "sampled" for batches in found]
    assert [batches.calls for batches in measured if batches.kind == "first"] == [(1,)]
    assert all(batches.calls[0] % 20 == 0 for batches in measured if batches.kind != "first")
    per_call = engine.seconds(cases[0], cases[0].groups[0])
    assert timed.samples[0].seconds == pytest.approx([per_call] * len(timed.samples[0].seconds))
