"""Real gloo ranks: every element of every collective is right, and one that is not is named."""

import csv
import sys
from io import StringIO
from pathlib import Path

import pytest

from commbench.results.store import load_run
from tests.conftest import Commands, sweep

pytestmark = pytest.mark.dist

# 2 sizes that hold one block for 4 ranks; a size of 32 bytes is too small for 8-byte elements on 5 ranks only.
MOVING, REDUCING, SIZES, DTYPES = 6, 3, 3, 8


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_collective_dtype_and_redop_is_right(ranks: int, commands: Commands) -> None:
    ended = commands.run([sys.executable, "-m", "tests.dist.verify_all", str(ranks)])
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert not [line for line in lines if "WRONG" in line]
    refused = [line for line in lines if "unsupported" in line]
    alone = "needs at least 2 ranks"
    assert all("avg" in line or (ranks == 1 and alone in line) for line in refused)
    # gloo averages floating point only: 4 of 8 types; send_recv needs a second rank.
    cases = SIZES * DTYPES * (MOVING + 5 * REDUCING)
    expected = cases - 4 * SIZES * REDUCING - (SIZES * DTYPES if ranks == 1 else 0)
    right = [int(line.split(": ")[1].split()[0]) for line in lines if line.endswith("x right")]
    assert right == [expected] * (2 * ranks)


def test_a_corrupted_element_is_named_and_fails_the_run(commands: Commands, tmp_path: Path) -> None:
    options = ["--engine", "corrupt", "--sizes", "1K", "--budget", "0.2s", "--no-plots", "--format", "csv"]
    corrupt = [sys.executable, "-m", "tests.dist.corrupt", "sweep", *options, "--out", str(tmp_path / "run")]
    ended = commands.run(corrupt)
    assert ended.code == 1
    # Element 7 lies in rank 0's block, whose pattern is the position.
    assert "rank 1 element 7: expected 7, got 8" in ended.err
    assert "all_gather 1 KiB float32" in ended.err
    rows = {row["collective"]: row for row in csv.DictReader(StringIO(ended.out))}
    assert (rows["all_gather"]["status"], rows["all_gather"]["wrong"]) == ("wrong", "1")
    assert rows["all_gather"]["seconds_median"] == ""  # a fast wrong answer is not timed
    others = [row for name, row in rows.items() if name != "all_gather"]
    assert len(others) == 3
    assert all(row["wrong"] == "0" and float(row["seconds_median"]) > 0 for row in others)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_sweep_of_all_collectives(ranks: int, commands: Commands, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    ended = commands.run(
        sweep("--ranks", str(ranks), "--collectives", "all", "--sizes", "1K,5000", "--budget", "0.5s", "--format", "csv",
              "--no-plots", "--out", out)
    )  # fmt: skip
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(StringIO(ended.out)))
    assert len(rows) == 9 * 2 + 1
    unsupported = {row["collective"] for row in rows if row["status"] == "unsupported"}
    assert unsupported == ({"send_recv"} if ranks == 1 else set())
    for row in rows:
        if row["status"] == "unsupported":
            continue
        assert row["status"] in ("ok", "noisy")
        assert int(row["samples"]) >= 6
        assert float(row["seconds_ci_low"]) <= float(row["seconds_median"]) <= float(row["seconds_ci_high"])
        assert row["wrong"] == ("" if row["collective"] == "barrier" else "0")
        assert (row["busbw_gbps"] == "") == (ranks == 1 or row["collective"] == "barrier")
    three = {row["size_bytes"] for row in rows if row["collective"] == "all_to_all"}
    assert three == {1: {"1024", "5000"}, 2: {"1024", "5000"}, 3: {"1020", "4992"}, 4: {"1024", "4992"}}[ranks]


@pytest.mark.parametrize("mode", ["throughput", "latency"])
def test_layouts_alone_and_together(mode: str, commands: Commands, tmp_path: Path) -> None:
    layouts = ["mesh:dp=2,tp=2", "pairs", "halves", "strided:2", "ladder", "ranks:0,2/1,3", "node", "rail"]
    options = [word for layout in layouts for word in ("--layout", layout)]
    ended = commands.run(
        sweep("--ranks", "4", "--collectives", "all_reduce", "--sizes", "4K", *options, "--concurrency", "alone",
              "--concurrency", "together", "--mode", mode, "--budget", "0.5s", "--format", "csv", "--no-plots",
              "--out", str(tmp_path / "run"))
    )  # fmt: skip
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(StringIO(ended.out)))
    groups = {
        (layout, concurrency): sorted(
            row["group"] for row in rows if (row["layout"], row["concurrency"]) == (layout, concurrency)
        )
        for layout in {row["layout"] for row in rows}
        for concurrency in ("alone", "together")
    }
    pairs = ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]
    both = {
        "mesh:dp": ["0,2", "1,3"],
        "mesh:tp": ["0-1", "2-3"],
        "pairs": pairs,
        "halves": ["0-1", "2-3"],
        "strided:2": ["0,2", "1,3"],
        "ranks:0,2/1,3": ["0,2", "1,3"],
        "rail": ["0", "1", "2", "3"],
    }
    for layout, names in both.items():
        assert groups[layout, "alone"] == names
        assert groups[layout, "together"] == names
    assert groups["ladder", "alone"] == ["first 2", "first 4"]
    assert groups["node", "alone"] == ["0-3"]
    assert groups["ladder", "together"] == groups["node", "together"] == []
    assert all(float(row["seconds_median"]) > 0 and row["wrong"] == "0" for row in rows)
    assert {row["mode"] for row in rows} == {mode}


def test_ranks_may_be_in_more_groups_than_others(commands: Commands, tmp_path: Path) -> None:
    layouts = ("--layout", "ladder", "--layout", "pairs", "--layout", "ranks:0/1-2")
    ended = commands.run(sweep("--ranks", "3", *layouts, "--collectives", "all_reduce", "--sizes", "1K", "--budget",
                               "0.3s", "--timeout", "60s", "--no-plots", "--out", str(tmp_path / "run")))  # fmt: skip
    assert ended.code == 0, ended.err
    rows = load_run(tmp_path / "run").rows
    assert [row.group for row in rows] == ["first 2", "first 3", "1-2", "0-2", "0-1", "0", "1-2"]
    assert {row.wrong for row in rows} == {0}
