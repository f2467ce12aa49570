"""NCCL's tuner: runs under forced protocols, the file that the example plugin reads, and the plugin's choice.

The plugin itself and optimize_config.py are run where COMMBENCH_NCCL_CHECKOUT names a checkout of NCCL (with gcc).
"""

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from commbench.cli import main
from tests.planners.conftest import CONSUMERS, Planted, commbench
from tests.planners.test_closed_form import checkout

# By protocol: they cost the same at 3.43e6 bytes of an all_reduce of 8, between 2 MiB and 4 MiB.
LINKS = {"LL": Planted(1e-6, 60e9), "Simple": Planted(6e-6, 200e9)}
CHANNELS = {"LL": 4, "Simple": 16}
MIB = 1 << 20
BORDER = 3 * MIB


def sweep(directory: Path, protocol: str, **environment: str) -> Path:
    """A run with the protocol forced, on a fake machine that has its line."""
    link = LINKS[protocol]
    machine = f"nvlink={link.alpha_step}s:{link.bytes_per_second / 1e9}GB/s"
    forced = {"NCCL_ALGO": "Ring", "NCCL_PROTO": protocol, **environment}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in forced.items():
            patch.setenv(name, value)
        commbench(
            "sweep", "--engine", "fake", "--ranks", "8", "--fake", machine, "--collectives", "all_reduce,all_to_all",
            "--sizes", "64K:64M:x2", "--no-plots", "-q", "--budget", "5s", "--out", str(directory),
        )  # fmt: skip
    return directory


def channels(protocol: str) -> dict[str, str]:
    return {"NCCL_MIN_CTAS": str(CHANNELS[protocol]), "NCCL_MAX_CTAS": str(CHANNELS[protocol])}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("forced")
    return [sweep(folder / protocol, protocol, **channels(protocol)) for protocol in LINKS]


@pytest.fixture(scope="module")
def folder(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("tuner")
    commbench("export", *map(str, runs), "--to", "nccl-tuner", "-o", str(target), "-q")
    return target


def configuration(folder: Path) -> list[list[str]]:
    lines = (folder / "nccl_tuner.conf").read_text().splitlines()
    assert max(map(len, lines)) < 256  # the plugin's buffer
    return [line.split(",") for line in lines if not line.startswith("#")]


def test_the_faster_protocol_of_each_size_without_gaps(folder: Path) -> None:
    """The plugin knows no all_to_all: an unknown name would become allreduce, and win."""
    assert configuration(folder) == [
        ["allreduce", "0", str(BORDER), "ring", "ll", "4", "1", "8", "-1", "-1"],
        ["allreduce", str(BORDER + 1), "4294967295", "ring", "simple", "16", "1", "8", "-1", "-1"],
    ]


def test_the_table_has_bytes_microseconds_and_gigabytes_of_a_billion(folder: Path) -> None:
    rows = list(csv.DictReader(StringIO((folder / "performance.csv").read_text())))
    (row,) = [row for row in rows if (row["size_bytes"], row["protocol"]) == (str(4 * MIB), "simple")]
    seconds = LINKS["Simple"].seconds("all_reduce", 8, 4 * MIB)
    assert float(row["latency_us"]) == pytest.approx(seconds * 1e6, rel=1e-3)
    assert float(row["bandwidth_gbps"]) == pytest.approx(1.75 * 4 * MIB / seconds / 1e9, rel=1e-3)
    assert {row["collective"] for row in rows} == {"allreduce"}
    assert len(rows) == 2 * 11


def test_unknown_channels_are_refused_for_the_plugin_would_take_one(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = sweep(tmp_path / "other", "Simple")
    arguments = ["export", str(runs[0]), str(other), "--to", "nccl-tuner", "-o", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 3
    assert "NCCL_MIN_CTAS and NCCL_MAX_CTAS" in capsys.readouterr().err
    commbench(*arguments, "--force")
    assert configuration(tmp_path / "out")[1][5] == "-1"
    assert "ONE channel" in (tmp_path / "out" / "commbench-export.json").read_text()


def test_one_setting_is_nothing_to_compare(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", str(runs[0]), "--to", "nccl-tuner", "-o", str(tmp_path)])
    assert ended.value.code == 3
    assert (
        "NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_MIN_CTAS=16 NCCL_MAX_CTAS=16 commbench sweep" in capsys.readouterr().err
    )


@pytest.mark.checkout
def test_the_plugin_itself_chooses_so(folder: Path, tmp_path: Path) -> None:
    example = Path(checkout("NCCL")) / "plugins" / "tuner" / "example"
    probe = tmp_path / "probe"
    includes = [f"-I{example / 'nccl'}", f"-I{example / 'test'}"]  # it includes "../plugin.c", as upstream's test does
    subprocess.run(["gcc", "-w", *includes, str(CONSUMERS / "nccl_tuner_probe.c"), "-o", str(probe)], check=True)
    sizes = [1024, BORDER, BORDER + 1, 1 << 31]
    ended = subprocess.run(
        [probe, "1", "8", *map(str, sizes)], capture_output=True, text=True, check=True,
        env={**os.environ, "NCCL_TUNER_CONFIG_FILE": str(folder / "nccl_tuner.conf")},
    )  # fmt: skip
    assert json.loads(ended.stdout) == [["ring", "ll", 4]] * 2 + [["ring", "simple", 16]] * 2


@pytest.mark.checkout
def test_its_own_optimiser_reads_our_table(folder: Path, tmp_path: Path) -> None:
    script = Path(checkout("NCCL")) / "plugins" / "tuner" / "example" / "scripts" / "optimize_config.py"
    target = tmp_path / "theirs.conf"
    subprocess.run([sys.executable, script, folder / "performance.csv", "-o", target], check=True, capture_output=True)
    chosen = [line.split(",") for line in target.read_text().splitlines() if line and not line.startswith("#")]
    by_protocol = {words[4] for words in chosen}
    assert by_protocol == {"ll", "simple"}
    assert all((int(words[1]) <= BORDER) == (words[4] == "ll") for words in chosen)
