"""A run in plain words."""

from typing import Any

import pytest

from commbench.report.verdict import Statement, headline, judge_run, worst_level
from commbench.results.schema import Origin
from tests.factories import UNMEASURED, make_row
from tests.unit.report.make import curve_rows, reported, run_of, unfitted
from tests.unit.test_scaling import ladder
from tests.unit.test_slow_groups import all_pairs, grouped


def texts(statements: list[Statement]) -> list[tuple[str, str]]:
    return [(statement.level, statement.text) for statement in statements]


def judged(*rows: Any, **record: Any) -> list[tuple[str, str]]:
    record = {"outcome": "complete", **record}
    return texts(judge_run(reported(rows, **record)))


def test_a_run_without_blame() -> None:
    assert judged(*curve_rows(efficiency=0.912)) == [
        ("ok", "The data is right, element by element, in all cases."),
        ("ok", "All 9 cases were measured as precisely as asked for."),
        (
            "ok",
            "Of the speed that the links' nominal rates allow, the slowest group at the largest size: all_reduce 91 %.",
        ),
    ]


def test_wrong_data_comes_first() -> None:
    rows = [make_row(0, status="noisy"), make_row(1, **UNMEASURED | {"wrong": 3}, status="wrong")]
    statements = judged(*rows)
    assert statements[0] == (
        "fail",
        "Wrong data in 1 of 2 cases (all_reduce): trust nothing here until that is explained.",
    )
    assert not any("is right" in text for _, text in statements)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("noisy", ("warn", "1 of 3 cases is noisy: the interval is wider than asked for.")),
        ("missing", ("warn", "1 of 3 cases is missing: the run ended before them.")),
        ("skipped", ("unknown", "1 of 3 cases is too small for one element per rank.")),
        ("failed", ("fail", "The test failed in 1 of 3 cases.")),
        ("suspect", ("warn", "1 of 3 cases is suspect: the row contradicts itself.")),
    ],
)
def test_cases_that_are_not_plain_are_counted(status: str, said: tuple[str, str]) -> None:
    statements = judged(make_row(0), make_row(1), make_row(2, status=status))
    assert said in statements
    assert not any("All 3 cases" in text for _, text in statements)


def test_a_run_that_was_cut_off() -> None:
    statements = judged(make_row(0), outcome="interrupted")
    assert ("warn", "The run is interrupted: what is shown is what was measured until then.") in statements


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([None, None], ("unknown", "The data was not checked.")),
        (
            [0, None],
            ("unknown", "The data is right, element by element, in 1 of 2 results; the others were not checked."),
        ),
    ],
)
def test_unchecked_is_not_right(wrong: list[int | None], said: tuple[str, str]) -> None:
    assert judged(*(make_row(case, wrong=count) for case, count in enumerate(wrong)))[0] == said


def test_a_low_share_of_theory_is_a_warning_and_the_lowest_comes_first() -> None:
    rows = [*curve_rows("all_reduce", efficiency=0.95), *curve_rows("all_gather", first=50, efficiency=0.42)]
    (said,) = [(level, text) for level, text in judged(*rows) if "nominal" in text]
    assert said[0] == "warn"
    assert said[1].endswith("at the largest size: all_gather 42 %, all_reduce 95 %.")


@pytest.mark.parametrize(
    ("record", "remedy"),
    [
        ({}, "sweep --link-rate CLASS=RATE tells it"),
        ({"origin": Origin("t", "1", (), "m")}, "the file does not say it"),
    ],
)
def test_theory_that_is_not_known_is_said(record: dict[str, Any], remedy: str) -> None:
    text = f"How far from theory is not known: the nominal rate of loopback is not ({remedy})."
    assert ("unknown", text) in judged(*curve_rows(), **record)


def test_who_is_slow() -> None:
    statements = texts(judge_run(unfitted(grouped(all_pairs(4, {2})))))
    said = "Rank 2 on hostC is slow: every group with it takes up to 3.00 times as long (all_reduce 1 KiB "
    said += "float32 sum on pairs)."
    assert ("warn", said) in statements


def test_nobody_is_slow() -> None:
    assert ("ok", "No group is slower than its like.") in texts(judge_run(unfitted(grouped(all_pairs(4)))))


def test_slow_pairs_without_a_common_rank() -> None:
    statements = texts(judge_run(unfitted(grouped(all_pairs(4, slow_pairs={"0-1"})))))
    said = "Groups are slow, first group 0-1 on hostA, hostB with 2.00 times the time of its like (all_reduce 1 KiB "
    said += "float32 sum on pairs)."
    assert ("warn", said) in statements


def test_where_scaling_bends() -> None:
    said = ("warn", "Scaling bends: all_reduce 1 MiB float32 sum at 8 nodes.")
    assert said in texts(judge_run(unfitted(ladder([40, 40, 8]))))
    assert ("ok", "Scaling does not bend on the ladder.") in texts(judge_run(unfitted(ladder([40, 40, 40]))))


def test_an_empty_run() -> None:
    assert ("unknown", "Nothing was measured.") in texts(judge_run(unfitted(run_of([]))))


def test_the_headline_is_that_of_the_worst() -> None:
    ok, warn, fail = (Statement(level, "") for level in ("ok", "warn", "fail"))  # type: ignore[arg-type]
    assert [worst_level(found) for found in ([ok], [ok, warn], [warn, fail, ok], [])] == [
        "ok",
        "warn",
        "fail",
        "unknown",
    ]
    assert headline([warn, fail]) == "Not to be trusted"
