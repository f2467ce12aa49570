"""torch.distributed as an engine: gloo on CPUs, nccl on GPUs, and whatever other backend torch offers.

Barriers, maxima and texts travel over a gloo group of their own, so that nothing of ours touches the measured path.
CUDA code here has not yet run on a GPU.
"""

import re
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import psutil
import torch
import torch.distributed as dist

from commbench.engines.base import Call, Link, Overlap, Seconds
from commbench.engines.buffers import buffer_nbytes, lengths, views
from commbench.engines.gpus import NCCL_RESERVE_NBYTES, allow_sharing, count_sharers
from commbench.engines.torch_calls import bind_call
from commbench.engines.torch_device import (
    CpuStopwatch,
    CudaStopwatch,
    TorchBuffers,
    capture_graph,
    gpu_address,
    keep_busy,
    place_buffer,
)
from commbench.engines.torch_overlap import CpuOverlap, CudaOverlap
from commbench.engines.torch_store import TorchBoard, first_line
from commbench.errors import RendezvousError, UsageError
from commbench.machine.host import memory_limit_nbytes, node_identity
from commbench.plan.collectives import ROOT, Blocks
from commbench.plan.groups import Group, World
from commbench.plan.plan import Case

_NO_TIMEOUT = timedelta(days=1)
# Copies of S that gloo makes beside our buffers, measured by scripts/bench_memory on 2, 3 and 4 ranks.
_GLOO_COPIES = {"all_gather": 1, "reduce_scatter": 1, "gather": 1}


class TorchEngine:
    """One rank of a world that torch.distributed has joined."""

    name = "torch"
    # torch reduces and broadcasts in the caller's tensor; there is no second buffer to choose.
    one_buffer = frozenset({"all_reduce", "reduce", "broadcast"})
    transport_errors: tuple[type[Exception], ...] = (RuntimeError,)

    def __init__(
        self,
        rank: int,
        backend: str,
        world: World,
        device: torch.device,
        library_timeout: timedelta,
        ranks_on_gpu: int = 1,
    ) -> None:
        self.ranks: Sequence[int] = (rank,)
        self.backend = backend
        self.world = world
        self.data = TorchBuffers()
        self._device = device
        self._library_timeout = library_timeout
        self._ranks_on_gpu = ranks_on_gpu
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}
        self._barriers: dict[tuple[int, ...], dist.ProcessGroup] = {}  # of gloo, for the groups of NCCL
        self._send = self._receive = torch.empty(0, dtype=torch.uint8)
        self._refusals: dict[tuple[str, str, str], str | None] = {}
        self.stopwatch = CudaStopwatch() if device.type == "cuda" else CpuStopwatch()

    @property
    def pci_address(self) -> str | None:
        return gpu_address(self._device)

    def now_seconds(self) -> float:
        return time.perf_counter()

    def explain(self, error: Exception) -> str:
        # gloo: "[file:line] Reason. This is typically caused by …"
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return re.sub(r"^\[[^\]]*:\d+\] ", "", first).partition(". This is typically")[0]

    def unsupported(self, case: Case) -> str | None:
        """Tries the call once on a group of this rank alone: what the backend lacks, it refuses before it sends.

        NCCL takes every type and operator that we have, and each try would cost it a communicator.
        """
        if case.spec.name == "send_recv":
            return "needs at least 2 ranks" if min(group.size for group in case.groups) < 2 else None
        if self.backend == "nccl":
            return None
        key = (case.collective, case.dtype, case.redop)
        if key not in self._refusals:
            self._refusals[key] = self._try_alone(case)
        return self._refusals[key]

    def link(self, group: Group) -> Link:
        if self.world.nodes_of(group.ranks) > 1:
            return Link("net")
        return Link("loopback" if self._device.type == "cpu" else "unknown")

    def available_nbytes(self) -> int:
        if self._device.type == "cuda":
            return (int(torch.cuda.mem_get_info(self._device)[0]) - NCCL_RESERVE_NBYTES) // self._ranks_on_gpu
        free: int = min(psutil.virtual_memory().available, memory_limit_nbytes())
        node = self.world.node_of_rank[self.ranks[0]]
        return free // self.world.node_of_rank.count(node)

    def needed_nbytes(self, case: Case) -> int:
        copies = _GLOO_COPIES.get(case.collective, 0) if self.backend == "gloo" else 0
        return sum(self.buffer_nbytes(case)) + copies * max(case.nbytes(group) for group in case.groups)

    def buffer_nbytes(self, case: Case) -> tuple[int, int]:
        return buffer_nbytes(case)

    def allocate(self, send_nbytes: int, receive_nbytes: int) -> None:
        self._send, self._receive = (place_buffer(nbytes, self._device) for nbytes in (send_nbytes, receive_nbytes))

    def create_group(self, group: Group, timeout_seconds: float | None = None) -> None:
        # On all ranks, because torch names a group by counting; those that are not in it count and go on. Made by its
        # members alone it would be named after how many groups each of them has made, which need not be the same.
        if group.ranks not in self._groups:
            timeout = timedelta(seconds=timeout_seconds) if timeout_seconds else self._library_timeout
            self._groups[group.ranks] = dist.new_group(list(group.ranks), timeout=timeout, backend=self.backend)
            if self._device.type == "cuda":  # a barrier of NCCL's would be a kernel beside what is measured
                self._barriers[group.ranks] = dist.new_group(list(group.ranks), timeout=timeout, backend="gloo")

    def drop_group(self, group: Group) -> None:
        for groups in (self._groups, self._barriers):
            handle = groups.pop(group.ranks, None)
            if isinstance(handle, dist.ProcessGroup):  # whoever is not in it has a number in its place
                dist.destroy_process_group(handle)

    def prepare(self, case: Case, group: Group, me: int) -> Call:
        send, receive = self._views(case, group, me)
        run = bind_call(case, group, me, send, receive, self._groups[group.ranks], self._device)
        return Call(group, me, run, send, receive)

    def no_graph(self, case: Case) -> str | None:
        if self._device.type != "cuda":
            return f"backend {self.backend} works on the CPU, and a CUDA graph holds what a GPU does"
        return "torch's barrier makes the CPU wait, which no graph holds" if case.spec.send is Blocks.NONE else None

    def capture(self, call: Call, calls: int) -> Callable[[], object]:
        return capture_graph(call.run, calls)

    def exercise(self, seconds: float) -> None:
        if self._device.type == "cuda":
            keep_busy(self._device, seconds)

    def no_overlap(self, case: Case) -> str | None:
        if case.spec.send is Blocks.NONE:
            return "it moves no data"
        return "torch starts no ring shift as one call" if case.collective == "send_recv" else None

    def prepare_overlap(self, case: Case, group: Group, me: int) -> Overlap:
        call: Callable[..., object] = self.prepare(case, group, me).run  # of torch, with all but async_op bound
        start = partial(call, async_op=True)
        return CudaOverlap(start, self._device) if self._device.type == "cuda" else CpuOverlap(start)

    def barrier(self, group: Group | None = None) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        groups = self._barriers if self._device.type == "cuda" else self._groups
        dist.barrier(group=groups[group.ranks] if group else None)

    def max_reduce(self, values: Seconds) -> Seconds:
        reduced = torch.from_numpy(values.copy())
        dist.all_reduce(reduced, dist.ReduceOp.MAX)
        array: Seconds = reduced.numpy()
        return array

    def gather_texts(self, text: str) -> list[str]:
        return _gather_texts(text)

    def flight_record(self) -> str:
        # Counts alone: for single calls torch queries CUDA events, which may hang, and no other thread runs meanwhile.
        dump = getattr(torch._C._distributed_c10d, "_dump_nccl_trace_json", None)  # from 2.5 on, where it has NCCL
        text: bytes = dump(includeCollectives=False) if dump else b""
        return text.decode(errors="replace")

    def close(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._groups.clear()
        dist.destroy_process_group()

    def _views(self, case: Case, group: Group, me: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The send and receive tensors of one call; in place they overlap as the collective's row says."""
        dtype = getattr(torch, case.dtype)
        nbytes = [length * case.element.itemsize for length in lengths(case, group)]
        found: tuple[torch.Tensor | None, torch.Tensor | None] = views(
            case, group, me, self._send[: nbytes[0]].view(dtype), self._receive[: nbytes[1]].view(dtype)
        )
        return found

    def _try_alone(self, case: Case) -> str | None:
        alone = Group("alone", (self.ranks[0],))
        self._groups[alone.ranks] = dist.new_group(
            list(alone.ranks), timeout=self._library_timeout, backend=self.backend, use_local_synchronization=True
        )
        send = receive = torch.zeros(1, dtype=getattr(torch, case.dtype), device=self._device)
        try:
            bind_call(case, alone, ROOT, send, receive.clone(), self._groups[alone.ranks], self._device)()
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as refusal:
            return str(refusal).strip().splitlines()[0].split(" (Triggered")[0]
        return None


def _gather_texts(text: str) -> list[str]:
    raw = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.tensor([len(raw)]))
    longest = max(int(size) for size in sizes)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: len(raw)] = raw
    rows = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    dist.all_gather(rows, padded)
    return [bytes(row[: int(n)].numpy()).decode() for row, n in zip(rows, sizes, strict=True)]


def default_backend() -> str:
    """nccl where torch sees a GPU, else gloo."""
    return "nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"


def visible_gpus() -> int:
    """The number of GPUs that torch sees."""
    return torch.cuda.device_count()


def check_backend(backend: str) -> None:
    """Raise UsageError if this torch or this machine cannot run `backend`."""
    if backend == "nccl" and not torch.cuda.is_available():
        raise UsageError(f"backend nccl needs a GPU, torch {torch.__version__} sees none here: use --backend gloo.")
    if not dist.is_backend_available(backend):
        known = [name for name in dist.Backend.backend_list if name != "undefined" and dist.is_backend_available(name)]
        raise UsageError(f"torch {torch.__version__} has no backend {backend!r} here: it has {', '.join(known)}.")


def open_engine(
    *,
    rank: int,
    size: int,
    local_rank: int,
    backend: str | None,
    board: TorchBoard,
    library_timeout_seconds: float | None = None,
    ranks_per_gpu: int = 1,
) -> TorchEngine:
    """Join the world that meets at the store of `board`, as `rank` of `size`.

    `library_timeout_seconds`: what connecting, and each of the library's own waits, may take; None: the watchdog ends
    a hang, for it knows the case, and who is missing. `ranks_per_gpu`: how many ranks may share a GPU.

    Raises UsageError for a backend that cannot run here, and for more ranks on a GPU than may share it,
    RendezvousError if the ranks cannot be connected.
    """
    backend = backend or default_backend()
    check_backend(backend)
    timeout = timedelta(seconds=library_timeout_seconds) if library_timeout_seconds else _NO_TIMEOUT
    device = torch.device("cpu")
    if backend == "nccl":
        allow_sharing(ranks_per_gpu, torch.cuda.nccl.version())  # type: ignore[no-untyped-call]
        device = torch.device("cuda", local_rank % visible_gpus())
        torch.cuda.set_device(device)
    try:
        board.store.set_timeout(timeout)
        dist.init_process_group("gloo", store=board.store, rank=rank, world_size=size, timeout=timeout)
        identities = _gather_texts(node_identity())
        addresses = [text.strip() for text in _gather_texts(gpu_address(device) or "")]
    except (dist.DistError, RuntimeError, ValueError) as error:
        raise RendezvousError(f"rank {rank} of {size} cannot connect to the others: {first_line(error)}.") from error
    nodes: dict[str, int] = {}
    world = World(tuple(nodes.setdefault(node, len(nodes)) for node in identities))
    sharers = count_sharers(identities, addresses, ranks_per_gpu)
    return TorchEngine(rank, backend, world, device, timeout, sharers[rank])
