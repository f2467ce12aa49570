"""Real ranks with torch's engine on the stand-in for a GPU: whole sweeps, as they would run with NCCL."""

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
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


# -- NCCL's own log as witness -----------------------------------------------------------------------------------------

SMALL = ["--collectives", "all_reduce", "--sizes", "1K", "--format", "table", "--layout", "world", "--layout", "pairs"]


@pytest.fixture
def quiet(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of somebody who has set nothing for NCCL, and a temporary directory that can be looked into.

    It has a short name, for sockets lie in it.
    """
    with TemporaryDirectory(prefix="cb") as temporary:
        yield {"HOME": str(tmp_path), "TMPDIR": temporary}


def left_behind(environment: dict[str, str]) -> list[str]:
    """What lies in that directory; torch leaves its own."""
    there = Path(environment["TMPDIR"]).iterdir()
    return [path.name for path in there if not path.name.startswith("torchelastic_")]


def test_the_link_class_is_what_nccl_says_it_took(commands: Commands, tmp_path: Path, quiet: dict[str, str]) -> None:
    out = tmp_path / "run"
    ended = commands.run(on_standin(*SMALL, "--out", str(out)), **quiet)
    assert ended.code == 0, ended.err
    run = load_run(out)
    groups = run.record.groups
    assert {(one.link_class, one.bytes_per_second, one.link_source) for one in groups} == {("nvlink", 450e9, "log")}
    assert {(row.link_class, row.efficiency is None) for row in run.rows} == {("nvlink", False)}
    assert f"NCCL's logs are in {out / 'nccl'}: commbench logs {out / 'nccl'}/*" in ended.err
    assert sorted(path.name for path in (out / "nccl").iterdir()) == ["rank0.log", "rank1.log"]
    assert not [name for name in run.record.environment if name.startswith("NCCL_DEBUG")]
    assert run.record.environment_set["NCCL_DEBUG"] == "INFO"
    assert left_behind(quiet) == []
    read = commands.run([sys.executable, "-m", "commbench", "logs", *map(str, sorted((out / "nccl").iterdir()))])
    assert read.code == 0
    assert "P2P/CUMEM" in read.out


def test_a_way_through_the_hosts_memory_is_found_and_said_also_of_a_resumed_run(
    commands: Commands, tmp_path: Path, quiet: dict[str, str]
) -> None:
    out, environment = tmp_path / "run", {**quiet, "NCCL_P2P_DISABLE": "1"}
    ended = commands.run(on_standin(*SMALL, "--out", str(out)), **environment)
    assert ended.code == 0, ended.err
    run = load_run(out)
    assert {(one.link_class, one.bytes_per_second, one.link_source) for one in run.record.groups} == {
        ("phb", None, "log")
    }
    assert {(row.link_class, row.theory_seconds, row.efficiency) for row in run.rows} == {("phb", None, None)}
    told = "GPU 0 → GPU 1: went over SHM although NVLink connects them: NCCL_P2P_DISABLE=1 is set"
    assert f"warn: {told} (unset NCCL_P2P_DISABLE)" in ended.out
    report = commands.run([sys.executable, "-m", "commbench", "report", str(out), "--no-plots"])
    assert report.code == 0, report.err
    assert told.partition(": ")[2] in (out / "report.html").read_text()

    (out / "summary.csv").write_text("".join((out / "summary.csv").read_text().splitlines(keepends=True)[:2]))
    ended = commands.run(on_standin("--resume", str(out)), **environment)
    assert ended.code == 0, ended.err
    after = load_run(out)
    assert after.record.groups == run.record.groups
    assert after.record.findings[: len(run.record.findings)] == run.record.findings
    assert {row.link_class for row in after.rows} == {"phb"}
    assert len(after.record.resumed_utc) == 1


def test_settings_of_the_user_are_left_alone(commands: Commands, tmp_path: Path, quiet: dict[str, str]) -> None:
    out, own = tmp_path / "run", tmp_path / "own.%h.%p.log"
    settings = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(own)}
    ended = commands.run(on_standin(*SMALL, "--out", str(out)), **quiet, **settings)
    assert ended.code == 0, ended.err
    record = load_run(out).record
    assert {name: record.environment[name] for name in settings} == settings
    assert record.environment_set == {}
    assert {(one.link_class, one.link_source) for one in record.groups} == {("nvlink", "wiring")}
    assert not (out / "nccl").exists()
    assert len(list(tmp_path.glob("own.*.log"))) == 2


def test_a_run_that_hangs_keeps_the_logs(commands: Commands, tmp_path: Path, quiet: dict[str, str]) -> None:
    out = tmp_path / "run"
    options = [*SMALL, "--budget", "60s", "--precision", "0.01%", "--timeout", "3s"]
    process = commands.start(on_standin(*options, "--out", str(out)), **quiet)
    stop_a_rank(process, out)
    ended = commands.end(process, 60)
    assert ended.code in (3, 124)
    assert f"NCCL's log of rank 0 is {out / 'nccl' / 'rank0.log'}: commbench logs reads it." in ended.err
    assert "Init COMPLETE" in (out / "nccl" / "rank0.log").read_text()
    assert left_behind(quiet) == []


def stop_a_rank(process: subprocess.Popen[str], out: Path) -> None:
    """Stop the last worker as soon as something was measured."""
    give_up = time.monotonic() + 60
    while not (out / "samples.csv").exists() or len((out / "samples.csv").read_text().splitlines()) < 8:
        assert time.monotonic() < give_up
        time.sleep(0.05)
    [workers] = [found for child in psutil.Process(process.pid).children() if (found := child.children())]
    max(workers, key=lambda worker: worker.pid).suspend()


def test_gloo_has_no_witness(commands: Commands, tmp_path: Path, quiet: dict[str, str]) -> None:
    out = tmp_path / "run"
    command = ["sweep", "--backend", "gloo", "--ranks", "2", "--sizes", "1K", "--budget", "1s", "--no-plots"]
    ended = commands.run([sys.executable, "-m", "commbench", *command, "--out", str(out)], **quiet)
    assert ended.code == 0, ended.err
    record = load_run(out).record
    assert {(one.link_class, one.link_source) for one in record.groups} == {("loopback", "")}
    assert record.environment_set == {}
    assert not (out / "nccl").exists()


def test_a_graph_of_gloo_is_refused(commands: Commands, tmp_path: Path) -> None:
    ended = commands.run([sys.executable, "-m", "commbench", "sweep", "--graph", "--sizes", "1K", "--backend", "gloo",
                          "--out", str(tmp_path / "run")])  # fmt: skip
    assert ended.code == 2
    assert "--graph cannot be: backend gloo works on the CPU" in ended.err
