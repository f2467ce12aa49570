"""What a run survives: a rank that dies or stops, Ctrl-C, a full disk, a port in use, a peer that never comes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import commbench
from commbench.errors import UsageError
from commbench.results.lock import RunLock
from commbench.results.store import load_run, read_samples
from tests.conftest import Commands, Ended, sweep

pytestmark = pytest.mark.dist

_PATIENCE_SECONDS = 60.0
_OTHER_VERSION = "import commbench; commbench.__version__ = '9.9'; from commbench.__main__ import run; run()"


def _start(commands: Commands, out: Path, *options: str) -> subprocess.Popen[str]:
    """A sweep that has measured something: it takes long enough to be disturbed."""
    process = commands.start(sweep("--sizes", "64K:4M:x4", "--budget", "60s", "--precision", "0.1%", "--no-plots",
                                   "--out", str(out), *options))  # fmt: skip
    wait_for(lambda: (out / "samples.csv").exists() and len((out / "samples.csv").read_text().splitlines()) > 60)
    return process


def wait_for(condition: object) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < give_up
        time.sleep(0.05)


def worker_of(process: subprocess.Popen[str], rank: int) -> psutil.Process:
    # The workers are the children of the server that they are forked from, started in the order of their ranks.
    [workers] = [found for child in psutil.Process(process.pid).children() if (found := child.children())]
    return sorted(workers, key=lambda worker: worker.pid)[rank]


def _check_kept(out: Path, commands: Commands) -> None:
    run = load_run(out)
    assert any(row.samples >= 2 and row.seconds_median for row in run.rows)  # as many as the shortest visit has
    wait_for(lambda: not commands.alive())


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_ends_the_run_and_is_named(rank: int, commands: Commands, tmp_path: Path) -> None:
    process = _start(commands, tmp_path / "run")
    worker_of(process, rank).kill()
    ended = commands.end(process, timeout=15)
    assert ended.code == 3
    assert f"float32 on the world failed: rank {rank} on {socket.gethostname()} gives no sign of life" in (
        ended.err.replace(" sum", "")
    )
    assert f"rank {rank} of 2 (pid " in ended.err
    assert "was killed by SIGKILL" in ended.err
    assert "Traceback" not in ended.err
    _check_kept(tmp_path / "run", commands)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_stopped_rank_ends_as_a_hang_that_names_the_case(rank: int, commands: Commands, tmp_path: Path) -> None:
    process = _start(commands, tmp_path / "run", "--timeout", "2s")
    worker_of(process, rank).send_signal(signal.SIGSTOP)
    ended = commands.end(process, timeout=30)
    assert ended.code == 124
    assert "float32 on the world hangs: no progress for 2 s, at most 2 s were allowed" in ended.err.replace(" sum", "")
    assert f"; rank {rank} on {socket.gethostname()} gives no sign of life, last seen in " in ended.err
    assert f"; rank {1 - rank} on {socket.gethostname()} has arrived" in ended.err
    _check_kept(tmp_path / "run", commands)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_shows_what_it_has(name: str, commands: Commands, tmp_path: Path) -> None:
    process = _start(commands, tmp_path / "run")
    process.send_signal(signal.Signals[name])
    ended = commands.end(process, timeout=20)
    assert ended.code == 130
    assert "interrupted" in ended.err
    assert "all_reduce" in ended.out
    _check_kept(tmp_path / "run", commands)


def test_ctrl_c_on_a_terminal_reaches_all_processes(commands: Commands, tmp_path: Path) -> None:
    process = _start(commands, tmp_path / "run")
    os.killpg(process.pid, signal.SIGINT)
    ended = commands.end(process, timeout=20)
    assert ended.code == 130
    assert "all_reduce" in ended.out
    assert load_run(tmp_path / "run").record.outcome == "interrupted"
    _check_kept(tmp_path / "run", commands)


def test_an_interrupted_run_is_resumed(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "run"
    two = ("--collectives", "all_reduce", "--sizes", "1K,16M", "--precision", "0.1%", "--budget", "12s")
    process = commands.start(sweep(*two, "--no-plots", "--out", str(out)))
    wait_for((out / "run.json").exists)
    with pytest.raises(UsageError, match="another process is writing"):
        RunLock(out)
    wait_for(lambda: len((out / "summary.csv").read_text().splitlines()) > 1)  # the large one spends its share first
    process.send_signal(signal.SIGINT)
    assert commands.end(process, timeout=20).code == 130
    done = [row for row in load_run(out).rows if row.status in ("ok", "noisy")]
    assert len(done) == 1

    ended = commands.run(sweep("--resume", str(out), "--no-plots"))
    assert ended.code == 0, ended.err
    run = load_run(out)
    assert (run.record.outcome, len(run.record.resumed_utc)) == ("complete", 1)
    assert {row.status for row in run.rows} <= {"ok", "noisy"}
    assert [row for row in run.rows if row.case in {kept.case for kept in done}] == done
    counted = Counter(row.case for row in read_samples(out) if row.kind == "batch")
    assert [counted[row.case] for row in run.rows] == [row.samples for row in run.rows]
    assert "all_reduce" in ended.out
    wait_for(lambda: not commands.alive())


def test_workers_do_not_outlive_a_killed_parent(commands: Commands, tmp_path: Path) -> None:
    process = _start(commands, tmp_path / "run")
    process.kill()
    process.wait()
    _check_kept(tmp_path / "run", commands)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_fills_up_keeps_what_was_flushed(small_disk: Path, commands: Commands) -> None:
    out = small_disk / "run"
    ended = commands.run(sweep("--sizes", "1K:64K:x4", "--precision", "0.1%", "--budget", "60s", "--out", str(out)))
    assert ended.code == 3
    assert f"cannot write to {out}: No space left on device" in ended.err
    assert "Traceback" not in ended.err
    _check_kept(out, commands)


def _as_rank(rank: int, size: int, port: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def test_a_port_in_use(commands: Commands, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = commands.run(sweep("--out", str(tmp_path / "run")), **_as_rank(0, 1, port))
    assert ended.code == 3
    assert f"127.0.0.1:{port}: the port is in use; set MASTER_PORT" in ended.err


def test_a_peer_that_never_comes(commands: Commands, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ended = commands.run(sweep("--timeout", "2s", "--out", str(tmp_path / "run")), timeout=30, **_as_rank(0, 2, port))
    assert ended.code == 3
    assert (
        "rank 1 on a host that the launcher does not name did not come within 2 s: 1 of 2 ranks are here" in ended.err
    )


def test_rank_0_never_comes(commands: Commands, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ended = commands.run(sweep("--timeout", "2s", "--out", str(tmp_path / "run")), timeout=30, **_as_rank(1, 2, port))
    assert ended.code == 3
    assert ended.err == (
        f"commbench: rank 1 of 2 got no answer from rank 0 at 127.0.0.1:{port} within 2 s: "
        "rank 0 has not started there, has ended, or the address cannot be reached from here.\n"
    )


def test_another_version_on_one_node_is_said_before_anything_is_measured(commands: Commands, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    options = ["sweep", "--out", str(tmp_path / "run")]
    other = [sys.executable, "-c", _OTHER_VERSION, *options]
    first = commands.start([sys.executable, "-m", "commbench", *options], **_as_rank(0, 2, port))
    second = commands.start(other, **_as_rank(1, 2, port))
    ended = [commands.end(process) for process in (first, second)]
    assert [one.code for one in ended] == [3, 3]
    host = socket.gethostname()
    assert f"rank 1 on {host} has commbench 9.9, the other ranks have {commbench.__version__}" in ended[0].err
    assert "install the same version on every node" in ended[0].err
    assert ended[1].err == ""
    assert not (tmp_path / "run").exists()


def test_more_memory_than_there_is_says_what_fits(commands: Commands, tmp_path: Path) -> None:
    ended: Ended = commands.run(sweep("--sizes", "64T", "--out", str(tmp_path / "run")))
    assert ended.code == 2
    assert "all_to_all 64 TiB float32" in ended.err or "64 TiB" in ended.err
    assert "would fit; give smaller --sizes" in ended.err
    assert not (tmp_path / "run").exists()
