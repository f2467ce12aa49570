"""What differs between a CPU and a GPU under torch: the stopwatch, and where buffers lie.

CUDA code here has not yet run on a GPU.
"""

import time
from typing import Any

import torch
from numpy.typing import NDArray

from commbench.engines.base import Elapsed

_PAGE_NBYTES, _PAGE_OFFSET = 4096, 64  # glibc maps a large block at a page, 64 bytes behind its header


class CpuStopwatch:
    """The CPU's clock: calls on the CPU block, so there is nothing to wait for."""

    resolution_seconds = time.get_clock_info("perf_counter").resolution

    def __init__(self) -> None:
        self._started = 0

    def start(self) -> None:
        self._started = time.perf_counter_ns()

    def stop(self) -> Elapsed:
        return Elapsed((time.perf_counter_ns() - self._started) * 1e-9)


class CudaStopwatch:
    """Events on the current stream; the CPU's time to enqueue is kept beside."""

    resolution_seconds = 0.5e-6  # CUDA documents about half a microsecond for cudaEventElapsedTime

    def __init__(self) -> None:
        self._first = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._last = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._started = 0

    def start(self) -> None:
        self._started = time.perf_counter_ns()
        self._first.record()

    def stop(self) -> Elapsed:
        enqueue_seconds = (time.perf_counter_ns() - self._started) * 1e-9
        self._last.record()
        self._last.synchronize()
        return Elapsed(self._first.elapsed_time(self._last) * 1e-3, enqueue_seconds)


class TorchBuffers:
    """Reads and writes tensors as numpy arrays. bfloat16 travels as float32, which holds it exactly."""

    def write(self, buffer: torch.Tensor, start: int, values: NDArray[Any]) -> None:
        buffer[start : start + len(values)].copy_(torch.from_numpy(values))

    def read(self, buffer: torch.Tensor, start: int, stop: int) -> NDArray[Any]:
        part = buffer[start:stop].cpu()
        array: NDArray[Any] = (part.float() if part.dtype is torch.bfloat16 else part).numpy()
        return array


def place_buffer(nbytes: int, device: torch.device) -> torch.Tensor:
    """A buffer of zeros that begins, on a CPU, as far into its page as torch's large tensors do.

    Smaller ones begin wherever the heap has room, and where in their page two buffers lie to each other changes the
    time of a copy between them by up to a factor of two (docs/measuring.md): it must not hang on the largest size.
    """
    if device.type != "cpu":
        return torch.zeros(nbytes, dtype=torch.uint8, device=device)
    buffer = torch.zeros(nbytes + _PAGE_NBYTES, dtype=torch.uint8)
    start = (_PAGE_OFFSET - buffer.data_ptr()) % _PAGE_NBYTES
    return buffer[start : start + nbytes]
