"""The store that needs no torch: whom it lets in, whom it does not, and how it ends."""

import atexit
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from commbench.engines import tcp_server, torch_store
from commbench.engines.tcp_server import GREETING, Server, listen
from commbench.engines.tcp_store import TcpBoard, _greet, open_board
from commbench.errors import RendezvousError
from tests.conftest import REPOSITORY

Join = Callable[[], TcpBoard]


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    made = listen("127.0.0.1", 0)
    yield made
    made.end()


@pytest.fixture
def server(one_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server on a free port, at which MASTER_ADDR and MASTER_PORT point."""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", str(one_server.server_address[1]))
    return one_server


@pytest.fixture
def join() -> Iterator[Join]:
    """Opens boards of a rank that is not the first."""
    boards = []

    def join() -> TcpBoard:
        board = open_board(rank=1, size=2, timeout_seconds=5.0)
        assert isinstance(board, TcpBoard)
        boards.append(board)
        return board

    yield join
    for board in boards:
        board.close()
        atexit.unregister(board.close)


def talk(server: Server, *said: bytes) -> bytes:
    """All that the server says to that, until it closes the connection; that may be while we are talking."""
    heard = b""
    with socket.create_connection(server.server_address[:2], timeout=10.0) as connection:
        with suppress(ConnectionError):
            connection.sendall(b"".join(said))
        with suppress(ConnectionError):
            while more := connection.recv(1 << 16):
                heard += more
    return heard


QUESTION = b'{"do":"has","keys":["never"]}\n'


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\x00\n",
        b"GET / HTTP/1.1\n",
        b"[" * 100_000 + b"\n",
        b'{"do":"has","keys":[' + b"[" * 100_000 + b"\n",
        b'{"do":"has","keys":"a"}\n',
        b'{"do":"eval","keys":["a"]}\n',
        b'{"do":"has","keys":["a"],"more":1e999}\n',
        b'{"do":"wait","keys":["a"],"seconds":1e300}\n',
        b'{"do":"count","keys":["a"],"more":' + b"9" * 5000 + b"}\n",
        b'{"do":"has","keys":["a"],"x":' + b"[" * 100_000 + b"\n",
        b'{"do":"put","keys":["a"],"text":"\xed\xa0\x80"}\n',
    ],
)
def test_what_is_no_question_closes_its_connection_and_no_other(
    garbage: bytes, server: Server, join: Join, capfd: pytest.CaptureFixture[str]
) -> None:
    board = join()
    assert talk(server, GREETING, QUESTION, garbage, QUESTION) == GREETING + b"{}\n"
    board.put("a", "still there")
    assert join().get(["a"]) == ["still there"]
    assert capfd.readouterr().err == ""


def test_who_does_not_greet_is_told_whom_he_has_found(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    assert talk(server, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") in (
        GREETING,
        b"",
    )  # reset, as it is still talking
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("server")
def test_a_line_has_a_bound(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_server, "LINE_LIMIT_NBYTES", 100)
    board = join()
    board.put("a", "x" * 40)
    with pytest.raises(RendezvousError, match="is gone"):
        board.put("a", "x" * 80)
    assert join().get(["a"]) == ["x" * 40]


@pytest.mark.usefixtures("server")
def test_what_cannot_be_answered_is_said_and_the_board_lives(join: Join) -> None:
    board = join()
    with pytest.raises(RendezvousError, match=r"the rendezvous store at .* cannot get: 'never'"):
        board.get(["never"])
    board.put("a", "no number")
    with pytest.raises(RendezvousError, match="cannot count: invalid literal"):
        board.count("a", 1)
    board.put("n", "9" * 4000)
    with pytest.raises(RendezvousError, match="cannot count: n is too large"):
        board.count("n", 1)
    assert board.has("a")


@pytest.mark.parametrize(
    ("says", "told"),
    [(b"SSH-2.0-x\r\n", "found another service than commbench's at .*: set MASTER_PORT to a free port"),
     (b"commbench rendezvous 2\n", "found another service than commbench's"),
     (b"", "cannot reach the rendezvous at .*: it closed the connection")],
)  # fmt: skip
def test_a_foreign_service_is_recognised(says: bytes, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as service:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(service.getsockname()[1]))

        def serve() -> None:
            while True:
                try:
                    connection, _ = service.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(len(GREETING))
                    connection.sendall(says)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(RendezvousError, match=told):
            open_board(rank=1, size=2, timeout_seconds=0.5)
        service.shutdown(socket.SHUT_RDWR)


def test_a_connection_to_itself_is_none() -> None:
    """While nobody listens at a port, the kernel may choose it for the one who calls there, who then hears himself."""
    with socket.socket() as alone:
        alone.bind(("127.0.0.1", 0))
        alone.connect(alone.getsockname())
        with pytest.raises(ConnectionRefusedError):
            _greet(alone)


@pytest.mark.usefixtures("server")
def test_who_leaves_waits_for_no_answer(join: Join) -> None:
    board = join()
    board.put("a", "")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(board.wait, "never", float("inf"))
        while not waiting.running():
            time.sleep(0.01)
        time.sleep(0.1)
        board.close()
        with pytest.raises(RendezvousError, match="is gone"):
            waiting.result(30)


def test_loopback_is_for_this_machine_alone_and_else_all_addresses_serve() -> None:
    for host, address in (("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("node7", "::")):
        if ":" in address and not socket.has_dualstack_ipv6():
            continue
        made = listen(host, 0)
        assert made.server_address[0] == address
        if host == "node7":
            assert talk(made, GREETING, b"\n") == GREETING
        made.end()


@pytest.mark.usefixtures("server")
def test_both_ends_notice_a_host_that_vanished(join: Join) -> None:
    for line in join().lines:
        assert line.connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert line.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert line.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_torchruns_agent_keeps_its_own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setattr(torch_store, "open_board", lambda **asked: asked)
    assert open_board(rank=3, size=4, timeout_seconds=1.0) == {"rank": 3, "size": 4, "timeout_seconds": 1.0}


def test_it_needs_no_torch() -> None:
    code = "import sys, commbench.engines.tcp_store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY).returncode == 0


_HASTY = """
from commbench.engines.tcp_store import open_board
board = open_board(rank=0, size=2, timeout_seconds=30)
print("open", flush=True)
board.wait("met", 60)
"""


def test_rank_0_ends_after_the_last_question_of_the_others(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", port)
    with subprocess.Popen([sys.executable, "-c", _HASTY], stdout=subprocess.PIPE, cwd=REPOSITORY) as host:
        assert host.stdout is not None
        host.stdout.readline()
        board = join()
        board.put("met", "")
        time.sleep(0.5)  # in which rank 0 would have ended
        assert board.count("read", 1) == 1
        began = time.monotonic()
        board.close()
        assert host.wait(30) == 0
        assert time.monotonic() - began < 20  # it was not waited for in vain
