"""commbench.measure.whereabouts: who is missing, from two looks at everybody's beats."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.measure.heartbeat import Beat
from commbench.measure.whereabouts import describe_failure, describe_stall, find_ranks, name_ranks

HOSTS = ["n1", "n1", "n2", "n3"]
CASE = "all_reduce 16 MiB float32 sum on the world"


def _beats(*positions: int, number: int = 7, **changed: Beat) -> dict[int, Beat]:
    beats = {rank: Beat(number, position, CASE) for rank, position in enumerate(positions)}
    return beats | {int(rank.removeprefix("rank")): beat for rank, beat in changed.items()}


BEFORE = _beats(40, 40, 40, 40, number=5)


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (_beats(40, 40, 40, 40), ((), (), (), (0, 1, 2, 3))),
        (_beats(40, 40, 40, 40, rank2=Beat(5, 40, CASE)), ((2,), (), (), (0, 1, 3))),
        (_beats(40, 39, 40, 40), ((), (), (1,), (0, 2, 3))),
        (_beats(40, 40, 40, 40, rank3=Beat(5, 40, CASE, failed="reset")), ((), (3,), (), (0, 1, 2))),
        (_beats(40, 39, 40, 40, rank2=Beat(5, 50, CASE)), ((2,), (), (1,), (0, 3))),  # the dead do not lead
    ],
)
def test_find_ranks(after: Mapping[int, Beat], found: tuple[tuple[int, ...], ...]) -> None:
    where = find_ranks(BEFORE, after)
    assert (where.silent, where.failed, where.behind, where.arrived) == found


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.booleans()), min_size=1, max_size=9))
def test_every_rank_is_in_one_place(ranks: list[tuple[int, int, bool]]) -> None:
    before = {rank: Beat(3, 0, "") for rank in range(len(ranks))}
    after = {rank: Beat(3 + more, at, "", "x" if bad else "") for rank, (more, at, bad) in enumerate(ranks)}
    where = find_ranks(before, after)
    assert sorted([*where.silent, *where.failed, *where.behind, *where.arrived]) == list(range(len(ranks)))


def test_name_ranks() -> None:
    assert name_ranks([0, 1, 3], HOSTS) == "ranks 0-1 on n1, rank 3 on n3"


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (
            _beats(40, 40, 40, 40, rank2=Beat(5, 39, "all_gather 1 KiB float32 on the world")),
            "rank 2 on n2 gives no sign of life, last seen in all_gather 1 KiB float32 on the world; "
            "ranks 0-1 on n1, rank 3 on n3 have arrived",
        ),
        (
            _beats(40, 39, 40, 40, rank1=Beat(7, 39, "", stack="  File x, line 1, in write\n")),
            "rank 1 on n1 is alive but has not arrived, still between two collectives; "
            "rank 0 on n1, rank 2 on n2, rank 3 on n3 have arrived\n  File x, line 1, in write\n",
        ),
        (
            _beats(40, 40, 40, 40, rank2=Beat(5, 40, CASE), rank3=Beat(5, 40, CASE)),
            f"rank 2 on n2, rank 3 on n3 give no sign of life, last seen in {CASE} "
            "(all nodes but n1: the link of n1 itself may be down); ranks 0-1 on n1 have arrived",
        ),
        (
            _beats(40, 40, 40, 40),
            "all ranks are alive and have arrived, so look at the links between them, and at the library",
        ),
    ],
)
def test_describe_stall(after: Mapping[int, Beat], sentence: str) -> None:
    assert describe_stall(find_ranks(BEFORE, after), after, HOSTS, me=0) == sentence


def test_describe_failure_names_who_is_silent_not_who_was_told() -> None:
    after = _beats(40, 40, 40, 40, rank1=Beat(7, 40, CASE, failed="reset"), rank3=Beat(5, 40, CASE))
    assert describe_failure(find_ranks(BEFORE, after), after, HOSTS, 0) == (
        f"rank 3 on n3 gives no sign of life, last seen in {CASE}"
    )


def test_describe_failure_of_a_connection() -> None:
    after = _beats(40, 40, 40, 40, rank1=Beat(7, 40, CASE, failed="reset"), rank2=Beat(7, 40, CASE, failed="reset"))
    assert describe_failure(find_ranks(BEFORE, after), after, HOSTS, 0) == (
        "all ranks are alive, so a connection between rank 1 on n1, rank 2 on n2 broke: look at their links"
    )
