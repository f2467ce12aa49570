"""What is not needed is not loaded: the command line starts fast."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commbench.cli import COMMANDS

HEAVY = {"torch", "pandas", "pyarrow", "matplotlib", "scipy", "numpy", "msgspec", "rich", "jinja2"}

_LIST_MODULES = """
import sys
from commbench.cli import main
try:
    main({arguments!r})
finally:
    print("LOADED", *{{name.partition(".")[0] for name in sys.modules}})
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], *([name, "--help"] for name in COMMANDS), ["--version"], ["topo", "--list"]],
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = _LIST_MODULES.format(arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(ended.stdout.rpartition("LOADED")[2].split())


def test_a_table_of_topo_needs_no_library_for_numbers_or_plots() -> None:
    code = _LIST_MODULES.format(arguments=["topo", "--from", "-"])
    text = "\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\tX\n"
    ended = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert "2 GPUs, 0 NICs" in ended.stdout
    assert HEAVY & set(ended.stdout.rpartition("LOADED")[2].split()) == {"rich"}


def test_a_debug_log_needs_no_library_for_numbers_or_plots() -> None:
    code = _LIST_MODULES.format(arguments=["logs", "-"])
    text = "n1:1:11 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
    ended = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert "NCCL_P2P_DISABLE" in ended.stdout
    assert HEAVY & set(ended.stdout.rpartition("LOADED")[2].split()) == {"rich"}


@pytest.mark.parametrize(("arguments", "needed"), [(["topo"], {"rich"}), (["topo", "--snapshot"], {"msgspec"})])
def test_this_machine_is_read_without_libraries_for_numbers_or_plots(arguments: list[str], needed: set[str]) -> None:
    code = _LIST_MODULES.format(arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(ended.stdout.rpartition("LOADED")[2].split()) == needed


def test_a_check_of_this_machine_loads_no_torch_and_no_record_of_a_run() -> None:
    code = _LIST_MODULES.format(arguments=["check", "--select", "HOST"])
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert " checks: " in ended.stdout
    assert HEAVY & set(ended.stdout.rpartition("LOADED")[2].split()) == set()


def test_a_check_of_this_machine_takes_eight_times_the_time_of_click_at_most() -> None:
    """Click alone takes 0.05 to 0.06 s on a core of 2020 or later; without compiled files at hand a check takes six."""
    ratios = []
    for _ in range(7):
        ours = _seconds([sys.executable, "-m", "commbench", "check", "--select", "ENV,HOST,GPU,PCI,NIC,AFF,SW", "-q"])
        click = _seconds([sys.executable, "-c", "import click"])
        ratios.append(ours / click)
    assert statistics.median(ratios) <= 8.0


@pytest.mark.parametrize("arguments", [["--help"], ["sweep", "--help"]])
def test_help_starts_in_four_times_the_time_of_click(arguments: list[str]) -> None:
    ratios = []
    for _ in range(7):  # in turn, so that a slow moment hits both
        ours = _seconds([sys.executable, "-m", "commbench", *arguments])
        click = _seconds([sys.executable, "-c", "import click"])
        ratios.append(ours / click)
    assert statistics.median(ratios) <= 4.0


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def test_a_full_stdout_is_one_sentence(tmp_path: Path) -> None:
    options = ["--engine", "fake", "--sizes", "1K", "--no-plots", "-q", "--out", str(tmp_path / "run")]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "commbench", "sweep", *options], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert ended.returncode == 3
    assert ended.stderr == "commbench: cannot write stdout: No space left on device.\n"


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    options = ["--engine", "fake", "--sizes", "1K", "--no-plots", "-q", "--out", str(tmp_path / "run")]
    with subprocess.Popen(
        [sys.executable, "-m", "commbench", "sweep", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as left:
        assert left.stdout
        assert left.stderr
        left.stdout.close()
        assert left.stderr.read() == b""
    assert left.returncode == 0
