"""`commbench check` of several ranks: gathered on rank 0, told once, with the node that differs."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Commands, Ended, need_program
from tests.dist.conftest import EmulatedCluster

pytestmark = pytest.mark.dist

Factory = Callable[..., EmulatedCluster]
TIMEOUT_SECONDS = 30
FAULTS = (
    "NCCL_SOCKET_TIMEOUT=1", "NCCL_P2P_DISABLE=true", "NCCL_IB_HCA=mlx5_1", "GLOO_SOCKET_IFNAME=^lo",
    "MASTER_ADDR=127.0.0.1",
)  # fmt: skip


def check(*options: str) -> list[str]:
    return [sys.executable, "-m", "commbench", "check", "--timeout", f"{TIMEOUT_SECONDS}s", *options]


def on_rank(rank: int, command: str) -> list[str]:
    """A shell that does `command` on one rank before it becomes its arguments."""
    return ["sh", "-c", f'if [ "$SLURM_PROCID" = {rank} ]; then {command}; fi; exec "$@"', "sh"]


def bad(ended: Ended) -> dict[str, dict[str, Any]]:
    """Fails and warnings of the environment and of consistency, by rule: what the node lacks is another thing."""
    document = json.loads(ended.out)
    found = [one for one in document["findings"] if one["verdict"] in ("warn", "fail")]
    by_rule = {one["rule"]: one for one in found if one["rule"].startswith(("ENV-", "CON-"))}
    assert len(by_rule) == sum(one["rule"] in by_rule for one in found)  # each once
    return by_rule


# -- one machine -------------------------------------------------------------------------------------------------------


def _check_two(ended: Ended, code: int = 0) -> dict[str, Any]:
    assert ended.code == code, ended.err
    document: dict[str, Any] = json.loads(ended.out)  # two documents, if both ranks printed
    [node] = document["nodes"]
    assert node["ranks"] == "0-1"
    assert {one["ranks"] for one in document["findings"]} <= {"", "0-1", "0", "1"}
    assert any(one["rule"] == "CON-PYTHON" and one["verdict"] == "ok" for one in document["findings"])
    return document


def test_torchrun(commands: Commands) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    _check_two(commands.run([*torchrun, "-m", "commbench", "check", "--format", "json"]))


def test_mpirun_and_a_file_that_ranks_have_alike(commands: Commands, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("pass")
    mpirun = [need_program("mpirun"), "--allow-run-as-root", "--oversubscribe", "-np", "2"]
    out = tmp_path / "check.json"
    ended = commands.run([*mpirun, *check("--format", "json", "-o", str(out), "--same", str(script))])
    assert ended.out == ""
    _check_two(Ended(ended.code, out.read_text(), ended.err))


# -- an emulated cluster -----------------------------------------------------------------------------------------------


def test_one_node_that_differs_is_one_finding_that_names_it(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=4, slurm=True)
    srun = ("srun", "-N4", "--ntasks-per-node=2")
    ended = commands.run(cluster.argv("head", *srun, *check("--format", "json")))
    assert ended.code == 0, ended.err
    assert set(bad(ended)) <= {"ENV-OMP"}  # which these two ranks on two CPUs may have said
    document = json.loads(ended.out)
    assert [node["ranks"] for node in document["nodes"]] == ["0-1", "2-3", "4-5", "6-7"]

    differs = ["sh", "-c", 'if [ "$SLURM_NODEID" = 2 ]; then export NCCL_ALGO=Ring; fi; exec "$@"', "sh"]
    ended = commands.run(cluster.argv("head", *srun, *differs, *check("--select", "CON")))
    assert ended.code == 1
    [line, last] = ended.out.splitlines()
    assert line.startswith("fail  CON-ENV-NCCL  ")
    assert "n3" in line
    assert "ranks 4-5" in line
    assert "NCCL_ALGO" in line
    assert " on 8 ranks, 4 nodes: 1 fail, 0 warn, " in last
    cluster.wait_for_no_leftovers()


def test_a_broken_environment_is_told_once_even_where_ranks_could_not_meet(
    emulated_cluster: Factory, commands: Commands
) -> None:
    cluster = emulated_cluster(nodes=4, slurm=True)
    ended = commands.run(cluster.argv("head", "env", *FAULTS, "srun", "-N4", *check("--format", "json")))
    assert ended.code == 1, ended.err
    found = bad(ended)
    assert sorted(one["subject"] for one in found.values()) == sorted(fault.partition("=")[0] for fault in FAULTS)
    assert {(one["ranks"], len(one["nodes"])) for one in found.values()} == {("0-3", 4)}

    on_n3 = on_rank(2, f"export {' '.join(FAULTS[:4])}")
    ended = commands.run(cluster.argv("head", "srun", "-N4", *on_n3, *check("--format", "json")))
    assert ended.code == 1, ended.err
    found = bad(ended)
    assert {(one["rule"], tuple(one["nodes"])) for one in found.values() if one["rule"].startswith("ENV-")} == {
        (rule, ("n3",)) for rule in ("ENV-NAME-INVENTED", "ENV-VALUE-SWITCH", "ENV-HCA-PREFIX", "ENV-GLOO-IFNAME")
    }
    [different] = [one for one in found.values() if one["rule"] == "CON-ENV-NCCL"]
    assert "n3" in different["subject"]
    assert "3 ranks" in different["expected"]
    cluster.wait_for_no_leftovers()


def test_a_file_that_differs_on_one_node(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=3, slurm=True)
    script = tmp_path / "train.py"
    script.write_text("old")
    (tmp_path / "new.py").write_text("new")
    # The nodes share the machine's files: one of them gets a mount of its own.
    differs = f'exec unshare --mount sh -c \'mount --bind {tmp_path}/new.py {script}; exec "$@"\' sh "$@"'
    srun = ("srun", "-N3", *on_rank(1, differs), *check("--select", "CON-SAME", "--same", str(script)))
    ended = commands.run(cluster.argv("head", *srun))
    assert ended.code == 1, ended.err
    assert ended.out.splitlines()[0].startswith("fail  CON-SAME  ")
    assert "n2" in ended.out.splitlines()[0]


def test_a_rank_that_does_not_come_is_named_and_rank_0_checks_itself(
    emulated_cluster: Factory, commands: Commands
) -> None:
    cluster = emulated_cluster(nodes=4, slurm=True)
    ended = commands.run(cluster.argv("head", "srun", "-N4", *on_rank(2, "exit 0"), *check("--timeout", "6s")))
    assert ended.code == 3
    assert "rank 2 on n3 did not come within 6 s: 3 of 4 ranks are here" in ended.err
    assert "so only rank 0 is checked:" in ended.err
    assert " checks: " in ended.out.splitlines()[-1]
    cluster.wait_for_no_leftovers()


def test_a_rank_that_stops_while_facts_are_gathered_is_named(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=3)
    stopped = (
        "import os, signal, commbench.preflight.gather as gather;"
        "gather._put_part = lambda *_: os.kill(os.getpid(), signal.SIGSTOP);"
        "from commbench.cli import main; main(['check', '--timeout', '6s'])"
    )
    ranks = [
        commands.start(
            cluster.argv(f"n{rank + 1}", *([sys.executable, "-c", stopped] if rank == 1 else check("--timeout", "6s"))),
            RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="n1", MASTER_PORT="29533",
        )
        for rank in range(3)
    ]  # fmt: skip
    first, third = (commands.end(ranks[rank]) for rank in (0, 2))
    assert (first.code, third.code) == (124, 124)
    assert "the gathering of facts hangs" in first.err
    assert "rank 1 on n2 gives no sign of life" in first.err
    assert third.err == ""
    ranks[1].kill()
    cluster.wait_for_no_leftovers()
