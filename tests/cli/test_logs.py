"""`commbench logs`."""

import json
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from commbench.results.nccl_log.faults import known_faults
from tests.cli.conftest import Call
from tests.conftest import REPOSITORY
from tests.unit.results.nccl_log.samples import FAULTS, SHARED_MEMORY, modern
from tests.unit.topology.make import MATRIX


@pytest.fixture
def log_file(tmp_path: Path) -> str:
    path = tmp_path / "nccl.log"
    path.write_text(modern())
    return str(path)


def test_the_table(call: Call, log_file: str) -> None:
    ended = call("logs", log_file)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("NCCL 2.20.5+cuda12.4: 62 messages in 62 lines of nccl.log\n")
    assert "communicator 0xabc: 4 ranks on 2 nodes, 4 say that they are ready; channels: 2, p2p 2\n" in ended.out
    assert "P2P/CUMEM x2" in ended.out
    assert " n2     1       mlx5_1   IB                     2\n" in ended.out
    assert "AllReduce" in ended.out


def test_the_example_of_the_page_is_what_it_shows(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, topo, shown = (REPOSITORY / "docs" / "logs.md").read_text().split("```\n")[1:6:2]
    (tmp_path / "nccl.log").write_text(log)
    (tmp_path / "topo.txt").write_text(topo)
    monkeypatch.chdir(tmp_path)
    assert call("logs", "nccl.log", "--topo", "topo.txt").out == shown


def test_what_nccl_says_without_a_gpu_is_what_the_page_shows(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, shown = (REPOSITORY / "docs" / "logs.md").read_text().split("```\n")[7:10:2]
    (tmp_path / "nccl.log").write_text(log)
    monkeypatch.chdir(tmp_path)
    result = call("logs", "nccl.log")
    assert (result.out, result.code) == (shown, 1)


def test_the_page_tells_of_every_known_fault() -> None:
    page = (REPOSITORY / "docs" / "logs.md").read_text()
    assert [row.name for row in known_faults() if f"| `LOG-{row.name.upper()}` | {row.cause} |" not in page] == []


def test_the_json_has_every_connection(call: Call, log_file: str) -> None:
    document = json.loads(call("logs", log_file, "--format", "json").out)
    assert len(document["connections"]) == 12
    assert document["connections"][0]["label"] == "P2P/CUMEM"
    assert document["counts"] == {"lines": 62, "messages": 62, "joined": 0, "lost": 0}
    assert document["ranks"][3]["host"] == "n2"


def test_markdown(call: Call, log_file: str) -> None:
    out = call("logs", log_file, "--format", "markdown").out
    assert "| NCCL\\_CROSS\\_NIC | 1 | n1, n2 |" in out


def test_what_is_wrong_is_an_exit_code(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "bad.log"
    path.write_text(FAULTS)
    ended = call("logs", str(path))
    assert ended.code == 1
    assert "fail: LOG-IB-GID-EMPTY: n1: " in ended.out
    assert "[bad.log:1]" in ended.out


def test_against_the_wiring(call: Call, tmp_path: Path) -> None:
    (tmp_path / "topo.txt").write_text(MATRIX)
    (tmp_path / "nccl.log").write_text(
        SHARED_MEMORY.replace("cudaDev 0 ", "cudaDev 0 nvmlDev 2 ").replace("cudaDev 1 ", "cudaDev 1 nvmlDev 3 ")
    )
    ended = call("logs", str(tmp_path / "nccl.log"), "--topo", str(tmp_path / "topo.txt"))
    assert "GPU 2 → GPU 3: went over SHM although NVLink connects them: NCCL_P2P_DISABLE=1 is set" in ended.out


def test_the_environment_is_judged_by_the_rules_of_check(call: Call, log_file: str) -> None:
    path = Path(log_file)
    path.write_text(path.read_text() + "n1:100:105 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to nvl\n")
    out = call("logs", log_file).out
    assert "ENV-" in out
    assert "NCCL_P2P_LEVEL" in out


def test_standard_input_and_an_output_file(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(modern().encode())))
    ended = call("logs", "-", "-o", str(tmp_path / "out.txt"))
    assert (ended.code, ended.out) == (0, "")
    assert "of standard input" in (tmp_path / "out.txt").read_text()


def test_a_large_matrix_is_told_as_counts(call: Call, tmp_path: Path) -> None:
    lines = [
        f"n1:{rank}:1{rank} [0] NCCL INFO Channel 00/0 : {rank}[0] -> {rank + 1}[1] via P2P/IPC\n"
        for rank in range(1, 99)
    ]
    path = tmp_path / "large.log"
    path.write_text("".join(lines))
    out = call("logs", str(path)).out
    assert " P2P/IPC        98            98\n" in out
    assert "… and 35 more" in out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Missing argument"),
        (["/nowhere/a.log"], 3, "cannot read /nowhere/a.log"),
        (["-", "-"], 2, "give it once"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(call: Call, arguments: list[str], code: int, sentence: str) -> None:
    ended = call("logs", *arguments)
    assert ended.code == code
    assert sentence in ended.err


def test_a_file_without_a_message_is_one_sentence(call: Call, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("hello\n")
    ended = call("logs", str(tmp_path / "x.log"))
    assert ended.code == 3
    assert "NCCL_DEBUG=INFO" in ended.err
