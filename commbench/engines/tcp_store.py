"""A rendezvous store that needs no torch: the board of ranks whose engine needs none.

Rank 0 holds it (tcp_server.py); torchrun's agent has a store of torch's at that place, which is used where it is there.
"""

import atexit
import errno
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from commbench.engines import store_words
from commbench.engines.base import Board
from commbench.engines.tcp_server import (
    ANSWERS,
    GREETING,
    LONGEST_WAIT_SECONDS,
    Answer,
    Question,
    Server,
    keep_alive,
    listen,
)
from commbench.errors import RendezvousError

_RETRY_SECONDS = 0.1


class ForeignServiceError(Exception):
    """What answers is no rendezvous of ours."""


class Line:
    """One connection to the host, on which one question is asked at a time."""

    def __init__(self, connection: socket.socket, where: str) -> None:
        self.connection = connection
        self._answers = connection.makefile("rb")
        self._where = where
        self._lock = threading.Lock()

    def ask(self, question: Question) -> Answer:
        try:
            with self._lock:
                self.connection.sendall(msgspec.json.encode(question) + b"\n")
                line = self._answers.readline()
            if not line:
                raise ConnectionResetError(errno.ECONNRESET, "it closed the connection")
            answer = ANSWERS.decode(line)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise RendezvousError(store_words.gone(self._where, _reason(error)), ranks=(0,)) from error
        if answer.refused:
            raise RendezvousError(store_words.refused(self._where, answer.refused), ranks=(0,))
        return answer

    def close(self) -> None:
        with suppress(OSError):  # the other end has closed it
            self.connection.shutdown(socket.SHUT_RDWR)  # wakes a thread that a host keeps waiting
        self._answers.close()
        self.connection.close()


class TcpBoard:
    """Texts by key. Waits have a line of their own, for signs of life go out meanwhile.

    A host that does not answer blocks its caller for as long as that lasts.
    """

    def __init__(self, line: Line, waiting: Line, server: Server | None) -> None:
        self.lines = (line, waiting)
        self.server = server  # on rank 0

    def put(self, key: str, text: str) -> None:
        self._ask(Question("put", [key], text=text))

    def get(self, keys: Sequence[str]) -> list[str]:
        return self._ask(Question("get", list(keys))).texts

    def has(self, key: str) -> bool:
        return bool(self._ask(Question("has", [key])).number)

    def count(self, key: str, more: int) -> int:
        return self._ask(Question("count", [key], more=more)).number

    def wait(self, key: str, seconds: float) -> bool:
        question = Question("wait", [key], seconds=min(seconds, LONGEST_WAIT_SECONDS))
        return bool(self.lines[1].ask(question).number)

    def delete(self, key: str) -> None:
        self._ask(Question("delete", [key]))

    def close(self) -> None:
        """Leave, and let the host know; the host itself waits for the others a little."""
        if self.server:
            self.server.linger(len(self.lines))
        for line in self.lines:
            line.close()

    def _ask(self, question: Question) -> Answer:
        return self.lines[0].ask(question)


def open_board(*, rank: int, size: int, timeout_seconds: float) -> Board:
    """Connect to the store at MASTER_ADDR:MASTER_PORT; rank 0 is its host, unless torchrun's agent is.

    Raises RendezvousError if nobody answers there within `timeout_seconds`, or the port is in use.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        from commbench.engines.torch_store import open_board as open_at_agent

        return open_at_agent(rank=rank, size=size, timeout_seconds=timeout_seconds)
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    where = f"{host}:{port}"
    server = None
    try:
        server = listen(host, port) if rank == 0 else None
        line, waiting = (Line(_connect(host, port, timeout_seconds), where) for _ in range(2))
    except (OSError, ForeignServiceError) as error:
        if server:
            server.end()
        why = _explain(error, rank, where, timeout_seconds)
        raise RendezvousError(f"rank {rank} of {size} {why}.", ranks=(0,) if rank else ()) from error
    board = TcpBoard(line, waiting, server)
    atexit.register(board.close)
    return board


def _connect(host: str, port: int, timeout_seconds: float) -> socket.socket:
    """A connection on which a host of ours has answered. Tries until the time is over: rank 0 may start late.

    Raises ForeignServiceError, or the OSError of the last try.
    """
    gives_up = time.monotonic() + timeout_seconds
    while True:
        left = max(gives_up - time.monotonic(), _RETRY_SECONDS)
        try:
            return _greet(socket.create_connection((host, port), timeout=left))
        except OSError:
            if time.monotonic() + _RETRY_SECONDS > gives_up:
                raise
            time.sleep(_RETRY_SECONDS)


def _greet(connection: socket.socket) -> socket.socket:
    try:
        if (
            connection.getsockname() == connection.getpeername()
        ):  # the kernel chose the very port that nobody listens at
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        connection.sendall(GREETING)
        heard = b""
        while len(heard) < len(GREETING) and GREETING.startswith(heard):
            more = connection.recv(len(GREETING) - len(heard))
            if not more:
                raise ConnectionResetError(errno.ECONNRESET, "it closed the connection")
            heard += more
        if heard != GREETING:
            raise ForeignServiceError
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _explain(error: Exception, rank: int, where: str, timeout_seconds: float) -> str:
    if isinstance(error, ForeignServiceError):
        return store_words.foreign(where)
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return store_words.port_in_use(where)
    if rank and isinstance(error, TimeoutError | ConnectionRefusedError):
        return store_words.no_answer(where, timeout_seconds)
    return store_words.unreachable(where, _reason(error))


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
