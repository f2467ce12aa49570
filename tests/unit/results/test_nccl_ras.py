"""commbench.results.nccl_ras: every form in which RAS tells of counts and missing ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.results.nccl_ras import Communicator, Launched, RasStatus, parse_ras
from tests.unit.results.ras_samples import BEHIND, CUT_OFF, EVEN, JSON, OLD, STOPPED, json_status

NAME = "0x5a1f00c0ffee0001"


def test_text_without_a_difference_counts_communicators_alone():
    assert parse_ras(EVEN) == RasStatus((), 3)


def test_text_tells_how_many_ranks_have_launched_what_and_who_the_few_are():
    assert parse_ras(BEHIND) == RasStatus(
        (
            Communicator(
                NAME,
                8,
                (
                    Launched("Broadcast", 12, 6),
                    Launched("Broadcast", 0, 2, (1, 6)),
                    Launched("AllReduce", 941, 7),
                    Launched("AllReduce", 940, 1, (3,)),
                ),
            ),
        ),
        3,
    )


def test_a_stopped_process_is_a_missing_rank_and_ranks_of_another_status_are_no_launches():
    status = parse_ras(STOPPED)
    assert status is not None
    launched = (Launched("AllReduce", 77, 6), Launched("AllReduce", 0, 1, (2,)))
    assert status.communicators == (Communicator(NAME, 8, launched, 1, (5,)),)
    assert not status.communicators[0].is_even


def test_the_first_versions_count_all_operations_together():
    status = parse_ras(OLD)
    assert status is not None
    launched = (Launched("", 6650, 4), Launched("", 6649, 2))
    assert status.communicators == (Communicator("0x00000000c0ffee01", 8, launched, 2, (4, 5)),)


@pytest.mark.parametrize(
    "text", ["", "OK\nOK\n", CUT_OFF, "HTTP/1.1 400 Bad Request\n", JSON[: len(JSON) // 2], "{}", "[1]"]
)
def test_what_is_no_whole_status_is_none(text: str):
    assert parse_ras(text) is None


def test_json_names_every_rank():
    status = parse_ras(JSON)
    launched = (
        Launched("AllGather", 3, 3, (0, 1, 2)),
        Launched("AllReduce", 941, 2, (0, 1)),
        Launched("AllReduce", 940, 1, (2,)),
    )
    assert status == RasStatus((Communicator(NAME, 4, launched, 1, (3,)),), 1, frozenset(range(4100, 4103)))


def test_a_rank_that_answers_and_has_left_the_communicator_is_not_missing():
    status = parse_ras(json_status([{"AllReduce": 2}, None], unresponsive=False))
    assert status is not None
    assert status.communicators[0].is_even


@given(
    counts=st.lists(
        st.none() | st.fixed_dictionaries({"AllReduce": st.integers(0, 3), "Broadcast": st.integers(0, 2**63)}),
        min_size=1,
        max_size=12,
    )
)
def test_json_loses_no_rank(counts):
    status = parse_ras(json_status(counts))
    assert status is not None
    [found] = status.communicators
    here = [count for count in counts if count is not None]
    told = {(one.operation, rank): one.calls for one in found.launched for rank in one.members}
    assert found.missing == len(counts) - len(here)
    for rank, count in enumerate(counts):
        for operation, calls in (count or {}).items():
            # One that nobody has launched is left out.
            assert told.get((operation, rank), 0) == calls
    assert found.is_even == (None not in counts and all(count == here[0] for count in here))
    assert all(one.ranks == len(one.members) for one in found.launched)
