"""commbench.measure.flight: the sentences, and what is asked for them."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from commbench.measure.flight import describe_flight, describe_ras, explain_hang
from commbench.results.flight_recorder import GroupProgress, parse_flight
from commbench.results.nccl_ras import RasStatus, parse_ras
from tests.ras_server import RasServer, answer, silent
from tests.unit.results.ras_samples import BEHIND, EVEN, JSON, OLD, STOPPED, json_status
from tests.unit.results.test_flight_recorder import dump

NAME = "0x5a1f00c0ffee0001"
SAME = (
    "all ranks have launched the same number of collectives; those in CUDA graphs, sends and receives are not counted."
)


def say(text: str, pid: int = 4100) -> str:
    status = parse_ras(text)
    assert status is not None
    return describe_ras(status, pid)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            BEHIND,
            f"RAS: communicator {NAME} (8 ranks): 6 ranks have launched 12 Broadcast, ranks 1,6 0, "
            "7 ranks have launched 941 AllReduce, rank 3 940.",
        ),
        (
            STOPPED,
            f"RAS: communicator {NAME} (8 ranks): 6 ranks have launched 77 AllReduce, rank 2 0, rank 5 gave no answer.",
        ),
        (
            OLD,
            "RAS: communicator 0x00000000c0ffee01 (8 ranks): 4 ranks have launched 6650 collectives, 2 ranks 6649, "
            "ranks 4-5 gave no answer.",
        ),
        (
            JSON,
            f"RAS: communicator {NAME} (4 ranks): ranks 0-2 have launched 3 AllGather, "
            "ranks 0-1 have launched 941 AllReduce, rank 2 940, rank 3 gave no answer.",
        ),
        (
            json_status([{"AllReduce": 5}, {"AllReduce": 5}]),
            f"RAS: communicator {NAME} (2 ranks): ranks 0-1 have launched 5 AllReduce.",
        ),
        (
            json_status([{"AllReduce": 0}, {"AllReduce": 0}]),
            f"RAS: in the only communicator {SAME}",
        ),
        (EVEN, f"RAS: in each of 3 communicators {SAME}"),
    ],
)
def test_who_has_launched_what_and_who_is_missing(text: str, sentence: str) -> None:
    assert say(text) == sentence


def test_the_status_of_another_job_is_not_told() -> None:
    assert say(JSON, pid=1) == ""


def test_many_communicators_are_counted() -> None:
    [one] = parse_ras(JSON).communicators  # type: ignore[union-attr]
    told = describe_ras(RasStatus((one,) * 5, 7), 1)
    assert told.count(NAME) == 3
    assert told.endswith("; and in 2 more communicators.")


def test_lists_and_differences_are_bounded() -> None:
    scattered = [{"AllReduce": 5 - rank % 2} for rank in range(200)]
    assert say(json_status(scattered)) == (
        f"RAS: communicator {NAME} (200 ranks): 100 ranks have launched 5 AllReduce, 100 ranks 4."
    )
    assert say(json_status([{"AllReduce": 9 - rank} for rank in range(8)])) == (
        f"RAS: communicator {NAME} (8 ranks): rank 0 has launched 9 AllReduce, rank 1 8, rank 2 7, rank 3 6, "
        "4 ranks other numbers."
    )


def test_a_group_that_waits_is_told_of_and_one_that_does_not_is_left_out() -> None:
    assert describe_flight([GroupProgress(3, None, 3)], 0) == ""
    assert describe_flight([GroupProgress(41, None, 40), GroupProgress(3, None, 3), GroupProgress(12, 12, 11)], 5) == (
        "Flight recorder of rank 5: of 41 collectives enqueued in a group, 40 completed; "
        "of 12 collectives enqueued in another, 12 have started and 11 completed."
    )
    assert describe_flight([GroupProgress(2, None, 1)] * 4, 0).endswith("1 completed; and in 1 more groups.")


def engine(backend: str = "nccl", record: str = "") -> Any:
    return SimpleNamespace(backend=backend, ranks=(0,), flight_record=lambda: record)


def test_both_are_asked() -> None:
    with RasServer(answer(json_status([{"AllReduce": 5}, {"AllReduce": 4}], first_pid=os.getpid()))) as ras:
        said = explain_hang(engine(record=dump(("5", "-1", "4"))), {"NCCL_RAS_ADDR": ras.address})
    assert said == (
        "Flight recorder of rank 0: of 5 collectives enqueued in a group, 4 completed. "
        f"RAS: communicator {NAME} (2 ranks): rank 0 has launched 5 AllReduce, rank 1 4."
    )


def test_nothing_is_asked_where_nothing_is_nccls() -> None:
    with RasServer(silent) as ras:
        assert explain_hang(engine("gloo", dump((5, 5, 4))), {"NCCL_RAS_ADDR": ras.address}) == ""
        assert ras.received == []


def test_a_ras_that_says_nothing_is_told_and_none_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert explain_hang(engine(), {"NCCL_RAS_ENABLE": "0"}) == ""
    monkeypatch.setattr("commbench.measure.flight.ask_ras", lambda environment: "OK\nOK\nNCCL version")
    assert explain_hang(engine(), {}) == "RAS: no readable status within 2 s."
    assert parse_flight(engine().flight_record()) == ()
