"""Bad input: one clear sentence, exit 2, and nothing started or written."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--collectives", "all_redcue"], "unknown collective 'all_redcue': did you mean all_reduce?"),
        (["--dtype", "float23"], "unknown dtype 'float23': did you mean float32?"),
        (["--redop", "summ"], "unknown redop 'summ': did you mean sum?"),
        (["--engine", "troch"], "unknown engine 'troch': did you mean torch?"),
        (["--layout", "wrold"], "unknown layout 'wrold': did you mean world?"),
        (["--layout", "mesh"], "layout mesh needs an argument: write mesh:AXIS=N,AXIS=N…"),
        (["--layout", "world:3"], "layout world takes no argument"),
        (["--sizes", "64K:1K:x2"], "run backwards: 64 KiB is above 1 KiB; write 1K:64K"),
        (["--sizes", "0"], "'0' is 0 bytes: a size is at least 1 byte"),
        (["--sizes=-4K"], "'-4K' is -4096 bytes: a size is at least 1 byte"),
        (["--sizes", "1E"], "cannot read the size '1E'"),
        (["--sizes", "2000T"], "beyond 1024 TiB"),
        (["--sizes", "1K:1M:x1"], "write a factor above 1 like x2"),
        (["--ranks", "0"], "0 is not in the range x>=1"),
        (["--precision", "150%"], "cannot read '150%' as a fraction"),
        (["--budget", "0s"], "is not above zero"),
        (["--timeout", "soon"], "cannot read the duration 'soon'"),
        (["--mode", "fast"], "'fast' is not one of"),
        (["--fake", "noise=1%"], "add --engine fake"),
        (["--engine", "cupy"], "engine cupy needs the package cupy, which is not installed"),
        (["--backend", "nccl"], "backend nccl needs a GPU"),
        (["--backend", "carrier_pigeon"], "has no backend 'carrier_pigeon' here: it has gloo"),
        (["--link-rate", "nte=25GB/s"], "unknown link class 'nte': did you mean net? known are nvlink, xgmi"),
        (["--link-rate", "25GB/s"], "cannot read the link rate '25GB/s': write CLASS=RATE, like net=25GB/s"),
        (["--link-rate", "net=fast"], "cannot read the rate 'fast': write it like 25GB/s or 400Mbit/s"),
        (["--link-rate", "net=400Mb/s"], "cannot read the rate '400Mb/s'"),
        (["--link-rate", "net=0GB/s"], "'0GB/s' is not above zero and finite"),
        (["--engine", "fake", "--link-rate", "net=1GB/s", "--link-rate", "net=2GB/s"],
         "--link-rate gives net two rates: a link class has one"),
        (["--colectives", "all"], "No such option"),
    ],
)  # fmt: skip
def test_one_sentence_and_exit_2(options: list[str], sentence: str, call: Call, tmp_path: Path) -> None:
    ended = call("sweep", "--out", str(tmp_path / "run"), *options)
    assert ended.code == 2
    assert sentence in ended.err
    assert ended.out == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--layout", "mesh:dp=3,tp=2"], "mesh dp=3 x tp=2 is 6 ranks, but the world has 8"),
        (["--layout", "mesh:dp=two"], "cannot read the mesh axis 'dp=two'"),
        (["--layout", "mesh:dp=2,dp=4"], "names the axis 'dp' twice"),
        (["--layout", "strided:9"], "a whole number from 1 to the world size 8"),
        (["--layout", "ranks:0-8"], "its ranks are 0 to 7"),
        (["--layout", "ranks:0-3/3-5"], "names rank 3 2 times"),
        (["--fake", "nosie=1%"], "unknown key of --fake 'nosie': did you mean noise?"),
        (["--fake", "net=10us"], "cannot read 'net=10us' of --fake: write net=ALPHA:RATE"),
        (["--fake", "slow-rank=99:2"], "names rank 99 as slow, but the ranks are 0 to 7"),
    ],
)
def test_what_only_the_world_can_tell(options: list[str], sentence: str, call: Call, tmp_path: Path) -> None:
    ended = call("sweep", "--engine", "fake", "--ranks", "8", "--out", str(tmp_path / "run"), *options)
    assert ended.code == 2
    assert sentence in ended.err
    assert not (tmp_path / "run").exists()


def test_a_package_that_does_not_load(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text("import libnothing")
    monkeypatch.syspath_prepend(tmp_path)
    ended = call("sweep", "--out", str(tmp_path / "run"), "--engine", "cupy")
    assert ended.code == 2
    assert "engine cupy cannot be loaded: No module named 'libnothing'; pip install 'commbench[cuda12]'" in ended.err
    assert "Traceback" not in ended.err


def test_a_directory_with_a_run_is_never_overwritten(call: Call, tmp_path: Path) -> None:
    sweep = ["sweep", "--engine", "fake", "--sizes", "1K", "--no-plots", "-q", "--out", str(tmp_path / "run")]
    assert call(*sweep).code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    ended = call(*sweep)
    assert ended.code == 2
    assert "already holds a run and is never overwritten" in ended.err
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_a_directory_below_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = call("sweep", "--engine", "fake", "--out", str(tmp_path / "file" / "run"))
    assert ended.code == 2
    assert "is a file, not a directory" in ended.err


def test_a_directory_that_cannot_be_written(call: Call) -> None:
    ended = call("sweep", "--engine", "fake", "--sizes", "1K", "--out", "/proc/run")
    assert ended.code in (2, 3)
    assert "/proc" in ended.err


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"RANK": "0"}, "RANK is set but WORLD_SIZE is not"),
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is set but RANK is not"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 and WORLD_SIZE=2 contradict each other"),
        ({"RANK": "0", "WORLD_SIZE": "two"}, "WORLD_SIZE='two' is not a whole number"),
    ],
)
def test_variables_that_contradict(
    variables: dict[str, str], sentence: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    ended = call("sweep")
    assert ended.code == 2
    assert sentence in ended.err


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({}, "no run in"),
        ({"run.json": b"{"}, "is not a run of commbench"),
        ({"run.json": b"\xff\xfe"}, "is not a run of commbench"),
        ({"run.json": b'{"schema_version": 99}'}, "has schema 99, this commbench reads up to 2"),
    ],
)
def test_report_of_something_else(files: dict[str, bytes], sentence: str, call: Call, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    ended = call("report", str(tmp_path))
    assert ended.code == 3
    assert sentence in ended.err
    assert "Traceback" not in ended.err
