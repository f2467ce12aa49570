"""commbench.machine.nccl_ras: where RAS is asked, and that whatever listens there is asked within bounds."""

import socket

import pytest

from commbench.machine.nccl_ras import ask_ras, ras_address
from tests.ras_server import Behaviour, RasServer, answer, flood, other_service, silent

QUESTION = b"CLIENT PROTOCOL 2\nTIMEOUT 1\nSET FORMAT json\nVERBOSE STATUS\n"


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, ("localhost", 28028)),
        ({"NCCL_RAS_ENABLE": "0"}, None),
        ({"NCCL_RAS_ENABLE": "1", "NCCL_RAS_ADDR": "10.0.0.1:1234"}, ("10.0.0.1", 1234)),
        ({"NCCL_RAS_ADDR": "[::1]:1234"}, ("::1", 1234)),
        ({"NCCL_RAS_ADDR": "localhost"}, None),
        ({"NCCL_RAS_ADDR": "localhost:65536"}, None),
        ({"NCCL_RAS_ADDR": ":1234"}, None),
        ({"NCCL_RAS_ADDR": "localhost:١"}, None),
    ],
)
def test_the_address_is_what_the_environment_says(environment: dict[str, str], address: object) -> None:
    assert ras_address(environment) == address


def ask(*behaviours: Behaviour, seconds: float = 5.0) -> tuple[str | None, RasServer]:
    with RasServer(*behaviours) as server:
        return ask_ras({"NCCL_RAS_ADDR": server.address}, seconds), server


def test_it_is_asked_as_its_protocol_wants() -> None:
    text, server = ask(answer("OK\nOK\n{}\n"))
    assert text == "OK\nOK\n{}\n"
    assert server.received == [QUESTION]


def test_one_that_does_not_greet_is_left_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commbench.machine.nccl_ras._GREETING_SECONDS", 0.05)
    text, server = ask(silent, silent, answer("status"))
    assert text == "status"
    assert len(server.received) == 3


def test_where_nobody_greets_time_ends_it() -> None:
    text, server = ask(silent, seconds=0.2)
    assert text == ""
    assert server.received


def test_an_answer_that_does_not_end_is_cut_off_by_time() -> None:
    assert ask(answer("OK\nhalf of a st", then_close=False), seconds=0.3)[0] == "OK\nhalf of a st"


def test_a_flood_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("commbench.machine.nccl_ras._MAX_NBYTES", 1 << 18)
    text, _ = ask(flood)
    assert text is not None
    assert 1 << 18 <= len(text) <= (1 << 18) + (1 << 16)


def test_another_service_is_not_asked() -> None:
    text, server = ask(other_service)
    assert text is None
    assert b"STATUS" not in b"".join(server.received)


@pytest.mark.parametrize("address", ["a..b:1", "no.such.host.invalid:1", ""])
def test_an_address_that_is_none_is_no_service(address: str) -> None:
    assert ask_ras({"NCCL_RAS_ADDR": address}) is None


def test_a_port_where_nobody_listens_is_no_service() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert ask_ras({"NCCL_RAS_ADDR": f"127.0.0.1:{port}"}) is None
