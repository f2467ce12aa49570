"""Every collective as NCCL's own call through CuPy, on addresses, with nothing left to look up when it is timed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cupy.cuda import nccl

from commbench.errors import UsageError
from commbench.plan.collectives import ROOT
from commbench.plan.dtypes import Dtype
from commbench.plan.groups import Group
from commbench.plan.plan import Case

# ncclDataType_t and ncclRedOp_t of nccl.h; CuPy names not all of them, and passes on any number.
DTYPE_CODES = {"int8": 0, "uint8": 1, "int32": 2, "int64": 4, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
_REDOP_CODES = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}


@dataclass(frozen=True, slots=True)
class CupyPart:
    """Elements of a buffer; `memory` are their bytes, an array of CuPy. A slice is one of elements."""

    memory: Any
    element: Dtype

    @property
    def address(self) -> int:
        return int(self.memory.data.ptr)

    def __getitem__(self, part: slice) -> "CupyPart":
        width = self.element.itemsize
        return CupyPart(self.memory[part.start * width : part.stop * width], self.element)


def bind_call(
    case: Case, group: Group, me: int, send: CupyPart | None, receive: CupyPart | None, communicator: Any, stream: Any,
    token: Any,
) -> Callable[[], object]:  # fmt: skip
    """The call of NCCL. `token`: one int32 on the GPU, of which the all_reduce is a barrier."""
    count, dtype, op = case.count(group), DTYPE_CODES[case.dtype], _REDOP_CODES.get(case.redop, 0)
    sent, got = (part.address if part is not None else 0 for part in (send, receive))
    on = stream.ptr
    match case.collective:
        case "all_reduce":
            return partial(communicator.allReduce, sent, got, count, dtype, op, on)
        case "all_gather":
            return partial(communicator.allGather, sent, got, count, dtype, on)
        case "reduce_scatter":
            return partial(communicator.reduceScatter, sent, got, count, dtype, op, on)
        case "broadcast":
            return partial(communicator.broadcast, sent or got, got, count, dtype, ROOT, on)
        case "reduce":
            return partial(communicator.reduce, sent, got or sent, count, dtype, op, ROOT, on)
        case "barrier":
            return partial(communicator.allReduce, token.data.ptr, token.data.ptr, 1, DTYPE_CODES["int32"], 0, on)
    moves = _moves(case, group, me)
    block = count * case.element.itemsize
    calls = [(communicator.send, sent + place * block, peer) for place, peer in moves[0]]
    calls += [(communicator.recv, got + place * block, peer) for place, peer in moves[1]]
    return _grouped([partial(call, address, count, dtype, peer, on) for call, address, peer in calls])


def _moves(case: Case, group: Group, me: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What is sent and what is received point to point, as (block of the buffer, peer). NCCL takes one's own, too."""
    everybody = [(rank, rank) for rank in range(group.size)]
    at_root = everybody if me == ROOT else []
    if case.in_place:  # the root's own block is where it belongs
        at_root = [(block, peer) for block, peer in at_root if peer != ROOT]
    with_root = [] if case.in_place and me == ROOT else [(0, ROOT)]
    match case.collective:
        case "all_to_all":
            return everybody, everybody
        case "gather":
            return with_root, at_root
        case "scatter":
            return at_root, with_root
        case "send_recv":
            return [(0, (me + 1) % group.size)], [(0, (me - 1) % group.size)]
    raise UsageError(f"engine cupy has no call for {case.collective}.")


def _grouped(calls: Sequence[Callable[[], object]]) -> Callable[[], object]:
    """All calls between one start and one end of a group: one after the other they would wait for each other."""

    def run() -> None:
        nccl.groupStart()
        for call in calls:
            call()
        nccl.groupEnd()

    return run
