"""Clocks that rise, what is said of GPUs before and after, and sizes that do not fit; with loads that are planned."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from commbench.engines.fake import FakeEngine, open_engine
from commbench.errors import UsageError
from commbench.machine.gpu_load import GpuLoad, read_load
from commbench.measure.fitting import plan_what_fits
from commbench.measure.gpu_watch import find_gpu_state, raise_clocks
from commbench.measure.request import SweepRequest
from commbench.measure.sampling import SamplingRules
from commbench.plan.plan import Case, PlanRequest
from tests.trees import GPU_ADDRESS, FakeNvml

GPU = "0000:1b:00.0"


class OnGpu(FakeEngine):
    """Drives a GPU, counts how long it was kept busy, and has little memory."""

    pci_address = GPU
    busy = 0.0
    free = 1 << 40

    def exercise(self, seconds: float) -> None:
        self.busy += seconds

    def available_nbytes(self) -> int:
        return self.free

    def needed_nbytes(self, case: Case) -> int:
        return 2 * case.requested_nbytes


def on_gpu(ranks: int = 1) -> OnGpu:
    engine = open_engine(ranks=ranks, spec="", seed=0)
    engine.__class__ = OnGpu
    return engine


def loads(clocks: Iterable[float | None]) -> Callable[[str], GpuLoad]:
    left = iter(clocks)
    return lambda address: GpuLoad(sm_clock_hertz=next(left))


@pytest.mark.parametrize(
    ("clocks", "exercises"),
    [
        ([345e6, 900e6, 1980e6, 1980e6, 1980e6, 1980e6], 6),
        ([1980e6] * 4, 4),
        ([None] * 10, 10),
        ([i * 1e6 for i in range(1, 30)], 20),  # one that never settles costs 2 s, no more
    ],
)
def test_a_gpu_is_busy_until_its_clock_rises_no_more(clocks: list[float | None], exercises: int) -> None:
    engine = on_gpu()
    raise_clocks(engine, loads(clocks))
    assert engine.busy == pytest.approx(exercises * 0.1)


def test_without_a_gpu_nothing_is_raised_or_found() -> None:
    engine = open_engine(ranks=1, spec="", seed=0)
    raise_clocks(engine, loads([]))
    assert find_gpu_state(engine, "before", loads([])) == []


@pytest.mark.parametrize(
    ("load", "verdict", "words"),
    [
        (GpuLoad(1980e6, 1980e6, ("gpu_idle",), 40, 1), "ok", "SM clock 1980 MHz of 1980 MHz; held back by nothing; 0"),
        (GpuLoad(1200e6, 1980e6, ("hw_thermal_slowdown",), 90, 1), "warn", "held back by hw_thermal_slowdown"),
        (GpuLoad(1980e6, 1980e6, (), 40, 3), "warn", "2 other processes"),
        (GpuLoad(), "ok", "SM clock ? of ?; held back by nothing; other processes unknown"),
        (GpuLoad(unseen="no NVML"), "skip", "not seen: no NVML"),
    ],
)
def test_what_is_said_of_a_load(load: GpuLoad, verdict: str, words: str) -> None:
    (found,) = find_gpu_state(on_gpu(), "after", lambda address: load)
    assert (found.verdict, found.subject) == (verdict, "GPUs of ranks 0 after measuring")
    assert words in found.observed


def test_the_load_is_read_by_address() -> None:
    load = read_load(GPU_ADDRESS[5], FakeNvml({5: {"throttled": 0x40, "pids": (1, 2)}}))
    assert load.unseen == ""
    assert (load.sm_clock_hertz, load.throttle_reasons, load.processes) == (1.98e9, ("hw_thermal_slowdown",), 2)


def request(*sizes: int) -> SweepRequest:
    return SweepRequest(PlanRequest(("all_reduce", "all_gather"), sizes, ("world",)), SamplingRules(), Path())


def test_sizes_that_do_not_fit_are_left_out_and_said() -> None:
    engine = on_gpu(2)
    engine.free = 1 << 20
    cases, (finding,) = plan_what_fits(engine, request(1 << 10, 1 << 18, 1 << 20, 1 << 22))
    assert [case.requested_nbytes for case in cases] == [1 << 10, 1 << 18] * 2
    assert (finding.verdict, finding.subject) == ("warn", "sizes 1 MiB, 4 MiB")
    assert finding.action == "the largest size is 256 KiB"


def test_where_nothing_fits_the_run_is_refused() -> None:
    engine = on_gpu(2)
    engine.free = 1 << 10
    with pytest.raises(UsageError, match="up to 460 B would fit"):
        plan_what_fits(engine, request(1 << 10))
