"""commbench.measure.rollcall: who did not come, and who came with something else."""

import threading
from collections.abc import Sequence

import pytest

from commbench.errors import RendezvousError
from commbench.measure.rollcall import Presence, Roll, call_roll, compare, explain_missing
from tests.unit.boards import MemoryBoard

SAME = {"commbench": "1.0", "torch": "2.4"}


def _call(ranks: Sequence[int], expected: Sequence[str], presences: dict[int, Presence]) -> dict[int, object]:
    """Every rank of `ranks` calls the roll in a thread; what each got: a Roll or an error."""
    board, results = MemoryBoard(), {}

    def come(rank: int) -> None:
        try:
            results[rank] = call_roll(board, rank, presences[rank], expected, 0.3, speaks=rank == 1)
        except RendezvousError as error:
            results[rank] = error

    threads = [threading.Thread(target=come, args=(rank,)) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def _here(rank: int, order: str = "a", **versions: str) -> Presence:
    return Presence(f"n{rank + 1}", {**SAME, **versions}, order)


def test_all_come() -> None:
    results = _call(range(3), ["?"] * 3, {rank: _here(rank) for rank in range(3)})
    assert all(result == Roll(("n1", "n2", "n3"), ()) for result in results.values())


def test_one_does_not_come_and_only_rank_0_says_so() -> None:
    results = _call([0, 1], ["?"] * 3, {rank: _here(rank) for rank in range(2)})
    errors = [results[0], results[1]]
    assert all(isinstance(error, RendezvousError) for error in errors)
    assert [getattr(error, "is_quiet") for error in errors] == [False, True]  # noqa: B009
    assert "rank 2 on a host that the launcher does not name did not come within 0.3 s" in str(errors[1])


def test_rank_0_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commbench.measure.rollcall._ANSWER_SECONDS", 0.0)
    results = _call([1, 2], ["?"] * 3, {rank: _here(rank) for rank in (1, 2)})
    assert "did not say within 0.3 s who is here" in str(results[1])
    assert [results[rank].is_quiet for rank in (1, 2)] == [False, True]  # type: ignore[attr-defined]


def test_explain_missing_knows_the_hosts_that_the_launcher_named() -> None:
    came = {0: _here(0), 3: Presence("n2", SAME, "a")}
    assert explain_missing(came, ["n1", "n1", "?", "n2"], 8.0) == (
        "rank 1 on n1 and rank 2 on a host that the launcher does not name did not come within 8 s: 2 of 4 ranks are "
        "here, rank 0 on n1, rank 3 on n2; look whether the others were started, and whether they reach this host."
    )


@pytest.mark.parametrize(
    ("came", "error", "warnings"),
    [
        ({0: _here(0), 1: _here(1)}, "", []),
        (
            {0: _here(0), 1: _here(1, commbench="1.1"), 2: _here(2)},
            "rank 1 on n2 has commbench 1.1, the other ranks have 1.0; the ranks would not do the same: install the "
            "same version on every node.",
            [],
        ),
        (
            {0: _here(0), 1: _here(1, torch="2.5"), 2: _here(2)},
            "",
            ["rank 1 on n2 has torch 2.5, the other ranks have 2.4; numbers may mix two behaviours."],
        ),
        (
            {0: _here(0), 1: _here(1), 2: _here(2, "b")},
            "rank 2 on n3 has another command line than the other ranks; start all ranks with the same options.",
            [],
        ),
    ],
)
def test_compare_names_the_minority(came: dict[int, Presence], error: str, warnings: list[str]) -> None:
    assert compare(came) == (error, warnings)
