"""What stands in for torch on a GPU: the machine of `tests/gpu_standin.py` behind torch.cuda, and behind the
collectives of torch.distributed, which gloo then carries out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode

from commbench.engines import torch_calls
from tests.gpu_standin import Event, Gpu, Item, OrderError, Stream
from tests.nccl_standin import NcclDebug

_COLLECTIVES = ("all_reduce", "all_to_all_single", "broadcast", "reduce", "gather", "scatter", "barrier")
_BLOCKING = {torch.Tensor.copy_, torch.Tensor.cpu}  # of pageable memory: they wait for the current stream


class OnDevice(TorchFunctionMode):
    """Tensors `on cuda` lie in the CPU's memory; copies from and to them wait, products are put on the stream."""

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self._gpu = gpu
        self._kept: list[torch.Tensor] = []  # so that no address is used again

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if getattr(kwargs.get("device"), "type", "") == "cuda":
            made = func(*args, **{**kwargs, "device": "cpu"})
            self._kept.append(made)
            return made
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        if func in _BLOCKING and any(self._is_ours(tensor) for tensor in tensors):
            self._gpu.wait_for("copy", self._gpu.current)
        if func is torch.mm:
            return self._gpu.put("product", lambda: None)  # a CPU would take seconds
        return func(*args, **kwargs)

    def _is_ours(self, tensor: torch.Tensor) -> bool:
        with torch._C.DisableTorchFunction():
            address = tensor.untyped_storage().data_ptr()
            return any(kept.untyped_storage().data_ptr() == address for kept in self._kept)


class Work:
    """What an asynchronous collective returns: waiting for it makes the current stream wait, not the CPU."""

    def __init__(self, gpu: Gpu, item: Item, stream: Stream) -> None:
        self._gpu, self._item, self._stream = gpu, item, stream

    def wait(self) -> None:
        if self._gpu.captured is None:
            self._gpu.put("wait for work", lambda: self._stream.run_until(self._item))

    def is_completed(self) -> bool:
        return self._item.done


class Groups:
    """Process groups that were asked for as NCCL's, and are gloo's; a communicator comes with the first call."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._called: dict[int, bool] = {}
        self._debug = NcclDebug()
        self._new_group = dist.new_group

    def new_group(self, ranks: list[int], *, backend: str, **more: Any) -> Any:
        made = self._new_group(ranks, backend="gloo" if backend == "nccl" else backend, **more)
        if backend == "nccl":
            self._called[id(made)] = False
        return made

    def is_nccl(self, group: Any) -> bool:
        return id(group) in self._called

    def use(self, group: Any) -> None:
        if self._gpu.captured is not None and not self._called[id(group)]:
            raise OrderError("the first call of a group, which connects it, inside a capture")
        if not self._called[id(group)]:
            self._debug.connect(dist.get_process_group_ranks(group), dist.get_rank(group))
        self._called[id(group)] = True

    def deferred(self, what: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """`real`, put on a stream where its group is NCCL's; what is on gloo, on the CPU, is done at once."""

        def call(*args: Any, group: Any = None, async_op: bool = False, **kwargs: Any) -> Any:
            if not self.is_nccl(group):
                return real(*args, group=group, async_op=async_op, **kwargs)
            self.use(group)
            if what == "barrier":
                if kwargs.pop("device_ids", None) is None:
                    raise OrderError("NCCL's barrier must guess its GPU")
                self._gpu.put(what, partial(real, group=group))
                self._gpu.wait_for("barrier's wait", self._gpu.current)
                return None
            gpu, here = self._gpu, self._gpu.current
            if not async_op:
                gpu.put(what, partial(real, *args, group=group, **kwargs))
                return None
            before = gpu.put("library waits", lambda: None)
            run = partial(real, *args, group=group, **kwargs)
            item = gpu.put(what, lambda: (here.run_until(before), run()), gpu.library)
            return Work(gpu, item, gpu.library)

        return call

    def batch(self, operations: list[Any]) -> list[Work]:
        self.use(operations[0].group)
        real = dist.distributed_c10d.batch_isend_irecv
        item = self._gpu.put("send and receive", lambda: [work.wait() for work in real(operations)])
        return [Work(self._gpu, item, self._gpu.current)]


def stand_in_for_torch(gpu: Gpu, set_attribute: Callable[[Any, str, Any], None] = setattr, gpus: int = 2) -> OnDevice:
    """Put `gpu` behind torch. `set_attribute`: monkeypatch's in a test. Enter what is returned, in this thread."""
    groups = Groups(gpu)
    for name in _COLLECTIVES:
        set_attribute(dist, name, groups.deferred(name, getattr(dist, name)))
    for name in ("_all_gather", "_reduce_scatter"):
        set_attribute(torch_calls, name, groups.deferred(name[1:], getattr(torch_calls, name)))
    destroy = dist.destroy_process_group

    def destroy_group(*group: Any) -> None:
        if not gpu.is_idle:
            raise OrderError("a group is destroyed with work of it on a stream")
        destroy(*group)

    @contextmanager
    def graph(made: Any, *, capture_error_mode: str = "global") -> Iterator[None]:
        if capture_error_mode == "global":
            raise OrderError("the group's watchdog would end a global capture")
        gpu.wait_for("before capture")
        with gpu.capturing() as made.items:
            yield

    @contextmanager
    def on_stream(stream: Stream) -> Iterator[None]:
        before, gpu.current = gpu.current, stream
        yield
        gpu.current = before

    class Graph:
        items: list[Item]

        def replay(self) -> None:
            gpu.replay(self.items)

    for name, value in {
        "new_group": groups.new_group, "batch_isend_irecv": groups.batch, "destroy_process_group": destroy_group,
        "is_nccl_available": lambda: True, "is_backend_available": lambda backend: backend in ("gloo", "nccl"),
    }.items():  # fmt: skip
        set_attribute(dist, name, value)
    for name, value in {
        "Event": partial(Event, gpu), "Stream": lambda device: gpu.new_stream("side"), "stream": on_stream,
        "synchronize": lambda device=None: gpu.wait_for("synchronize"), "CUDAGraph": Graph, "graph": graph,
        "set_device": lambda device: None, "device_count": lambda: gpus, "is_available": lambda: True,
        "mem_get_info": lambda device: (gpu.free_nbytes, 80 << 30),
        "get_device_properties": lambda device: SimpleNamespace(
            pci_domain_id=0, pci_bus_id=0x1B + device.index, pci_device_id=0),
    }.items():  # fmt: skip
        set_attribute(torch.cuda, name, value)
    set_attribute(torch.cuda.nccl, "version", lambda: (2, 30, 7))
    return OnDevice(gpu)
