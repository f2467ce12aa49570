"""NCCL through CuPy: the library's own calls, with nothing between them and the loop but Python.

Against torch's engine it shows what torch adds. Barriers, maxima, texts and NCCL's unique ids travel over the board.
This code has not yet run on a GPU.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import cupy
from cupy.cuda import nccl

from commbench.engines.base import Board, Call, Link, Overlap, Seconds
from commbench.engines.buffers import buffer_nbytes, lengths, views
from commbench.engines.cupy_calls import CupyPart, bind_call
from commbench.engines.cupy_connect import connect, new_meeting_point
from commbench.engines.cupy_device import CupyBuffers, CupyStopwatch, capture_graph, keep_busy
from commbench.engines.gpus import NCCL_RESERVE_NBYTES, allow_sharing, count_sharers
from commbench.engines.meetings import Meetings
from commbench.errors import RendezvousError, TransportError, UsageError
from commbench.machine.host import node_identity
from commbench.plan.groups import Group, World
from commbench.plan.plan import Case


class CupyEngine:
    """One rank of a world, with an NCCL communicator for each group that it is in."""

    name = "cupy"
    backend = "nccl"
    one_buffer: frozenset[str] = frozenset()

    def __init__(self, rank: int, world: World, meetings: Meetings, address: str, sharers: int) -> None:
        self.ranks: Sequence[int] = (rank,)
        self.world = world
        self.pci_address: str | None = address
        # Ranks meet over the board: where that is gone, the host of it is.
        self.transport_errors: tuple[type[Exception], ...] = (
            nccl.NcclError,
            cupy.cuda.runtime.CUDARuntimeError,
            RendezvousError,
            TransportError,
        )
        self._meetings = meetings
        self._sharers = sharers
        self._stream = cupy.cuda.Stream(non_blocking=True)  # the default one would wait for every other
        self.data = CupyBuffers(self._stream)
        self.stopwatch = CupyStopwatch(self._stream)
        self._communicators: dict[tuple[int, ...], Any] = {}
        self._send = self._receive = cupy.zeros(0, dtype="uint8")
        self._token = cupy.zeros(1, dtype="int32")  # what a barrier reduces
        cupy.cuda.runtime.deviceSynchronize()  # it is zeroed on another stream

    def now_seconds(self) -> float:
        return time.perf_counter()

    def explain(self, error: Exception) -> str:
        return str(error).strip().rstrip(".") or type(error).__name__

    def unsupported(self, case: Case) -> str | None:
        alone = case.collective == "send_recv" and min(group.size for group in case.groups) < 2
        return "needs at least 2 ranks" if alone else None

    def link(self, group: Group) -> Link:
        return Link("net" if self.world.nodes_of(group.ranks) > 1 else "unknown")

    def available_nbytes(self) -> int:
        return (int(cupy.cuda.runtime.memGetInfo()[0]) - NCCL_RESERVE_NBYTES) // self._sharers

    def needed_nbytes(self, case: Case) -> int:
        return sum(buffer_nbytes(case))

    def buffer_nbytes(self, case: Case) -> tuple[int, int]:
        return buffer_nbytes(case)

    def allocate(self, send_nbytes: int, receive_nbytes: int) -> None:
        self._send, self._receive = (cupy.zeros(nbytes, dtype="uint8") for nbytes in (send_nbytes, receive_nbytes))
        cupy.cuda.runtime.deviceSynchronize()  # they are zeroed on another stream

    def create_group(self, group: Group, timeout_seconds: float | None = None) -> None:
        """NCCL connects without a time limit of its own: `timeout_seconds` is for the way to it, over the board."""
        rank = self.ranks[0]
        if rank not in group.ranks or group.ranks in self._communicators:
            return
        me = group.ranks.index(rank)
        told = self._meetings.gather(new_meeting_point() if me == 0 else "", group.ranks)
        self._communicators[group.ranks] = connect(group.size, told[0], me)

    def drop_group(self, group: Group) -> None:
        communicator = self._communicators.pop(group.ranks, None)
        if communicator is not None:
            self._stream.synchronize()
            communicator.destroy()

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        itemsize = case.element.itemsize
        whole = (
            CupyPart(buffer[: length * itemsize], case.element)
            for buffer, length in zip((self._send, self._receive), lengths(case, group), strict=True)
        )
        send, receive = views(case, group, me, *whole)
        run = bind_call(case, group, me, send, receive, self._communicators[group.ranks], self._stream, self._token)
        return Call(group, me, run, send, receive)

    def no_graph(self, case: Case) -> str | None:
        return None

    def capture(self, call: Call, calls: int) -> Callable[[], object]:
        return capture_graph(call.run, calls, self._stream)

    def exercise(self, seconds: float) -> None:
        keep_busy(self._stream, seconds)

    def no_overlap(self, case: Case) -> str | None:
        return "engine cupy has no matrix products: --engine torch has"

    def prepare_overlap(self, case: Case, group: Group, me: int) -> Overlap:
        raise UsageError(f"{self.no_overlap(case)}.")

    def barrier(self, group: Group | None = None) -> None:
        self._stream.synchronize()
        self._meetings.barrier(group.ranks if group else self._meetings.world)

    def max_reduce(self, values: Seconds) -> Seconds:
        return self._meetings.maximum(values)

    def gather_texts(self, text: str) -> list[str]:
        return self._meetings.gather(text, self._meetings.world)

    def flight_record(self) -> str:
        return ""

    def close(self) -> None:
        self._stream.synchronize()
        for communicator in self._communicators.values():
            communicator.destroy()
        self._communicators.clear()


def visible_gpus() -> int:
    """The number of GPUs that CuPy sees. Raises UsageError if it sees none, or finds no libnccl."""
    if not nccl.available:
        raise UsageError(
            "engine cupy needs NCCL, CuPy finds no libnccl.so.2 here: pip install nvidia-nccl-cu12 (nvidia-nccl-cu13 "
            "for CUDA 13), and for CuPy 13 put its folder into LD_LIBRARY_PATH."
        )
    try:
        count = int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise UsageError(f"engine cupy needs a GPU, found: {error}; use --engine torch.") from error
    if count == 0:
        raise UsageError("engine cupy needs a GPU, CuPy sees none here: use --engine torch.")
    return count


def open_engine(
    *,
    rank: int,
    size: int,
    local_rank: int,
    backend: str | None,
    board: Board,
    library_timeout_seconds: float | None = None,
    ranks_per_gpu: int = 1,
) -> CupyEngine:
    """Join the world that meets at `board`, as `rank` of `size`; arguments as those of torch's engine.

    Raises UsageError where there is no GPU, for another backend, and for more ranks on a GPU than may share it.
    """
    if backend not in (None, "nccl"):
        raise UsageError(f"engine cupy has NCCL alone, found --backend {backend}: leave it away.")
    device = local_rank % visible_gpus()
    version = nccl.get_version()
    allow_sharing(ranks_per_gpu, (version // 10_000, version % 10_000 // 100, version % 100))
    cupy.cuda.Device(device).use()
    address = str(cupy.cuda.runtime.deviceGetPCIBusId(device)).lower()
    meetings = Meetings(board, rank, size, library_timeout_seconds)
    identities = meetings.gather(node_identity(), meetings.world)
    addresses = meetings.gather(address, meetings.world)
    sharers = count_sharers(identities, addresses, ranks_per_gpu)
    nodes: dict[str, int] = {}
    world = World(tuple(nodes.setdefault(node, len(nodes)) for node in identities))
    return CupyEngine(rank, world, meetings, address, sharers[rank])
