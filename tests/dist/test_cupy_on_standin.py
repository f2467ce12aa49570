"""Whole sweeps of engine cupy from the command line, in real ranks that an MPI-like launcher starts, without torch."""

import csv
import signal
import socket
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest

from commbench.plan.collectives import COLLECTIVES
from commbench.results.store import load_run, read_samples
from tests.conftest import Commands, Ended

pytestmark = pytest.mark.dist

_PYTORCHJOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
_OPEN_MPI = tuple(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))


class World:
    """Starts the ranks of a sweep, as a launcher does: with variables, and nothing else in common."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self._commands = commands
        self.out, self._hub = folder / "run", folder / "hub"
        self._hub.mkdir()

    def start(
        self, size: int, *options: str, names: tuple[str, ...] = _PYTORCHJOB, **more: str
    ) -> list[subprocess.Popen[str]]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
        fixed = ["--engine", "cupy", "--no-plots", "--format", "csv", "--out", str(self.out)]
        command = [sys.executable, "-m", "tests.dist.on_cupy_standin", "sweep", *fixed, *options]
        same = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "COMMBENCH_STANDIN_HUB": str(self._hub), **more}
        return [
            self._commands.start(command, **same, **dict(zip(names, map(str, (rank, size, rank, size)), strict=True)))
            for rank in range(size)
        ]

    def end(self, started: list[subprocess.Popen[str]]) -> list[Ended]:
        return [self._commands.end(process) for process in started]


@pytest.fixture
def world(commands: Commands, tmp_path: Path) -> World:
    return World(commands, tmp_path)


@pytest.mark.parametrize(("size", "names", "graph"), [(2, _PYTORCHJOB, False), (3, _OPEN_MPI, True)])
def test_every_collective_is_verified_without_torch(
    size: int, names: tuple[str, ...], graph: bool, world: World
) -> None:
    options = ["--collectives", "all", "--sizes", "12K", "--budget", "1s", "--timeout", "60s"]
    first, *others = world.end(world.start(size, *options, *(["--graph"] if graph else []), names=names))
    assert first.code == 0, first.err
    assert [(one.code, one.out, one.err) for one in others] == [(0, "", "")] * (size - 1)
    rows = list(csv.DictReader(StringIO(first.out)))
    assert {row["collective"] for row in rows} == set(COLLECTIVES)
    assert {row["status"] for row in rows} <= {"ok", "noisy"}
    assert all(row["wrong"] == "0" for row in rows if row["collective"] != "barrier")
    assert all(float(row["enqueue_seconds"]) > 0 for row in rows)
    assert {(row["ranks"], row["backend"], row["variant"]) for row in rows} == {
        (str(size), "nccl", "graph" if graph else "")
    }
    batches = [row.calls for row in read_samples(world.out) if row.kind == "batch"]
    assert batches
    assert all(calls % 20 == 0 for calls in batches) is graph
    assert load_run(world.out).record.launcher == ("Open MPI" if graph else "torchrun")


def test_a_wrong_element_is_found(world: World) -> None:
    options = ["--collectives", "all_gather,all_reduce", "--sizes", "1K", "--budget", "1s"]
    first, second = world.end(world.start(2, *options, COMMBENCH_STANDIN_SPOILS="1"))
    assert (first.code, second.code) == (1, 1), first.err
    assert "all_gather 1 KiB float32 on the world: 1 wrong elements; rank 1 element 7: expected" in first.err
    rows = {row["collective"]: row for row in csv.DictReader(StringIO(first.out))}
    assert (rows["all_gather"]["status"], rows["all_gather"]["wrong"]) == ("wrong", "1")
    assert rows["all_reduce"]["wrong"] == "0"


def test_local_workers_meet_at_the_store_of_their_launcher(commands: Commands, tmp_path: Path) -> None:
    options = ["--engine", "cupy", "--collectives", "all_reduce,all_to_all", "--sizes", "1K", "--budget", "1s"]
    command = [sys.executable, "-m", "tests.dist.on_cupy_standin", "sweep", *options, "--no-plots", "--format", "csv"]
    ended = commands.run([*command, "--out", str(tmp_path / "run")], COMMBENCH_STANDIN_HUB=str(tmp_path))
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(StringIO(ended.out)))
    assert [(row["ranks"], row["wrong"]) for row in rows] == [("2", "0")] * 2


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_run_and_is_named(rank: int, world: World) -> None:
    """Where it is rank 0, the store has died with it."""
    options = ["--sizes", "1K", "--budget", "60s", "--precision", "0.001%", "--timeout", "4s"]
    started = world.start(3, *options)
    wait_for_samples(world.out)
    started[rank].send_signal(signal.SIGKILL)
    ended = world.end(started)
    others = [one for number, one in enumerate(ended) if number != rank]
    assert {one.code for one in others} <= {3, 124}, [one.err for one in others]
    told = [one.err for one in others if one.err.count("commbench: ")]
    assert f"rank {rank} on {socket.gethostname()} " in "".join(told)
    assert not [one.err for one in ended if "Traceback" in one.err]


def wait_for_samples(out: Path) -> None:
    give_up = time.monotonic() + 60
    while not (out / "samples.csv").exists() or len((out / "samples.csv").read_text().splitlines()) < 8:
        assert time.monotonic() < give_up
        time.sleep(0.05)
