"""CuPy's engine on the stand-in, ranks being threads: everything right by calls and in graphs, and in which order."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from commbench.errors import TransportError, UsageError
from commbench.measure.loop import time_batch
from commbench.measure.verify import find_mismatch, write_pattern
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.dtypes import DTYPES, REDOPS
from commbench.plan.groups import Group
from commbench.plan.plan import PlanRequest, build_plan
from tests.cupy_standin import NEWEST, make_cupy
from tests.gpu_standin import Gpu, OrderError
from tests.unit.boards import MemoryBoard


@pytest.fixture(params=[NEWEST])
def cupy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Gpu]]:
    modules, gpu = make_cupy(gpus=4, version=request.param)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    yield gpu
    for name in [name for name in sys.modules if name.startswith("commbench.engines.cupy_")]:
        del sys.modules[name]


def on_ranks(size: int, work: Callable[[Any, int], Any]) -> list[Any]:
    """What `work(engine, rank)` returns on each of `size` ranks, which are threads and meet on one board."""
    from commbench.engines.cupy_nccl import open_engine

    board = MemoryBoard()

    def run(rank: int) -> Any:
        engine = open_engine(rank=rank, size=size, local_rank=rank, backend=None, board=board,
                             library_timeout_seconds=30.0)  # fmt: skip
        found = work(engine, rank)
        engine.close()
        return found

    with ThreadPoolExecutor(size) as pool:
        found = list(pool.map(run, range(size), timeout=60))
    assert board.texts == {}  # every meeting takes away what it left
    return found


def check_all(engine: Any, rank: int) -> tuple[int, list[Any]]:
    """Every case on the world, by a call and by a graph: how many were checked, and what was wrong."""
    checked, wrong = 0, []
    for in_place in (False, True):
        request = PlanRequest(tuple(COLLECTIVES), (2056,), ("world",), tuple(DTYPES), REDOPS, in_place=in_place)
        cases = build_plan(request, engine.world, engine.one_buffer)
        group = cases[0].groups[0]
        engine.allocate(4096, 4096)
        engine.create_group(group)
        for case in cases:
            if case.collective == "barrier" or engine.unsupported(case):
                continue
            call = engine.prepare(case, group, rank)
            for run in (call.run, engine.capture(call, 1)):
                write_pattern(engine.data, case, call)
                engine.barrier()
                run()
                bad = find_mismatch(engine.data, case, call)
                wrong += [(case, bad)] if bad else []
                checked += 1
    return checked, wrong


@pytest.mark.parametrize(("cupy", "size"), [(NEWEST, 1), ("13.6.0", 2), (NEWEST, 3)], indirect=["cupy"])
@pytest.mark.usefixtures("cupy")
def test_everything_is_right_with_unique_ids_of_either_kind(size: int) -> None:
    for checked, wrong in on_ranks(size, check_all):
        assert wrong == []
        # 5 reduce nothing, send_recv being none of one rank; 3 reduce; 8 types, 5 operators, twice each way.
        assert checked == 4 * 8 * (5 + (size > 1) + 3 * 5)


def one_rank(work: Callable[[Any], Any]) -> Any:
    return on_ranks(1, lambda engine, rank: work(engine))[0]


def prepared(engine: Any, collective: str) -> Any:
    (case,) = build_plan(PlanRequest((collective,), (1024,), ("world",)), engine.world, engine.one_buffer)
    engine.allocate(1024, 1024)
    engine.create_group(case.groups[0])
    return engine.prepare(case, case.groups[0], 0)


def test_a_batch_lies_between_two_events_on_its_stream(cupy: Callable[[], Gpu]) -> None:
    def work(engine: Any) -> Any:
        call = prepared(engine, "all_to_all")
        cupy().log.clear()
        elapsed = time_batch(engine.stopwatch, call.run, 2)
        log = list(cupy().log)
        replay = engine.capture(call, 3)
        cupy().log.clear()
        time_batch(engine.stopwatch, replay, 1)
        return elapsed, log, list(cupy().log)

    elapsed, by_calls, in_graph = one_rank(work)
    group = ("group(send,recv)", "own")
    around = ("record", "own"), ("wait for event", "own")
    assert by_calls == [around[0], group, group, around[0], around[1]]
    assert in_graph == [around[0], ("replay", "own"), group, group, group, around[0], around[1]]
    assert elapsed.seconds > 0
    assert elapsed.enqueue_seconds > 0


def test_a_barrier_waits_for_the_gpu_first(cupy: Callable[[], Gpu]) -> None:
    def work(engine: Any) -> tuple[bool, bool]:
        prepared(engine, "barrier").run()
        before = cupy().is_idle
        engine.barrier()
        return before, cupy().is_idle

    assert one_rank(work) == (False, True)


@pytest.mark.usefixtures("cupy")
def test_a_stopwatch_that_does_not_wait_is_found() -> None:
    def work(engine: Any) -> None:
        watch = engine.stopwatch
        watch.start()
        prepared(engine, "all_reduce").run()
        watch._last.record(engine._stream)
        import cupy

        with pytest.raises(OrderError, match="before it was waited for"):
            cupy.cuda.get_elapsed_time(watch._first, watch._last)

    one_rank(work)


@pytest.mark.usefixtures("cupy")
def test_a_send_outside_a_group_and_an_end_without_work_done_are_found() -> None:
    def work(engine: Any) -> None:
        call = prepared(engine, "all_reduce")
        communicator = engine._communicators[call.group.ranks]
        with pytest.raises(OrderError, match="outside a group"):
            communicator.send(0, 1, 7, 0, engine._stream.ptr)
        call.run()
        with pytest.raises(OrderError, match="destroyed with work"):
            communicator.destroy()

    one_rank(work)


@pytest.mark.usefixtures("cupy")
def test_groups_are_made_again_after_they_were_dropped_and_by_their_members_alone() -> None:
    def work(engine: Any, rank: int) -> list[int]:
        pair = Group("pair", (0, 2))
        for _ in range(2):
            engine.create_group(pair)
            engine.drop_group(pair)
        engine.exercise(0.001)
        return engine.max_reduce(np.array([float(rank), -np.inf])).tolist()

    assert on_ranks(3, work) == [[2.0, -np.inf]] * 3


@pytest.mark.usefixtures("cupy")
def test_a_cupy_without_nccl_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from commbench.engines import cupy_nccl

    monkeypatch.setattr(cupy_nccl.nccl, "available", False)
    monkeypatch.delattr(cupy_nccl.nccl, "NcclError")  # as the real one lacks it then
    with pytest.raises(UsageError, match=r"CuPy finds no libnccl\.so\.2"):
        cupy_nccl.open_engine(rank=0, size=1, local_rank=0, backend=None, board=MemoryBoard())


@pytest.mark.usefixtures("cupy")
def test_what_cannot_be_is_refused() -> None:
    from commbench.engines.cupy_nccl import open_engine
    from commbench.engines.meetings import Meetings

    with pytest.raises(UsageError, match="NCCL alone, found --backend gloo"):
        open_engine(rank=0, size=1, local_rank=0, backend="gloo", board=MemoryBoard())
    with pytest.raises(TransportError, match=r"not all of ranks 0-1 came within 0\.01 s"):
        Meetings(MemoryBoard(), 0, 2, 0.01).barrier((0, 1))
    assert one_rank(lambda engine: engine.pci_address) == "0000:1b:00.0"
    assert one_rank(lambda engine: engine.available_nbytes()) == 7 << 30
