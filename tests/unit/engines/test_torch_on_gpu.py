"""torch's engine on the stand-in for a GPU: what it calls, on which stream, in which order."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from commbench.engines import torch_dist
from commbench.engines.torch_device import CudaStopwatch
from commbench.engines.torch_dist import TorchEngine, open_engine
from commbench.errors import UsageError
from commbench.measure.loop import time_batch
from commbench.measure.verify import find_mismatch, write_pattern
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.groups import Group
from commbench.plan.plan import Case
from tests.cuda_standin import stand_in_for_torch
from tests.factories import make_case
from tests.gpu_standin import Gpu, OrderError

ALONE = Group("all", (0,))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    made = Gpu()
    with stand_in_for_torch(made, monkeypatch.setattr):
        yield made


@pytest.fixture
def engine(gpu: Gpu) -> Iterator[TorchEngine]:
    board = SimpleNamespace(store=dist.HashStore())
    made = open_engine(rank=0, size=1, local_rank=1, backend=None, board=board)
    made.create_group(ALONE)
    made.allocate(4096, 4096)
    gpu.log.clear()
    yield made
    torch.cuda.synchronize()
    made.close()


def case_of(name: str, **changes: object) -> Case:
    return make_case(name, requested_nbytes=1024, groups=(ALONE,), **changes)


def test_the_local_rank_chooses_the_gpu(engine: TorchEngine) -> None:
    assert (engine.backend, engine.pci_address) == ("nccl", "0000:1c:00.0")


def test_a_batch_lies_between_two_events_that_are_waited_for(engine: TorchEngine, gpu: Gpu) -> None:
    call = engine.prepare(case_of("all_reduce"), ALONE, 0)
    elapsed = time_batch(engine.stopwatch, call.run, 3)
    calls = [("all_reduce", "default")] * 3
    assert gpu.log == [("record", "default"), *calls, ("record", "default"), ("wait for event", "default")]
    assert elapsed.seconds > 0
    assert elapsed.enqueue_seconds is not None


def test_a_barrier_waits_for_the_gpu_first_and_is_not_nccls(engine: TorchEngine, gpu: Gpu) -> None:
    engine.prepare(case_of("all_reduce"), ALONE, 0).run()
    engine.barrier(ALONE)
    assert gpu.log == [("all_reduce", "default"), ("synchronize", "all")]
    assert gpu.is_idle


@pytest.mark.parametrize("name", [name for name in COLLECTIVES if name not in ("barrier", "send_recv")])
@pytest.mark.parametrize("in_graph", [False, True])
def test_every_collective_is_right_and_nothing_is_done_before_it_is_waited_for(
    engine: TorchEngine, gpu: Gpu, name: str, in_graph: bool
) -> None:
    case = case_of(name, in_place=name in engine.one_buffer)
    call = engine.prepare(case, ALONE, 0)
    run = call.run
    run()
    if in_graph:
        run = engine.capture(call, 1)
    write_pattern(engine.data, case, call)
    run()
    assert not gpu.is_idle
    assert find_mismatch(engine.data, case, call) is None  # the copy to the CPU waits for the stream
    assert gpu.is_idle


def test_a_graph_holds_its_calls_and_is_replayed_on_the_timed_stream(engine: TorchEngine, gpu: Gpu) -> None:
    call = engine.prepare(case_of("all_gather"), ALONE, 0)
    call.run()
    gpu.log.clear()
    replay = engine.capture(call, 4)
    assert gpu.log == [("before capture", "all"), *[("all_gather", "capture")] * 4]
    gpu.log.clear()
    time_batch(engine.stopwatch, replay, 2)
    replayed = [("replay", "default"), *[("all_gather", "default")] * 4]
    assert gpu.log == [("record", "default"), *replayed * 2, ("record", "default"), ("wait for event", "default")]


def test_a_group_is_connected_before_it_is_captured(engine: TorchEngine) -> None:
    with pytest.raises(OrderError, match="first call of a group"):
        engine.capture(engine.prepare(case_of("all_reduce"), ALONE, 0), 1)


def test_a_barrier_is_put_into_no_graph(engine: TorchEngine) -> None:
    assert "makes the CPU wait" in (engine.no_graph(case_of("barrier")) or "")
    assert engine.no_graph(case_of("all_reduce")) is None


class Hasty(CudaStopwatch):
    """Reads the time without waiting for the last event."""

    def stop(self) -> object:
        self._last.record()
        return self._first.elapsed_time(self._last)


def test_a_stopwatch_that_does_not_wait_is_found(engine: TorchEngine) -> None:
    call = engine.prepare(case_of("all_reduce"), ALONE, 0)
    with pytest.raises(OrderError, match="before it was waited for"):
        time_batch(Hasty(), call.run, 1)


def test_ending_with_work_on_a_stream_is_found(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.prepare(case_of("all_reduce"), ALONE, 0).run()
    with monkeypatch.context() as forgetful:
        forgetful.setattr(torch.cuda, "synchronize", lambda device=None: None)
        with pytest.raises(OrderError, match="with work of it"):
            engine.close()


def test_products_run_beside_a_collective_on_another_stream(engine: TorchEngine, gpu: Gpu) -> None:
    overlap = engine.prepare_overlap(case_of("all_reduce"), ALONE, 0)
    gpu.log.clear()
    assert overlap.time_products(2, 1).covered
    assert gpu.log[:2] == [("library waits", "side"), ("all_reduce", "library")]
    assert gpu.log[2:7] == [("record", "default"), ("product", "default"), ("product", "default"),
                            ("record", "default"), ("wait for event", "default")]  # fmt: skip
    assert gpu.is_idle


def test_memory_is_what_is_free_without_what_nccl_takes(engine: TorchEngine, gpu: Gpu) -> None:
    gpu.free_nbytes = 5 << 30
    assert engine.available_nbytes() == 4 << 30
    engine._ranks_on_gpu = 2
    assert engine.available_nbytes() == 2 << 30


def test_a_gpu_is_kept_busy_and_waited_for(engine: TorchEngine, gpu: Gpu) -> None:
    engine.exercise(0.001)
    assert gpu.log[-17:] == [("product", "default")] * 16 + [("synchronize", "all")]


def test_on_the_cpu_there_is_no_graph() -> None:
    board = SimpleNamespace(store=dist.HashStore())
    made = torch_dist.open_engine(rank=0, size=1, local_rank=0, backend="gloo", board=board)
    assert "works on the CPU" in (made.no_graph(case_of("all_reduce")) or "")
    made.exercise(10.0)  # nothing to exercise
    made.close()


def test_an_old_nccl_takes_one_rank_a_gpu(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 27, 5))
    with pytest.raises(UsageError, match=r"needs NCCL 2\.30\.3 or newer, found 2\.27\.5"):
        open_engine(rank=0, size=1, local_rank=0, backend="nccl", board=None, ranks_per_gpu=2)


def test_the_flight_record_is_of_counts_alone(engine: TorchEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, bool]] = []

    def dump(**which: bool) -> bytes:
        asked.append(which)
        return b'{"pg_status": {}}'

    monkeypatch.setattr(torch._C._distributed_c10d, "_dump_nccl_trace_json", dump, raising=False)
    assert engine.flight_record() == '{"pg_status": {}}'
    assert asked == [{"includeCollectives": False}]  # single calls would be asked of the GPU, which hangs
    monkeypatch.delattr(torch._C._distributed_c10d, "_dump_nccl_trace_json")
    assert engine.flight_record() == ""
