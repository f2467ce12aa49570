"""The emulated cluster: whether it is what it says, and whether nothing of it is left, however it ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.conftest import REPOSITORY, Commands, Ended, need_program
from tests.dist import stream
from tests.dist.conftest import SCRIPT, STATE, EmulatedCluster, remove_orphans, unique_name

pytestmark = pytest.mark.dist

Factory = Callable[..., EmulatedCluster]
_PAYLOAD = 1448 / 1514  # of a full frame: the rest is headers
_PATIENCE_SECONDS = 30.0


def _on(cluster: EmulatedCluster, commands: Commands, node: str, *command: str, **environment: str) -> Ended:
    return commands.run(cluster.argv(node, *command), timeout=_PATIENCE_SECONDS, **environment)


def _out(cluster: EmulatedCluster, commands: Commands, node: str, *command: str) -> str:
    ended = _on(cluster, commands, node, *command)
    assert ended.code == 0, ended.err
    return ended.out


def _wait_for(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def _streams(cluster: EmulatedCluster, commands: Commands, *routes: tuple[str, str, str], mib: int = 8) -> list[float]:
    """Bits per second of streams at once, each from a node to another, to the address that a name means."""
    program = [sys.executable, stream.__file__]
    receivers = []
    for source, target, name in routes:
        receivers.append(commands.start(cluster.argv(target, *program, "receive", name, str(mib))))
        commands.start(cluster.argv(source, *program, "send", name, str(mib)))
    ended = [commands.end(receiver, timeout=_PATIENCE_SECONDS) for receiver in receivers]
    assert [one.code for one in ended] == [0] * len(routes), ended
    return [float(one.out) for one in ended]


def test_pinned_nodes_share_no_cpu(emulated_cluster: Factory, commands: Commands) -> None:
    cpus = len(os.sched_getaffinity(0))
    if cpus < 2:
        pytest.skip("two nodes with CPUs of their own need two CPUs")
    cluster = emulated_cluster(nodes=2, pin=True)
    tell = (sys.executable, "-c", "import os; print(*os.sched_getaffinity(0))")
    first, second = (set(_out(cluster, commands, node, *tell).split()) for node in ("n1", "n2"))
    assert len(first) == len(second) == cpus // 2
    assert first.isdisjoint(second)


def test_names_and_addresses(emulated_cluster: Factory, commands: Commands) -> None:
    links_outside = commands.run(["ip", "-o", "link"]).out
    hosts_outside = Path("/etc/hosts").read_text()
    cluster = emulated_cluster(nodes=2)
    for number, node in enumerate(("n1", "n2"), start=1):
        assert _out(cluster, commands, node, "hostname") == f"{node}\n"
        addresses = _out(cluster, commands, node, "ip", "-br", "-4", "address")
        assert [line.split()[2] for line in addresses.splitlines()] == ["127.0.0.1/8", f"10.77.0.{number}/24"]
        assert _out(cluster, commands, node, "getent", "hosts", "n2").split() == ["10.77.0.2", "n2", "n2-rail0"]
    assert _out(cluster, commands, "head", "hostname") == "head\n"
    assert commands.run(["ip", "-o", "link"]).out == links_outside
    assert Path("/etc/hosts").read_text() == hosts_outside


def test_exec_becomes_the_command(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=1)
    show = "echo $$; pwd; echo $COLOUR; grep SigIgn /proc/self/status; kill -TERM $$"
    process = commands.start(cluster.argv("n1", "sh", "-c", show), COLOUR="blue")
    ended = commands.end(process)
    assert ended.out.split("\n")[:3] == [str(process.pid), str(REPOSITORY), "blue"]
    assert int(ended.out.split()[-1], 16) & 1 << signal.SIGPIPE - 1 == 0
    assert ended.code == -signal.SIGTERM
    assert _on(cluster, commands, "n1", "sh", "-c", "exit 7").code == 7
    inner = [SCRIPT, "rsh", "n1", "hostname;", "exit", "5"]  # without --name: one goes on in the cluster that one is in
    assert _on(cluster, commands, "head", *inner) == Ended(5, "n1\n", "")


def test_a_link_holds_its_rate_both_ways(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=3, rate="200mbit", slow=("3:50mbit",))
    [fast] = _streams(cluster, commands, ("n1", "n2", "n2"))
    [to_slow] = _streams(cluster, commands, ("n1", "n3", "n3"))
    [from_slow] = _streams(cluster, commands, ("n3", "n1", "n1"))
    assert fast < 200e6 * _PAYLOAD * 1.03
    assert fast / to_slow == pytest.approx(4, rel=0.1)
    assert fast / from_slow == pytest.approx(4, rel=0.1)


def test_rails_are_links_of_their_own(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=2, rate="100mbit", rails=2)
    addresses = _out(cluster, commands, "n2", "ip", "-br", "-4", "address")
    assert [line.split()[2] for line in addresses.splitlines()[1:]] == ["10.77.0.2/24", "10.77.1.2/24"]
    [alone] = _streams(cluster, commands, ("n1", "n2", "n2"))
    both = _streams(cluster, commands, ("n1", "n2", "n2"), ("n1", "n2", "n2-rail1"))
    assert sum(both) / alone == pytest.approx(2, rel=0.15)


def test_a_link_that_is_pulled_and_put_back(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=2, rate="100mbit")
    program = [sys.executable, stream.__file__]
    receiver = commands.start(cluster.argv("n2", *program, "receive", "n2", "8"))
    commands.start(cluster.argv("n1", *program, "send", "n2", "8"))
    _wait_for(lambda: cluster.received_bytes("n2") > 1e6)
    cluster.set_link("n2", "down")
    time.sleep(1.0)  # 0.7 s would do for all of it
    assert receiver.poll() is None
    cluster.set_link("n2", "up")
    ended = commands.end(receiver, timeout=_PATIENCE_SECONDS)
    assert ended.code == 0, ended.err
    cluster.wait_for_no_leftovers()


def test_delay_where_the_kernel_has_it_or_else_a_sentence(commands: Commands, own_name: str) -> None:
    ended = commands.run([SCRIPT, "up", "--name", own_name, "--nodes", "2", "--delay", "20ms"])
    if ended.code == 0:
        timed = (
            "import socket, time; s = time.time(); e = socket.socket().connect_ex(('n2', 9)); print(time.time() - s)"
        )
        answered = commands.run([SCRIPT, "exec", "--name", own_name, "n1", sys.executable, "-c", timed])
        assert float(answered.out) >= 0.04
    else:
        assert ended.code == 3
        assert "this kernel does not give us the netem queue (for --delay and --loss)" in ended.err
        _check_gone(own_name)


@pytest.fixture
def own_name() -> Iterator[str]:
    """The name of a cluster that a test builds by hand."""
    if os.geteuid() != 0:
        pytest.skip("an emulated cluster needs root")
    need_program("tc")
    name = unique_name()
    yield name
    subprocess.run([SCRIPT, "down", "--name", name], check=True)


def _check_gone(name: str) -> None:
    assert not list(Path("/run/netns").glob(f"{name}-*"))
    assert not (STATE / name).exists()
    assert not _daemons(name)


def _daemons(name: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if f"{STATE}/{name}/" in process.environ().get("SLURM_CONF", ""):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_up_twice_and_down_twice(commands: Commands, own_name: str) -> None:
    for _ in range(2):
        ended = commands.run([SCRIPT, "up", "--name", own_name, "--nodes", "2"])
        assert ended == Ended(0, f"{own_name}: 2 nodes, 1 rail at 400mbit\n", "")
    assert "  n2    10.77.0.2  400mbit  running: 0\n" in commands.run([SCRIPT, "status"]).out
    for _ in range(2):
        assert commands.run([SCRIPT, "down", "--name", own_name]) == Ended(0, "", "")
        _check_gone(own_name)
    assert own_name not in commands.run([SCRIPT, "status"]).out


_MOMENTS = {"links": "netns/{name}-n1", "Slurm": "emulated-cluster/{name}/slurm/munged.pid"}


def _up_until(moment: str, commands: Commands, name: str) -> subprocess.Popen[str]:
    """An `up` that has just come to a moment."""
    for program in ("munged", "slurmctld", "slurmd"):
        need_program(program)
    process = commands.start([SCRIPT, "up", "--name", name, "--slurm"])
    sign = Path("/run", _MOMENTS[moment].format(name=name))
    _wait_for(lambda: sign.exists() and (moment != "links" or _is_namespace(sign)))
    return process


def _is_namespace(path: Path) -> bool:
    """The file is there a moment before the namespace is mounted on it."""
    return path.stat().st_dev != path.parent.stat().st_dev


@pytest.mark.parametrize("moment", _MOMENTS)
def test_the_remains_of_a_killed_up(moment: str, commands: Commands, own_name: str) -> None:
    bystanders = [commands.start([*how, "sleep", "60"]) for how in ([], ["unshare", "--net"])]
    process = _up_until(moment, commands, own_name)
    process.kill()
    process.wait()
    sleeper = commands.start(["nsenter", f"--net=/run/netns/{own_name}-n1", "sleep", "60"])
    _wait_for(lambda: psutil.Process(sleeper.pid).name() == "sleep")
    assert f"{own_name}: in the making, or remains" in commands.run([SCRIPT, "status"]).out
    assert commands.run([SCRIPT, "exec", "--name", own_name, "n1", "true"]).code == 3
    ended = commands.run([SCRIPT, "up", "--name", own_name, "--nodes", "2"])
    assert ended.code == 0, ended.err
    assert sleeper.wait(timeout=1) == -signal.SIGKILL
    assert [bystander.poll() for bystander in bystanders] == [None, None]
    assert not _daemons(own_name)
    assert not Path(f"/run/netns/{own_name}-n4").exists()


@pytest.mark.parametrize("moment", _MOMENTS)
def test_an_interrupted_up_leaves_nothing(moment: str, commands: Commands, own_name: str) -> None:
    process = _up_until(moment, commands, own_name)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C on a terminal does
    assert commands.end(process, timeout=_PATIENCE_SECONDS) == Ended(130, "", "")
    _check_gone(own_name)


def test_orphans_of_killed_tests_go(commands: Commands) -> None:
    dead = commands.start(["true"])
    dead.wait()
    name = f"test{dead.pid}x1"
    assert commands.run([SCRIPT, "up", "--name", name, "--nodes", "1"]).code == 0
    remove_orphans()
    _check_gone(name)


def test_refused_without_root(commands: Commands) -> None:
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups"]
    may_read = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # where the interpreter is root's own
    ended = commands.run([*as_nobody, *may_read, sys.executable, SCRIPT, "up"])
    assert ended == Ended(
        3, "", "emulated_cluster: namespaces and links are made by root, and this is another user; use sudo\n"
    )


def test_refused_without_a_program(commands: Commands, tmp_path: Path) -> None:
    ended = commands.run([sys.executable, SCRIPT, "up"], PATH=str(tmp_path))
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.endswith(" is not installed, and a cluster needs it; try: apt-get install util-linux\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--rate", "400"], "'400' is no rate; give a number and kbit, mbit or gbit, as in 400mbit"),
        (["up", "--nodes", "2", "--slow", "3:1mbit"], "--slow names n3, and the nodes are n1 to n2"),
        (["up", "--name", "a-b"], "'a-b' is not understood; give it as lower-case letters and digits"),
    ],
)
def test_usage(arguments: list[str], said: str, commands: Commands) -> None:
    ended = commands.run([SCRIPT, *arguments])
    assert ended.code == 2
    assert said in ended.err


def test_a_wrong_node_is_answered_with_the_right_ones(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=2)
    ended = _on(cluster, commands, "n3", "true")
    assert ended == Ended(2, "", f"emulated_cluster: n3 is no node of {cluster.name}; there are head, n1, n2\n")


def test_srun_runs_on_the_nodes(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=4, slurm=True)
    assert sorted(_out(cluster, commands, "head", "srun", "-N4", "hostname").split()) == ["n1", "n2", "n3", "n4"]
    show = "ip -br -4 address show eth0; getent hosts n4"
    shown = _out(cluster, commands, "head", "srun", "-N4", "--label", "sh", "-c", show).splitlines()
    assert sorted(line.split()[3] for line in shown if "eth0" in line) == [f"10.77.0.{k}/24" for k in (1, 2, 3, 4)]
    assert sum("10.77.0.4" in line and "n4" in line for line in shown) == 4
    cluster.wait_for_no_leftovers()


def test_a_task_that_fails_or_is_cancelled_ends_its_job(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=2, slurm=True)
    one_fails = "test $SLURM_PROCID = 0 && exit 5; exec sleep 300"
    ended = _on(cluster, commands, "head", "srun", "-N2", "--kill-on-bad-exit", "sh", "-c", one_fails)
    assert ended.code != 0
    assert "n1: task 0: Exited with exit code 5" in ended.err
    cluster.wait_for_no_leftovers()
    job = commands.start(cluster.argv("head", "srun", "-N2", "--job-name=long", "sleep", "300"))
    _wait_for(lambda: _sleeping(cluster) == 2)
    assert _on(cluster, commands, "head", "scancel", "--name=long").code == 0
    assert commands.end(job).code != 0
    cluster.wait_for_no_leftovers()


def test_down_ends_what_slurm_has_started(emulated_cluster: Factory, commands: Commands) -> None:
    cluster = emulated_cluster(nodes=2, slurm=True)
    job = commands.start(cluster.argv("head", "srun", "-N2", "sh", "-c", "trap '' TERM; sleep 300; sleep 300"))
    _wait_for(lambda: _sleeping(cluster) == 2)
    assert commands.run([SCRIPT, "down", "--name", cluster.name]).code == 0
    assert job.wait(timeout=1) == -signal.SIGKILL
    assert not commands.alive()
    _check_gone(cluster.name)


def _sleeping(cluster: EmulatedCluster) -> int:
    return sum(process.name() == "sleep" for process in cluster.leftovers())


def test_a_slurm_that_does_not_start_says_why_and_leaves_nothing(
    commands: Commands, own_name: str, tmp_path: Path
) -> None:
    for program in ("munged", "slurmctld", "slurmd"):
        need_program(program)
    broken = tmp_path / "slurmd"
    broken.write_text("#!/bin/sh\necho 'no luck today' >&2\nexit 1\n")
    broken.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    ended = commands.run([SCRIPT, "up", "--name", own_name, "--slurm"], PATH=path)
    assert ended.code == 3
    assert ended.err.startswith("emulated_cluster: slurmd does not start on n1: ")
    assert "no luck today" in ended.err
    assert "  slurmctld.log: [" in ended.err
    _check_gone(own_name)


def test_mpirun_starts_a_rank_on_each_node(emulated_cluster: Factory, commands: Commands) -> None:
    need_program("mpirun")
    cluster = emulated_cluster(nodes=4)
    mpirun = ["mpirun", "--allow-run-as-root", "--host", "n1,n2,n3,n4", "--mca", "plm_rsh_agent", f"{SCRIPT} rsh"]
    over = ["--mca", "oob_tcp_if_include", "eth0", "--mca", "btl_tcp_if_include", "eth0"]
    show = "echo $(hostname) $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK"
    shown = _out(cluster, commands, "n1", *mpirun, *over, "sh", "-c", show)
    assert sorted(shown.splitlines()) == ["n1 0 0", "n2 1 0", "n3 2 0", "n4 3 0"]
    cluster.wait_for_no_leftovers()
