"""`commbench import` with real processes: what goes where, and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from commbench.results.importers import FORMATS
from commbench.results.store import load_run
from tests.cli.conftest import Call
from tests.conftest import Commands, Ended
from tests.unit.results.importers.make import SIZES, nccl, row
from tests.unit.results.importers.samples import OSU, SAMPLES

IMPORT = (sys.executable, "-m", "commbench", "import")


def run(commands: Commands, *arguments: str | Path) -> Ended:
    return commands.run([*IMPORT, *map(str, arguments)])


def write(tmp_path: Path, text: str, name: str = "log.txt") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_a_log_becomes_a_run_that_report_shows(commands: Commands, call: Call, tmp_path: Path) -> None:
    ended = run(commands, "-o", tmp_path / "run", write(tmp_path, nccl()))
    assert ended.code == 0
    assert ended.out.startswith("commbench 0.1.0 import of nccl-tests 2.18.2: 16 ranks on 2 nodes, nccl, throughput\n")
    assert ended.err == f"run kept in {tmp_path / 'run'}\n"
    shown = call("report", "--no-plots", "--no-html", str(tmp_path / "run"))
    assert shown.out == ended.out
    assert load_run(tmp_path / "run").record.command[:2] == ("commbench", "import")


def test_standard_input(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IMPORT, "-q", "-o", str(tmp_path / "run"), "-"], input=nccl().encode(), capture_output=True, check=True
    )
    assert done.stderr == b""
    assert load_run(tmp_path / "run").record.origin.files[0].name == "standard input"


def test_findings_and_lost_lines_go_to_stderr_only(call: Call, tmp_path: Path) -> None:
    rows = [row("all_reduce", 16, size) for size in SIZES]
    rows[1] = " ".join(rows[1].split()[5:])
    ended = call("import", "-o", str(tmp_path / "run"), str(write(tmp_path, nccl(rows=rows))))
    assert ended.code == 0
    assert "lost-row: " in ended.err
    assert "log.txt:" in ended.err
    assert "lost-row" not in ended.out


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (nccl(rows=[row("all_reduce", 16, size, wrong="7") for size in SIZES]), "wrong data in 10 of 10 cases"),
        (nccl(footer=False) + "node00: Test NCCL failure common.cu:1 'x'\n", "a test that failed"),
    ],
)
def test_wrong_data_and_a_failed_test_are_kept_and_exit_1(text: str, sentence: str, call: Call, tmp_path: Path) -> None:
    ended = call("import", "-o", str(tmp_path / "run"), str(write(tmp_path, text)))
    assert ended.code == 1
    assert sentence in ended.err
    assert load_run(tmp_path / "run").record.outcome in ("complete", "failed")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("nothing of interest\n", "is of no format that is known here: give --as, one of"),
        ('{"a": 1, "b', "does not read as JSON"),
        ("# OSU MPI Allgather Latency Test v5.3\n# Size  Latency (us)\n1024  12.5\n", "give --ranks N"),
    ],
)
def test_what_cannot_be_read_exits_3_and_writes_nothing(text: str, sentence: str, call: Call, tmp_path: Path) -> None:
    ended = call("import", "-o", str(tmp_path / "run"), str(write(tmp_path, text)))
    assert (ended.code, ended.out) == (3, "")
    assert sentence in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["missing.log", "."])
def test_a_file_that_cannot_be_opened(name: str, call: Call, tmp_path: Path) -> None:
    ended = call("import", "-o", str(tmp_path / "run"), str(tmp_path / name))
    assert ended.code == 3
    assert ended.err.startswith("commbench: cannot read ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "nothing to import: give one or more files"),
        (["-", "-"], "standard input is named more than once"),
        (["--as", "nccltests", "log.txt"], "unknown format 'nccltests': did you mean nccl-tests?"),
        (["--collective", "allreduce", "log.txt"], "unknown collective 'allreduce': did you mean all_reduce?"),
        (["--nodes", "99", "log.txt"], "--nodes 99 is more than the 16 ranks"),
        (["--ranks", "0", "log.txt"], "0 is not in the range"),
    ],
)
def test_usage(options: list[str], sentence: str, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, nccl())
    ended = call("import", "-o", "run", *options)
    assert ended.code == 2
    assert sentence in ended.err
    assert not (tmp_path / "run").exists()


def test_what_the_file_does_not_say_the_user_can(call: Call, tmp_path: Path) -> None:
    file = write(tmp_path, OSU)
    ended = call("import", "--ranks", "16", "--nodes", "2", "--format", "json", "-o", str(tmp_path / "run"), str(file))
    rows = json.loads(ended.out)["rows"]
    assert {(row["collective"], row["ranks"], row["nodes"]) for row in rows} == {
        ("all_reduce", 16, 2), ("point_to_point", 2, 2),
    }  # fmt: skip


def test_the_default_directory_names_the_tool(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, nccl())
    for _ in range(2):
        assert call("import", "-q", "log.txt").code == 0
    assert len([path for path in (tmp_path / "results").iterdir() if "-import-nccl-tests" in path.name]) == 2


def test_list_names_every_format(call: Call) -> None:
    assert [line.split()[0] for line in call("import", "--list").out.splitlines()] == list(FORMATS)


def test_several_files_become_one_run(call: Call, tmp_path: Path) -> None:
    files = []
    for number, (_, data) in enumerate(SAMPLES.values()):
        (tmp_path / f"file{number}").write_bytes(data)
        files.append(str(tmp_path / f"file{number}"))
    ended = call("import", "-o", str(tmp_path / "run"), "--ranks", "4", *files)
    assert ended.code == 1  # two of the samples hold a test that failed
    record = load_run(tmp_path / "run").record
    assert record.origin is not None
    assert {file.format for file in record.origin.files} == set(FORMATS)
