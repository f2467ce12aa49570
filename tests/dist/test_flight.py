"""Real ranks on the stand-in for a GPU, one of them stopped or dead: what NCCL's RAS says stands in the message."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.conftest import Commands
from tests.dist.test_failures import wait_for, worker_of
from tests.dist.test_on_standin import on_standin
from tests.ras_server import Behaviour, RasServer, answer, silent
from tests.unit.results.ras_samples import json_status

pytestmark = pytest.mark.dist

_LONG = (
    "--collectives",
    "all_reduce",
    "--sizes",
    "64K:4M:x4",
    "--precision",
    "0.1%",
    "--budget",
    "60s",
)


def end_with(number: signal.Signals, behaviour: Behaviour | None, commands: Commands, out: Path) -> tuple[int, str]:
    """Exit code and words of a sweep whose rank 1 gets a signal; RAS behaves so, or says what rank 0's would."""
    with RasServer(silent) as ras:
        more = ("--timeout", "6s") if number == signal.SIGSTOP else ()  # the last of an option counts
        argv = on_standin(*_LONG, *more, "--out", str(out))
        process = commands.start(argv, NCCL_RAS_ADDR=ras.address)
        wait_for(lambda: (out / "samples.csv").exists() and len((out / "samples.csv").read_text().splitlines()) > 5)
        first = worker_of(process, 0).pid
        ras.behaviours = [behaviour or answer(json_status([{"AllReduce": 41}, {"AllReduce": 40}], first_pid=first))]
        os.kill(worker_of(process, 1).pid, number)
        ended = commands.end(process, timeout=30)
        wait_for(lambda: not commands.alive())
    return ended.code, ended.err


def test_the_counts_of_a_hang_stand_behind_who_is_to_blame(commands: Commands, tmp_path: Path) -> None:
    code, said = end_with(signal.SIGSTOP, None, commands, tmp_path / "run")
    assert code == 124
    host = socket.gethostname()
    assert f"; rank 1 on {host} gives no sign of life, last seen in " in said
    assert (
        f"rank 0 on {host} has arrived. RAS: communicator 0x5a1f00c0ffee0001 (2 ranks): "
        "rank 0 has launched 41 AllReduce, rank 1 40. " in said
    )
    assert "Traceback" not in said


def test_a_ras_that_never_answers_holds_up_nothing(commands: Commands, tmp_path: Path) -> None:
    code, said = end_with(signal.SIGSTOP, silent, commands, tmp_path / "run")
    assert code == 124
    assert " has arrived. RAS: no readable status within 2 s. " in said
    assert "Traceback" not in said


def test_the_counts_of_a_failure_too(commands: Commands, tmp_path: Path) -> None:
    code, said = end_with(signal.SIGKILL, None, commands, tmp_path / "run")
    assert code == 3, said
    assert "failed: rank 1 on " in said
    assert "). RAS: communicator 0x5a1f00c0ffee0001 (2 ranks): rank 0 has launched 41 AllReduce, rank 1 40." in said
    assert "Traceback" not in said
