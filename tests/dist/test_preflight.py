"""`commbench preflight` with real ranks: on this machine, and on a cluster whose faults are known."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.conftest import REPOSITORY, Commands, Ended
from tests.dist.conftest import SCRIPT, EmulatedCluster

pytestmark = pytest.mark.dist

Factory = Callable[..., EmulatedCluster]
LAUNCH = REPOSITORY / "scripts/launch"
NODES = 4
BUDGET_SECONDS = 60
COMMAND = (sys.executable, "-m", "commbench", "preflight", "--budget", f"{BUDGET_SECONDS}s", "--ignore", "HOST,NIC")


def read(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_two_local_ranks(commands: Commands, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    ended = commands.run([*COMMAND, "--format", "json", "-o", str(out)])
    found = read(out)
    assert ended.code == found["exit_code"] == 0, ended.err
    assert found["hosts"] == [os.uname().nodename]
    assert {stage["name"]: stage["verdict"] for stage in found["stages"]} | {"checks": "", "ladder": ""} == {
        "meeting": "ok", "checks": "", "first answer": "ok", "right data": "ok", "inside nodes": "ok", "pairs": "ok",
        "references": "skip", "ladder": "", "counters": "ok",
    }  # fmt: skip
    assert {row["sender"] for row in found["pairs"][0]["results"]} == {"rank 0", "rank 1"}


def write_floor(path: Path, gigabytes_per_second: float) -> Path:
    """What is expected of an all_reduce over all nodes."""
    path.write_text(
        '[[expectation]]\nlink_class = "net"\ncollective = "all_reduce"\nsize = "256K"\nunit = "GB/s"\n'
        f'lower = {gigabytes_per_second}\nsource = "this test"\nmeasured_with = "nothing"\n'
    )
    return path


def verdict_of(found: dict[str, Any], name: str) -> str:
    [verdict] = [stage["verdict"] for stage in found["stages"] if stage["name"] == name]
    return str(verdict)


def run_on(cluster: EmulatedCluster, commands: Commands, out: Path, *options: str) -> Ended:
    nodes = len(cluster.hosts) - 1
    srun = ("srun", f"-N{nodes}", "--kill-on-bad-exit=1", *COMMAND, "--format", "json", "-o", str(out), *options)
    return commands.run(cluster.argv("head", *srun))


def set_rate(cluster: EmulatedCluster, commands: Commands, *words: str) -> None:
    assert commands.run([SCRIPT, "rate", "--name", cluster.name, *words]).code == 0


def test_srun_healthy_slow_two_slow_and_slow_one_way(
    emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    cluster = emulated_cluster(nodes=6, rate="300mbit", slurm=True)
    out, exclude = tmp_path / "out.json", tmp_path / "exclude"
    floor = write_floor(tmp_path / "floor.toml", 0.02)  # of 0.036 that six links of 300 Mbit/s carry
    ended = run_on(cluster, commands, out, "--exclude-file", str(exclude), "--expect", str(floor))
    assert (ended.code, read(out)["exclude"], exclude.read_text()) == (0, [], ""), ended.err
    assert verdict_of(read(out), "references") == "ok"

    set_rate(cluster, commands, "n3", "255mbit")
    too_high = write_floor(tmp_path / "floor.toml", 0.05)
    assert run_on(cluster, commands, out, "--exclude-file", str(exclude), "--expect", str(too_high)).code != 0
    assert verdict_of(read(out), "references") == "fail"  # of all nodes: no reason to leave one out
    assert (read(out)["verdict"], read(out)["exclude"], exclude.read_text()) == ("fail", ["n3"], "n3\n")

    set_rate(cluster, commands, "n6", "180mbit")
    run_on(cluster, commands, out)
    assert read(out)["exclude"] == ["n3", "n6"]

    for node in ("n3", "n6"):
        set_rate(cluster, commands, node, "300mbit")
    set_rate(cluster, commands, "n2", "180mbit", "--only", "egress")
    run_on(cluster, commands, out)
    assert read(out)["exclude"] == ["n2"]
    [culprit] = [one for one in read(out)["pairs"][0]["suspects"] if one["state"] == "confirmed"]
    assert (culprit["members"], culprit["side"]) == (["n2"], "send")
    cluster.wait_for_no_leftovers()


def launch_each(cluster: EmulatedCluster, commands: Commands, out: Path, budget: str) -> list[Any]:
    """One rank a node, without a launcher that might itself wait for the dead one."""
    common = ("MASTER_ADDR=n1", "MASTER_PORT=29517", f"WORLD_SIZE={NODES}", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1")
    options = ("--format", "json", "-o", str(out), "--budget", budget)
    return [
        commands.start(cluster.argv(f"n{rank + 1}", "env", *common, f"RANK={rank}", *COMMAND, *options))
        for rank in range(NODES)
    ]


def wait_for_stage(started: Sequence[Any], stage: str) -> None:
    for line in started[0].stderr:
        if f"] {stage}:" in line:
            return


@pytest.mark.parametrize(("rank", "after"), [(2, "right data"), (0, "right data"), (2, "meeting")])
def test_a_stopped_rank_is_named_within_the_budget(
    emulated_cluster: Factory, commands: Commands, tmp_path: Path, rank: int, after: str
) -> None:
    cluster, out = emulated_cluster(nodes=NODES, rate="300mbit"), tmp_path / "out.json"
    began = time.monotonic()
    started = launch_each(cluster, commands, out, "60s")
    wait_for_stage(started, after)
    psutil.Process(started[rank].pid).send_signal(signal.SIGSTOP)
    codes = {number: process.wait(90) for number, process in enumerate(started) if number != rank}
    wall = time.monotonic() - began
    started[rank].kill()
    assert codes[1 if rank == 0 else 0] == 1  # whoever tells
    assert 0 not in codes.values()
    assert (read(out)["verdict"], read(out)["exclude"]) == ("fail", [f"n{rank + 1}"])
    assert wall < BUDGET_SECONDS + 10
    cluster.wait_for_no_leftovers()


def test_a_rank_that_never_comes_is_named(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster, out = emulated_cluster(nodes=NODES, slurm=True), tmp_path / "out.json"
    missing = 'test "$SLURM_PROCID" = 2 || exec "$@"'
    srun = ("srun", f"-N{NODES}", "sh", "-c", missing, "sh", *COMMAND, "--format", "json", "-o", str(out))
    ended = commands.run(cluster.argv("head", *srun))
    assert ended.code == 1
    assert (read(out)["verdict"], read(out)["exclude"]) == ("fail", ["n3"])
    assert "rank 2 on n3 did not come" in read(out)["ended"]


def test_a_job_leaves_out_the_slow_node(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=NODES, rate="300mbit", slow=("2:150mbit",), slurm=True)
    submit = ("sbatch", "--wait", "--parsable", f"-N{NODES}", f"--chdir={tmp_path}", "--output=log")
    ended = commands.run(cluster.argv("head", *submit, str(LAUNCH / "preflight.sbatch"), "3", "hostname"))
    log = (tmp_path / "log").read_text()
    assert ended.code == 0, log
    assert "leaving out n2" in log
    assert sorted(line for line in log.splitlines() if line in ("n1", "n2", "n3", "n4")) == ["n1", "n3", "n4"]
    assert not list(tmp_path.glob("preflight-*"))


def test_a_prolog_drains_a_node_whose_check_fails(
    emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    prolog, log = tmp_path / "prolog", tmp_path / "log"
    real = Path(sys.executable).with_name("commbench")
    stub = tmp_path / "stub"
    stub.write_text("#!/bin/sh\necho 'fail NIC-PORT-STATE mlx5_0'\nexit 1\n")
    stub.chmod(0o755)
    prolog.write_text(
        f"#!/bin/sh\nexport COMMBENCH_PROLOG_LOG={log} COMMBENCH={real}\n"
        f'test "$SLURMD_NODENAME" = n2 && COMMBENCH={stub}\nexec {LAUNCH}/slurm_prolog\n'
    )
    prolog.chmod(0o755)
    cluster = emulated_cluster(nodes=2, slurm=True, prolog=prolog)
    ended = commands.run(cluster.argv("head", "srun", "-w", "n1", "hostname"))
    assert (ended.code, ended.out) == (0, "n1\n"), ended.err
    refused = commands.start(cluster.argv("head", "srun", "-w", "n2", "hostname"))
    give_up = time.monotonic() + 30.0
    while "drain" not in (state := commands.run(cluster.argv("head", "sinfo", "-h", "-n", "n2", "-o", "%T")).out):
        assert time.monotonic() < give_up, state
        time.sleep(0.2)
    refused.kill()
    assert "n2: job" in log.read_text()
    assert "fail NIC-PORT-STATE" in log.read_text()


def test_the_init_container_runs_a_preflight() -> None:
    job = yaml.safe_load((LAUNCH / "preflight_initcontainer.yaml").read_text())
    for spec in job["spec"]["pytorchReplicaSpecs"].values():
        [first] = spec["template"]["spec"]["initContainers"]
        assert first["command"][:2] == ["commbench", "preflight"]
        assert {"name": "MASTER_PORT", "value": "29591"} in first["env"]
