"""The same command, started by somebody else: torchrun, mpirun, and the variables of a Kubernetes PyTorchJob."""

import csv
import socket
import sys
from io import StringIO
from pathlib import Path

import pytest

from commbench.results.store import load_run
from tests.conftest import Commands, Ended, need_program, sweep

pytestmark = pytest.mark.dist

OPTIONS = (
    "--collectives",
    "all_reduce,broadcast",
    "--sizes",
    "1K,64K",
    "--budget",
    "0.3s",
    "--format",
    "csv",
    "--no-plots",
)


def _check(ended: Ended, out: Path, launcher: str) -> None:
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(StringIO(ended.out)))  # more than one header, if more than one rank printed
    assert [row["collective"] for row in rows] == ["all_reduce"] * 2 + ["broadcast"] * 2
    assert {(row["ranks"], row["nodes"], row["link_class"]) for row in rows} == {("2", "1", "loopback")}
    assert load_run(out).record.launcher == launcher


def test_torchrun(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "run"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    _check(commands.run([*torchrun, "-m", "commbench", "sweep", *OPTIONS, "--out", str(out)]), out, "torchrun")


def test_mpirun(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "run"
    mpirun = [need_program("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    _check(commands.run([*mpirun, *sweep(*OPTIONS, "--out", str(out))]), out, "Open MPI")


def test_the_variables_of_a_pytorchjob(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    started = [
        commands.start(
            sweep(*OPTIONS, "--out", str(out)), RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port
        )
        for rank in ("0", "1")
    ]
    first, second = (commands.end(process) for process in started)
    _check(first, out, "torchrun")
    assert (second.code, second.out) == (0, "")


def test_two_sweeps_at_once_do_not_meet(commands: Commands, tmp_path: Path) -> None:
    started = [commands.start(sweep(*OPTIONS, "--out", str(tmp_path / name))) for name in ("a", "b")]
    for process, name in zip(started, ("a", "b"), strict=True):
        _check(commands.end(process), tmp_path / name, "torchrun")
