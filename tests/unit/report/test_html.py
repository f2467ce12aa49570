"""The page: what it says, what it escapes, how large it gets."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from commbench.report.html import format_html
from commbench.report.reported import label_runs
from commbench.report.run_facts import list_facts
from commbench.results.schema import Finding, Host, Origin, OriginFile
from tests.factories import make_group_record
from tests.unit.report.make import SIZES, curve_rows, launch_of, reported, run_of
from tests.unit.report.outline import Outline

COMMAND = ("commbench", "report", "a run")
EVIL = "<script>alert(1)</script>\"'&"


def test_the_page_has_everything_in_order() -> None:
    outline = Outline(format_html([launch_of(curve_rows("all_reduce", "all_gather"))], COMMAND))
    assert outline.open == []
    assert outline.headings == [
        "run",
        "commbench 0.1.0: 2 ranks on node1, torch 2.9.0, gloo, throughput",
        "What was measured, and on what",
        "Bandwidth and time over size",
        "2 collectives, layout world, alone",
        "Findings",
        "fit.rate",
        "Fits: alpha and bandwidth",
        "Every case",
    ]
    assert {"table", "svg", "figure"} <= outline.tags


def test_nothing_is_loaded_and_nothing_runs() -> None:
    page = format_html([launch_of(curve_rows())], COMMAND)
    outline = Outline(page)
    assert outline.references
    assert all(reference.startswith("#") for reference in outline.references)
    assert outline.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form"})
    assert not re.search(r"url\((?!#)|@import", page)
    assert "default-src 'none'" in page


def test_what_comes_from_a_file_stays_text() -> None:
    launch = launch_of(
        curve_rows(variant=EVIL, layout=EVIL, group=EVIL, link_class=EVIL, reason=EVIL, status="suspect"),
        EVIL.replace("/", "_"),
        hosts=(Host(EVIL, EVIL, 1, EVIL, "0-1", EVIL, EVIL, (EVIL,)),),
        groups=(make_group_record(layout=EVIL, name=EVIL, link_class=EVIL),),
        versions={EVIL: EVIL},
        environment={EVIL: EVIL},
        command=(EVIL,),
        backend=EVIL,
        engine=EVIL,
        origin=Origin(EVIL, EVIL, (OriginFile(EVIL, EVIL, 1, EVIL),), EVIL),
        findings=(Finding(EVIL, EVIL, "fail", EVIL, EVIL, EVIL, EVIL),),
    )
    page = format_html([launch], ("commbench", EVIL))
    assert "script" not in Outline(page).tags
    assert page.count("&lt;script&gt;") > 20


def test_several_runs_stand_side_by_side() -> None:
    before = launch_of(curve_rows("all_reduce"), "/runs/before")
    after = launch_of(curve_rows("all_reduce", scale=0.5), "/runs/after", environment={"NCCL_ALGO": "Ring"})
    page = format_html([before, after], COMMAND)
    assert "2 runs, overlaid" in page
    assert (
        '<tr class="differs"><th scope="row">environment</th><td></td><td><div>NCCL_ALGO=Ring</div></td></tr>' in page
    )
    assert Outline(page).open == []


def test_a_fit_that_cannot_be_made_is_a_sentence() -> None:
    page = format_html([launch_of(curve_rows(sizes=SIZES[:2]))], COMMAND)
    assert "No fit could be made of this run." in page
    assert "all_reduce, world, 2 ranks, float32, throughput: 2 measured sizes, a line needs 3." in page


def test_an_empty_run_is_a_page() -> None:
    page = format_html([launch_of([])], COMMAND)
    assert "Nothing was timed over a known size" in page
    assert "Nothing was measured." in page


def test_a_large_run_is_a_small_page_that_says_what_it_lacks() -> None:
    rows = curve_rows(sizes=[1024 * number for number in range(1, 5000)], ranks=None)
    page = format_html([launch_of(rows)], COMMAND)
    assert len(page) < 1_000_000
    assert "4599 more of 4999 cases are in run/summary.csv." in page


def test_the_page_says_what_made_it() -> None:
    page = format_html([launch_of(curve_rows())], COMMAND)
    assert "<code>commbench report &#39;a run&#39;</code>" in page


@pytest.mark.parametrize(
    ("directories", "labels"),
    [
        (["/a/run"], ["run"]),
        (["/a/before", "/a/after"], ["before", "after"]),
        (["/a/x/run", "/b/x/run", "/c"], ["a/x/run", "b/x/run", "c"]),
        (["/run", "/a/run"], ["/run", "a/run"]),
    ],
)
def test_labels_are_as_short_as_they_can_be(directories: list[str], labels: list[str]) -> None:
    assert label_runs([Path(directory) for directory in directories]) == labels


def test_facts_of_many_hosts_are_bounded() -> None:
    hosts = tuple(Host(f"n{number}", "a CPU", 2, "6.1", str(number), "core 0") for number in range(100))
    facts = {fact.name: fact.values[0] for fact in list_facts([reported(curve_rows(), hosts=hosts)])}
    (line,) = facts["hosts"]
    assert line.startswith("n0 (ranks 0), n1 (ranks 1), ")
    assert line.endswith("and 88 more (run.json): a CPU, 2 CPUs, kernel 6.1")
    assert "interface" not in facts


def test_facts_tell_what_an_imported_run_knows() -> None:
    origin = Origin("nccl-tests", "unknown", (OriginFile("a.log", "f" * 64, 2048, "nccl-tests"),), "mean over calls")
    record = run_of(curve_rows(), origin=origin, hosts=(), world_size=None, seed=None, precision=None).record
    one = reported(curve_rows())
    one = replace(one, run=replace(one.run, record=record))
    facts = {fact.name: fact.values[0] for fact in list_facts([one])}
    assert facts["imported"] == (
        "results of nccl-tests",
        "time is its mean over calls",
        "a.log (2 KiB, nccl-tests, sha256 ffffffffffff…)",
    )
    assert facts["ranks"] == ("? ranks",)
    assert not {"asked for", "hosts", "binding"} & facts.keys()
