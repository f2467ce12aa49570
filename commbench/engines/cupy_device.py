"""The GPU under CuPy: stopwatch, graphs, and buffers as numpy sees them. This code has not yet run on a GPU."""

import time
from collections.abc import Callable
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from commbench.engines.base import Elapsed
from commbench.engines.cupy_calls import CupyPart

_BUSY_WIDTH, _BUSY_PRODUCTS = 2048, 16  # of the matrices, and before the CPU waits for them


class CupyStopwatch:
    """Events on `stream`; the CPU's time to enqueue is kept beside."""

    resolution_seconds = 0.5e-6  # CUDA documents about half a microsecond for cudaEventElapsedTime

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._first, self._last = cupy.cuda.Event(), cupy.cuda.Event()
        self._started = 0

    def start(self) -> None:
        self._started = time.perf_counter_ns()
        self._first.record(self._stream)

    def stop(self) -> Elapsed:
        enqueue_seconds = (time.perf_counter_ns() - self._started) * 1e-9
        self._last.record(self._stream)
        self._last.synchronize()
        return Elapsed(cupy.cuda.get_elapsed_time(self._first, self._last) * 1e-3, enqueue_seconds)


class CupyBuffers:
    """Reads and writes parts of buffers as numpy arrays, in the order of `stream`.

    CuPy has no bfloat16: its upper half of a float32 is cut off and put back here, which is exact for what is written.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, buffer: CupyPart, start: int, values: NDArray[Any]) -> None:
        if buffer.element.name == "bfloat16":
            values = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        buffer[start : start + len(values)].memory.set(values.view(np.uint8), stream=self._stream)
        self._stream.synchronize()  # the copy reads `values` until then

    def read(self, buffer: CupyPart, start: int, stop: int) -> NDArray[Any]:
        raw: NDArray[Any] = buffer[start:stop].memory.get(stream=self._stream)
        self._stream.synchronize()
        if buffer.element.name == "bfloat16":
            return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return raw.view(buffer.element.name)


def capture_graph(run: Callable[[], object], calls: int, stream: Any) -> Callable[[], object]:
    """What launches, on `stream`, a CUDA graph of `calls` calls of `run`."""
    stream.synchronize()
    stream.begin_capture()
    for _ in range(calls):
        run()
    graph = stream.end_capture()

    def launch() -> None:
        graph.launch(stream=stream)

    return launch


def keep_busy(stream: Any, seconds: float) -> None:
    """Multiply matrices on the GPU for so long."""
    ends = time.monotonic() + seconds
    with stream:
        factor = cupy.zeros((_BUSY_WIDTH, _BUSY_WIDTH), dtype="float16")
        while time.monotonic() < ends:
            for _ in range(_BUSY_PRODUCTS):
                cupy.matmul(factor, factor)
            stream.synchronize()
