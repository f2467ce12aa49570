"""A sweep over four nodes, by every launcher, and what it says when a rank is killed, stopped, cut off or missing."""

import csv
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest

from commbench.analysis.record_file import load_record
from commbench.results.schema import SUMMARY_COLUMNS
from commbench.results.store import load_run
from tests.conftest import Commands, Ended, need_program, sweep
from tests.dist.conftest import SCRIPT, EmulatedCluster

pytestmark = pytest.mark.dist

Factory = Callable[..., EmulatedCluster]
QUICK = ("--collectives", "all_reduce", "--sizes", "1K,64K", "--budget", "1s", "--format", "csv", "--no-plots")
ENDLESS = ("--sizes", "256K:1M:x4", "--budget", "120s", "--precision", "0.1%", "--no-plots")
TIMEOUT_SECONDS = 6
PORT = "29511"


# -- launchers ---------------------------------------------------------------------------------------------------------


def _check_table(ended: Ended, out: Path, launcher: str) -> None:
    assert ended.code == 0, ended.err
    [header, *_] = ended.out.splitlines()
    assert header == ",".join(SUMMARY_COLUMNS)
    rows = list(csv.DictReader(StringIO(ended.out)))  # a header would be a row, if more than one rank printed
    assert [(row["ranks"], row["nodes"], row["link_class"], row["wrong"]) for row in rows] == [
        ("4", "4", "net", "0")
    ] * 2
    record = load_run(out).record
    assert record.launcher == launcher
    assert [(host.name, host.ranks) for host in record.hosts] == [(f"n{rank + 1}", str(rank)) for rank in range(4)]
    assert [host.interface for host in record.hosts] == [f"eth0 10.77.0.{n} (on the way to n1)" for n in range(1, 5)]


def test_srun(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=4, slurm=True)
    out = tmp_path / "run"
    ended = commands.run(cluster.argv("head", "srun", "-N4", *sweep(*QUICK, "--out", str(out))))
    _check_table(ended, out, "Slurm")
    missing = 'test "$SLURM_PROCID" = 2 || exec "$@"'
    options = ("--timeout", f"{TIMEOUT_SECONDS}s", "--out", str(tmp_path / "never"))
    ended = commands.run(cluster.argv("head", "srun", "-N4", "sh", "-c", missing, "sh", *sweep(*QUICK, *options)))
    assert ended.code == 3
    assert f"rank 2 on n3 did not come within {TIMEOUT_SECONDS} s: 3 of 4 ranks are here" in ended.err
    cluster.wait_for_no_leftovers()


def test_torchrun_on_every_node(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster, out = emulated_cluster(nodes=4), tmp_path / "run"
    torchrun = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes",
        "4",
        "--master-addr",
        "n1",
        "--master-port",
        PORT,
    )
    started = [
        commands.start(
            cluster.argv(f"n{node + 1}", *torchrun, "--node-rank", str(node), "--local-addr", f"n{node + 1}",
                         "-m", "commbench", "sweep", *QUICK, "--out", str(out))
        )
        for node in range(4)
    ]  # fmt: skip
    first, *others = [commands.end(process) for process in started]
    _check_table(first, out, "torchrun")
    assert [other.out for other in others] == ["", "", ""]


def test_mpirun_on_every_node(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    need_program("mpirun")
    cluster, out = emulated_cluster(nodes=4), tmp_path / "run"
    over = ("--mca", "plm_rsh_agent", f"{SCRIPT} rsh --name {cluster.name}", "--mca", "oob_tcp_if_include", "eth0")
    mpirun = ("mpirun", "--allow-run-as-root", "--host", "n1,n2,n3,n4", *over, "-x", "MASTER_ADDR=n1")
    _check_table(commands.run(cluster.argv("n1", *mpirun, *sweep(*QUICK, "--out", str(out)))), out, "Open MPI")


# -- known answers -----------------------------------------------------------------------------------------------------


def test_all_reduce_and_its_fit_find_the_rate_of_the_link(
    emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    cluster = emulated_cluster(nodes=2, rate="200mbit", slurm=True, burst_us=2500)
    out = tmp_path / "run"
    payload_bytes_per_second = 200e6 / 8 * 1448 / 1514  # what a frame of 1514 bytes has for data
    options = ("--collectives", "all_reduce", "--sizes", "1M:16M:x4", "--budget", "15s", "--no-plots")
    srun = cluster.argv("head", "srun", "-N2", *sweep(*options, "--link-rate", "net=200Mbit/s", "--out", str(out)))
    ended = commands.run(srun)
    assert ended.code == 0, ended.err
    [largest] = [row for row in load_run(out).rows if row.size_bytes == 16 << 20]
    assert largest.busbw_gbps == pytest.approx(payload_bytes_per_second / 1e9, rel=0.03)
    ended = commands.run([sys.executable, "-m", "commbench", "fit", str(out), "--window", "1M:"])
    assert ended.code == 0, ended.err
    [fit] = load_record(out).fits
    assert fit.line.bytes_per_second.value == pytest.approx(payload_bytes_per_second, rel=0.03)


def test_layouts_over_nodes(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster, out = emulated_cluster(nodes=3, rate="200mbit", slow=("3:40mbit",), slurm=True), tmp_path / "run"
    layouts = [option for layout in ("node", "rail", "ladder", "pairs") for option in ("--layout", layout)]
    both = ("--concurrency", "alone", "--concurrency", "together")
    options = ("--collectives", "all_reduce", "--sizes", "512K", "--budget", "20s", "--no-plots", "--out", str(out))
    srun = ("srun", "-N3", "--ntasks-per-node=2", *sweep(*options, *layouts, *both))
    ended = commands.run(cluster.argv("head", *srun))
    assert ended.code == 0, ended.err
    rows = load_run(out).rows
    inside = {row.layout for row in rows if row.link_class == "loopback"}
    across = {row.layout for row in rows if row.link_class == "net"}
    assert (inside, across) == ({"node", "pairs"}, {"rail", "ladder", "pairs"})  # a pair may be on one node
    rails = [row.contention for row in rows if row.layout == "rail" and row.concurrency == "together"]
    assert all(ratio and ratio > 1.5 for ratio in rails)  # two groups share each node's link
    assert "with ranks 4-5 on n3" in ended.out  # they are the slow ones
    assert "scaling of all_reduce" in ended.out


# -- failures ----------------------------------------------------------------------------------------------------------


def _wait_until_it_measures(out: Path, *processes: subprocess.Popen[str]) -> None:
    give_up = time.monotonic() + 90
    samples = out / "samples.csv"
    while not samples.exists() or len(samples.read_text().splitlines()) < 80:
        assert time.monotonic() < give_up
        assert all(process.poll() is None for process in processes)
        time.sleep(0.05)


class Sweep:
    """A sweep of four ranks, one a node, each started as a pod of a PyTorchJob is."""

    def __init__(self, cluster: EmulatedCluster, commands: Commands, out: Path, ranks: tuple[int, ...] = (0, 1, 2, 3)):
        self.out = out
        self._commands = commands
        options = (*ENDLESS, "--timeout", f"{TIMEOUT_SECONDS}s", "--out", str(out))
        self.processes = {
            rank: commands.start(
                cluster.argv(f"n{rank + 1}", *sweep(*options)),
                RANK=str(rank), WORLD_SIZE="4", MASTER_ADDR="n1", MASTER_PORT=PORT,
            )
            for rank in ranks
        }  # fmt: skip

    def wait_until_it_measures(self) -> None:
        _wait_until_it_measures(self.out, *self.processes.values())

    def end(self, but: int | None = None) -> dict[int, Ended]:
        """How the ranks ended, each in its timeout and ten seconds more."""
        began = time.monotonic()
        ended = {}
        for rank, process in self.processes.items():
            if rank != but:
                left = began + TIMEOUT_SECONDS + 10 - time.monotonic()
                ended[rank] = self._commands.end(process, timeout=max(0.1, left))
        return ended

    def check_kept(self) -> None:
        assert any(row.samples >= 2 and row.seconds_median for row in load_run(self.out).rows)  # one visit or more


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> range:
    return range(request.config.getoption("--failure-rounds"))


CASE = " float32"


@pytest.mark.parametrize("rank", [2, 0])
def test_a_killed_rank(rank: int, rounds: range, emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster = emulated_cluster(nodes=4)
    for number in rounds:
        run = Sweep(cluster, commands, tmp_path / str(number))
        run.wait_until_it_measures()
        run.processes[rank].kill()
        ended = run.end()
        assert {other: one.code for other, one in ended.items() if other != rank} == dict.fromkeys(
            {0, 1, 2, 3} - {rank}, 3
        )
        said = [one.err for other, one in ended.items() if "failed: " in one.err]
        who = f"rank {rank} on n{rank + 1} "
        assert said
        assert all(CASE in text and f" on the world failed: {who}" in text for text in said), said
        assert rank == 0 or len(said) == 1  # the rest leaves it to rank 0
        run.check_kept()
        cluster.wait_for_no_leftovers()


@pytest.mark.parametrize("rank", [2, 0])
def test_a_stopped_rank(
    rank: int, rounds: range, emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    cluster = emulated_cluster(nodes=4)
    for number in rounds:
        run = Sweep(cluster, commands, tmp_path / str(number))
        run.wait_until_it_measures()
        run.processes[rank].send_signal(signal.SIGSTOP)
        ended = run.end(but=rank)
        _check_hang(ended, rank)
        run.check_kept()
        run.processes[rank].kill()  # what a launcher does to the rest of a job that has failed
        cluster.wait_for_no_leftovers()


@pytest.mark.parametrize("rank", [2, 0])
def test_a_node_whose_link_is_down(
    rank: int, rounds: range, emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    cluster = emulated_cluster(nodes=4)
    for number in rounds:
        run = Sweep(cluster, commands, tmp_path / str(number))
        run.wait_until_it_measures()
        cluster.set_link(f"n{rank + 1}", "down")
        ended = run.end()
        _check_hang({other: one for other, one in ended.items() if other != rank}, rank)
        assert ended[rank].code == 124  # cut off, it ends by itself too
        run.check_kept()
        cluster.wait_for_no_leftovers()
        cluster.set_link(f"n{rank + 1}", "up")


def _check_hang(ended: dict[int, Ended], rank: int) -> None:
    assert {one.code for one in ended.values()} == {124}
    said = [one.err for one in ended.values() if "hangs" in one.err]
    assert said
    waited = f"no progress for {TIMEOUT_SECONDS} s, at most {TIMEOUT_SECONDS} s were allowed (--timeout)"
    hang = f" on the world hangs: {waited};"
    silent = "gives no sign of life" if rank else "does not answer"
    assert all(CASE in text and f"{hang} rank {rank} on n{rank + 1} {silent}" in text for text in said), said
    assert rank == 0 or len(said) == 1


@pytest.mark.parametrize("rank", [2, 0])
def test_a_rank_that_was_never_started(
    rank: int, rounds: range, emulated_cluster: Factory, commands: Commands, tmp_path: Path
) -> None:
    cluster = emulated_cluster(nodes=4)
    for number in rounds:
        others = tuple({0, 1, 2, 3} - {rank})
        run = Sweep(cluster, commands, tmp_path / str(number), others)
        ended = {other: commands.end(process, timeout=90) for other, process in run.processes.items()}
        assert {one.code for one in ended.values()} == {3}
        if rank:
            assert "rank 2 on a host that the launcher does not name did not come within 6 s" in ended[0].err
            assert "3 of 4 ranks are here, rank 0 on n1, rank 1 on n2, rank 3 on n4" in ended[0].err
            assert ended[1].err + ended[3].err == ""
        else:
            assert "rank 1 of 4 got no answer from rank 0 at n1:29511 within 6 s" in ended[1].err
        assert not run.out.exists()
        cluster.wait_for_no_leftovers()


def test_srun_ends_a_job_with_a_stopped_rank(emulated_cluster: Factory, commands: Commands, tmp_path: Path) -> None:
    cluster, out = emulated_cluster(nodes=4, slurm=True), tmp_path / "run"
    srun = ("srun", "-N4", "--kill-on-bad-exit=1")
    options = (*ENDLESS, "--timeout", f"{TIMEOUT_SECONDS}s", "--out", str(out))
    process = commands.start(cluster.argv("head", *srun, *sweep(*options)))
    _wait_until_it_measures(out, process)
    third = [rank for rank in cluster.leftovers() if rank.environ().get("SLURM_PROCID") == "2"]
    for one in third:
        one.suspend()
    ended = commands.end(process, timeout=TIMEOUT_SECONDS + 20)
    assert ended.code == 137 or ended.code == 124  # srun's own code is the highest of its tasks'
    assert "rank 2 on n3 gives no sign of life" in ended.err
    cluster.wait_for_no_leftovers()
