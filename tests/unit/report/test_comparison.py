"""A comparison in words, Markdown, JSON, JUnit and as a picture."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from commbench.analysis.compare import compare_runs
from commbench.analysis.comparison import CoefficientChange, Comparison, LinkChange, Ratio, Rules
from commbench.analysis.history import trace_history
from commbench.report.comparison import COMPARISON_FORMATS, format_markdown, format_table
from commbench.report.comparison_plot import draw_comparison
from commbench.report.comparison_words import link_line
from commbench.report.history import format_history
from commbench.report.history_plot import draw_history
from tests.unit.analysis.launches import dated, make_launch, make_launches

NOISE = {"level": 0.005, "noise": 0.01}
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def slower() -> Comparison:
    new = make_launches(3, 50, rate=0.85e9, environment={"NCCL_ALGO": "Tree|<b>"}, **NOISE)
    return compare_runs(make_launches(3, **NOISE), new, Rules())


def change(verdict: str, ratio: float) -> CoefficientChange:
    return CoefficientChange(Ratio(ratio, ratio - 0.01, ratio + 0.01), verdict, 0.001, 0.01)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("alpha", "rate", "words"),
    [
        (
            change("same", 1.0),
            change("slower", 0.88),
            "alpha unchanged (-1.0 to +1.0 %), B down 12.0 % (-13.0 to -11.0 %): look at the links",
        ),
        (change("noisy", 1.0), change("slower", 0.8), "look at the links first"),
        (change("slower", 1.3), change("noisy", 1.0), "B is not known well enough"),
        (change("slower", 1.3), change("same", 1.0), "look at the software and the hosts"),
        (change("slower", 1.3), change("slower", 0.8), "look at what both share"),
        (change("noisy", 1.0), change("slower", 0.8), "alpha ~ (no change seen)"),
        (None, change("slower", 0.8), "alpha not told by these sizes, B down 20.0 %"),
    ],
)  # fmt: skip
def test_a_link_class_in_words(alpha: CoefficientChange | None, rate: CoefficientChange, words: str) -> None:
    assert words in link_line(LinkChange("net", alpha, rate))


def test_advice_is_for_what_became_worse() -> None:
    assert "look" not in link_line(LinkChange("net", change("same", 1.0), change("faster", 1.2)))


def test_the_table_says_first_what_else_changed(slower: Comparison) -> None:
    text = format_table(slower)
    assert text.index("NCCL_ALGO") < text.index("net: alpha") < text.index("all_reduce")
    assert "look at the links (rates" in text
    noisy = [line for line in text.splitlines() if line.endswith(" noisy")]
    assert all(" ~ " in line for line in noisy)
    assert sum(line.endswith(" slower") for line in text.splitlines()) == sum(
        c.verdict == "slower" for c in slower.cases
    )


def test_what_is_the_same_in_all_rows_is_said_once(slower: Comparison) -> None:
    text = format_table(slower)
    assert "float32, sum, out of place, world, alone, throughput, gloo, net, 2 ranks" in text
    assert text.count("float32") == 1


def test_markdown_escapes_and_folds(slower: Comparison) -> None:
    text = format_markdown(slower)
    assert "Tree\\|&lt;b>" in text
    assert "<details><summary>" in text
    assert text.index("slower |") < text.index("<details>")


def test_markdown_of_nothing_comparable() -> None:
    text = format_markdown(compare_runs([make_launch(0)], [make_launch(1, row={"dtype": "int32"})], Rules()))
    assert "not comparable: none of 48 cases is on both sides" in text
    assert "dtype float32 in base, int32 in new" in text


def test_json_holds_all_of_it(slower: Comparison) -> None:
    document = json.loads(COMPARISON_FORMATS["json"](slower))
    assert document["verdict"] == "slower"
    assert len(document["cases"]) == len(slower.cases)
    assert document["links"][0]["rate"]["verdict"] == "slower"
    assert document["environment"][0]["name"] == "NCCL_ALGO"


def test_junit_fails_what_is_slower_and_skips_what_was_not_seen(slower: Comparison) -> None:
    root = ElementTree.fromstring(COMPARISON_FORMATS["junit"](slower))
    claims = sum(case.verdict == "slower" for case in slower.cases) + 1  # and B of net
    unseen = sum(case.verdict == "noisy" for case in slower.cases) + len(slower.unmatched)
    assert (root.get("failures"), root.get("skipped")) == (str(claims), str(unseen))
    names = [case.get("name") for case in root.iter("testcase")]
    assert len(set(names)) == len(names)


def test_the_pictures_are_drawn(slower: Comparison) -> None:
    assert draw_comparison(slower).startswith(PNG)
    wild = replace(slower.cases[0], time=Ratio(50.0, 0.0, float("inf")), verdict="noisy")
    odd = replace(slower, cases=(wild, *slower.cases[1:]), links=())
    assert draw_comparison(odd).startswith(PNG)
    runs = dated([*make_launches(6, **NOISE), *make_launches(6, 50, rate=0.8e9, **NOISE)])
    assert draw_history(trace_history(runs)).startswith(PNG)


def test_a_history_marks_its_step() -> None:
    text = format_history(
        trace_history(dated([*make_launches(6, **NOISE), *make_launches(6, 50, rate=0.8e9, **NOISE)]))
    )
    marked = [line for line in text.splitlines() if "*-" in line]
    assert [line.split()[0] for line in marked] == ["2026-01-07"]
    assert "worse, between 2026-01-06 00:00 and 2026-01-07 00:00; nothing else is known to have changed then" in text
