"""The table in its forms: text for people, Markdown, CSV and JSON."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from commbench.report.formats import FORMATS
from commbench.report.table import format_markdown, format_table, legend, table_lines
from commbench.results.schema import SUMMARY_COLUMNS, Host
from commbench.results.store import Run, load_run
from tests.factories import UNMEASURED, make_case_record, make_record, make_row, make_run, write_run

DATA = Path(__file__).parents[1] / "data"
ABSENT = None  # the column is not there
NOISY = {"status": "noisy", "reason": "the budget ended before it was precise"}

GOLDEN = """\
commbench 0.1.0: 2 ranks on node1, torch 2.9.0, gloo, throughput

                           count                        in    time           algbw    busbw
 collective    size   (elements)      type   redop   place    (us)      ±   (GB/s)   (GB/s)   #wrong   status
 ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
 all_reduce   1 KiB          256   float32     sum     yes   100.0   3.0%    0.010    0.010        0   ok
 all_reduce   1 MiB       262144   float32     sum     yes   52.43   8.0%    20.00    20.00        0   noisy

 all_gather   1 KiB          256   float32    none      no                                             missing

time: median over batches, each the slowest rank's; ±: half of its 95 % interval. GB/s: 1e9 bytes per second.
busbw = algbw × factor: 2(N-1)/N for all_reduce; (N-1)/N for all_gather.
noisy: 1 case (the interval is wider than --precision: a larger --budget narrows it).
missing: 1 case (the run ended before they were measured).
"""


def golden_run() -> Run:
    """Two sizes of one collective, one of them noisy, and a case that was not measured."""
    large: dict[str, Any] = {"size_bytes": 1 << 20, "count": 1 << 18, "seconds_median": 52.4288e-6}
    large |= {"seconds_ci_low": 48.234496e-6, "seconds_ci_high": 53e-6, "algbw_gbps": 20.0, "busbw_gbps": 20.0}
    gather: dict[str, Any] = {"collective": "all_gather", "redop": "none", "in_place": False} | UNMEASURED
    return make_run(
        make_row(0),
        make_row(1, **large, **NOISY),
        make_row(2, **gather, status="missing", reason="the run is interrupted"),
    )


def time(seconds: float) -> dict[str, float]:
    """A median with an interval of 5 %."""
    return {"seconds_median": seconds, "seconds_ci_low": 0.95 * seconds, "seconds_ci_high": 1.02 * seconds}


def layouts_run() -> Run:
    """A world and two groups of a node, on the fake engine, with theory."""
    fake = {"engine": "fake", "backend": "fake", "link_class": "nvlink", "wrong": None, "in_place": False}
    node = fake | {"layout": "node", "concurrency": "together", "case": 1}
    return make_run(
        make_row(**fake, ranks=8, nodes=2, theory_seconds=8e-5, efficiency=0.8),
        make_row(**node, group="0-3", ranks=4, **time(9e-6), theory_seconds=9e-6, efficiency=1.0),
        make_row(**node, group="4-7", ranks=4, **time(27e-6), theory_seconds=9e-6, efficiency=1 / 3),
        engine="fake",
        backend="fake",
        world_size=8,
        hosts=(Host("a", "", 1, ""), Host("b", "", 1, "")),
        cases=(make_case_record(0), make_case_record(1)),
    )


def cells(run: Run) -> list[dict[str, str]]:
    """The lines of the Markdown table, each cell by its heading."""
    table = [line for line in format_markdown(run).splitlines() if line.startswith("|")]
    split = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    return [dict(zip(split[0], row, strict=True)) for row in split[2:]]


# -- text --------------------------------------------------------------------------------------------------------------


def test_table_of_a_world():
    assert format_table(golden_run()) == GOLDEN
    assert FORMATS["table"](golden_run()) == GOLDEN


def test_table_of_layouts():
    assert format_table(layouts_run()) == (DATA / "table_layouts.txt").read_text(encoding="utf-8")


def test_an_empty_run_has_a_title():
    assert format_table(make_run()).startswith("commbench 0.1.0: 2 ranks on node1, torch 2.9.0, gloo, throughput\n")


def test_a_run_without_hosts_or_versions_has_a_title():
    title = format_table(make_run(hosts=(), versions={})).splitlines()[0]
    assert title == "commbench ?: 2 ranks on ?, gloo, throughput"


def test_nothing_is_cut_however_long_a_name_is():
    name = ",".join(str(rank) for rank in range(0, 4096, 4))
    text = format_table(make_run(make_row(layout="rail", group=name, status="unsupported", reason="r")))
    assert name in text
    assert "unsupported" in text
    assert "…" not in text


@pytest.mark.parametrize("name", ["[bold]x[/bold]", "[/]", "0-3 "])
def test_names_are_no_markup(name):
    assert name.strip() in format_table(make_run(make_row(layout="node", group=name)))


# -- the slowest group -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "shown"),
    [
        ([("a", 1e-4, "ok"), ("b", 3e-4, "ok"), ("c", 2e-4, "ok")], "b"),
        ([("a", 3e-4, "ok"), ("b", 1e-4, "wrong")], "b"),  # wrong data is the worst
        ([("a", None, "missing"), ("b", 1e-4, "partial")], "b"),
        ([("a", None, "missing"), ("b", None, "missing")], "a"),
        ([("a", 1e-4, "ok"), ("b", 1e-4, "ok")], "a"),
    ],
)
def test_the_slowest_group_is_shown(groups, shown):
    rows = [make_row(layout="node", group=name, seconds_median=time, status=status) for name, time, status in groups]
    (line,) = table_lines(rows)
    assert (line.row.group, line.groups) == (shown, len(groups))
    (row,) = cells(make_run(*rows))
    assert (row["slowest group"], row["groups"]) == (shown, str(len(groups)))


@pytest.mark.parametrize(
    ("others", "cell"),
    [
        ([{}], "3.00x"),  # of two, the median group is the faster
        ([{}, {"seconds_median": 2e-4}], "1.50x"),
        ([{}, {}, {"seconds_median": 3e-4}], "3.00x"),
        ([{}, {"seconds_median": 2e-4}, {"seconds_median": 2.5e-4}], "1.50x"),
        ([{"link_class": "net"}, {"link_class": "net"}], ABSENT),  # no like
        ([{"ranks": 4}], ABSENT),
        ([{}, {"link_class": "net", "seconds_median": 2e-4}], "3.00x"),
        ([UNMEASURED], ABSENT),
        ([], ABSENT),
    ],
)
def test_the_slowest_is_held_against_the_median_of_its_like(others, cell):
    (row,) = cells(
        make_run(*(make_row(**{"layout": "node", **changes}) for changes in [{"seconds_median": 3e-4}, *others]))
    )
    assert row.get("slowest / median") == cell


@pytest.mark.parametrize("contention", [None, 1.5])
def test_legend_explains_contention_where_there_is_one(contention):
    assert ("contention: time together / time alone" in "\n".join(legend([make_row(contention=contention)]))) is bool(
        contention
    )


def test_a_line_a_case():
    rows = [make_row(case, layout="node", group=str(group)) for case in (4, 2) for group in range(3)]
    assert [(line.row.case, line.groups) for line in table_lines(rows)] == [(4, 3), (2, 3)]


# -- cells -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "column", "cell"),
    [
        ({"seconds_median": 1.234e-6}, "time (us)", "1.23"),
        ({"seconds_median": 99.94e-6}, "time (us)", "99.94"),
        ({"seconds_median": 100.04e-6}, "time (us)", "100.0"),
        ({"seconds_median": 0.0123456}, "time (us)", "12346"),
        ({"seconds_median": 1e-4, "seconds_ci_low": 0.9e-4, "seconds_ci_high": 1.02e-4}, "±", "10.0%"),
        ({"seconds_ci_low": None, "seconds_ci_high": None}, "±", ""),
        ({"seconds_median": 0.0}, "±", ""),
        ({"algbw_gbps": 0.00123}, "algbw (GB/s)", "0.001"),
        ({"algbw_gbps": 12.346}, "algbw (GB/s)", "12.35"),
        ({"busbw_gbps": 480.126}, "busbw (GB/s)", "480.13"),
        ({"ranks": 1, "busbw_gbps": None}, "busbw (GB/s)", "n/a"),  # one rank has no bus
        ({"ranks": 1, "busbw_gbps": None}, "algbw (GB/s)", "0.010"),
        (UNMEASURED, "busbw (GB/s)", ""),  # not measured is another thing
        (UNMEASURED, "time (us)", ""),
        (UNMEASURED, "#wrong", ""),
        ({"wrong": None}, "#wrong", "N/A"),  # not checked
        ({"wrong": 3}, "#wrong", "3"),
        (UNMEASURED | {"wrong": 3}, "#wrong", "3"),
        ({"in_place": False}, "in place", "no"),
        ({"collective": "barrier", "size_bytes": 0, "count": 0, "algbw_gbps": None}, "size", ""),
        ({"collective": "barrier", "size_bytes": 0, "count": 0, "algbw_gbps": None}, "count (elements)", ""),
        ({"collective": "barrier", "size_bytes": 0, "count": 0, "algbw_gbps": None}, "algbw (GB/s)", "n/a"),
        ({"mode": "latency", "seconds_p99": 0.2e-3}, "p99 (us)", "200.0"),
        ({"mode": "throughput"}, "p99 (us)", ABSENT),
        ({"enqueue_seconds": 7e-6}, "enqueue (us)", "7.00"),
        ({}, "enqueue (us)", ABSENT),
        ({"theory_seconds": 5e-5, "efficiency": 0.5}, "theory (us)", "50.00"),
        ({"theory_seconds": 5e-5, "efficiency": 0.5}, "efficiency", "50.0%"),
        ({}, "theory (us)", ABSENT),
        ({}, "efficiency", ABSENT),
        ({}, "layout", ABSENT),
        ({"contention": 1.804}, "contention", "1.80x"),
        ({}, "contention", ABSENT),
        ({"layout": "ladder", "group": "first 2"}, "layout", "ladder"),
        ({"layout": "ladder", "group": "first 2"}, "ranks", "2"),
        ({"layout": "node", "group": "a|b"}, "slowest group", "a\\|b"),
    ],
)
def test_cells(changes, column, cell):
    (row,) = cells(make_run(make_row(**changes)))
    assert row.get(column) == cell


def test_markdown_is_one_well_formed_table():
    lines = format_markdown(layouts_run()).splitlines()
    assert lines[1] == ""
    assert lines[3] == "| :--- | ---: | ---: | ---: | ---: | ---: | :--- | ---: | ---: | :--- | :--- | :--- " + (
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | :--- |"
    )
    assert [row["slowest group"] for row in cells(layouts_run())] == ["world", "4-7"]


# -- legend ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "reasons", "says"),
    [
        ("ok", [""], None),
        ("noisy", ["x"], "noisy: 1 case (the interval is wider than --precision: a larger --budget narrows it)."),
        ("partial", ["x"], "partial: 1 case (the run ended before they were measured enough)."),
        ("missing", ["x"], "missing: 1 case (the run ended before they were measured)."),
        ("wrong", ["rank 3 element 5"], "wrong: 1 case (rank 3 element 5)."),
        ("unsupported", ["b", "a", "b"], "unsupported: 3 cases (a; b)."),
        ("skipped", ["d", "c", "b", "a"], "skipped: 4 cases (a; b; c; …)."),  # three reasons are enough
    ],
)
def test_legend_explains_every_status(status, reasons, says):
    rows = [make_row(case, status=status, reason=reason) for case, reason in enumerate(reasons)]
    assert [line for line in legend(rows) if line.startswith(status)] == ([says] if says else [])


def test_legend_counts_cases_not_groups():
    rows = [make_row(case, group=group, **NOISY) for case in (0, 1) for group in "abc"]
    assert legend(rows)[-1].startswith("noisy: 2 cases")


@pytest.mark.parametrize(
    ("collectives", "line"),
    [
        (["all_reduce"], "busbw = algbw × factor: 2(N-1)/N for all_reduce."),
        (["all_gather", "broadcast", "all_to_all"],
         "busbw = algbw × factor: (N-1)/N for all_gather, all_to_all; 1 for broadcast."),
        (["barrier"], None),
    ],
)  # fmt: skip
def test_legend_names_the_factors(collectives, line):
    rows = [make_row(case, collective=name) for case, name in enumerate(collectives)]
    assert [text for text in legend(rows) if text.startswith("busbw")] == ([line] if line else [])


@pytest.mark.parametrize("efficiency", [None, 0.5])
def test_legend_explains_theory_where_there_is_one(efficiency):
    text = "\n".join(legend([make_row(efficiency=efficiency)]))
    assert ("theory: steps × alpha" in text) is (efficiency is not None)


# -- for programs ------------------------------------------------------------------------------------------------------

ODD = make_row(0, seconds_median=1e-4 / 3, reason='a "quoted", odd\treason — ü', enqueue_seconds=1 / 7, in_place=False)


def test_csv_is_a_summary_with_every_digit(tmp_path):
    run = make_run(ODD, make_row(1, **UNMEASURED, status="missing"))
    directory = write_run(tmp_path, record=make_record())
    (directory / "summary.csv").write_text(FORMATS["csv"](run), encoding="utf-8")
    assert load_run(directory).rows == run.rows


def test_json_parses_back():
    run = make_run(ODD, make_row(1, **UNMEASURED, status="missing"))
    document = json.loads(FORMATS["json"](run))
    assert document["rows"] == [asdict(row) for row in run.rows]
    assert list(document["rows"][0]) == list(SUMMARY_COLUMNS)
    assert document["run"] == json.loads(json.dumps(asdict(run.record)))


@pytest.mark.parametrize("name", FORMATS)
def test_every_form_ends_its_last_line(name):
    text = FORMATS[name](golden_run())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
