"""The launch files that we ship start a sweep, on a real Slurm and over torchrun; the manifest says what it should."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from commbench.results.store import load_run
from tests.conftest import REPOSITORY, Commands
from tests.dist.conftest import EmulatedCluster

pytestmark = pytest.mark.dist

LAUNCH = REPOSITORY / "scripts/launch"
QUICK = ("--collectives", "all_reduce", "--sizes", "1K", "--budget", "0.3s", "--no-plots")


def test_sbatch(emulated_cluster: Callable[..., EmulatedCluster], commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=2, slurm=True)
    submit = ("sbatch", "--wait", "--parsable", "-N2", f"--chdir={tmp_path}", str(LAUNCH / "sweep.sbatch"))
    ended = commands.run(cluster.argv("head", *submit, *QUICK))
    job = ended.out.strip()
    log = (tmp_path / f"commbench-{job}.log").read_text()
    assert ended.code == 0, log
    assert "2 ranks on 2 nodes" in log
    assert load_run(tmp_path / f"results/slurm-{job}").record.launcher == "Slurm"


def test_torchrun_wrapper(emulated_cluster: Callable[..., EmulatedCluster], commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=2)
    wrapper = (str(LAUNCH / "torchrun_sweep"), "n1", "2")
    started = [
        commands.start(
            cluster.argv(f"n{node + 1}", *wrapper, str(node), *QUICK, "--out", str(tmp_path / "run")),
            RANKS_PER_NODE="2",
        )
        for node in range(2)
    ]
    ended = [commands.end(process) for process in started]
    assert [one.code for one in ended] == [0, 0], ended
    assert "4 ranks on 2 nodes" in ended[0].out
    assert [host.ranks for host in load_run(tmp_path / "run").record.hosts] == ["0-1", "2-3"]


def test_torchrun_wrapper_says_how(commands: Commands) -> None:
    ended = commands.run([str(LAUNCH / "torchrun_sweep")])
    assert ended.code == 2
    assert "HOST_OF_NODE_0 NODES NODE" in ended.err


def test_pytorchjob() -> None:
    job = yaml.safe_load((LAUNCH / "pytorchjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    replicas = job["spec"]["pytorchReplicaSpecs"]
    assert {name: spec["replicas"] for name, spec in replicas.items()} == {"Master": 1, "Worker": 3}
    for spec in replicas.values():
        [container] = spec["template"]["spec"]["containers"]
        assert container["name"] == "pytorch"
        assert container["command"][:4] == ["torchrun", "-m", "commbench", "sweep"]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == int(job["spec"]["nprocPerNode"])
