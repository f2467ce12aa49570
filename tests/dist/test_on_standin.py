"""Real ranks with torch's engine on the stand-in for a GPU: whole sweeps, as they would run with NCCL."""

import csv
import sys
from io import StringIO
from pathlib import Path

import pytest

from commbench.results.store import load_run, read_samples
from tests.conftest import Commands

pytestmark = pytest.mark.dist


def on_standin(*options: str) -> list[str]:
    fixed = ["--engine", "standin", "--budget", "1s", "--no-plots", "--format", "csv", "--timeout", "60s"]
    return [sys.executable, "-m", "tests.dist.on_standin", "sweep", *fixed, *options]


@pytest.mark.parametrize("graph", [False, True])
def test_every_collective_is_verified_call_by_call_and_in_graphs(
    graph: bool, commands: Commands, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    more = ["--graph"] if graph else []
    ended = commands.run(on_standin("--collectives", "all", "--sizes", "1K", "--out", str(out), *more))
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(StringIO(ended.out)))
    timed = [row for row in rows if row["status"] in ("ok", "noisy")]
    assert [row["collective"] for row in rows if row not in timed] == (["barrier"] if graph else [])
    assert all(row["wrong"] == "0" for row in timed if row["collective"] != "barrier")
    assert all(float(row["enqueue_seconds"]) > 0 for row in timed)
    assert {row["variant"] for row in rows} == {"graph" if graph else ""}
    assert {row["backend"] for row in rows} == {"nccl"}
    batches = [row.calls for row in read_samples(out) if row.kind == "batch"]
    assert batches
    assert all(calls % 20 == 0 for calls in batches) is graph
    findings = load_run(out).record.findings
    assert [one.subject for one in findings] == [f"GPUs of ranks 0-1 {moment} measuring" for moment in
                                                 ("before", "after")]  # fmt: skip


def test_ranks_that_share_a_gpu_are_refused_or_marked(commands: Commands, tmp_path: Path) -> None:
    one = ["--ranks", "2", "--collectives", "all_reduce", "--sizes", "1K", "--backend", "nccl"]
    environment = {"COMMBENCH_STANDIN_GPUS": "1"}
    refused = commands.run(on_standin(*one, "--out", str(tmp_path / "refused")), **environment)
    assert refused.code == 2
    assert "ranks 0-1 would share GPU 0000:1b:00.0" in refused.err
    shared = commands.run(
        on_standin(*one, "--ranks-per-gpu", "2", "--out", str(tmp_path / "shared"), "--format", "table"), **environment
    )
    assert shared.code == 0, shared.err
    assert "2 ranks per GPU" in shared.out
    assert load_run(tmp_path / "shared").record.environment["NCCL_MULTI_RANK_GPU_ENABLE"] == "1"


def test_a_graph_of_gloo_is_refused(commands: Commands, tmp_path: Path) -> None:
    ended = commands.run([sys.executable, "-m", "commbench", "sweep", "--graph", "--sizes", "1K", "--backend", "gloo",
                          "--out", str(tmp_path / "run")])  # fmt: skip
    assert ended.code == 2
    assert "--graph cannot be: backend gloo works on the CPU" in ended.err
