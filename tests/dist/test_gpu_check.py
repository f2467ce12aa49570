"""scripts/gpu_check where there is no GPU: it runs to its end, and says what it skipped."""

import sys
from pathlib import Path

import pytest

from commbench.results.store import load_run
from tests.conftest import REPOSITORY, Commands

pytestmark = pytest.mark.dist


def test_without_a_gpu_it_ends_well_and_says_what_it_skipped(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = str(REPOSITORY / "scripts" / "gpu_check")
    ended = commands.run([sys.executable, script, "--out", str(out)], timeout=290, CUDA_VISIBLE_DEVICES="")
    assert ended.code == 0, ended.out + ended.err
    lines = ended.out.splitlines()
    skipped = [line.split()[1].rstrip(":") for line in lines if line.startswith("skipped")]
    assert {"torch", "torch-graph", "fidelity", "cupy", "torch-types", "torch-2-ranks-per-gpu", "logs"} <= set(skipped)
    done = [line.split()[1].rstrip(":") for line in lines if line.startswith("ok")]
    assert done == ["topo", "check", "preflight", "cpu"]
    assert (out / "summary.txt").read_text() == ended.out
    assert load_run(out / "cpu").record.outcome == "complete"


def test_a_directory_that_holds_something_is_left_alone(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    script = str(REPOSITORY / "scripts" / "gpu_check")
    ended = commands.run([sys.executable, script, "--out", str(tmp_path)])
    assert ended.code == 2
    assert "holds something" in ended.err
