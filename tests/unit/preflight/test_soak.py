"""A soak: failures, drift, the slowest part."""

import pytest

from commbench.preflight.soak import judge_soak, split
from commbench.results.pairs import PairResult


def rows(seconds: float, failed: int = 0) -> list[PairResult]:
    bad = [PairResult(0, 0, 1, 1 << 20, None, "failed")] * failed
    return [PairResult(0, 0, 1, 1 << 20, seconds)] * (4 - failed) + bad


def test_parts_are_compared_with_the_whole() -> None:
    parts = split([(second + 0.5, rows(1.0 if second < 8 else 2.0)) for second in range(10)], 1.0)
    assert [part.ratio for part in parts] == [1.0] * 8 + [2.0] * 2
    assert parts[8].began_seconds == 8.0


@pytest.mark.parametrize(
    ("times", "failed", "verdict"),
    [
        ([1.0] * 9, 0, "ok"),
        ([1.0] * 9, 1, "fail"),
        ([1.0] * 6 + [1.2] * 3, 0, "warn"),
        ([1.0] * 4 + [1.5] + [1.0] * 4, 0, "warn"),
    ],
)
def test_the_verdict(times: list[float], failed: int, verdict: str) -> None:
    timed = [(number + 0.5, rows(seconds, failed if number == 3 else 0)) for number, seconds in enumerate(times)]
    assert judge_soak(split(timed, 1.0), 9.0).verdict == verdict


def test_nothing_measured_is_no_verdict() -> None:
    assert judge_soak(split([], 1.0), 9.0).verdict == "skip"
