"""commbench.results.flight_recorder: counts of torch's flight recorder, as old and as new torch write them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.results.flight_recorder import GroupProgress, parse_flight


def dump(*groups: tuple[object, object, object]) -> str:
    """What torch writes of process groups that are at (enqueued, started, completed)."""
    names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
    status = {str(place): dict(zip(names, group, strict=True)) for place, group in enumerate(groups)}
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}
    return json.dumps({"version": "2.10", "comm_lib_version": "2.27.5", "pg_config": config, "pg_status": status})


def test_numbers_as_strings_and_as_numbers() -> None:
    assert parse_flight(dump(("41", "-1", "40"), (7, 7, 6))) == (GroupProgress(41, None, 40), GroupProgress(7, 7, 6))


def test_a_group_that_has_done_nothing_is_at_zero() -> None:
    assert parse_flight(dump(("-1", "-1", "-1"))) == (GroupProgress(0, None, 0),)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"pg_status": {}}', '{"pg_status": null}', dump(("x", "y", "z")), "[" * 100_000]
)
def test_what_says_nothing_is_nothing(text: str) -> None:
    assert parse_flight(text) == ()


@given(text=st.text(max_size=60) | st.builds(dump, st.tuples(*[st.integers() | st.text(max_size=5)] * 3)))
def test_any_text_is_counts_or_nothing(text: str) -> None:
    assert all(group.enqueued >= 0 and group.completed >= 0 for group in parse_flight(text))
