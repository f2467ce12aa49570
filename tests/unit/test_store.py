"""A run on disk: written, read back, half-written, damaged, and never overwritten."""

import csv
import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import CommbenchError, UsageError
from commbench.report.table import format_markdown
from commbench.results import writer
from commbench.results.schema import SAMPLE_COLUMNS, SCHEMA_VERSION, SUMMARY_COLUMNS, Finding, RunRecord
from commbench.results.store import load_run, read_samples
from commbench.results.writer import RunWriter, check_new_directory
from tests.factories import (
    UNMEASURED,
    batches,
    make_case_record,
    make_group_record,
    make_record,
    make_row,
    make_sample,
    write_run,
)

FILES = ("run.json", "samples.csv", "summary.csv")


def sentence(error: pytest.ExceptionInfo[CommbenchError]) -> str:
    """The message, which must be one line that ends like a sentence."""
    text = str(error.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


def edit_json(directory: Path, *path: str | int, value: Any) -> None:
    """Set what is at `path` in run.json to `value`."""
    document = json.loads((directory / "run.json").read_text())
    place = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (directory / "run.json").write_text(json.dumps(document))


def two_cases(tmp_path: Path) -> Path:
    """A complete run of two cases."""
    rows = [make_row(0), make_row(1, size_bytes=4096, count=1024)]
    return write_run(tmp_path, [*batches(0, [1e-4] * 3), *batches(1, [2e-4] * 3)], rows)


# -- round trip --------------------------------------------------------------------------------------------------------


def test_round_trip_keeps_every_value(tmp_path):
    sample = make_sample(1, 1.25e-5, kind="first", round=3, calls=40, enqueue_seconds=2.5e-7, wrong=2)
    rows = (
        make_row(0, reason='a "quoted", odd reason', enqueue_seconds=1e-6, theory_seconds=5e-5, efficiency=0.5),
        make_row(1, **UNMEASURED, status="unsupported", in_place=False),
    )
    directory = write_run(tmp_path, [make_sample(), sample], rows)
    run = load_run(directory)
    assert run.rows == rows
    assert run.record == make_record(outcome="complete", measured_seconds=1.5)
    assert list(read_samples(directory)) == [make_sample(), sample]


def test_numbers_are_kept_to_nine_digits(tmp_path):
    third = 1e-4 / 3
    directory = write_run(tmp_path, [make_sample(0, third)], [make_row(0, seconds_median=third)])
    assert load_run(directory).rows[0].seconds_median == 3.33333333e-05
    assert next(read_samples(directory)).seconds == 3.33333333e-05


def test_what_is_known_of_links_at_the_end_is_in_every_row(tmp_path):
    writing = RunWriter(tmp_path / "run", make_record())
    rows = [make_row(0, theory_seconds=5e-5, efficiency=0.5), make_row(1, **UNMEASURED, size_bytes=4096)]
    writing.add_summary(rows)
    told = make_group_record(link_class="nvlink", bytes_per_second=1e9, link_source="log")
    writing.set_groups([told])
    writing.finish("complete", 1.0)
    run = load_run(tmp_path / "run")
    assert run.record.groups == (told,)
    assert [(row.link_class, row.theory_seconds, row.efficiency) for row in run.rows] == [
        ("nvlink", 1024 / 1e9, pytest.approx(1024 / 1e9 / 1e-4)), ("nvlink", 4096 / 1e9, None),
    ]  # fmt: skip
    assert [replace(row, link_class="loopback", theory_seconds=None, efficiency=None) for row in run.rows] == [
        replace(row, theory_seconds=None, efficiency=None) for row in rows
    ]


def test_a_rate_that_is_no_longer_known_leaves_no_efficiency(tmp_path):
    writing = RunWriter(tmp_path / "run", make_record())
    writing.add_summary([make_row(0, theory_seconds=5e-5, efficiency=0.5)])
    writing.set_groups([make_group_record(link_class="phb", link_source="log")])
    writing.finish("complete", 1.0)
    row = load_run(tmp_path / "run").rows[0]
    assert (row.link_class, row.theory_seconds, row.efficiency) == ("phb", None, None)


def test_the_same_finding_is_kept_once(tmp_path):
    writing = RunWriter(tmp_path / "run", make_record())
    for _ in range(2):
        writing.add_findings([Finding("LOG-SOCKET", "the network", "warn", "TCP sockets")])
    writing.finish("complete", 1.0)
    assert len(load_run(tmp_path / "run").record.findings) == 1


def test_runs_of_before_have_links_of_no_source(tmp_path):
    directory = two_cases(tmp_path)
    document = json.loads((directory / "run.json").read_text())
    del document["groups"][0]["link_source"], document["environment_set"]
    (directory / "run.json").write_text(json.dumps(document))
    record = load_run(directory).record
    assert (record.groups[0].link_source, record.environment_set) == ("", {})


def test_rows_come_in_the_order_of_the_plan(tmp_path):
    directory = write_run(tmp_path, [], [make_row(1, count=7), make_row(0, count=3)])
    assert [row.count for row in load_run(directory).rows] == [3, 7]


def test_groups_of_a_case_are_told_apart(tmp_path):
    groups = (make_group_record(layout="node", name="0-1"), make_group_record(layout="node", name="2-3"))
    record = make_record(groups=groups, cases=(make_case_record(layout="node", groups=(0, 1)),))
    rows = [make_row(layout="node", group=name, count=count) for name, count in (("2-3", 5), ("0-1", 4))]
    directory = write_run(tmp_path, [], rows, record=record)
    assert [(row.group, row.count) for row in load_run(directory).rows] == [("0-1", 4), ("2-3", 5)]


# -- half-written ------------------------------------------------------------------------------------------------------


def test_without_summary_rows_come_from_samples(tmp_path):
    directory = write_run(tmp_path, batches(0, [3e-4, 1e-4, 2e-4]), outcome="running")
    measured, missing = load_run(directory).rows
    assert (measured.status, measured.reason, measured.samples) == ("partial", "the run is running", 3)
    assert (measured.seconds_median, measured.seconds_min, measured.seconds_max) == (2e-4, 1e-4, 3e-4)
    assert (measured.first_call_seconds, measured.wrong, measured.seconds_ci_low) == (2e-3, 0, None)
    assert measured.algbw_gbps == pytest.approx(1024 / 2e-4 / 1e9)
    assert (missing.status, missing.samples, missing.seconds_median, missing.size_bytes) == ("missing", 0, None, 4096)


def test_a_first_call_alone_is_missing_but_kept(tmp_path):
    directory = write_run(tmp_path, [make_sample(0, 5e-3, kind="first", wrong=4)])
    row = load_run(directory).rows[0]
    assert (row.status, row.first_call_seconds, row.wrong, row.seconds_median) == ("missing", 5e-3, 4, None)


def test_enqueue_times_are_summarized_from_samples(tmp_path):
    directory = write_run(tmp_path, [make_sample(0, 1e-4, enqueue_seconds=value) for value in (1e-6, 2e-6, 6e-6)])
    assert load_run(directory).rows[0].enqueue_seconds == 2e-6


def test_torn_last_line_of_samples_is_left_out(tmp_path):
    directory = write_run(tmp_path, batches(0, [1e-4, 2e-4, 9e-4]))
    path = directory / "samples.csv"
    path.write_bytes(path.read_bytes()[:-4])  # the 9e-4 lacks its end
    row = load_run(directory).rows[0]
    assert (row.samples, row.seconds_max) == (2, 2e-4)


@pytest.mark.parametrize("cut", [1, 2, 20, 100], ids=lambda cut: f"{cut} bytes")
def test_torn_last_line_of_summary_is_measured_from_samples(tmp_path, cut):
    directory = two_cases(tmp_path)
    path = directory / "summary.csv"
    path.write_bytes(path.read_bytes()[:-cut])
    assert [row.status for row in load_run(directory).rows] == ["ok", "partial"]


@pytest.mark.parametrize("name", ["samples.csv", "summary.csv"])
@pytest.mark.parametrize(
    ("keep", "what"), [(0, "empty"), (7, "torn header"), (None, "header only")], ids=lambda value: str(value)
)
def test_csv_without_rows_loads(tmp_path, name, keep, what):
    directory = two_cases(tmp_path)
    path = directory / name
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] if keep is None else lines[0][:keep])
    statuses = {"samples.csv": ["ok", "ok"], "summary.csv": ["partial", "partial"]}
    assert [row.status for row in load_run(directory).rows] == statuses[name]
    assert len(list(read_samples(directory))) == (0 if name == "samples.csv" else 10)


@pytest.mark.parametrize("steps", [0, 1])
def test_killed_while_it_starts_there_is_no_run(tmp_path, monkeypatch, steps):
    left, start = iter(range(steps)), writer._start_csv

    def killed(path: Path, columns: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        start(path, columns).close()

    monkeypatch.setattr(writer, "_start_csv", killed)
    with pytest.raises(KeyboardInterrupt):
        RunWriter(tmp_path / "run", make_record())
    with pytest.raises(CommbenchError) as error:
        load_run(tmp_path / "run")
    assert "no run in" in sentence(error)


# -- damaged run.json --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"run"',
        b"{}",
        b"\xff\xfe{}",
        b'{"schema_version": "1"}',
        b'{"schema_version": 1.5}',
        b'{"schema_version": 1}',
        b'{"schema_version": ' + b"9" * 5000 + b"}",
        b'{"schema_version": 1, "x": ' + b"[" * 100_000,
        b'{"schema_version": 1, "x": "\xc3\x28"}',
    ],
    ids=lambda text: text[:30].decode(errors="replace"),
)
def test_run_json_that_is_none_is_refused(tmp_path, text):
    directory = two_cases(tmp_path)
    (directory / "run.json").write_bytes(text)
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert "run.json is not a run of commbench" in sentence(error)


def test_truncated_run_json_is_refused_at_every_length(tmp_path):
    directory = two_cases(tmp_path)
    whole = (directory / "run.json").read_bytes().rstrip()
    for length in range(0, len(whole), 97):
        (directory / "run.json").write_bytes(whole[:length])
        with pytest.raises(CommbenchError):
            load_run(directory)


@pytest.mark.parametrize("place", [None, "empty directory", "a file", "run.json is a directory"])
def test_no_run_there(tmp_path, place):
    directory = tmp_path / "run"
    if place == "a file":
        directory.write_text("x")
    elif place:
        directory.mkdir()
        if "run.json" in place:
            (directory / "run.json").mkdir()
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert f"no run in {directory}" in sentence(error)


@pytest.mark.parametrize("name", ["samples.csv", "summary.csv"])
def test_a_file_that_is_gone_is_named(tmp_path, name):
    directory = write_run(tmp_path)
    (directory / name).unlink()
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert name in sentence(error)


def test_newer_schema_is_refused_by_name(tmp_path):
    directory = two_cases(tmp_path)
    edit_json(directory, "schema_version", value=SCHEMA_VERSION + 41)
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert f"schema {SCHEMA_VERSION + 41}, this commbench reads up to {SCHEMA_VERSION}:" in sentence(error)


def test_newer_schema_is_refused_even_if_nothing_else_reads(tmp_path):
    directory = two_cases(tmp_path)
    (directory / "run.json").write_text('{"schema_version": 3, "cases": "elsewhere"}')
    with pytest.raises(CommbenchError, match="has schema 3"):
        load_run(directory)


DAMAGE = [
    (("seed",), "zero", "seed"),
    (("hosts",), None, "hosts"),
    (("hosts", 0, "cpus"), [], "cpus"),
    (("outcome",), "splendid", "outcome"),
    (("cases", 0, "mode"), "fast", "mode"),
    (("cases", 0, "groups"), [1], "a group that is not there"),
    (("cases", 0, "groups"), [-1], "a group that is not there"),
    (("cases", 0, "groups"), ["0"], "groups"),
    (("cases", 0, "collective"), "all_refuse", "'all_refuse'"),
    (("cases", 0, "dtype"), "float31", "'float31'"),
    (("cases", 0, "requested_nbytes"), -1, "-1 bytes"),
    (("cases", 0, "requested_nbytes"), 10**400, "bytes"),
    (("groups", 0, "size"), 0, "0 ranks"),
    (("groups", 0, "size"), 10**400, "ranks"),
    (("groups", 0, "nodes"), -1, "-1 nodes"),
    (("groups", 0, "bytes_per_second"), 0.0, "0 bytes/s"),
    (("groups", 0, "bytes_per_second"), -5.0, "-5 bytes/s"),
    (("groups", 0, "bytes_per_second"), "fast", "bytes_per_second"),
]


@pytest.mark.parametrize(("path", "value", "named"), DAMAGE, ids=lambda value: str(value)[:30])
def test_damaged_run_json_is_refused(tmp_path, path, value, named):
    directory = write_run(tmp_path, batches(0, [1e-4] * 3))
    edit_json(directory, *path, value=value)
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert named in sentence(error)


def test_fields_that_are_not_ours_are_ignored(tmp_path):
    directory = two_cases(tmp_path)
    edit_json(directory, "colour", value="blue")
    assert len(load_run(directory).rows) == 2


# -- damaged CSV -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "0 cells, not 8"),
        ("garbage", "1 cells, not 8"),
        ("0,0,batch,0,1,1e-4,", "7 cells, not 8"),
        ("0,0,batch,0,1,1e-4,,,", "9 cells, not 8"),
        ("x,0,batch,0,1,1e-4,,", "'x'"),
        ("0,0,batch,0,1.5,1e-4,,", "'1.5'"),
        ("0,0,batch,0,,1e-4,,", "''"),
        ("0,0,batch,0,1,fast,,", "'fast'"),
        ("0,0,batch,0,1,,,", "''"),
        ("0,0,batch,0,1,nan,,", "'nan' is not a finite number"),
        ("0,0,batch,0,1,inf,,", "'inf' is not a finite number"),
        ("0,0,batch,0,1,-inf,,", "'-inf' is not a finite number"),
        ("0,0,batch,0,1,1e999,,", "'1e999' is not a finite number"),
        ("0,0,batch,0,1,1e-4,nan,", "'nan' is not a finite number"),
        (f"0,0,batch,0,1{'0' * 300},1e-4,,", "is too large"),
        (f"{'9' * 5000},0,batch,0,1,1e-4,,", "digits"),
        ('0,0,"batch"x,0,1,1e-4,,', "',' expected"),
        ("0,0,batch,0\r,1,1e-4,,", "new-line character"),
        ("x" * 200_000, "field limit"),
    ],
    ids=lambda value: value[:30],
)
def test_bad_line_in_the_middle_is_an_error_with_its_number(tmp_path, line, reason):
    directory = write_run(tmp_path, [make_sample()] * 4)
    path = directory / "samples.csv"
    lines = path.read_text().split("\n")
    lines[2] = line
    path.write_bytes("\n".join(lines).encode())
    for read in (lambda: list(read_samples(directory)), lambda: load_run(directory)):
        with pytest.raises(CommbenchError) as error:
            read()
        assert "samples.csv line 3 " in sentence(error)
        assert reason in str(error.value)


@pytest.mark.parametrize("column", [name for name in SUMMARY_COLUMNS if name.startswith("seconds_")])
@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_summary_holds_finite_numbers_only(tmp_path, column, cell):
    directory = write_run(tmp_path, [], [make_row(0)])
    path = directory / "summary.csv"
    header, row = csv.reader(path.read_text().splitlines())
    row[header.index(column)] = cell
    path.write_text("\n".join([",".join(header), ",".join(row), ""]))
    with pytest.raises(CommbenchError, match=f"line 2 is damaged: '{cell}' is not a finite number"):
        load_run(directory)


def test_an_open_quote_swallows_no_rows(tmp_path):
    directory = two_cases(tmp_path)
    path = directory / "summary.csv"
    path.write_text(path.read_text().replace(",\n", ',"\n', 1))
    with pytest.raises(CommbenchError, match="does not read as CSV"):
        load_run(directory)


def test_a_carriage_return_hides_no_row(tmp_path):
    directory = write_run(tmp_path, [make_sample()] * 3)
    path = directory / "samples.csv"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join(lines[:2]) + b"\r" + b"\n".join(lines[2:]))
    with pytest.raises(CommbenchError, match="line 2 does not read as CSV"):
        list(read_samples(directory))


def test_windows_line_ends_read(tmp_path):
    directory = two_cases(tmp_path)
    path = directory / "samples.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(list(read_samples(directory))) == 10


@pytest.mark.parametrize(
    "header", [SAMPLE_COLUMNS[1:], SAMPLE_COLUMNS[::-1], (*SAMPLE_COLUMNS, "more"), ("a",)], ids=len
)
def test_other_columns_are_refused(tmp_path, header):
    directory = write_run(tmp_path, [make_sample()])
    path = directory / "samples.csv"
    path.write_text("\n".join([",".join(header), *path.read_text().split("\n")[1:]]))
    with pytest.raises(CommbenchError) as error:
        list(read_samples(directory))
    assert "does not start with the columns of samples.csv" in str(error.value)


def test_summary_of_another_plan_is_refused(tmp_path):
    directory = write_run(tmp_path, [], [make_row(0, collective="all_to_nobody")])
    with pytest.raises(CommbenchError) as error:
        load_run(directory)
    assert "case 0 is 'all_to_nobody' there and 'all_reduce' in run.json" in sentence(error)


# -- never overwritten -------------------------------------------------------------------------------------------------


def test_a_run_is_never_overwritten(tmp_path):
    directory = two_cases(tmp_path)
    before = {name: (directory / name).read_bytes() for name in FILES}
    for attempt in (lambda: check_new_directory(directory), lambda: RunWriter(directory, make_record())):
        with pytest.raises(UsageError) as error:
            attempt()
        assert f"{directory} already holds a run" in sentence(error)
    assert {name: (directory / name).read_bytes() for name in FILES} == before


def other_files(place: Path) -> Path:
    (place / "letters").mkdir()
    (place / "letters" / ".hidden").write_text("")
    return place / "letters"


def a_file(place: Path) -> Path:
    (place / "file").write_text("")
    return place / "file"


def below_a_file(place: Path) -> Path:
    return a_file(place) / "run"


def a_device(place: Path) -> Path:
    return Path("/dev/null")


def long_name(place: Path) -> Path:
    return place / ("x" * 300)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (other_files, "already holds other files"),
        (a_file, "is a file, not a directory"),
        (below_a_file, "file is a file, not a directory"),
        (a_device, "is a file, not a directory"),
        (long_name, "File name too long"),
    ],
)
def test_a_directory_that_is_none_of_ours_is_refused(tmp_path, make: Callable[[Path], Path], says):
    with pytest.raises(UsageError) as error:
        check_new_directory(make(tmp_path))
    assert says in sentence(error)


@pytest.mark.parametrize("directory", ["", "run", "a/b/c"])
def test_a_new_or_an_empty_directory_is_taken(tmp_path, directory):
    write_run(tmp_path / directory)
    assert load_run(tmp_path / directory / "run").record.outcome == "complete"


def test_not_writable_is_refused_before_measuring(tmp_path, monkeypatch):
    asked: list[Path] = []
    monkeypatch.setattr(os, "access", lambda path, mode: asked.append(Path(path)))
    with pytest.raises(UsageError) as error:
        check_new_directory(tmp_path / "a" / "b")
    assert f"{tmp_path} is not writable" in sentence(error)
    assert asked == [tmp_path]


# -- the disk fails ----------------------------------------------------------------------------------------------------


def fail(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("broken", "act"),
    [
        ("_cells", lambda writer: writer.add_samples([make_sample()])),
        ("_cells", lambda writer: writer.add_summary([make_row()])),
        ("replace", lambda writer: writer.finish("complete", 1.0)),
    ],
    ids=["add_samples", "add_summary", "finish"],
)
def test_a_failed_write_says_what_to_do(tmp_path, monkeypatch, broken, act):
    writing = RunWriter(tmp_path / "run", make_record())
    with monkeypatch.context() as patch:
        if broken == "replace":
            patch.setattr(Path, "write_bytes", fail)
        else:
            patch.setattr(writer, broken, fail)
        with pytest.raises(CommbenchError) as error:
            act(writing)
    assert not isinstance(error.value, UsageError)
    assert f"cannot write to {tmp_path / 'run'}: No space left on device; what was written" in sentence(error)
    writing.finish("failed", 0.0)
    assert load_run(tmp_path / "run").record.outcome == "failed"


def test_a_failed_start_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(CommbenchError, match="No space left on device"):
        RunWriter(tmp_path / "run", make_record())


FILL_THE_DISK = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from commbench.errors import CommbenchError
from commbench.results.writer import RunWriter
from tests.factories import make_record, make_sample
writer = RunWriter(Path(sys.argv[1]), make_record())
try:
    for number in range(10_000):
        writer.add_samples([make_sample(0, 1e-4, round=number)])
        print(number, flush=True)
except CommbenchError as error:
    print(error)
"""


def test_a_full_disk_keeps_what_was_flushed(tmp_path):
    directory = tmp_path / "run"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, directory, Path(__file__).parents[2]],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=True,
    )
    *flushed, message = done.stdout.splitlines()
    assert f"cannot write to {directory}: File too large; what was written until now is kept" in message
    assert done.stderr == ""
    assert len(flushed) > 50
    assert [row.round for row in read_samples(directory)] == list(range(len(flushed)))
    assert load_run(directory).rows[0].samples == len(flushed)


# -- fuzz --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """A valid run whose files each example overwrites, and their valid bytes."""
    directory = two_cases(tmp_path_factory.mktemp("fuzz"))
    return directory, {name: (directory / name).read_bytes() for name in FILES}


INTERESTING = [b"\n", b"\r", b'"', b",", b"\0", b"\xff", b"nan", b"-1", b"9" * 30, b"[", b"{", b"null", b"all_gather"]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["cut", "flip", "insert", "delete"]),
        st.integers(0, 1 << 16),
        st.one_of(st.sampled_from(INTERESTING), st.binary(min_size=1, max_size=4)),
    ),
    min_size=1,
    max_size=4,
)


def mutate(data: bytes, changes: Iterable[tuple[str, int, bytes]]) -> bytes:
    for kind, anywhere, piece in changes:
        at = anywhere % (len(data) + 1)
        if kind == "cut":
            data = data[:at]
        else:
            kept = {"flip": at + len(piece), "insert": at, "delete": at + 7}[kind]
            data = data[:at] + (b"" if kind == "delete" else piece) + data[kept:]
    return data


def read_all(directory: Path) -> None:
    """Everything that reads a run: a result or a CommbenchError."""
    with suppress(CommbenchError):
        list(read_samples(directory))
    with suppress(CommbenchError):
        format_markdown(load_run(directory))


@pytest.mark.parametrize("name", FILES)
@given(changes=CHANGES, summarized=st.booleans())
def test_a_mutated_file_is_a_run_or_an_error(fuzzed, name, changes, summarized):
    directory, valid = fuzzed
    for file, data in valid.items():
        (directory / file).write_bytes(data)
    if not summarized:  # everything then comes from the samples
        (directory / "summary.csv").write_bytes(valid["summary.csv"].splitlines(keepends=True)[0])
    (directory / name).write_bytes(mutate(valid[name], changes))
    read_all(directory)


@pytest.mark.parametrize("name", FILES)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_a_run_or_an_error(fuzzed, name, data):
    directory, valid = fuzzed
    for file, content in valid.items():
        (directory / file).write_bytes(content)
    (directory / name).write_bytes(data)
    read_all(directory)


@given(
    field=st.sampled_from([field.name for field in fields(RunRecord)]),
    value=st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3), st.lists),
)
def test_any_value_of_a_field_is_a_run_or_an_error(fuzzed, field, value):
    directory, valid = fuzzed
    for file, content in valid.items():
        (directory / file).write_bytes(content)
    edit_json(directory, field, value=value)
    read_all(directory)


# -- schema history ----------------------------------------------------------------------------------------------------


def test_a_run_of_schema_1_loads_as_it_did(tmp_path):
    """As version 1 wrote it: no origin, no findings, no variants, and summary.csv without the later columns."""
    directory = two_cases(tmp_path)
    document = json.loads((directory / "run.json").read_text())
    document["schema_version"] = 1
    for key in ("origin", "findings"):
        del document[key]
    for host in document["hosts"]:
        del host["devices"]
    for case in document["cases"]:
        del case["variant"]
    (directory / "run.json").write_text(json.dumps(document))
    with (directory / "summary.csv").open(newline="") as file:
        rows = [{name: cell for name, cell in row.items() if name != "variant"} for row in csv.DictReader(file)]
    with (directory / "summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    run = load_run(directory)
    assert [(row.status, row.variant, row.ranks) for row in run.rows] == [("ok", "", 2)] * 2
    assert (run.record.schema_version, run.record.origin, run.record.findings) == (1, None, ())


def test_the_example_of_the_repository_is_of_schema_1():
    """It was measured before schema 2: the migration has a real witness."""
    assert load_run(Path(__file__).parents[2] / "results" / "example-gloo-2-ranks").record.schema_version == 1


def test_a_group_may_not_know_its_ranks(tmp_path):
    record = make_record(world_size=None, groups=(make_group_record(size=None, nodes=None),))
    directory = write_run(
        tmp_path, [], [make_row(0, ranks=None, nodes=None, size_bytes=None, count=None)], record=record
    )
    known, missing = load_run(directory).rows
    assert (known.ranks, known.nodes, known.size_bytes, known.count) == (None, None, None, None)
    assert (missing.status, missing.ranks, missing.size_bytes) == ("missing", None, 4096)
