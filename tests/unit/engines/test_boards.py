"""What every board of real ranks is held to, on sockets: torch's store and the one that needs no torch."""

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import pytest

from commbench.engines.base import Board
from commbench.engines.tcp_store import TcpBoard
from commbench.errors import RendezvousError
from tests.conftest import REPOSITORY

BIG = 'ü"\n\\' * (1 << 20)
_HOST = """
import sys
from commbench.engines.{store} import open_board
board = open_board(rank=0, size=2, timeout_seconds=30)
print("open", flush=True)
board.wait("end", 60)
"""


@pytest.fixture(params=["torch_store", "tcp_store"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of the module whose boards are tried; they meet at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", port)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    return request.param


@pytest.fixture
def join(store: str) -> Iterator[Callable[..., Board]]:
    opened = import_module(f"commbench.engines.{store}").open_board

    boards = []

    def join(rank: int, size: int = 2, timeout_seconds: float = 30.0) -> Board:
        boards.append(opened(rank=rank, size=size, timeout_seconds=timeout_seconds))
        return boards[-1]

    yield join
    if store == "tcp_store":  # torch's is closed when it is forgotten
        for board in reversed(boards):
            close(board)


@pytest.fixture
def host(store: str) -> Iterator[subprocess.Popen[str]]:
    """Rank 0, as a process of its own."""
    with subprocess.Popen([sys.executable, "-c", _HOST.format(store=store)], stdout=subprocess.PIPE, text=True,
                          cwd=REPOSITORY) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def close(board: TcpBoard) -> None:
    board.close()
    atexit.unregister(board.close)
    if board.server:
        threading.Thread(target=board.server.end).start()  # it takes half a second


def test_texts_are_kept_for_all_until_they_are_deleted(join: Callable[..., Board]) -> None:
    first, second = join(0), join(1)
    first.put("a", "one")
    second.put("b/1", BIG)
    first.put("a", "two")
    assert first.get(["b/1", "a"]) == [BIG, "two"]
    assert second.get(["a"]) == ["two"]
    assert (first.has("a"), first.has("c")) == (True, False)
    second.delete("a")
    second.delete("a")
    assert not first.has("a")
    assert (first.count("n", 2), second.count("n", -1), first.count("n", 0)) == (2, 1, 1)
    assert first.has("n")
    second.delete("n")
    assert first.count("n", 1) == 1


def test_a_wait_ends_with_the_key_or_its_time(join: Callable[..., Board]) -> None:
    first, second = join(0), join(1)
    assert not first.wait("late", 0.05)
    later = threading.Timer(0.2, second.put, ("late", ""))
    later.start()
    assert first.wait("late", 30.0)
    assert first.wait("late", 5.0)
    later.join()


def test_a_wait_keeps_nobody_else_of_its_rank_waiting(join: Callable[..., Board]) -> None:
    first, second = join(0), join(1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second.wait, "late", 30.0)
        time.sleep(0.1)
        assert second.count("n", 1) == 1
        assert not waiting.done()
        first.put("late", "")
        assert waiting.result(30)


def test_counts_of_many_at_once_lose_none(join: Callable[..., Board]) -> None:
    boards = [join(0, 8), *(join(rank, 8) for rank in range(1, 8))]
    with ThreadPoolExecutor(8) as pool:
        seen = [number for found in pool.map(_count_up, boards) for number in found]
    assert sorted(seen) == list(range(1, 8 * 25 + 1))


def _count_up(board: Board) -> list[int]:
    return [board.count("n", 1) for _ in range(25)]


def test_a_store_that_has_died_is_rank_0s_fault(join: Callable[..., Board], host: subprocess.Popen[str]) -> None:
    board = join(1)
    board.put("a", "")
    host.kill()
    host.wait()
    with pytest.raises(RendezvousError, match=r"the rendezvous store at 127\.0\.0\.1:\d+ is gone: ") as error:
        board.count("a", 1)
    assert error.value.ranks == (0,)


def test_a_store_that_is_stopped_is_waited_for(join: Callable[..., Board], host: subprocess.Popen[str]) -> None:
    board = join(1)
    host.send_signal(signal.SIGSTOP)
    while not _is_stopped(host.pid):
        time.sleep(0.01)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(board.count, "a", 1)
        time.sleep(0.5)
        assert not asked.done()
        host.send_signal(signal.SIGCONT)
        assert asked.result(30) == 1


def _is_stopped(pid: int) -> bool:
    """Whether each thread is: a stop takes them one by one."""
    tasks = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(task.read_text().rpartition(")")[2].split()[0] == "T" for task in tasks)


def test_nobody_answers(join: Callable[..., Board]) -> None:
    with pytest.raises(
        RendezvousError, match=r"rank 1 of 2 got no answer from rank 0 at 127\.0\.0\.1:\d+ within 1 s: "
    ) as error:
        join(1, timeout_seconds=1.0)
    assert error.value.ranks == (0,)


def test_rank_0_may_come_late(join: Callable[..., Board]) -> None:
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(join, 1)
        time.sleep(0.3)
        first = join(0)
        early.result(30).put("a", "b")
    assert first.get(["a"]) == ["b"]


def test_a_port_in_use_is_said(join: Callable[..., Board]) -> None:
    with (
        socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"]))),
        pytest.raises(RendezvousError, match=r"cannot open the rendezvous at .*: the port is in use; set MASTER_PORT"),
    ):
        join(0)
