"""The tables of fits: what is the same everywhere is said once, what is not known is not a number."""

import csv
from io import StringIO

import numpy as np
import pytest

from commbench.analysis.fit import DEFAULT_WINDOW, fit_curve
from commbench.analysis.predict import predict
from commbench.analysis.records import FIT_SCHEMA_VERSION, MODEL, FitRecord
from commbench.analysis.scaling import fit_scaling
from commbench.report.fits import format_fit_csv, format_fit_table, four_digits
from tests.unit.analysis.make import SIZES, line, make_curve


def record_of(*curves):
    fits = tuple(fit_curve(curve, DEFAULT_WINDOW, np.random.default_rng(0)) for curve in curves)
    scaling = tuple(fit_scaling(fits, DEFAULT_WINDOW))
    return FitRecord(FIT_SCHEMA_VERSION, "0.1.0", MODEL, ("run",), DEFAULT_WINDOW, 0, "", fits, (), scaling, (), ())


def line_with(text, *words):
    return [row for row in text.splitlines() if all(word in row for word in words)]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.000"), (1.23456, "1.235"), (99.99999, "100.0"), (12.3456, "12.35"), (999.96, "1000"), (98280.4, "98280")],
)
def test_four_digits(value, text):
    assert four_digits(value) == text


def test_what_all_share_is_said_once():
    text = format_fit_table([record_of(make_curve(line(4e-5, 2e11)), make_curve(line(4e-5, 2e11), ranks=4))], [])
    assert text.splitlines()[:2] == ["commbench 0.1.0: fit of run", "nvlink, world, alone, float32, throughput, nccl"]
    assert line_with(text, "collective", "type") == line_with(text, "link", "type")  # only the table over N names it
    assert len(line_with(text, "all_reduce   8 ", "40.00")) == 2


def test_what_differs_has_a_column():
    text = format_fit_table([record_of(make_curve(line(4e-5, 2e11)), make_curve(line(4e-5, 2e11), dtype="int8"))], [])
    assert len(line_with(text, "all_reduce", "int8", "ok")) == 1
    assert "float32" not in text.splitlines()[1]


def test_an_operator_that_differs_within_a_collective_is_shown_one_that_follows_from_it_is_not():
    gather = make_curve(line(4e-5, 2e11), collective="all_gather", redop="none")
    reduce, other = make_curve(line(4e-5, 2e11)), make_curve(line(4e-5, 2e11), redop="max")
    assert "redop" not in format_fit_table([record_of(gather, reduce)], [])
    assert len(line_with(format_fit_table([record_of(gather, reduce, other)], []), "max", "ok")) == 1


def test_a_bound_is_marked():
    text = format_fit_table([record_of(make_curve(line(1e-9, 2e11), noise=0.02, batches=30))], [])
    (row,) = line_with(text, "all_reduce", "ok")
    assert "≤" in row
    assert "200." in row


def test_a_window_without_sizes_says_so_in_its_row():
    text = format_fit_table([record_of(make_curve(line(4e-5, 2e11), SIZES[:8]))], [])
    assert len(line_with(text, "all_reduce", "none: 0 sizes in the window (from 1 MiB)")) == 1


def test_an_error_that_is_not_known_is_not_zero():
    record = record_of(make_curve(line(4e-5, 2e11), ranks=2), make_curve(line(1.2e-4, 2e11), ranks=4))
    text = format_fit_table([record], predict([record], "all_reduce", 1 << 26, 16))
    assert len(line_with(text, "all_reduce", "N model (extrapolation)", "unknown")) == 1
    assert len(line_with(text, "200.0 at 2, 200.0 at 4", "unknown")) == 1


def test_csv_rows_have_all_columns():
    text = format_fit_csv([record_of(make_curve(line(4e-5, 2e11)), make_curve(line(4e-5, 2e11), SIZES[:8]))], [])
    rows = list(csv.reader(StringIO(text)))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [row[rows[0].index("part")] for row in rows[1:]] == ["line", "regime 1", "regime 1"]
