"""A matrix product and a collective at the same time, under torch: threads on a CPU, streams on a GPU.

On a CPU the collective runs in the backend's threads, the products in the calling one, and a third thread sleeps until
the collective is done: not every work says so when it is asked (gloo's reduce_scatter never does).
CUDA code here has not yet run on a GPU.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from commbench.engines.base import Timed
from commbench.machine.binding import level_threads

_CPU_WIDTH, _CUDA_WIDTH = 256, 4096  # of the square matrices: short against a batch, long against a call

Start = Callable[[], Any]  # starts one collective, and returns the work to wait for


class CpuOverlap:
    """`start` starts one collective without waiting for it. Make it when nothing else is to be timed any more."""

    product = f"{_CPU_WIDTH} × {_CPU_WIDTH} × {_CPU_WIDTH} float32"

    def __init__(self, start: Start) -> None:
        level_threads()  # products would starve the library's threads
        self._start = start
        self._waiter = ThreadPoolExecutor(max_workers=1)
        self._factor = torch.full((_CPU_WIDTH, _CPU_WIDTH), 1.0 / _CPU_WIDTH)
        self._result = torch.empty_like(self._factor)

    def time_products(self, products: int, calls_beside: int) -> Timed:
        done = self._start_calls(calls_beside)
        began = time.perf_counter_ns()
        for _ in range(products):
            self._multiply()
        seconds = (time.perf_counter_ns() - began) * 1e-9
        covered = not calls_beside or not done.done()
        done.result()
        return Timed(seconds, covered)

    def time_calls(self, calls: int, products_beside: int) -> Timed:
        """Products go on until the calls are done."""
        began = time.perf_counter_ns()
        done = self._start_calls(calls)
        while products_beside and not done.done():
            self._multiply()
        return Timed((done.result() - began) * 1e-9)

    def _start_calls(self, calls: int) -> Future[int]:
        """Start so many; the future has the clock's nanoseconds when all were done, or the error of one."""
        return self._waiter.submit(_done_at, [self._start() for _ in range(calls)])

    def _multiply(self) -> None:
        torch.mm(self._factor, self._factor, out=self._result)


class CudaOverlap:
    """Products on the current stream, collectives from a stream of their own; times are those of events."""

    product = f"{_CUDA_WIDTH} × {_CUDA_WIDTH} × {_CUDA_WIDTH} bfloat16"

    def __init__(self, start: Start, device: torch.device) -> None:
        self._start = start
        self._side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        shape = (_CUDA_WIDTH, _CUDA_WIDTH)
        self._factor = torch.full(shape, 1.0 / _CUDA_WIDTH, dtype=torch.bfloat16, device=device)
        self._result = torch.empty_like(self._factor)

    def time_products(self, products: int, calls_beside: int) -> Timed:
        with torch.cuda.stream(self._side):
            works = [self._start() for _ in range(calls_beside)]
        first, last = _events()
        first.record()
        self._multiply(products)
        last.record()
        last.synchronize()
        covered = not works or not works[-1].is_completed()
        _wait(works)
        torch.cuda.synchronize()
        return Timed(first.elapsed_time(last) * 1e-3, covered)

    def time_calls(self, calls: int, products_beside: int) -> Timed:
        self._multiply(products_beside)
        multiplied: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        multiplied.record()
        first, last = _events()
        with torch.cuda.stream(self._side):
            first.record()
            _wait([self._start() for _ in range(calls)])  # the stream waits, the CPU does not
            last.record()
        last.synchronize()
        covered = not products_beside or not multiplied.query()
        torch.cuda.synchronize()
        return Timed(first.elapsed_time(last) * 1e-3, covered)

    def _multiply(self, products: int) -> None:
        for _ in range(products):
            torch.mm(self._factor, self._factor, out=self._result)


def _done_at(works: Sequence[Any]) -> int:
    _wait(works)
    return time.perf_counter_ns()


def _events() -> tuple[Any, Any]:
    make: Any = torch.cuda.Event
    return make(enable_timing=True), make(enable_timing=True)


def _wait(works: Sequence[Any]) -> None:
    for work in works:
        work.wait()
