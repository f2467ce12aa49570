"""What every test may use, and the switch with which a skip is a failure."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parent.parent

# Quick is what everybody waits for, and the same examples each time; `--hypothesis-profile thorough` looks further.
settings.register_profile("quick", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=60, deadline=None)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failure-rounds", type=int, default=1, help="how often each failure of a cluster is tried")
    parser.addoption(
        "--no-skips", action="store_true", help="a test that skips fails, unless it needs a GPU or a checkout"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    may_skip = {"gpu", "checkout"} & set(item.keywords)
    if report.skipped and item.config.getoption("--no-skips") and not may_skip:
        report.outcome = "failed"
        report.longrepr = f"skipped, and --no-skips forbids it: {report.longrepr}"
    return report


def need_program(name: str) -> str:
    """The path of a program, or a skip that says which one is missing."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Commands:
    """Starts commands that can be found again, by a mark in their environment, and leaves none behind."""

    def __init__(self) -> None:
        self.mark = f"COMMBENCH_TEST={uuid4().hex}"
        self._started: list[subprocess.Popen[str]] = []

    def start(self, arguments: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        name, value = self.mark.split("=")
        kept = {key: text for key, text in os.environ.items() if not key.startswith(("SLURM_", "OMPI_", "PMI"))}
        process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**kept, **environment, name: value},
            start_new_session=True,
            # A shell that runs the tests in its background has them ignore Ctrl-C, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self._started.append(process)
        return process

    def run(self, arguments: Sequence[str], timeout: float = 120, **environment: str) -> Ended:
        return self.end(self.start(arguments, **environment), timeout)

    def end(self, process: subprocess.Popen[str], timeout: float = 120) -> Ended:
        out, err = process.communicate(timeout=timeout)
        return Ended(process.returncode, out, err)

    def clean_up(self) -> None:
        for process in self.alive():
            process.kill()
        for started in self._started:
            started.communicate()

    def alive(self) -> list[psutil.Process]:
        """Every process that a command of this test has started and that still runs."""
        name, value = self.mark.split("=")
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found


@pytest.fixture
def commands() -> Iterator[Commands]:
    started = Commands()
    yield started
    started.clean_up()


def sweep(*options: str) -> list[str]:
    """The arguments of a sweep in this interpreter."""
    return [sys.executable, "-m", "commbench", "sweep", *options]
