"""fit.json: what is written is what is read, and what cannot be read says so."""

from dataclasses import replace

import pytest

from commbench.analysis.fit import DEFAULT_WINDOW
from commbench.analysis.record_file import FIT_FILE, fit_launches, load_record, write_record
from commbench.errors import CommbenchError
from tests.unit.analysis.make import SIZES, make_launch, rows_of

TIMES = {size: 4e-5 + size / 1e9 for size in SIZES}


def record_of(times=TIMES, seed=0):
    rows = [*rows_of(times), *rows_of(times, len(times), collective="all_gather")]
    samples = {
        (case, 0): [row.seconds_median * factor for factor in (0.99, 1.0, 1.02)] for case, row in enumerate(rows)
    }
    return fit_launches([make_launch(rows, samples)], DEFAULT_WINDOW, seed)


RECORD = record_of()


def test_a_record_reads_as_it_was_written(tmp_path):
    write_record(tmp_path, RECORD)
    assert load_record(tmp_path) == RECORD
    assert [path.name for path in tmp_path.iterdir()] == [FIT_FILE]


def test_a_record_says_what_it_was_made_from():
    assert RECORD.runs == ("run",)
    assert RECORD.window == DEFAULT_WINDOW
    assert [fit.key.collective for fit in RECORD.fits] == ["all_reduce", "all_gather"]
    assert len(RECORD.joint) == 1
    assert record_of(seed=1).data_sha256 == RECORD.data_sha256
    assert record_of({size: 2 * seconds for size, seconds in TIMES.items()}).data_sha256 != RECORD.data_sha256


def test_a_curve_s_intervals_do_not_depend_on_its_neighbours():
    samples = {
        (case, 0): [seconds * factor for factor in (0.99, 1.0, 1.02)] for case, seconds in enumerate(TIMES.values())
    }
    alone = fit_launches([make_launch(rows_of(TIMES), samples)], DEFAULT_WINDOW, 0)
    assert alone.fits[0] == RECORD.fits[0]


def test_a_newer_schema_is_refused_by_name(tmp_path):
    write_record(tmp_path, replace(RECORD, schema_version=99))
    with pytest.raises(CommbenchError, match="has schema 99, this commbench reads up to 1: update commbench"):
        load_record(tmp_path)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"schema_version":1}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_one_sentence(tmp_path, text):
    (tmp_path / FIT_FILE).write_bytes(text)
    with pytest.raises(CommbenchError, match="is not a fit of commbench"):
        load_record(tmp_path)


def test_no_fit_says_how_to_make_one(tmp_path):
    with pytest.raises(CommbenchError, match="run commbench fit"):
        load_record(tmp_path)


def test_a_directory_that_is_gone_cannot_be_written(tmp_path):
    with pytest.raises(CommbenchError, match="--no-save writes none"):
        write_record(tmp_path / "gone", RECORD)
