"""`--resume` on the fake engine: cut off anywhere, the run ends as if nothing had happened; another run is refused."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commbench.cli import main
from commbench.results.lock import RunLock
from commbench.results.store import load_run, read_samples
from tests.cli.conftest import Call

OPTIONS = (
    "--engine", "fake", "--ranks", "4", "--fake", "ranks-per-node=2,slow-rank=1:3", "--collectives",
    "all_reduce,all_to_all,barrier", "--sizes", "8,1K,1M", "--layout", "world", "--layout", "node", "--layout", "pairs",
    "--concurrency", "alone", "--concurrency", "together",
)  # fmt: skip
QUIET = ("--no-plots", "-q")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run, with cases that were skipped."""
    directory = tmp_path_factory.mktemp("measured") / "run"
    main(["sweep", *OPTIONS, *QUIET, "--out", str(directory)])
    return directory


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    """A copy of it that may be broken."""
    return Path(shutil.copytree(measured, tmp_path / "run"))


def cut(path: Path, fraction: float) -> None:
    """What a killed process leaves: the first bytes of the file."""
    text = path.read_bytes()
    path.write_bytes(text[: int(fraction * len(text))])


def edit(run: Path, *path: str | int, value: Any) -> None:
    """Set what is at `path` in run.json to `value`."""
    document = json.loads((run / "run.json").read_text())
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (run / "run.json").write_text(json.dumps(document))


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


@pytest.mark.parametrize(
    ("samples", "summary", "outcome"),
    [
        (0.0, 0.0, "running"),
        (0.001, 0.001, "running"),
        (0.3, 1.0, "running"),
        (1.0, 0.3, "stalled"),
        (0.5, 0.5, "interrupted"),
        (0.5, 0.5, "complete"),
        (1.0, 0.999, "running"),
        (0.999, 1.0, "running"),
        (1.0, 0.0, "failed"),
    ],
)
def test_a_run_that_was_cut_ends_as_one_that_was_not(
    samples: float, summary: float, outcome: str, run: Path, call: Call
) -> None:
    uncut, rows = call("report", "--no-plots", "--no-html", str(run)).out, load_run(run).rows
    batches = sorted(read_samples(run), key=lambda row: (row.case, row.group, row.round, row.kind))
    cut(run / "samples.csv", samples)
    cut(run / "summary.csv", summary)
    edit(run, "outcome", value=outcome)
    ended = call("sweep", "--resume", str(run), *QUIET)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == uncut
    assert load_run(run).rows == rows
    assert sorted(read_samples(run), key=lambda row: (row.case, row.group, row.round, row.kind)) == batches
    record = load_run(run).record
    assert (record.outcome, len(record.resumed_utc)) == ("complete", 1)
    assert sorted(contents(run)) == ["run.json", "samples.csv", "summary.csv"]


def test_finished_cases_are_kept_as_they_are(run: Path, call: Call) -> None:
    lines = (run / "summary.csv").read_text().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if ",ok," in line)
    lines[number] = lines[number].replace(",ok,", ",noisy,", 1)  # nobody would measure that again
    (run / "summary.csv").write_text("".join(lines[:-5]))
    noisy = [row for row in load_run(run).rows if row.status == "noisy"]
    assert len(noisy) == 1
    assert call("sweep", "--resume", str(run), *QUIET).code == 0
    assert [row for row in load_run(run).rows if row.status == "noisy"] == noisy


def test_progress_counts_what_was_done_before(run: Path, call: Call) -> None:
    cut(run / "summary.csv", 0.9)
    left = sum(row.status == "partial" for row in load_run(run).rows)
    told = [line for line in call("sweep", "--resume", str(run), "--no-plots").err.splitlines() if line[0] == "["]
    total = len(load_run(run).record.cases)
    assert 0 < len(told) <= left
    assert told[0].startswith(f"[{total - len(told) + 1}/{total}] ")
    assert told[-1].startswith(f"[{total}/{total}] ")


def test_every_time_is_recorded(run: Path, call: Call) -> None:
    for _ in range(2):
        cut(run / "summary.csv", 0.9)
        assert call("sweep", "--resume", str(run), *QUIET).code == 0
    record = load_run(run).record
    assert len(record.resumed_utc) == 2
    assert record.command[:2] == ("commbench", "sweep")
    assert "--resume" not in record.command


def test_options_of_the_invocation_are_free(run: Path, call: Call, tmp_path: Path) -> None:
    cut(run / "summary.csv", 0.9)
    free = ("--timeout", "7s", "--format", "csv", "-o", str(tmp_path / "table.csv"), "--no-plots")
    ended = call("sweep", "--resume", str(run), *OPTIONS, *free)
    assert (ended.code, ended.out) == (0, "")
    assert (tmp_path / "table.csv").read_text() == call(
        "report", "--no-plots", "--no-html", "--format", "csv", str(run)
    ).out


def test_a_complete_run_has_nothing_left(run: Path, call: Call) -> None:
    before = contents(run)
    for _ in range(2):
        ended = call("sweep", "--resume", str(run), "--no-plots")
        assert ended.code == 0
        assert f"commbench: {run} is complete: nothing is left to measure.\n" in ended.err
        assert ended.out == call("report", "--no-plots", "--no-html", str(run)).out
    assert contents(run) == before


def test_killed_after_the_last_case_it_is_only_ended(run: Path, call: Call) -> None:
    summary = (run / "summary.csv").read_bytes()
    edit(run, "outcome", value="running")
    assert call("sweep", "--resume", str(run), *QUIET).code == 0
    assert load_run(run).record.outcome == "complete"
    assert sorted((run / "summary.csv").read_bytes().splitlines()) == sorted(summary.splitlines())


def test_wrong_data_that_was_kept_still_fails_the_run(run: Path, call: Call) -> None:
    lines = (run / "summary.csv").read_text().splitlines(keepends=True)
    cells = lines[1].split(",")
    at = lines[0].split(",").index("wrong")
    cells[at : at + 3] = ["5", "wrong", "rank 1 element 3: expected 2; got 0"]
    (run / "summary.csv").write_text(lines[0] + ",".join(cells) + "".join(lines[2:-3]))
    ended = call("sweep", "--resume", str(run), *QUIET)
    assert ended.code == 1
    assert "5 wrong elements; rank 1 element 3: expected 2; got 0. Wrong data in 1 of" in ended.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--sizes", "8,1K"], "--sizes (stored 8,1024,1048576, now 8,1024)"),
        (["--layout", "node"], "--layout (stored world,node,pairs, now node)"),
        (["--collectives", "all"], "--collectives (stored all_reduce,all_to_all,barrier, now all_reduce,"),
        (["--ranks", "8"], "--ranks (stored 4, now 8)"),
        (["--engine", "torch"], "--engine (stored fake, now torch)"),
        (["--dtype", "int32"], "--dtype (stored float32, now int32)"),
        (["--redop", "max"], "--redop (stored sum, now max)"),
        (["--concurrency", "alone"], "--concurrency (stored alone,together, now alone)"),
        (["--mode", "latency"], "--mode (stored throughput, now latency)"),
        (["--budget", "1s"], "--budget (stored 30.0, now 1.0)"),
        (["--seed", "4", "--in-place"], "--in-place (stored False, now True); --seed (stored 0, now 4)"),
        (["--fake", "noise=1%"], "--fake (stored ranks-per-node=2,slow-rank=1:3, now noise=1%)"),
        (["--out", "elsewhere"], "--resume goes on in the directory of its run"),
    ],
)
def test_an_option_given_again_must_agree(options: Sequence[str], sentence: str, run: Path, call: Call) -> None:
    cut(run / "summary.csv", 0.5)
    before = contents(run)
    ended = call("sweep", "--resume", str(run), *options)
    assert ended.code == 2
    assert sentence in ended.err
    assert ended.out == ""
    assert contents(run) == before


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("versions", "commbench"), "0.0.9", "it differs in commbench (stored 0.0.9, now "),
        (("versions", "torch"), "1.0", "it differs in torch (stored 1.0, now "),
        (("schema_version",), 0, "it differs in schema (stored 0, now "),
        (("backend",), "gloo", "it differs in backend (stored gloo, now fake)"),
        (("hosts", 0, "ranks"), "0", "it differs in ranks of each host (stored "),
        (("cases", 3, "requested_nbytes"), 4096, "it differs in sizes (stored "),
        (("environment", "NCCL_ALGO"), "Ring", "it differs in environment (stored "),
        (("command",), ["commbench", "import", "x"], "was not made by commbench sweep"),
        (("command",), ["commbench", "sweep", "--colour"], "holds a command that does not read"),
        (("command",), ["commbench", "sweep", "--help"], "holds a command that does not read"),
    ],
)
def test_a_run_of_another_world_is_refused(
    path: Sequence[str | int], value: object, sentence: str, run: Path, call: Call
) -> None:
    cut(run / "summary.csv", 0.5)
    edit(run, *path, value=value)
    before = contents(run)
    ended = call("sweep", "--resume", str(run))
    assert ended.code in (2, 3)
    assert sentence in ended.err
    assert "Traceback" not in ended.err
    assert contents(run) == before


def test_a_directory_that_is_no_run(call: Call, tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        ended = call("sweep", "--resume", str(directory))
        assert ended.code == 3
        assert f"no run in {directory}" in ended.err


def test_a_run_that_is_being_written_is_refused(run: Path, call: Call) -> None:
    cut(run / "summary.csv", 0.5)
    lock = RunLock(run)
    ended = call("sweep", "--resume", str(run))
    lock.release()
    assert ended.code == 2
    assert f"another process is writing {run} right now: wait until it has ended, or stop it." in ended.err
    assert call("sweep", "--resume", str(run), *QUIET).code == 0
