"""The rendezvous store is sent damaged questions: each is answered or its connection closed, and the next is served."""

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.engines.tcp_server import GREETING, Server, listen

QUESTIONS = (
    b'{"do":"put","keys":["a"],"text":"b"}\n',
    b'{"do":"get","keys":["a","c"]}\n',
    b'{"do":"count","keys":["n"],"more":1}\n',
    b'{"do":"delete","keys":["a"]}\n',
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = listen("127.0.0.1", 0)
    made.failures = []  # type: ignore[attr-defined]
    made.handle_error = lambda *which: made.failures.append(sys.exception())  # type: ignore[attr-defined,method-assign]
    yield made
    made.end()


@given(data=st.data())
def test_damaged_questions(server: Server, data: st.DataObject) -> None:
    text = bytearray(b"".join(data.draw(st.lists(st.sampled_from(QUESTIONS), min_size=1, max_size=4))))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    assert ask(server, GREETING + text).startswith(GREETING)
    assert ask(server, GREETING + b'{"do":"put","keys":["k"],"text":"v"}\n{"do":"get","keys":["k"]}\n').endswith(
        b'{"texts":["v"]}\n'
    )
    assert server.failures == []  # type: ignore[attr-defined]


@given(st.binary(max_size=64))
def test_no_greeting_no_answer(server: Server, said: bytes) -> None:
    assert ask(server, said + QUESTIONS[0]) in (b"", GREETING)
    assert server.failures == []  # type: ignore[attr-defined]


def ask(server: Server, said: bytes) -> bytes:
    heard = b""
    with socket.create_connection(server.server_address[:2], timeout=10.0) as connection:
        with suppress(OSError):  # it is closed while we are talking
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while more := connection.recv(1 << 16):
                heard += more
    return heard
