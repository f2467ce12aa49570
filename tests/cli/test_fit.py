"""`commbench fit` in this process, on runs of the fake engine: what it prints, writes, and how it fails."""

import csv
import json
import re
from io import StringIO
from pathlib import Path

import pytest

from commbench.analysis.record_file import FIT_FILE, load_record
from commbench.report.fits_csv import FIT_COLUMNS
from tests.cli.conftest import Call
from tests.cli.test_golden import DATA
from tests.conftest import REPOSITORY
from tests.factories import make_row, write_run

SWEEP = ["sweep", "--engine", "fake", "--no-plots", "-q"]
MACHINE = ["--ranks", "4", "--sizes", "1K:64M:x4", "--fake", "nvlink=5us:20GB/s,nvlink@256K=25us:100GB/s"]


@pytest.fixture
def run(call: Call, tmp_path: Path) -> Path:
    """Two collectives in two regimes, without noise."""
    directory = tmp_path / "run"
    collectives = ["--collectives", "all_reduce,all_gather,barrier"]
    assert call(*SWEEP, *MACHINE, *collectives, "--out", str(directory)).code == 0
    return directory


def test_golden(run: Path, call: Call) -> None:
    ended = call("fit", str(run), "--predict", "all_reduce 3M 4", "--predict", "all_to_all 3M 16")
    assert (ended.code, ended.err) == (0, "")
    found = re.sub(r"^commbench \S+:", "commbench VERSION:", ended.out)
    golden = DATA / "fit.table.txt"
    got = golden.with_suffix(".got")
    got.write_text(found)
    assert found == golden.read_text()
    got.unlink()


def test_the_planted_machine_is_in_fit_json(run: Path, call: Call) -> None:
    assert call("fit", str(run)).code == 0
    record = load_record(run)
    reduce, gather = record.fits
    assert reduce.line is not None
    assert reduce.line.alpha_total.value == pytest.approx(6 * 25e-6)
    assert reduce.line.bytes_per_second.value == pytest.approx(100e9)
    assert [regime.first_nbytes for regime in gather.regimes.estimates] == [1024, 256 << 10]
    assert [item.reason for item in record.unfitted] == ["it moves no data"]
    assert record.runs == ("run",)


def test_json_is_fit_json_and_the_predictions(run: Path, call: Call) -> None:
    ended = call("fit", str(run), "--format", "json", "--predict", "all_reduce 3M 4")
    document = json.loads(ended.out)
    assert document["records"] == [json.loads((run / FIT_FILE).read_text())]
    (prediction,) = document["predictions"]
    assert prediction["seconds"] == pytest.approx(6 * 25e-6 + 1.5 * 3 * (1 << 20) / 100e9)
    assert prediction["basis"] == "regimes, between measured sizes"


def test_csv_has_a_row_for_each_line_and_regime(run: Path, call: Call) -> None:
    rows = list(csv.DictReader(StringIO(call("fit", str(run), "--format", "csv").out)))
    assert [(row["collective"], row["part"]) for row in rows] == [
        (name, part) for name in ("all_reduce", "all_gather") for part in ("line", "regime 1", "regime 2")
    ]
    assert float(rows[0]["bytes_per_second"]) == pytest.approx(100e9)
    assert set(FIT_COLUMNS) < rows[0].keys()


def test_csv_of_predictions(run: Path, call: Call) -> None:
    ended = call("fit", str(run), "--format", "csv", "--predict", "all_reduce 3M 4", "--predict", "all_gather 1G 4")
    rows = list(csv.DictReader(StringIO(ended.out)))
    assert [(row["collective"], row["nbytes"]) for row in rows] == [
        ("all_reduce", "3145728"),
        ("all_gather", "1073741824"),
    ]
    assert rows[1]["error"] == ""


def test_the_window_is_stated(run: Path, call: Call) -> None:
    ended = call("fit", str(run), "--window", ":64K")
    assert "One line on sizes up to 64 KiB" in ended.out
    line = load_record(run).fits[0].line
    assert line is not None
    assert line.alpha_total.value == pytest.approx(6 * 5e-6)
    assert line.window.last_nbytes == 64 << 10


def test_launches_of_one_machine_are_one_fit(run: Path, call: Call, tmp_path: Path) -> None:
    other = tmp_path / "again"
    call(*SWEEP, *MACHINE, "--collectives", "all_reduce", "--out", str(other), "--seed", "1")
    assert call("fit", str(run), str(other)).code == 0
    record = load_record(other)
    assert record == load_record(run)
    assert [fit.launches for fit in record.fits] == [2, 1]


def test_a_run_given_twice_is_one_launch(run: Path, call: Call) -> None:
    call("fit", str(run), f"{run}/../run")
    assert {fit.launches for fit in load_record(run).fits} == {1}


def test_throughput_and_latency_are_never_in_one_fit(run: Path, call: Call, tmp_path: Path) -> None:
    other = tmp_path / "latency"
    call(*SWEEP, *MACHINE, "--collectives", "all_reduce", "--mode", "latency", "--out", str(other))
    call("fit", str(run), str(other))
    fits = load_record(run).fits
    assert [(fit.key.mode, fit.launches) for fit in fits if fit.key.collective == "all_reduce"] == [
        ("throughput", 1),
        ("latency", 1),
    ]


def test_no_save_leaves_the_run_alone(run: Path, call: Call) -> None:
    before = {path.name for path in run.iterdir()}
    assert call("fit", str(run), "--no-save").code == 0
    assert {path.name for path in run.iterdir()} == before


def test_output_goes_to_a_file(run: Path, call: Call, tmp_path: Path) -> None:
    ended = call("fit", str(run), "-o", str(tmp_path / "fits.txt"))
    assert (ended.code, ended.out) == (0, "")
    assert (tmp_path / "fits.txt").read_text() == call("fit", str(run)).out


def test_the_example_fits_without_its_samples_too(call: Call, tmp_path: Path) -> None:
    """Medians alone give the same line, with intervals from residuals."""
    example = REPOSITORY / "results" / "example-gloo-2-ranks"
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("run.json", "summary.csv"):
        (bare / name).write_bytes((example / name).read_bytes())
    assert call("fit", str(bare)).code == 0
    with_samples = json.loads(call("fit", "--no-save", "--format", "json", str(example)).out)["records"][0]
    for ours, theirs in zip(load_record(bare).fits, with_samples["fits"], strict=True):
        assert ours.key.collective == theirs["key"]["collective"]
        assert ours.points[0].seconds == pytest.approx(theirs["points"][0]["seconds"])
        assert ours.points[0].half_width is None


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--window", "1M"], 2, "write FIRST:LAST"),
        (["--window", "2M:1M"], 2, "its first size is above its last"),
        (["--window", "x:"], 2, "cannot read the size 'x'"),
        (["--predict", "all_reduce 64M"], 2, "write COLLECTIVE SIZE RANKS"),
        (["--predict", "all_reduc 64M 8"], 2, "did you mean all_reduce"),
        (["--predict", "all_reduce 64Q 8"], 2, "cannot read the size '64Q'"),
        (["--predict", "all_reduce 64M 1"], 2, "at least 2"),
        (["--predict", "all_reduce 64M ²"], 2, "at least 2"),
        (["--predict", "barrier 64M 4"], 3, "moves nothing over a link"),
        (["--format", "xml"], 2, "xml"),
    ],
)
def test_what_cannot_be_right_is_one_sentence(options: list[str], code: int, said: str, run: Path, call: Call) -> None:
    ended = call("fit", str(run), *options)
    assert ended.code == code
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_no_run_and_nothing_to_fit_are_exit_code_3(call: Call, tmp_path: Path) -> None:
    assert call("fit").code == 2
    missing = call("fit", str(tmp_path / "nowhere"))
    assert (missing.code, missing.out) == (3, "")
    assert "no run in" in missing.err
    nothing = call("fit", str(write_run(tmp_path, rows=[make_row(0), make_row(1, size_bytes=4096)])))
    assert nothing.code == 3
    assert "nothing to fit: all_reduce: 2 measured sizes, a line needs 3" in nothing.err


def test_a_directory_that_cannot_be_written_says_so(run: Path, call: Call) -> None:
    (run / (FIT_FILE + ".part")).mkdir()
    ended = call("fit", str(run))
    assert ended.code == 3
    assert "--no-save writes none" in ended.err
