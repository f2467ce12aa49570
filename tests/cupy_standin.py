"""What stands in for CuPy: ranks are threads, arrays lie in the CPU's memory, and NCCL works on addresses, as it does.

Each thread has a `Gpu` of its own (tests/gpu_standin.py), so nothing is done before somebody waits for it. A
collective waits, when it is done, for the same one of all ranks of its communicator. It takes as many arguments as the
real one, and of the same types where these differ between releases: tests/gpu/test_real_cupy.py holds the two together.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.gpu_standin import Event, Gpu, Item, OrderError, Stream, elapsed_milliseconds

_TYPES = {0: "int8", 1: "uint8", 2: "int32", 4: "int64", 6: "float16", 7: "float32", 8: "float64", 9: "uint16"}
_BFLOAT16 = 9
_REDUCE: dict[int, Callable[[Any], Any]] = {
    0: lambda rows: rows.sum(axis=0), 1: lambda rows: rows.prod(axis=0), 2: lambda rows: rows.max(axis=0),
    3: lambda rows: rows.min(axis=0),
}  # fmt: skip
_WAIT_SECONDS = 20.0
NEWEST = "14.2.0"


class NcclError(RuntimeError):
    pass


class CUDARuntimeError(RuntimeError):
    pass


class Hub:
    """Where the ranks of one communicator meet, operation by operation."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._given: dict[int, dict[int, Any]] = {}
        self._change = threading.Condition()

    def exchange(self, number: int, rank: int, what: tuple[Any, ...]) -> list[Any]:
        with self._change:
            given = self._given.setdefault(number, {})
            given[rank] = what
            self._change.notify_all()
            if not self._change.wait_for(lambda: len(given) == self.size, _WAIT_SECONDS):
                raise NcclError(f"{what[0]}: not all ranks came")
        if len({one[0] for one in given.values()}) > 1:
            raise NcclError(f"ranks call different things: {given}")
        return [given[rank][1] for rank in range(self.size)]


class Nccl:
    """The module cupy.cuda.nccl, for all threads.

    `make_hub`: of the ranks, so many, that come with the same id. `communicator`: a class of other ones.
    """

    available = True

    def __init__(
        self,
        gpu: Callable[[], Gpu],
        streams: dict[int, Stream],
        id_type: type,
        make_hub: Callable[[int, bytes], Any] = lambda size, raw_id: Hub(size),
        communicator: type["Communicator"] | None = None,
    ) -> None:
        self.NcclError = NcclError
        self.gpu, self.streams = gpu, streams
        self._id_type, self._make_hub = id_type, make_hub
        self._hubs: dict[bytes, Any] = {}
        self._lock = threading.Lock()
        self._open = threading.local()
        nccl = self

        class NcclCommunicator(communicator or Communicator):
            def __init__(self, ndev: int, commId: Any, rank: int) -> None:
                super().__init__(nccl, ndev, commId, rank)

        self.NcclCommunicator = NcclCommunicator

    def get_version(self) -> int:
        return 23_007

    def get_unique_id(self) -> bytes | tuple[int, ...]:
        raw = b"\x97" + os.urandom(127)  # the first of them is negative where numbers are signed
        return raw if self._id_type is bytes else tuple(memoryview(raw).cast("b"))

    def hub(self, size: int, unique_id: Any) -> Any:
        if type(unique_id) is not self._id_type:
            found = type(unique_id).__name__
            raise TypeError(f"Argument 'commId' has incorrect type (expected {self._id_type.__name__}, got {found})")
        if len(unique_id) != 128:
            raise ValueError(f"commId length {len(unique_id)} != 128.") if self._id_type is bytes else AssertionError
        if self._id_type is tuple and not all(-128 <= number <= 127 for number in unique_id):
            raise OverflowError("value too large to convert to char")
        raw = bytes(number & 0xFF for number in unique_id)
        with self._lock:
            if raw not in self._hubs:
                self._hubs[raw] = self._make_hub(size, raw)
            return self._hubs[raw]

    @property
    def group(self) -> list[Any] | None:
        return getattr(self._open, "calls", None)

    def groupStart(self) -> None:
        self._open.calls = []

    def groupEnd(self) -> None:
        calls = self.group
        if calls is None:
            raise OrderError("a group ends that has not begun")
        self._open.calls = None
        if calls:
            calls[0][0].put_group(calls)


class Communicator:
    """One rank's end. Addresses are read when the stream comes to the call, as a GPU does."""

    def __init__(self, nccl: Nccl, size: int, unique_id: Any, rank: int) -> None:
        self._nccl, self._hub, self._rank = nccl, nccl.hub(size, unique_id), rank
        self._number = count(1)
        self._hub.exchange(0, rank, ("connect", None))

    def destroy(self) -> None:
        if not self._nccl.gpu().is_idle:
            raise OrderError("a communicator is destroyed with work of it on a stream")

    def allReduce(self, sent: int, got: int, n: int, dtype: int, op: int, stream: int) -> None:
        self._put("allReduce", stream, sent, n, dtype, lambda rows: _write(got, _reduced(rows, dtype, op)))

    def reduce(self, sent: int, got: int, n: int, dtype: int, op: int, root: int, stream: int) -> None:
        here = self._rank == root
        self._put("reduce", stream, sent, n, dtype,
                  lambda rows: _write(got, _reduced(rows, dtype, op)) if here else None)  # fmt: skip

    def broadcast(self, sent: int, got: int, n: int, dtype: int, root: int, stream: int) -> None:
        self._put("broadcast", stream, sent, n, dtype, lambda rows: _write(got, rows[root]))

    def allGather(self, sent: int, got: int, n: int, dtype: int, stream: int) -> None:
        self._put("allGather", stream, sent, n, dtype, lambda rows: _write(got, np.concatenate(rows)))

    def reduceScatter(self, sent: int, got: int, n: int, dtype: int, op: int, stream: int) -> None:
        own = slice(self._rank * n, (self._rank + 1) * n)
        self._put("reduceScatter", stream, sent, n * self._hub.size, dtype,
                  lambda rows: _write(got, _reduced([row[own] for row in rows], dtype, op)))  # fmt: skip

    def send(self, address: int, n: int, dtype: int, peer: int, stream: int) -> None:
        self._add(("send", address, n, dtype, peer, stream))

    def recv(self, address: int, n: int, dtype: int, peer: int, stream: int) -> None:
        self._add(("recv", address, n, dtype, peer, stream))

    def put_group(self, calls: list[Any]) -> None:
        def work() -> None:
            sent: dict[int, list[Any]] = {}
            for _, what, address, n, dtype, peer, _ in calls:
                if what == "send":
                    sent.setdefault(peer, []).append(_read(address, n, dtype))
            given = self._hub.exchange(next(self._number), self._rank, ("group", sent))
            for _, what, address, n, _, peer, _ in calls:
                if what == "recv":
                    data = given[peer][self._rank].pop(0)
                    assert len(data) == n
                    _write(address, data)

        names = ",".join(call[1] for call in calls)
        self._nccl.gpu().put(f"group({names})", work, self._stream(calls[0][-1]))

    def _add(self, call: tuple[Any, ...]) -> None:
        if self._nccl.group is None:
            raise OrderError(f"{call[0]} outside a group")
        self._nccl.group.append((self, *call))

    def _put(self, what: str, stream: int, sent: int, n: int, dtype: int, finish: Callable[[Any], object]) -> None:
        def work() -> None:
            finish(self._hub.exchange(next(self._number), self._rank, (what, _read(sent, n, dtype))))

        self._nccl.gpu().put(what, work, self._stream(stream))

    def _stream(self, address: int) -> Stream:
        return self._nccl.streams[address]


def _read(address: int, n: int, dtype: int) -> Any:
    kind = np.dtype(_TYPES[dtype])
    return np.frombuffer((ctypes.c_char * (n * kind.itemsize)).from_address(address), kind).copy()


def _write(address: int, values: Any) -> None:
    ctypes.memmove(address, np.ascontiguousarray(values).ctypes.data, values.nbytes)


def _reduced(rows: Any, dtype: int, op: int) -> Any:
    if dtype == _BFLOAT16:
        wide = np.stack([(row.astype(np.uint32) << 16).view(np.float32) for row in rows])
        return (_mean_or(wide, op).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return _mean_or(np.stack(rows), op).astype(rows[0].dtype)


def _mean_or(rows: Any, op: int) -> Any:
    if op in _REDUCE:
        return _REDUCE[op](rows)
    return rows.sum(axis=0) / len(rows) if rows.dtype.kind == "f" else rows.sum(axis=0) // len(rows)


class Array:
    """An array of bytes on the GPU."""

    def __init__(self, memory: Any, gpu: Callable[[], Gpu]) -> None:
        self._memory, self._gpu = memory, gpu
        self.data = SimpleNamespace(ptr=memory.ctypes.data)

    def __getitem__(self, part: slice) -> "Array":
        return Array(self._memory[part], self._gpu)

    def set(self, values: Any, stream: "CupyStream") -> None:
        self._gpu().put("copy in", lambda: self._memory.__setitem__(slice(None), values), stream.stream)

    def get(self, stream: "CupyStream") -> Any:
        self._gpu().wait_for("copy out", stream.stream)
        return self._memory.copy()


class Graph:
    """cupy.cuda.Graph."""

    def __init__(self, gpu: Gpu, items: list[Item]) -> None:
        self._gpu, self._items = gpu, items

    def launch(self, stream: "CupyStream") -> None:
        self._gpu.replay(self._items, stream.stream)


class CupyStream:
    """cupy.cuda.Stream."""

    def __init__(self, gpu: Gpu, streams: dict[int, Stream], non_blocking: bool) -> None:
        assert non_blocking
        self._gpu, self.stream = gpu, gpu.new_stream("own")
        self.ptr = id(self.stream)
        streams[self.ptr] = self.stream

    def synchronize(self) -> None:
        self._gpu.wait_for("synchronize", self.stream)

    def begin_capture(self) -> None:
        self._capture = self._gpu.capturing()
        self._items: list[Item] = self._capture.__enter__()

    def end_capture(self) -> Any:
        self._capture.__exit__(None, None, None)
        return Graph(self._gpu, self._items)

    @contextmanager
    def _current(self) -> Iterator[None]:
        before, self._gpu.current = self._gpu.current, self.stream
        yield
        self._gpu.current = before

    def __enter__(self) -> None:
        self._entered = self._current()
        self._entered.__enter__()

    def __exit__(self, *args: object) -> None:
        self._entered.__exit__(None, None, None)


def make_cupy(gpus: int, version: str = NEWEST, **of_nccl: Any) -> tuple[dict[str, ModuleType], Callable[[], Gpu]]:
    """The modules of that release by name, for sys.modules, and what tells a thread its GPU."""
    local = threading.local()
    streams: dict[int, Stream] = {}

    def gpu() -> Gpu:
        if not hasattr(local, "gpu"):
            local.gpu = Gpu()
        return local.gpu

    def zeros(shape: Any, dtype: str) -> Array:
        memory = np.full(np.prod(shape, dtype=int) * np.dtype(dtype).itemsize, 0xAB, dtype=np.uint8)
        gpu().put("zero", lambda: memory.fill(0))
        return Array(memory, gpu)

    class CupyEvent(Event):
        def __init__(self) -> None:
            super().__init__(gpu(), enable_timing=True)

        def record(self, stream: CupyStream) -> None:
            super().record(stream.stream)

    class OwnStream(CupyStream):
        def __init__(self, non_blocking: bool) -> None:
            super().__init__(gpu(), streams, non_blocking)

    class Device:
        def __init__(self, device: int) -> None:
            assert 0 <= device < gpus

        def use(self) -> None:
            pass

    runtime = SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError, getDeviceCount=lambda: gpus, memGetInfo=lambda: (8 << 30, 80 << 30),
        deviceGetPCIBusId=lambda device: f"0000:{0x1B + device:02X}:00.0",
        deviceSynchronize=lambda: gpu().wait_for("synchronize device"),
    )  # fmt: skip
    id_type = bytes if int(version.partition(".")[0]) >= 14 else tuple
    cuda = ModuleType("cupy.cuda")
    vars(cuda).update(
        runtime=runtime, Stream=OwnStream, Event=CupyEvent, Device=Device, get_elapsed_time=elapsed_milliseconds,
        Graph=Graph, nccl=Nccl(gpu, streams, id_type, **of_nccl),
    )  # fmt: skip
    cupy = ModuleType("cupy")
    vars(cupy).update(
        __version__=version, __spec__=ModuleSpec("cupy", None), cuda=cuda, zeros=zeros, ndarray=Array,
        matmul=lambda a, b: gpu().put("product", lambda: None),
    )  # fmt: skip
    return {"cupy": cupy, "cupy.cuda": cuda}, gpu
