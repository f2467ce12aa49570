"""Contention: how many times slower together than alone, for rows that agree in all else."""

import pytest

from commbench.results.contention import add_contention, measured_both_ways
from commbench.results.store import load_run
from commbench.results.writer import RunWriter
from tests.factories import UNMEASURED, make_case_record, make_group_record, make_record, make_row

ALONE = make_row(0, layout="node", group="0-1", concurrency="alone")
TOGETHER = make_row(1, layout="node", group="0-1", concurrency="together", seconds_median=2.5e-4)


def test_together_over_alone():
    assert [row.contention for row in add_contention([TOGETHER, ALONE])] == [2.5, None]


@pytest.mark.parametrize(
    "changes",
    [
        {"collective": "reduce"}, {"in_place": False}, {"size_bytes": 2048}, {"dtype": "int32"}, {"redop": "max"},
        {"mode": "latency"}, {"layout": "rail"}, {"group": "2-3"}, {"concurrency": "together"}, UNMEASURED,
        {"seconds_median": 0.0},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_another_case_is_no_measure(changes):
    other = make_row(0, **({"layout": "node", "group": "0-1", "concurrency": "alone"} | changes))
    assert [row.contention for row in add_contention([other, TOGETHER])] == [None, None]


def test_without_a_time_together_there_is_none():
    row = make_row(1, **UNMEASURED, layout="node", group="0-1", concurrency="together", contention=9.0)
    assert [row.contention for row in add_contention([ALONE, row])] == [None, None]


@pytest.mark.parametrize(
    ("cases", "both"),
    [
        ([("node", "alone")], False),
        ([("node", "together")], False),
        ([("node", "alone"), ("rail", "together")], False),
        ([("world", "alone"), ("node", "together"), ("node", "alone")], True),
    ],
)
def test_measured_both_ways(cases, both):
    records = [make_case_record(layout=layout, concurrency=concurrency) for layout, concurrency in cases]
    assert measured_both_ways(records) is both


def test_a_summary_is_completed_at_its_end(tmp_path):
    group = make_group_record(layout="node", name="0-1")
    cases = tuple(make_case_record(row.case, layout="node", concurrency=row.concurrency) for row in (ALONE, TOGETHER))
    writer = RunWriter(tmp_path / "run", make_record(groups=(group,), cases=cases))
    writer.add_summary([TOGETHER])
    writer.add_summary([ALONE])
    assert [row.contention for row in load_run(tmp_path / "run").rows] == [None, None]
    writer.complete_summary()
    writer.finish("complete", 1.0)
    assert [row.contention for row in load_run(tmp_path / "run").rows] == [None, 2.5]
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["run.json", "samples.csv", "summary.csv"]


def test_a_summary_from_before_the_column_loads(tmp_path):
    writer = RunWriter(tmp_path / "run", make_record())
    writer.add_summary([make_row(0), make_row(1)])
    writer.finish("complete", 1.0)
    path = tmp_path / "run" / "summary.csv"
    lines = path.read_text().splitlines()
    assert lines[0].endswith(",contention")
    path.write_text("".join(line.rpartition(",")[0] + "\n" for line in lines))
    assert load_run(tmp_path / "run").rows == (make_row(0), make_row(1))
