"""Overlap on real gloo ranks: every collective that torch starts without waiting, beside matrix products."""

from pathlib import Path

import pytest

from commbench.results.store import load_run
from tests.conftest import Commands, sweep

pytestmark = pytest.mark.dist


def test_real_collectives_beside_real_products(commands: Commands, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = commands.run(
        sweep("--ranks", "2", "--collectives", "main,broadcast,send_recv,barrier", "--sizes", "64K", "--overlap",
              "--budget", "1s", "--no-plots", "--out", str(run))
    )  # fmt: skip
    assert ended.code == 0, ended.err
    record = load_run(run).record
    overlaps = {record.cases[overlap.case].collective: overlap for overlap in record.overlap}
    assert overlaps.keys() == {case.collective for case in record.cases}
    refused = {name for name, overlap in overlaps.items() if overlap.status == "unsupported"}
    assert refused == {"send_recv", "barrier"}
    for name, overlap in overlaps.items():
        if name in refused:
            assert overlap.compute is overlap.collective is None
            continue
        if overlap.status == "missing":  # another program had the CPUs whenever products ran
            assert overlap.reason == "what ran beside it ended first", name
            continue
        assert overlap.rounds >= 1
        assert overlap.product == "256 × 256 × 256 float32"
        for slowdown in (overlap.compute, overlap.collective):
            assert slowdown is not None
            assert slowdown.factor > 0
            if overlap.rounds >= 6:
                assert slowdown.low is not None
                assert slowdown.high is not None
                assert 0 < slowdown.low <= slowdown.factor <= slowdown.high
            assert slowdown.alone_seconds > 0
        assert f"overlap of {name} 64 KiB" in ended.out
    assert {overlap.status for overlap in overlaps.values()} & {"ok", "noisy"}
