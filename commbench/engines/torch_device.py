"""What differs between a CPU and a GPU under torch: the stopwatch, and where buffers lie.

CUDA code here has not yet run on a GPU.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray

from commbench.engines.base import Elapsed

_BUSY_WIDTH, _BUSY_PRODUCTS = 2048, 16  # of the matrices, and before the CPU waits for them
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


def capture_graph(run: Callable[[], object], calls: int) -> Callable[[], object]:
    """What replays, on the current stream, a CUDA graph of `calls` calls of `run`."""
    graph: Any = torch.cuda.CUDAGraph()
    # The process group's watchdog asks events from its own thread meanwhile; globally that would end the capture.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(calls):
            run()
    replay: Callable[[], object] = graph.replay
    return replay


def keep_busy(device: torch.device, seconds: float) -> None:
    """Multiply matrices on a GPU for so long."""
    factor = torch.zeros((_BUSY_WIDTH, _BUSY_WIDTH), dtype=torch.float16, device=device)
    result = torch.empty_like(factor)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        for _ in range(_BUSY_PRODUCTS):
            torch.mm(factor, factor, out=result)
        torch.cuda.synchronize(device)


def gpu_address(device: torch.device) -> str | None:
    """The PCI address; None on a CPU, and before torch 2.6 or so, which does not say it."""
    if device.type != "cuda":
        return None
    facts: Any = torch.cuda.get_device_properties(device)
    if not hasattr(facts, "pci_bus_id"):
        return None
    return f"{facts.pci_domain_id:04x}:{facts.pci_bus_id:02x}:{facts.pci_device_id:02x}.0"


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
