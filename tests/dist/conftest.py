"""Nodes for tests: clusters out of network namespaces, of names that no other test uses, gone after the test."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from tests.conftest import REPOSITORY, need_program

SCRIPT = str(REPOSITORY / "scripts/emulated_cluster")
STATE = Path("/run/emulated-cluster")
_SLURM_PROGRAMS = ("munged", "slurmctld", "slurmd", "srun")
_PATIENCE_SECONDS = 20.0


class EmulatedCluster:
    """A cluster that is up: how to start things on its nodes, disturb their links, and see what is left on them."""

    def __init__(self, name: str, hosts: list[str]) -> None:
        self.name = name
        self.hosts = hosts
        self._daemons = self._pids()

    def argv(self, node: str, *command: str) -> list[str]:
        """The arguments that run a command on a node (n1, n2, … or head); the process becomes the command."""
        return [SCRIPT, "exec", "--name", self.name, node, *command]

    def set_link(self, node: str, state: str, rail: int = 0) -> None:
        """Pulls a node's cable (`down`) or puts it back (`up`), at the switch: the node would lose its routes."""
        subprocess.run(["ip", "-n", f"{self.name}-head", "link", "set", f"{node}-eth{rail}", state], check=True)

    def received_bytes(self, node: str) -> int:
        """What has come in on a node's first link."""
        ask = ["ip", "-n", f"{self.name}-{node}", "-json", "-stats", "link", "show", "eth0"]
        [link] = json.loads(subprocess.run(ask, check=True, capture_output=True).stdout)
        return int(link["stats64"]["rx"]["bytes"])

    def leftovers(self) -> list[psutil.Process]:
        """What runs on the nodes beside the daemons that came up with the cluster."""
        found = []
        for pid in self._pids() - self._daemons:
            try:
                process = psutil.Process(pid)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.NoSuchProcess:
                continue
        return found

    def wait_for_no_leftovers(self, seconds: float = _PATIENCE_SECONDS) -> None:
        give_up = time.monotonic() + seconds
        while left := self.leftovers():
            assert time.monotonic() < give_up, f"still on the nodes: {left}"
            time.sleep(0.1)

    def _pids(self) -> set[int]:
        listed = [
            subprocess.run(["ip", "netns", "pids", f"{self.name}-{host}"], check=True, capture_output=True, text=True)
            for host in self.hosts
        ]
        return {int(pid) for one in listed for pid in one.stdout.split()}


@pytest.fixture
def emulated_cluster() -> Iterator[Callable[..., EmulatedCluster]]:
    """A factory: `emulated_cluster(nodes=4, rate="400mbit", slow=("2:100mbit",), rails=1, slurm=False)`."""
    if os.geteuid() != 0:
        pytest.skip("an emulated cluster needs root")
    for program in ("ip", "tc", "nsenter", "unshare", "taskset"):
        need_program(program)
    remove_orphans()
    with ExitStack() as clusters:

        def up(
            nodes: int = 4,
            rate: str = "400mbit",
            slow: tuple[str, ...] = (),
            rails: int = 1,
            slurm: bool = False,
            prolog: Path | None = None,
            pin: bool = False,
            burst_us: int = 500,
        ) -> EmulatedCluster:
            for program in _SLURM_PROGRAMS * slurm:
                need_program(program)
            name = unique_name()
            clusters.callback(subprocess.run, [SCRIPT, "down", "--name", name], check=True)
            options = ["--nodes", str(nodes), "--rate", rate, "--rails", str(rails)]
            options += [option for which in slow for option in ("--slow", which)] + ["--slurm"] * slurm
            options += ["--prolog", str(prolog)] if prolog else []
            options += ["--pin"] * pin + ["--burst-us", str(burst_us)]
            ended = subprocess.run([SCRIPT, "up", "--name", name, *options], capture_output=True, text=True)
            assert ended.returncode == 0, ended.stderr
            return EmulatedCluster(name, ["head", *(f"n{number}" for number in range(1, nodes + 1))])

        yield up


_made = 0


def unique_name() -> str:
    """Says whose it is: this process, and which in turn."""
    global _made
    _made += 1
    return f"test{os.getpid()}x{_made}"


def remove_orphans() -> None:
    """Removes the clusters of test processes that were killed and could not."""
    for folder in STATE.glob("test*x*"):
        owner = re.fullmatch(r"test(\d+)x\d+", folder.name)
        if owner and not psutil.pid_exists(int(owner[1])):
            subprocess.run([SCRIPT, "down", "--name", folder.name], check=True)
