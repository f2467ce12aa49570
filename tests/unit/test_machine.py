"""commbench.machine: CPUs, memory limits and the environment, read below a made-up root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commbench.machine.binding import bind_threads, busy_fraction, choose_cpus, local_cpus, online_cpus
from commbench.machine.host import memory_limit_nbytes
from commbench.machine.software import kept_environment, versions

EIGHT = set(range(8))


@pytest.mark.parametrize(
    ("allowed", "online", "local_rank", "local_size", "near", "chosen", "why"),
    [
        ({3}, EIGHT, 0, 2, set(), {3}, "made by the launcher"),
        ({0, 1}, EIGHT, 1, 2, {4, 5}, {0, 1}, "made by the launcher"),
        (EIGHT, EIGHT, 0, 2, {4, 5, 6, 7}, {4, 5, 6, 7}, "near the GPU"),
        (EIGHT, EIGHT, 1, 2, {6, 7, 8, 9}, {6, 7}, "near the GPU"),
        (EIGHT, EIGHT, 1, 2, {8, 9}, {4, 5, 6, 7}, "its own"),
        ({0, 1}, {0, 1}, 0, 2, set(), {0}, "its own"),
        ({0, 1}, {0, 1}, 1, 2, set(), {1}, "its own"),
        ({0, 1}, {0, 1}, 0, 1, set(), {0, 1}, "its own"),
        (EIGHT, EIGHT, 2, 3, set(), {4, 5}, "its own"),
        ({1, 3, 5, 7}, {1, 3, 5, 7}, 1, 2, set(), {5, 7}, "its own"),
        ({0, 1}, {0, 1}, 2, 4, set(), {0}, "4 ranks share 2 CPUs"),
        ({0, 1}, {0, 1}, 3, 4, set(), {1}, "4 ranks share 2 CPUs"),
        ({5}, {5}, 7, 8, set(), {5}, "8 ranks share 1 CPUs"),
        ({0, 1, 2}, {0, 1}, 0, 1, set(), {0, 1, 2}, "its own"),
    ],
)
def test_choose_cpus(
    allowed: set[int], online: set[int], local_rank: int, local_size: int, near: set[int], chosen: set[int], why: str
) -> None:
    assert choose_cpus(allowed, online, local_rank, local_size, near) == (chosen, why)


def test_bind_none_leaves_the_threads_alone() -> None:
    before = os.sched_getaffinity(0)
    assert bind_threads("none", 0, 2, None).endswith("(--bind none)")
    assert os.sched_getaffinity(0) == before


def _write(root: Path, path: str, content: bytes | str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize(
    ("content", "cpus"),
    [
        ("0\n", {0}),
        ("0-3\n", {0, 1, 2, 3}),
        ("0-1,8,10-11\n", {0, 1, 8, 10, 11}),
        *((bad, set()) for bad in ("", "\n", "none", "0-", "-1", "0-3,", "0-1-2", "0:3", "3-1", b"\xff\xfe")),
    ],
)
def test_reads_the_cpus_near_a_device(tmp_path: Path, content: bytes | str, cpus: set[int]) -> None:
    _write(tmp_path, "sys/bus/pci/devices/0000:3b:00.0/local_cpulist", content)
    assert local_cpus("0000:3b:00.0", tmp_path) == cpus
    assert local_cpus("0000:af:00.0", tmp_path) == set()


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"fs/cgroup/cpuset.cpus.effective": "2-3\n", "devices/system/cpu/online": "0-7\n"}, {2, 3}),
        ({"fs/cgroup/cpuset.cpus.effective": "\n", "devices/system/cpu/online": "0-3\n"}, {0, 1, 2, 3}),
        ({"devices/system/cpu/online": "0,2\n"}, {0, 2}),
        ({"devices/system/cpu/online": "garbage"}, {0, 1, 2, 3, 4}),
        ({}, {0, 1, 2, 3, 4}),
    ],
    ids=["container", "empty cpuset", "no cgroup", "garbage", "nothing"],
)
def test_online_cpus(tmp_path: Path, monkeypatch, files: dict[str, str], cpus: set[int]) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    for path, content in files.items():
        _write(tmp_path, f"sys/{path}", content)
    assert online_cpus(tmp_path) == cpus


@pytest.mark.parametrize(
    ("limit", "used", "nbytes"),
    [
        ("1000\n", "400\n", 600),
        ("1000\n", "0\n", 1000),
        ("1000\n", "1500\n", 0),
        *(
            (limit, used, None)
            for limit, used in [
                ("max\n", "400\n"),
                (None, None),
                ("1000\n", None),
                (None, "400\n"),
                ("", ""),
                ("-5\n", "400\n"),
                ("1000\n", "garbage"),
                ("²", "400"),
                ("1000", "²"),
                (b"\xff", b"\xff"),
            ]
        ),
    ],
)
def test_memory_limit(tmp_path: Path, limit: bytes | str | None, used: bytes | str | None, nbytes: int | None) -> None:
    for name, content in (("memory.max", limit), ("memory.current", used)):
        if content is not None:
            _write(tmp_path, f"sys/fs/cgroup/{name}", content)
    left = memory_limit_nbytes(tmp_path)
    assert left == nbytes if nbytes is not None else left >= 1 << 60


def test_only_allow_listed_variables_are_kept() -> None:
    kept = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "FI_PROVIDER": "efa",
        "GLOO_SOCKET_IFNAME": "eth0",
        "MASTER_ADDR": "n1",
        "NCCL_ALGO": "Ring",
        "OMP_NUM_THREADS": "4",
        "TORCH_NCCL_BLOCKING_WAIT": "1",
        "UCX_TLS": "rc",
    }
    dropped = [
        "SECRET_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "CUDA_HOME",
        "MY_NCCL_TOKEN",
        "NCCL",
        "nccl_algo",
        "MASTER_ADDR_KEY",
        "WIFI_PASSWORD",
        "PATH",
    ]
    given = dict(reversed(kept.items())) | dict.fromkeys(dropped, "s3cret")
    assert list(kept_environment(given).items()) == list(kept.items())


def test_this_process_is_read_by_default(monkeypatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    kept = kept_environment()
    assert kept["NCCL_DEBUG"] == "WARN"
    assert "AWS_SECRET_ACCESS_KEY" not in kept


def test_versions_names_what_is_installed() -> None:
    found = versions()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {"commbench", "torch", "numpy"} <= set(found)


def test_versions_imports_nothing() -> None:
    program = (
        "import sys; from commbench.machine.software import versions; print(versions()['torch']); "
        "print([name for name in ('torch', 'numpy', 'cupy') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    torch, loaded = run.stdout.splitlines()
    assert torch[0].isdigit()
    assert loaded == "[]"


def _stat(root: Path, busy: int, idle: int) -> None:
    (root / "proc").mkdir(exist_ok=True)
    cpus = "".join(f"cpu{cpu} {busy} 0 0 {idle} 0 0 0 0 0 0\n" for cpu in sorted(os.sched_getaffinity(0)))
    (root / "proc" / "stat").write_text(f"cpu 9 9 9 9 9 9 9 9 9 9\n{cpus}cpu99999 5 5 5 5 5 5 5 5 0 0\nintr 1 2\n")


@pytest.mark.parametrize(("busy", "idle", "fraction"), [(0, 20, 0.0), (5, 15, 0.25), (20, 0, 1.0), (0, 0, 0.0)])
def test_busy_fraction(busy: int, idle: int, fraction: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stat(tmp_path, 100, 100)
    monkeypatch.setattr("time.sleep", lambda seconds: _stat(tmp_path, 100 + busy, 100 + idle))
    assert busy_fraction(tmp_path) == pytest.approx(fraction)


def test_a_busy_machine_is_not_bound() -> None:
    before = os.sched_getaffinity(0)
    assert "not bound: others take 60% of the CPUs" in bind_threads("auto", 0, 1, None, busy=0.6)
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize("is_idle", [True, False])
def test_threads_are_levelled_where_one_yields(is_idle: bool) -> None:
    """In a process of its own: without privileges there is no way back."""
    program = (
        "import os, threading, time; from commbench.machine.binding import level_threads; "
        "other = threading.Thread(target=time.sleep, args=(5,), daemon=True); other.start(); "
        f"{is_idle} and os.sched_setscheduler(other.native_id, os.SCHED_IDLE, os.sched_param(0)); level_threads(); "
        "print({os.sched_getscheduler(thread) == os.SCHED_IDLE for thread in (0, other.native_id)})"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == f"{{{is_idle}}}\n"
