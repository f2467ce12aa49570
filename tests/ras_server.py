"""What stands in for NCCL's RAS: a service on loopback that greets and answers as it does, or misbehaves."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

Behaviour = Callable[["RasServer", socket.socket], None]


class RasServer:
    """Each connection gets the next of `behaviours`, and when there is one left all others get that one."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = list(behaviours)
        self.received: list[bytes] = []  # on each connection
        self.closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._serve)]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        self.closing.set()
        with socket.create_connection(self._listener.getsockname()):  # wakes the one that accepts
            pass
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def hear(self, connection: socket.socket, last: bytes) -> None:
        """Receive until `last` is there, or the other side has closed."""
        while not self.received[-1].endswith(last) and (piece := connection.recv(4096)):
            self.received[-1] += piece

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            if self.closing.is_set():
                connection.close()
                return
            behaviour = self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]
            self.received.append(b"")
            self._threads.append(threading.Thread(target=self._behave, args=(behaviour, connection)))
            self._threads[-1].start()

    def _behave(self, behaviour: Behaviour, connection: socket.socket) -> None:
        with connection, suppress(OSError):  # the other side may go
            behaviour(self, connection)


def silent(server: RasServer, _connection: socket.socket) -> None:
    """As a process that is stopped: the system accepts for it."""
    server.closing.wait()


def flood(server: RasServer, connection: socket.socket) -> None:
    _greet(server, connection)
    while not server.closing.is_set():
        connection.sendall(b"#0-0 (1) MISMATCH\n" * 4096)


def other_service(_server: RasServer, connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")


def answer(text: str, then_close: bool = True) -> Behaviour:
    def behave(server: RasServer, connection: socket.socket) -> None:
        _greet(server, connection)
        server.hear(connection, b"VERBOSE STATUS\n")
        connection.sendall(text.encode())
        if not then_close:
            server.closing.wait()

    return behave


def _greet(server: RasServer, connection: socket.socket) -> None:
    server.hear(connection, b"\n")
    connection.sendall(b"SERVER PROTOCOL 2\n")
