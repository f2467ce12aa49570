"""Orders and answers over a board: ranks that answer, one that does not, and a conductor that is gone."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from commbench.engines.base import Call
from commbench.engines.fake import FakeEngine, open_engine
from commbench.launch.environment import RankPlace
from commbench.machine.facts import Facts, HostFacts
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from commbench.plan.trials import Trial, TrialResult, pair_trials
from commbench.preflight import bench as bench_module
from commbench.preflight.bench import LiveBench, PaperBench, follow
from commbench.preflight.trials import TrialRunner, merge_answers
from tests.unit.boards import MemoryBoard

SIZE = 4
MACHINE = "ranks-per-node=1,net=10us:10GB/s"


def engine_of(rank: int) -> FakeEngine:
    engine = open_engine(ranks=SIZE, spec=MACHINE, seed=0)
    engine.ranks = (rank,)
    return engine


def facts_of(rank: int) -> Facts:
    return replace(Facts(), host=HostFacts(name=f"n{rank}"))


class Followers:
    """Threads in place of the other ranks; those in `mute` never start."""

    def __init__(self, board: MemoryBoard, mute: tuple[int, ...] = ()) -> None:
        self.codes: dict[int, int] = {}
        self.threads = [
            threading.Thread(target=self._follow, args=(board, rank), daemon=True)
            for rank in range(1, SIZE)
            if rank not in mute
        ]
        for thread in self.threads:
            thread.start()

    def _follow(self, board: MemoryBoard, rank: int) -> None:
        place = RankPlace("Slurm", rank, SIZE, 0, 1, "n0", 1)
        self.codes[rank] = follow(board, engine_of(rank), place, lambda: facts_of(rank), lambda: None)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(5.0)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(bench_module, "_GRACE_SECONDS", 0.3)
    monkeypatch.setattr(bench_module, "_LAST_SECOND", 0.1)
    return


def test_everybody_answers() -> None:
    board = MemoryBoard()
    followers = Followers(board)
    bench = LiveBench(board, engine_of(0), lambda: facts_of(0), lambda ranks: "loopback")
    [there, back] = bench.run([Trial("broadcast", 1 << 20, ((0, 1), (2, 3)), samples=2),
                               Trial("broadcast", 1 << 20, ((1, 0), (3, 2)), samples=2)], 1.0)  # fmt: skip
    expected = 1e-5 + (1 << 20) / 10e9  # one step of alpha, and the bytes at the rate of the net
    for result in (*there, *back):
        assert result.seconds == pytest.approx((expected, expected))
    assert bench.silent == frozenset()
    assert sorted(facts.host.name for facts in bench.read_facts(1.0)) == ["n0", "n1", "n2", "n3"]
    bench.end(1)
    followers.join()
    assert followers.codes == {1: 1, 2: 1, 3: 1}
    assert not [key for key in board.texts if key.startswith("answer/")]


def test_who_is_silent_is_named_and_the_others_go_on() -> None:
    board = MemoryBoard()
    followers = Followers(board, mute=(2,))
    bench = LiveBench(board, engine_of(0), lambda: facts_of(0), lambda ranks: "loopback")
    for _ in range(2):
        [[good, bad]] = bench.run([Trial("broadcast", 1 << 20, ((0, 1), (2, 3)), samples=1)], 0.1)
        assert good.seconds
        assert (bad.seconds, bad.reason) == ((), "no answer from rank 2")
        assert bench.silent == {2}
    bench.end(0)
    followers.join()
    assert followers.codes == {1: 0, 3: 0}


class Fragile(FakeEngine):
    """An engine in which all that has rank 3 in it fails."""

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        if 3 in group.ranks:
            raise ConnectionError("connection closed by peer")
        return super().prepare(case, group, me)


def test_after_a_failure_nothing_more_is_tried_in_that_group() -> None:
    engine = open_engine(ranks=SIZE, spec=MACHINE, seed=0)
    fragile = Fragile(engine.world, engine.machine)
    fragile.transport_errors = (ConnectionError,)
    results = PaperBench(fragile, fragile.clock).run(pair_trials([(0, 1), (2, 3)], 1 << 20, 2), 1.0)
    assert [bool(trial[0].seconds) for trial in results] == [True] * 3
    assert [trial[1].reason for trial in results] == ["connection closed by peer"] * 3


def test_a_sample_is_as_slow_as_its_slowest_rank() -> None:
    trial = Trial("broadcast", 8, ((0, 1),), samples=2)
    answers = {0: [{0: TrialResult((1.0, 4.0), 1)}], 1: [{0: TrialResult((3.0, 2.0), 2)}]}
    assert merge_answers([trial], answers) == [[TrialResult((3.0, 4.0), 3)]]


def test_one_rank_s_failure_is_the_group_s() -> None:
    trial = Trial("broadcast", 8, ((0, 1),), samples=1)
    answers = {0: [{0: TrialResult((1.0,))}], 1: [{0: TrialResult(reason="timed out")}]}
    assert merge_answers([trial], answers) == [[TrialResult(reason="timed out")]]


def test_buffers_grow_with_what_is_asked() -> None:
    engine = open_engine(ranks=SIZE, spec=MACHINE, seed=0)
    sizes: list[tuple[int, int]] = []
    engine.allocate = lambda send, receive: sizes.append((send, receive))  # type: ignore[method-assign]
    engine.buffer_nbytes = lambda case: (case.requested_nbytes, 8)  # type: ignore[method-assign]
    runner = TrialRunner(engine)
    for nbytes in (64, 1024, 32):
        runner.run([Trial("broadcast", nbytes, ((0, 1),), samples=1)], 1.0)
    assert sizes == [(64, 8), (1024, 8)]
