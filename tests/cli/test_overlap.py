"""`commbench sweep --overlap` in this process: what is kept, shown, and told again by report."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from commbench.errors import CommbenchError
from commbench.results.schema import OverlapRecord, RunRecord
from commbench.results.store import RUN_FILE, load_run
from tests.cli.conftest import Call

SWEEP = ["sweep", "--engine", "fake", "--ranks", "4", "--no-plots", "-q", "--sizes", "1K,1M"]
OVERLAP = ["--overlap", "--fake", "overlap=1.25:1.5", "--collectives", "all_reduce,barrier"]
LINE = (
    "overlap of all_reduce 1 MiB float32 sum on world: beside it a matrix product (on paper) takes 1.25 times "
    "[1.25, 1.25] as long as alone, beside products it takes 1.50 times [1.50, 1.50]; overlap_coe 1.50."
)


def test_it_is_below_the_table_in_the_run_and_in_reports(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = call(*SWEEP, *OVERLAP, "--out", str(run))
    assert (ended.code, ended.err) == (0, "")
    assert LINE in ended.out
    first = load_run(run).record.overlap[0]
    assert (first.case, first.coefficient) == (1, pytest.approx(1.5))
    assert json.loads((run / RUN_FILE).read_text())["overlap"][0]["compute"]["factor"] == pytest.approx(1.25)
    again = call("report", "--no-plots", str(run))
    assert LINE in again.out
    assert "overlap_coe 1.50" in (run / "report.html").read_text()


def test_without_it_nothing_is_told(call: Call, tmp_path: Path) -> None:
    ended = call(*SWEEP, "--out", str(tmp_path / "run"))
    assert "overlap" not in ended.out
    assert load_run(tmp_path / "run").record.overlap == ()


def test_a_resumed_run_measures_the_overlap_that_it_lacks(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call(*SWEEP, *OVERLAP, "--out", str(run))
    record = load_run(run).record
    (run / RUN_FILE).write_bytes(msgspec.json.encode(replace(record, outcome="interrupted", overlap=())))
    ended = call("sweep", "--resume", str(run), "-q", "--no-plots")
    assert (ended.code, ended.err) == (0, "")
    assert LINE in ended.out
    assert load_run(run).record.overlap == record.overlap


def test_the_factors_of_the_fake_engine_are_a_pair(call: Call, tmp_path: Path) -> None:
    ended = call(*SWEEP, "--overlap", "--fake", "overlap=2", "--out", str(tmp_path / "run"))
    assert ended.code == 2
    assert "write overlap=FACTOR:FACTOR" in ended.err


@pytest.mark.parametrize("change", [{"case": 9}, {"case": -1}, {"group": 7}])
def test_a_damaged_overlap_is_told_by_name(change: dict[str, int], call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call(*SWEEP, *OVERLAP, "--out", str(run))
    record: RunRecord = load_run(run).record
    damaged: OverlapRecord = replace(record.overlap[0], **change)
    (run / RUN_FILE).write_bytes(msgspec.json.encode(replace(record, overlap=(damaged,))))
    with pytest.raises(CommbenchError, match="is damaged: an overlap names case"):
        load_run(run)


def test_a_factor_of_no_time_is_damaged(call: Call, tmp_path: Path) -> None:
    run = tmp_path / "run"
    call(*SWEEP, *OVERLAP, "--out", str(run))
    text = (run / RUN_FILE).read_text()
    (run / RUN_FILE).write_text(text.replace('"factor": 1.25', '"factor": -1.25'))
    assert text != (run / RUN_FILE).read_text()
    with pytest.raises(CommbenchError, match="a factor of no time"):
        load_run(run)
