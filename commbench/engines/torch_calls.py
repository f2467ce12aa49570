"""Every collective as a call of torch.distributed, with nothing left to look up when it is timed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from commbench.errors import UsageError
from commbench.plan.collectives import ROOT
from commbench.plan.groups import Group
from commbench.plan.plan import Case

# torch renames the flat calls; the old names warn where the new ones exist.
_all_gather: Callable[..., Any] = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Callable[..., Any] = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

_OPS = {
    "sum": dist.ReduceOp.SUM,
    "prod": dist.ReduceOp.PRODUCT,
    "min": dist.ReduceOp.MIN,
    "max": dist.ReduceOp.MAX,
    "avg": dist.ReduceOp.AVG,
}


def bind_call(
    case: Case, group: Group, me: int, send: Any, receive: Any, handle: dist.ProcessGroup, device: torch.device
) -> Callable[[], object]:
    """The call of torch.distributed, with nothing left to look up."""
    op = _OPS.get(case.redop)
    root = group.ranks[ROOT]
    match case.collective:
        case "all_reduce":
            return partial(dist.all_reduce, send, op, group=handle)
        case "all_gather":
            return partial(_all_gather, receive, send, group=handle)
        case "reduce_scatter":
            return partial(_reduce_scatter, receive, send, op, group=handle)
        case "all_to_all":
            return partial(dist.all_to_all_single, receive, send, group=handle)
        case "broadcast":
            return partial(dist.broadcast, receive, root, group=handle)
        case "reduce":
            return partial(dist.reduce, send, root, op, group=handle)
        case "gather":
            blocks = list(receive.chunk(group.size)) if me == ROOT else None
            return partial(dist.gather, send, blocks, root, group=handle)
        case "scatter":
            blocks = list(send.chunk(group.size)) if me == ROOT else None
            return partial(dist.scatter, receive, blocks, root, group=handle)
        case "send_recv":
            return _ring_shift(group, me, send, receive, handle)
        case "barrier":
            if device.type == "cuda":  # else NCCL guesses the GPU by the rank
                return partial(dist.barrier, group=handle, device_ids=[device.index])
            return partial(dist.barrier, group=handle)
    raise UsageError(f"engine torch has no call for {case.collective}.")


def _ring_shift(group: Group, me: int, send: Any, receive: Any, handle: dist.ProcessGroup) -> Callable[[], object]:
    following, preceding = group.ranks[(me + 1) % group.size], group.ranks[(me - 1) % group.size]
    shift = [
        dist.P2POp(dist.isend, send, following, handle),
        dist.P2POp(dist.irecv, receive, preceding, handle),
    ]

    def run() -> None:
        for work in dist.batch_isend_irecv(shift):
            work.wait()

    return run
