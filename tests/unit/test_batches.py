"""The quick reader of samples.csv reads what the careful one reads, or leaves it to it."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commbench.results.batches import read_plain_samples
from commbench.results.schema import SAMPLE_COLUMNS, SampleRow
from commbench.results.store import SAMPLES_FILE, collect_samples, read_samples
from tests.factories import batches, make_sample, write_run

HEADER = ",".join(SAMPLE_COLUMNS)

rows = st.builds(
    SampleRow,
    st.integers(0, 5),
    st.integers(0, 3),
    st.sampled_from(["first", "warmup", "batch"]),
    st.integers(0, 99),
    st.integers(1, 99),
    st.floats(0, 1e6),
    st.none() | st.floats(0, 1e6),
    st.none() | st.integers(0, 1 << 40),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(rows, max_size=30))
def test_both_readers_agree(tmp_path_factory, samples):
    directory = write_run(tmp_path_factory.mktemp("runs"), samples)
    plain = read_plain_samples(directory / SAMPLES_FILE)
    assert plain is not None
    for place, found in plain.items():
        mine = [row for row in read_samples(directory) if (row.case, row.group) == place]
        assert found.seconds == [row.seconds for row in mine if row.kind == "batch"]
        enqueued = [row.enqueue_seconds for row in mine if row.kind == "batch" and row.enqueue_seconds is not None]
        assert found.enqueue_seconds == enqueued
        firsts = [row for row in mine if row.kind == "first"]
        assert found.first_call_seconds == (firsts[-1].seconds if firsts else None)
        assert found.wrong == (firsts[-1].wrong if firsts else None)
    assert plain.keys() == {(row.case, row.group) for row in samples}


@pytest.mark.parametrize(
    "line",
    [
        "0,0,batch,0,1,nan,,",
        "0,0,batch,0,1,1e-4,inf,",
        "0,0,batch,0,1,x,,",
        "0,0,batch,0,1,1e-4,",
        "0,0,batch,0,1,1e-4,,,",
        "x,0,batch,0,1,1e-4,,",
        f"{1 << 70},0,batch,0,1,1e-4,,",
        f"0,0,batch,{1 << 70},1,1e-4,,",
        '0,0,"batch",0,1,1e-4,,',
        "0,0,batch,0,1,1e-4,,\r",
        "",
    ],
)
def test_what_is_not_plain_is_left_to_the_careful_reader(tmp_path: Path, line: str) -> None:
    path = tmp_path / SAMPLES_FILE
    path.write_text(f"{HEADER}\n{line}\n0,0,batch,0,1,1e-4,,\n", newline="")
    assert read_plain_samples(path) is None


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / SAMPLES_FILE
    path.write_text(f"{HEADER}\n0,0,batch,0,1,1e-4,,\n0,0,batch,0,1,2e-")
    plain = read_plain_samples(path)
    assert plain is not None
    assert plain[0, 0].seconds == [1e-4]


def test_warm_up_and_quoted_rows_count_alike(tmp_path: Path) -> None:
    directory = write_run(tmp_path, [*batches(0, [1e-4, 2e-4]), make_sample(1, 3e-4)])
    plain = collect_samples(directory)
    text = (directory / SAMPLES_FILE).read_text().replace(",batch,", ',"batch",')
    (directory / SAMPLES_FILE).write_text(text)
    assert read_plain_samples(directory / SAMPLES_FILE) is None
    assert collect_samples(directory) == plain
    assert plain[0, 0].seconds == [1e-4, 2e-4]
