"""`commbench compare`, `baseline` and `history` in this process: doors, exit codes, and how they fail."""

import json
from pathlib import Path

import pytest

from commbench.results.store import RUN_FILE, SUMMARY_FILE
from tests.cli.conftest import Call
from tests.unit.analysis.launches import dated, make_launches, store
from tests.unit.results.importers.make import nccl

NOISE = {"level": 0.005, "noise": 0.01}


@pytest.fixture
def before(tmp_path: Path) -> list[str]:
    return store(make_launches(3, **NOISE), tmp_path / "before")


@pytest.fixture
def slow(tmp_path: Path) -> list[str]:
    return store(make_launches(3, 50, rate=0.85e9, **NOISE), tmp_path / "after")


@pytest.fixture
def fast(tmp_path: Path) -> list[str]:
    return store(make_launches(3, 80, rate=1.2e9, **NOISE), tmp_path / "fast")


@pytest.fixture(autouse=True)
def baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COMMBENCH_BASELINES", str(tmp_path / "baselines"))
    return tmp_path / "baselines"


def test_exit_codes(before: list[str], slow: list[str], fast: list[str], call: Call) -> None:
    assert call("compare", *before, "--", *slow).code == 1
    assert call("compare", *before, "--", *fast).code == 0
    assert call("compare", "--fail-on", "changed", *before, "--", *fast).code == 1
    assert call("compare", *before, "--", *slow, "--fail-on", "never").code == 0


def test_options_stand_on_both_sides_of_the_separator(before: list[str], slow: list[str], call: Call) -> None:
    ended = call("compare", "--fail-on", "never", *before, "--", *slow, "--format", "json")
    assert (ended.code, ended.err) == (0, "")
    assert len(json.loads(ended.out)["new"]["runs"]) == 3


def test_two_words_need_no_separator_and_a_directory_holds_runs(tmp_path: Path, call: Call) -> None:
    store(make_launches(3, **NOISE), tmp_path / "before")
    store(make_launches(3, 50, rate=0.85e9, **NOISE), tmp_path / "after")
    ended = call("compare", str(tmp_path / "before"), str(tmp_path / "after"))
    assert ended.code == 1
    assert "base: 3 runs of 2026-01-02" in ended.out
    assert "net: alpha unchanged" in ended.out


@pytest.mark.parametrize("words", [["a"], ["a", "b", "c"], ["a", "--"], ["--", "a"], ["a", "--", "b", "--", "c"]])
def test_sides_must_be_told(words: list[str], call: Call) -> None:
    ended = call("compare", *words)
    assert ended.code == 2
    assert "BASE… -- NEW…" in ended.err


def test_a_word_that_is_nothing(before: list[str], call: Call) -> None:
    ended = call("compare", before[0], "nothing-there")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("commbench: no baseline 'nothing-there'")
    assert "\n" not in ended.err.strip()


def test_a_directory_without_runs(before: list[str], tmp_path: Path, call: Call) -> None:
    (tmp_path / "empty").mkdir()
    ended = call("compare", before[0], str(tmp_path / "empty"))
    assert ended.code == 3
    assert "is no run and holds none" in ended.err


def test_a_damaged_run_is_one_sentence(before: list[str], call: Call) -> None:
    Path(before[1], RUN_FILE).write_text('{"schema_version": 2, "created')
    ended = call("compare", before[0], before[1])
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1)


def test_a_half_written_run(before: list[str], slow: list[str], call: Call) -> None:
    path = Path(slow[0], SUMMARY_FILE)
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:10]) + "torn,row")
    ended = call("compare", *before, "--", slow[0])
    assert ended.code == 1  # the large all_reduce are there, and are slower
    assert "of 9 cases" in ended.out
    assert "missing: 15 cases" in ended.out
    assert "not measured in new: missing" in ended.out


def test_a_run_against_itself(before: list[str], call: Call) -> None:
    ended = call("compare", before[0], f"{before[0]}/../{Path(before[0]).name}")
    assert ended.code == 0
    assert "both sides are the same runs" in ended.out


def test_an_unlike_run_exits_with_3_and_says_why(before: list[str], tmp_path: Path, call: Call) -> None:
    (other,) = store(make_launches(1, row={"ranks": 8}), tmp_path / "other")
    ended = call("compare", before[0], other)
    assert ended.code == 3
    assert "ranks 2 in base, 8 in new" in ended.out
    assert ended.err.startswith("commbench: nothing can be compared")


def test_logs_of_nccl_tests_are_compared_as_they_are(tmp_path: Path, call: Call) -> None:
    before, after = tmp_path / "before.log", tmp_path / "after.log"
    before.write_text(nccl())
    after.write_text(nccl().replace("# nccl-tests version 2.18.2", "# nccl-tests version 2.18.3"))
    ended = call("compare", str(before), str(after))
    assert ended.code == 0
    assert "before.log" in ended.out
    versions = ["nccl-tests", "2.18.2", "2.18.3"]
    assert any(line.split()[:3] == versions for line in ended.out.splitlines())
    assert "1 base and 1 new run do not show how far launches differ" in ended.out


def test_a_log_against_a_run_of_ours(before: list[str], tmp_path: Path, call: Call) -> None:
    row = {"ranks": 16, "backend": "nccl", "link_class": "nvlink", "nodes": 2}
    sizes = (1024, 65536, 1 << 20, 1 << 24, 1 << 28)
    (ours,) = store(make_launches(1, row=row, sizes=sizes, collectives=("all_reduce",)), tmp_path / "ours")
    log = tmp_path / "log.txt"
    log.write_text(nccl())
    ended = call("compare", str(log), ours, "--format", "json")
    document = json.loads(ended.out)
    assert [case["key"]["size_bytes"] for case in document["cases"]] == list(sizes)
    assert any("base was measured by nccl-tests, new by commbench" in note for note in document["notes"])
    assert call("compare", str(log), before[0]).code == 3


def test_a_file_that_is_no_result(before: list[str], tmp_path: Path, call: Call) -> None:
    (tmp_path / "notes.txt").write_text("nothing to see")
    ended = call("compare", before[0], str(tmp_path / "notes.txt"))
    assert ended.code == 3
    assert "notes.txt is of no format" in ended.err


def test_output_and_plot_go_to_files(before: list[str], slow: list[str], tmp_path: Path, call: Call) -> None:
    files = ["-o", str(tmp_path / "c.xml"), "--plot", str(tmp_path / "c.png")]
    ended = call("compare", *before, "--", *slow, "--format", "junit", *files)
    assert (ended.code, ended.out) == (1, "")
    assert (tmp_path / "c.xml").read_text().startswith("<?xml")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    ended = call("compare", *before, "--", *slow, "--plot", str(tmp_path / "no" / "c.png"))
    assert ended.code == 3
    assert "cannot write" in ended.err


def test_a_baseline_from_save_to_remove(before: list[str], slow: list[str], call: Call) -> None:
    ended = call("baseline", "save", "rack7", *before)
    assert (ended.code, ended.out) == (0, "")
    assert "baseline rack7: 3 runs in" in ended.err
    assert call("baseline", "save", "rack7", *before).code == 2
    assert "rack7" in call("baseline", "list").out
    shown = call("baseline", "show", "rack7").out
    assert "run-1" in shown
    assert "all_to_all 16 MiB" in shown
    ended = call("compare", "rack7", "--", *slow)
    assert ended.code == 1
    assert "base: 3 runs" in ended.out
    assert call("compare", "rack7", "--", *before).out.startswith("same")
    assert call("baseline", "remove", "rack7").code == 0
    ended = call("baseline", "list")
    assert (ended.code, ended.out) == (0, "")
    assert "no baselines in" in ended.err
    assert call("baseline", "show", "rack7").code == 2


def test_one_run_is_a_baseline_with_advice(before: list[str], call: Call) -> None:
    assert "with 3 and more, compare knows their spread" in call("baseline", "save", "one", before[0]).err
    assert "one run does not show how far runs differ" in call("baseline", "show", "one").out


def test_history(tmp_path: Path, call: Call) -> None:
    runs = [*make_launches(7, **NOISE), *make_launches(5, 50, rate=0.85e9, **NOISE)]
    store(dated(runs), tmp_path / "runs")
    ended = call("history", str(tmp_path / "runs"), "--plot", str(tmp_path / "h.png"))
    assert ended.code == 0
    assert "worse, between 2026-01-07 00:00 and 2026-01-08 00:00" in ended.out
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    (step,) = json.loads(call("history", str(tmp_path / "runs"), "--format", "json").out)["trends"][1]["steps"]
    assert step["index"] == 7
    assert call("history", str(tmp_path / "runs" / "run-0")).code == 3
