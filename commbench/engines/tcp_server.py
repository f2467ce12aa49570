"""The host of a rendezvous store that needs no torch: texts by key, asked for over TCP, a JSON line each way.

A line that is no question closes its connection, and nothing else.
"""

import errno
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import msgspec

from commbench.machine.network import is_loopback

GREETING = b"commbench rendezvous 1\n"
LINE_LIMIT_NBYTES = 64 << 20
_GREETING_SECONDS = 10.0
_BACKLOG = 4096  # the kernel takes as many of them as somaxconn says
# A host that vanishes is noticed after half a minute: by probes or, with something on the way, as nothing is answered.
_QUIET_SECONDS, _PROBE_SECONDS, _PROBES = 15, 5, 3
_LINGER_SECONDS = 2.0
_NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

_MOST = 1 << 53
_Whole = Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)]
LONGEST_WAIT_SECONDS = 1e6
_Patience = Annotated[float, msgspec.Meta(ge=0.0, le=LONGEST_WAIT_SECONDS)]


class Question(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a rank wants of `keys`; all but get and delete want it of the first."""

    do: Literal["put", "get", "has", "count", "wait", "delete"]
    keys: list[str]
    text: str = ""
    more: _Whole = 0
    seconds: _Patience = 0.0


class Answer(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """`refused`: why there is none."""

    texts: list[str] = []
    number: int = 0
    refused: str = ""


QUESTIONS, ANSWERS = msgspec.json.Decoder(Question), msgspec.json.Decoder(Answer)


class Texts:
    """Texts by key, for many threads."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._change = threading.Condition()
        self._do: dict[str, Callable[[Question], Answer]] = {
            "put": self._put, "get": self._get, "has": self._has, "count": self._count, "wait": self._wait,
            "delete": self._delete,
        }  # fmt: skip

    def answer(self, question: Question) -> Answer:
        """Does what is asked; only `wait` takes longer than a moment."""
        with self._change:
            try:
                return self._do[question.do](question)
            except (LookupError, ValueError) as error:
                return Answer(refused=f"cannot {question.do}: {error}")

    def _put(self, question: Question) -> Answer:
        self._set(question.keys[0], question.text)
        return Answer()

    def _get(self, question: Question) -> Answer:
        return Answer(texts=[self._texts[key] for key in question.keys])

    def _has(self, question: Question) -> Answer:
        return Answer(number=int(question.keys[0] in self._texts))

    def _count(self, question: Question) -> Answer:
        key = question.keys[0]
        number = int(self._texts.get(key, "0")) + question.more
        if abs(number) > _MOST:
            raise ValueError(f"{key} is too large")
        self._set(key, str(number))
        return Answer(number=number)

    def _wait(self, question: Question) -> Answer:
        key = question.keys[0]
        return Answer(number=int(self._change.wait_for(lambda: key in self._texts, question.seconds)))

    def _delete(self, question: Question) -> Answer:
        for key in question.keys:
            self._texts.pop(key, None)
        return Answer()

    def _set(self, key: str, text: str) -> None:
        is_new = key not in self._texts
        self._texts[key] = text
        if is_new:
            self._change.notify_all()


class _Connection(socketserver.StreamRequestHandler):
    """The questions of one line, one after the other, until it is gone or says something that is none."""

    disable_nagle_algorithm = True
    server: "Server"

    def handle(self) -> None:
        try:
            keep_alive(self.request)
            if self._greets():
                self._answer_all()
        except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
            return  # it is gone, or that was no question

    def _greets(self) -> bool:
        self.request.settimeout(_GREETING_SECONDS)
        is_ours = self.rfile.readline(len(GREETING)) == GREETING
        self.wfile.write(GREETING)  # also to others, who see then whom they have found
        self.request.settimeout(None)
        return is_ours

    def _answer_all(self) -> None:
        with self.server.counted():
            while (line := self.rfile.readline(LINE_LIMIT_NBYTES)).endswith(b"\n"):
                self.wfile.write(msgspec.json.encode(self.server.texts.answer(QUESTIONS.decode(line))) + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """Answers from now on, in threads, until the process ends."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = _BACKLOG

    def __init__(self, family: socket.AddressFamily, address: str, port: int) -> None:
        self.address_family = family
        self.texts = Texts()
        self._lines = 0
        self._leaving = threading.Condition()
        super().__init__((address, port), _Connection)
        threading.Thread(target=self.serve_forever, name="commbench-rendezvous", daemon=True).start()

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """One more line is open during the body."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def end(self) -> None:
        """Answer no more calls, and free the port."""
        self.shutdown()
        self.server_close()

    def linger(self, own: int) -> None:
        """Wait until no line but so many `own` ones are open: others may have a last question. At most a moment."""
        with self._leaving:
            self._leaving.wait_for(lambda: self._lines <= own, _LINGER_SECONDS)

    def _count(self, more: int) -> None:
        with self._leaving:
            self._lines += more
            self._leaving.notify_all()


def listen(host: str, port: int) -> Server:
    """A server at that port of this machine; where `host` is its loopback address, for this machine alone.

    Raises OSError, of EADDRINUSE where the port is in use.
    """
    places = [(socket.AF_INET6, "::"), (socket.AF_INET, "")]
    if is_loopback(host):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        places = [(family, str(address[0])) for family, _, _, _, address in found]
    refusal = OSError(errno.EADDRNOTAVAIL, f"{host} has no address")
    for family, address in places:
        try:
            return Server(family, address, port)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            refusal = error
    raise refusal


def keep_alive(connection: socket.socket) -> None:
    """Let the kernel notice that the other end has vanished without a word."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        (socket.TCP_KEEPIDLE, _QUIET_SECONDS),
        (socket.TCP_KEEPINTVL, _PROBE_SECONDS),
        (socket.TCP_KEEPCNT, _PROBES),
        (socket.TCP_USER_TIMEOUT, (_QUIET_SECONDS + _PROBE_SECONDS * _PROBES) * 1000),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
