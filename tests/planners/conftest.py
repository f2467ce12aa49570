"""Exports of a planted machine, and the planners that load them, in an environment of their own."""

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from commbench.analysis.predict import predict
from commbench.analysis.record_file import load_record
from commbench.analysis.records import FitRecord
from commbench.cli import main
from commbench.plan.collectives import COLLECTIVES
from tests.conftest import REPOSITORY

CONSUMERS = Path(__file__).parent / "consumers"
PLANNERS = REPOSITORY / ".venv-planners"
DEBIAN_PYTHON = Path("/usr/bin/python3")  # the interpreter that Debian's python3-simgrid is for

Exporter = Callable[..., Path]
Consumer = Callable[..., Any]


@dataclass(frozen=True)
class Planted:
    """A link of the fake machine."""

    alpha_step: float
    bytes_per_second: float

    def seconds(self, collective: str, ranks: int, nbytes: float) -> float:
        spec = COLLECTIVES[collective]
        return spec.steps(ranks) * self.alpha_step + spec.factor(ranks) * nbytes / self.bytes_per_second

    def alpha_total(self, collective: str, ranks: int) -> float:
        return COLLECTIVES[collective].steps(ranks) * self.alpha_step


INSIDE, BETWEEN = Planted(2.5e-6, 220e9), Planted(90e-6, 25e9)
NODES, RANKS_PER_NODE = 2, 8
SIZES = tuple(1 << power for power in range(20, 31, 2))  # those of the sweep below: 1 MiB to 1 GiB
LAYOUTS = ("world", "node", "rail", "mesh:dp=4,tp=4", "mesh:dp=8,tp=2", "mesh:a=2,b=4,c=2")


def commbench(*arguments: str) -> str:
    """stdout of a command that must succeed."""
    out, code = StringIO(), 0
    with redirect_stdout(out):
        try:
            main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    assert code == 0, arguments
    return out.getvalue()


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes of eight ranks, swept as a user would, and fitted."""
    directory = tmp_path_factory.mktemp("planted") / "run"
    machine = f"nvlink={INSIDE.alpha_step}s:{INSIDE.bytes_per_second / 1e9}GB/s,net=90us:25GB/s"
    layouts = [word for layout in LAYOUTS for word in ("--layout", layout)]
    commbench(
        "sweep", "--engine", "fake", "--ranks", "16", "--fake", machine, "--collectives", "main,send_recv", "--dtype",
        "bfloat16", "--sizes", "1M:1G:x4", *layouts, "--no-plots", "-q", "--budget", "5s", "--out", str(directory),
    )  # fmt: skip
    commbench("fit", str(directory))
    return directory


@pytest.fixture(scope="session")
def record(run: Path) -> FitRecord:
    return load_record(run)


@pytest.fixture(scope="session")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    """The folder of the planted run's export to a format; made once for the same options."""

    @cache
    def export(format_name: str, *options: str) -> Path:
        target = tmp_path_factory.mktemp(format_name)
        commbench("export", str(run), "--to", format_name, "-o", str(target), "-q", *options)
        return target

    return export


@pytest.fixture(scope="session")
def planner() -> Consumer:
    """Run a consumer in the planners' environment, and parse the last line that it prints."""
    if not (PLANNERS / ".made-from").exists():
        pytest.skip(f"the planners are not installed: {REPOSITORY / 'scripts' / 'planners'} installs them")
    return _consumer(PLANNERS / "bin" / "python")


@pytest.fixture(scope="session")
def simgrid() -> Consumer:
    """Run a consumer with Debian's Python and SimGrid."""
    command = [DEBIAN_PYTHON, "-c", "import simgrid"]
    if not DEBIAN_PYTHON.exists() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("SimGrid is not installed: apt-get install python3-simgrid")
    return _consumer(DEBIAN_PYTHON)


def _consumer(python: Path) -> Consumer:
    def consume(script: str, *arguments: object) -> Any:
        command = [str(python), str(CONSUMERS / script), *map(str, arguments)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    return consume


def predicted(record: FitRecord, collective: str, nbytes: int, ranks: int, layout: str) -> float:
    """Our own prediction, in seconds."""
    (found,) = [item for item in predict([record], collective, nbytes, ranks) if item.layout == layout]
    return found.seconds


def assert_answers(
    answers: Sequence[float], record: FitRecord, link: Planted, collective: str, ranks: int, layout: str,
    sizes: Sequence[int] = SIZES, *, alpha: float | None = None,
) -> None:  # fmt: skip
    """The planner's seconds are what we predict and what was planted, within 0.1 %, and no mix-up of units could give
    them: GB for GiB, alpha per step for that of the collective, a rank's share for all of it are each off by 1 % or
    more at some size. `alpha`: seconds of the planner's own model, where it has another; None: the planted one.
    """
    total = link.alpha_total(collective, ranks) if alpha is None else alpha
    factor, steps = COLLECTIVES[collective].factor(ranks), COLLECTIVES[collective].steps(ranks)

    def expected(scale: float = 1.0, alpha_scale: float = 1.0, size_scale: float = 1.0) -> list[float]:
        rate = link.bytes_per_second * scale
        return [total * alpha_scale + factor * size * size_scale / rate for size in sizes]

    assert list(answers) == pytest.approx(expected(), rel=1e-3)
    if alpha is None:
        ours = [predicted(record, collective, size, ranks, layout) for size in sizes]
        assert list(answers) == pytest.approx(ours, rel=1e-3)
    gib = (1 << 30) / 1e9
    mixed = [expected(gib), expected(1 / gib), expected(size_scale=ranks), expected(size_scale=1 / ranks)]
    if total and steps > 1:
        mixed += [expected(alpha_scale=steps), expected(alpha_scale=1 / steps)]
    for wrong in mixed:
        assert max(abs(w / a - 1) for w, a in zip(wrong, answers, strict=True)) > 0.01


@pytest.fixture(scope="session")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One node of four ranks."""
    directory = tmp_path_factory.mktemp("four") / "run"
    commbench(
        "sweep", "--engine", "fake", "--ranks", "4", "--fake", "ranks-per-node=4,nvlink=2.5us:220GB/s", "--collectives",
        "main,send_recv", "--sizes", "1M:1G:x4", "--no-plots", "-q", "--budget", "5s", "--out", str(directory),
    )  # fmt: skip
    return directory
