"""Steps in series and in runs over time."""

from dataclasses import replace

import numpy as np
import pytest

from commbench.analysis.history import History, Trend, trace_history
from commbench.analysis.steps import _absolute_errors, find_steps, noise_of
from commbench.errors import CommbenchError
from tests.unit.analysis.launches import dated, make_launch, make_launches

NOISE = {"level": 0.005, "noise": 0.01}


def trend(history: History, coefficient: str) -> Trend:
    (found,) = [trend for trend in history.trends if trend.coefficient == coefficient]
    return found


def test_a_step_is_found_where_it_is() -> None:
    random = np.random.default_rng(0)
    values = np.concatenate([np.zeros(15), np.full(10, -0.1)]) + 0.01 * random.standard_normal(25)
    (step,) = find_steps(values, 0.05)
    assert step.index == 15
    assert step.low < -0.1 < step.high


def test_two_steps_and_back() -> None:
    values = np.repeat([0.0, 0.2, 0.0], 6) + 0.005 * np.random.default_rng(1).standard_normal(18)
    assert [step.index for step in find_steps(values, 0.05)] == [6, 12]


def test_one_value_that_is_off_is_no_step() -> None:
    values = 0.01 * np.random.default_rng(2).standard_normal(20)
    values[7] = 0.5
    assert find_steps(values, 0.05) == []


@pytest.mark.parametrize("count", [8, 20, 60])
def test_heavy_tails_make_no_steps(count: int) -> None:
    random = np.random.default_rng(count)
    found = sum(bool(find_steps(0.02 * random.standard_t(3, size=count), 0.05)) for _ in range(100))
    assert found <= 5


@pytest.mark.parametrize("count", [1, 2, 5, 50])
def test_errors_about_a_running_median(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).round(1)
    expected = [np.abs(values[:k] - np.median(values[:k])).sum() for k in range(1, count + 1)]
    assert list(_absolute_errors(values.tolist())) == pytest.approx(expected)


def test_small_steps_and_few_runs_are_not_told() -> None:
    assert find_steps(np.repeat([0.0, 0.03], 10), 0.05) == []
    assert find_steps(np.repeat([0.0, 1.0], [2, 3]), 0.05) == []


def test_steps_do_not_count_as_noise() -> None:
    values = np.repeat([0.0, 5.0], 20) + 0.01 * np.random.default_rng(3).standard_normal(40)
    assert noise_of(values) == pytest.approx(0.01, rel=0.4)


def test_a_lower_rate_steps_in_b_alone_with_its_date_and_cause() -> None:
    before = make_launches(8, **NOISE)
    after = make_launches(6, 50, rate=0.85e9, environment={"NCCL_ALGO": "Tree"}, **NOISE)
    history = trace_history(dated([*before, *after])[::-1])  # given in any order
    assert trend(history, "alpha").steps == ()
    (step,) = trend(history, "B").steps
    assert (step.before_utc[:10], step.after_utc[:10], step.is_worse) == ("2026-01-08", "2026-01-09", True)
    assert step.ratio.low < 0.85 < step.ratio.high
    assert [cause.name for cause in step.causes] == ["NCCL_ALGO"]


def test_the_last_run_alone_is_a_note() -> None:
    runs = [*make_launches(10, **NOISE), make_launch(60, rate=0.7e9, **NOISE)]
    history = trace_history(dated(runs))
    assert trend(history, "B").steps == ()
    assert any("the last run alone is off: B of net" in note for note in history.notes)


def test_runs_that_measured_something_else_are_left_out_and_named() -> None:
    other = make_launch(60, row={"dtype": "int32"})
    history = trace_history(dated([*make_launches(6), other]))
    assert history.left_out == ("run-60",)
    assert len(history.runs) == 6


def test_a_case_that_one_run_lacks_is_not_used() -> None:
    runs = make_launches(6)
    runs[2] = replace(runs[2], rows=runs[2].rows[3:])
    assert trace_history(dated(runs)).cases == len(runs[0].rows) - 3


def test_no_history() -> None:
    with pytest.raises(CommbenchError, match="no two of them measured the same cases"):
        trace_history([make_launch(0)])
    with pytest.raises(CommbenchError, match="at least three sizes"):
        trace_history(dated(make_launches(3, sizes=(1024, 4096))))


def test_few_runs_are_told() -> None:
    assert any("steps are looked for from 6 runs on" in note for note in trace_history(dated(make_launches(3))).notes)
