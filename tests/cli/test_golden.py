"""Exact tables of the fake engine. On a mismatch the new text is left beside the golden one, as FILE.got."""

import re
import socket
from pathlib import Path

import pytest

from tests.cli.conftest import Call

DATA = Path(__file__).parent.parent / "data"

TABLES = {
    "one_node": ["--ranks", "8"],
    "slow_rank": ["--ranks", "16", "--collectives", "all_reduce,all_to_all", "--sizes", "1K:1G:x32", "--layout",
                  "world", "--layout", "node", "--layout", "rail", "--fake", "slow-rank=11:3"],
    "regimes": ["--ranks", "4", "--collectives", "all", "--sizes", "512,48K,3M", "--fake",
                "ranks-per-node=2,net=20us:10GB/s,net@64K=80us:20GB/s"],
    "latency_noise": ["--ranks", "4", "--mode", "latency", "--sizes", "8,1M", "--collectives", "all_reduce,barrier",
                      "--fake", "noise=2%", "--seed", "7", "--dtype", "bfloat16,int8", "--redop", "max,avg"],
    "ladder": ["--ranks", "16", "--layout", "ladder", "--collectives", "all_reduce,all_gather,barrier", "--sizes",
               "1K,64M", "--fake", "ranks-per-node=2,slow-rank=9:3"],
    "ladder_one_node": ["--ranks", "6", "--layout", "ladder", "--collectives", "all_reduce", "--sizes", "1K,64M"],
    "contention": ["--ranks", "8", "--layout", "node", "--layout", "rail", "--concurrency", "alone", "--concurrency",
                   "together", "--collectives", "all_reduce", "--sizes", "1K,64M", "--fake",
                   "ranks-per-node=4,contention=2.5,slow-link=1-5:2"],
    "slow_pair": ["--ranks", "4", "--layout", "pairs", "--collectives", "all_reduce", "--sizes", "1K,64M",
                  "--link-rate", "net=400Mbit/s", "--fake", "ranks-per-node=1,net=10us:400mbit,slow-rank=2:4"],
    "link_rate": ["--ranks", "4", "--layout", "world", "--layout", "node", "--collectives", "broadcast", "--sizes",
                  "64M", "--link-rate", "net=50GB/s", "--link-rate", "nvlink=400GB/s", "--fake", "ranks-per-node=2"],
    "one_rank": ["--ranks", "1", "--collectives", "all_reduce,broadcast", "--sizes", "1K"],
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_golden(name: str, form: str, call: Call, tmp_path: Path) -> None:
    golden = DATA / f"{name}.{form}.txt"
    ended = call(
        "sweep", "--engine", "fake", *TABLES[name], "--format", form, "--no-plots", "-q", "--out", str(tmp_path / "r")
    )
    assert ended.code == 0, ended.err
    assert ended.err == ""
    found = re.sub(r"^commbench \S+:", "commbench VERSION:", ended.out).replace(socket.gethostname(), "HOST")
    got = golden.with_suffix(".got")
    got.write_text(found)
    assert found == golden.read_text()
    got.unlink()


def test_report_prints_the_same_table_again(call: Call, tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    first = call("sweep", "--engine", "fake", "--sizes", "1K,1M", "--no-plots", "-q", "--out", run)
    again = call("report", "--no-plots", "--no-html", run)
    assert again.code == 0
    assert again.out == first.out


def test_report_remakes_the_plots(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call(
        "sweep",
        "--engine",
        "fake",
        "--sizes",
        "1K,1M",
        "--layout",
        "world",
        "--layout",
        "halves",
        "-q",
        "--out",
        str(run),
    )
    names = {"busbw-world-alone.png", "busbw-halves-together.png", "time-world-alone.png", "time-halves-together.png"}
    assert {path.name for path in (run / "plots").iterdir()} == names
    for path in (run / "plots").iterdir():
        path.unlink()
    assert call("report", "--no-html", str(run)).code == 0
    assert {path.name for path in (run / "plots").iterdir()} == names


@pytest.mark.parametrize("form", ["csv", "json"])
def test_output_goes_to_a_file(form: str, call: Call, tmp_path: Path) -> None:
    file = tmp_path / "result"
    ended = call(
        "sweep", "--engine", "fake", "--sizes", "1K", "--no-plots", "--format", form, "-o", str(file), "--out",
        str(tmp_path / "run")
    )  # fmt: skip
    assert (ended.code, ended.out) == (0, "")
    assert file.read_text() == call("report", "--no-plots", "--no-html", "--format", form, str(tmp_path / "run")).out


def test_thousands_of_ranks_on_paper(call: Call, tmp_path: Path) -> None:
    ended = call("sweep", "--engine", "fake", "--ranks", "4096", "--sizes", "1M:64M:x8", "--layout", "world",
                 "--layout", "node", "--no-plots", "-q", "--out", str(tmp_path / "run"), "--format", "csv")  # fmt: skip
    assert ended.code == 0
    assert len(ended.out.splitlines()) == 1 + 4 * 3 * (1 + 512)
