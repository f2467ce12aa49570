"""commbench.measure.monitor: who speaks, and what of, when a rank is stopped, dead, late, or gone with the board."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from commbench.measure.monitor import Blame, Monitor
from tests.unit.boards import MemoryBoard

HOSTS = ["n1", "n2", "n3"]
CASE = "all_reduce 1 KiB float32 sum on the world"


class Ranks:
    """Three ranks that beat fast, on one board; rank r is at position `at[r]`."""

    def __init__(self) -> None:
        self.board = MemoryBoard()
        self.at = [5, 5, 5]
        self.monitors = [
            Monitor(self.board, rank, len(HOSTS), self._look(rank), speaks_second=rank == 1) for rank in range(3)
        ]
        for monitor in self.monitors:
            monitor.meet(HOSTS)

    def silence(self, rank: int) -> None:
        """As SIGSTOP or SIGKILL would."""
        self.monitors[rank].stop()

    def together(self, *calls: Callable[[], Blame]) -> list[Blame]:
        found: dict[int, Blame] = {}
        threads = [
            threading.Thread(target=lambda place=place, call=call: found.update({place: call()}))  # type: ignore[misc]
            for place, call in enumerate(calls)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        return [found[place] for place in range(len(calls))]

    def _look(self, rank: int) -> Callable[[], tuple[int, str]]:
        return lambda: (self.at[rank], CASE)


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ranks]:
    monkeypatch.setattr("commbench.measure.heartbeat._MIN_INTERVAL_SECONDS", 0.2)
    started = Ranks()
    yield started
    started.board.answers.set()
    for monitor in started.monitors:
        monitor.stop()


def test_a_silent_rank_is_named_by_rank_0_alone(ranks: Ranks) -> None:
    ranks.silence(2)
    first, second = ranks.together(ranks.monitors[0].blame_stall, ranks.monitors[1].blame_stall)
    assert first == Blame(
        f"rank 2 on n3 gives no sign of life, last seen in {CASE}; rank 0 on n1, rank 1 on n2 have arrived", ranks=(2,)
    )
    assert second == Blame(first.text, is_quiet=True)


def test_a_silent_rank_0_is_named_by_the_second(ranks: Ranks) -> None:
    ranks.silence(0)
    second, third = ranks.together(ranks.monitors[1].blame_stall, ranks.monitors[2].blame_stall)
    assert second.text.startswith(f"rank 0 on n1 gives no sign of life, last seen in {CASE}")
    assert (second.is_quiet, third.is_quiet) == (False, True)


def test_a_late_rank_is_named_with_its_stack(ranks: Ranks) -> None:
    ranks.at[1] = 4
    found = ranks.monitors[0].blame_stall()
    assert "rank 1 on n2 is alive but has not arrived" in found.text
    assert "File " in found.text


def test_a_failure_reaches_those_that_wait_for_it(ranks: Ranks) -> None:
    ranks.silence(2)
    assert ranks.monitors[0].alarm == ""
    first, second = ranks.together(
        lambda: _after(lambda: ranks.monitors[0].alarm, lambda: ranks.monitors[0].blame_failure("told")),
        lambda: ranks.monitors[1].blame_failure("Connection reset by peer"),
    )
    assert ranks.monitors[0].alarm == "Connection reset by peer"
    assert first.text == f"rank 2 on n3 gives no sign of life, last seen in {CASE}"
    assert second == Blame(first.text, is_quiet=True)


@pytest.mark.parametrize("how", ["gone", "stuck"])
def test_without_the_board_it_is_its_host_that_is_missing(how: str, ranks: Ranks) -> None:
    if how == "gone":
        ranks.board.gone = True
    else:
        ranks.board.answers.clear()
    second, third = ranks.together(ranks.monitors[1].blame_stall, ranks.monitors[2].blame_stall)
    assert second == Blame("rank 0 on n1 does not answer: it has died, is stopped, or its link is down", ranks=(0,))
    assert third.is_quiet


def test_the_rank_that_speaks_asks_the_library_before_the_others_end(ranks: Ranks) -> None:
    verdicts: list[str] = []

    def ask() -> str:
        verdicts.append(ranks.monitors[1].verdict)
        return "RAS: rank 2 has launched 5 AllReduce, ranks 0-1 6."

    for monitor in ranks.monitors:
        monitor.ask_library = ask
    first, second = ranks.together(ranks.monitors[0].blame_stall, ranks.monitors[1].blame_stall)
    assert first.library == "RAS: rank 2 has launched 5 AllReduce, ranks 0-1 6."
    assert second == Blame(first.text, is_quiet=True)
    assert verdicts == [""]


@pytest.mark.parametrize("how", ["stuck", "gone"])
def test_a_library_that_does_not_answer_holds_up_nobody(
    how: str, ranks: Ranks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("commbench.measure.monitor._LIBRARY_SECONDS", 0.05)
    answers = threading.Event()
    ranks.monitors[0].ask_library = lambda: str(answers.wait())
    ranks.board.gone = how == "gone"
    found = ranks.monitors[0].blame_stall()
    answers.set()
    assert found.library == ""
    assert found.text


def _after(condition: Callable[[], object], call: Callable[[], Blame]) -> Blame:
    give_up = time.monotonic() + 5
    while not condition() and time.monotonic() < give_up:
        time.sleep(0.01)
    return call()
