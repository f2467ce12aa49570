"""What was found amiss while a run was measured, below its table."""

from commbench.report.finding_lines import finding_lines
from commbench.report.formats import FORMATS
from commbench.results.schema import Finding, Origin
from tests.factories import make_row, make_run

FAR = Finding("LOG-UNEXPECTED-PATH", "GPU 2 → GPU 3", "warn", "went over SHM", "P2P", "nccl/rank0.log:4", "unset X")


def test_warnings_and_failures_have_a_line_each():
    findings = (
        Finding("gpu_state", "GPUs", "ok", "fine"), FAR, Finding("LOG-LEFT-OUT", "ranks 9", "skip", "cut"),
        Finding("LOG-CUDA-FAILURE", "rank 1", "fail", "a call failed"),
    )  # fmt: skip
    assert finding_lines(make_run(findings=findings)) == [
        "warn: GPU 2 → GPU 3: went over SHM (unset X)",
        "fail: rank 1: a call failed",
    ]


def test_many_are_counted():
    lines = finding_lines(make_run(findings=(FAR,) * 9))
    assert (len(lines), lines[-1]) == (7, "… and 3 more: run.json, or commbench report")


def test_they_stand_below_the_table_and_markdown_shows_them_as_they_are():
    run = make_run(make_row(), findings=(Finding("X", "a_b", "warn", "<b>"),))
    assert FORMATS["table"](run).endswith("\nwarn: a_b: <b>\n")
    assert FORMATS["markdown"](run).endswith("\nwarn: a\\_b: \\<b\\>  \n")


def test_an_import_has_said_its_own():
    assert finding_lines(make_run(findings=(FAR,), origin=Origin("x", "1", (), ""))) == []
