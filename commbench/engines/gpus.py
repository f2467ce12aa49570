"""Which ranks drive which GPU, and whether they may: shared by the engines that stand on NCCL."""

import os
from collections import Counter
from collections.abc import Sequence

from commbench.errors import UsageError
from commbench.plan.groups import format_ranks

# NCCL's own buffers come with the first call of each communicator; nccl-tests leaves it 1 GiB of small GPUs too.
NCCL_RESERVE_NBYTES = 1 << 30
_SHARING = "NCCL_MULTI_RANK_GPU_ENABLE"
_FIRST_THAT_SHARES = (2, 30, 3)


def allow_sharing(ranks_per_gpu: int, nccl_version: Sequence[int]) -> None:
    """Let NCCL take several ranks on one GPU, if more than one is asked for. Call before the first communicator.

    Raises UsageError if this NCCL cannot.
    """
    if ranks_per_gpu == 1:
        return
    if tuple(nccl_version) < _FIRST_THAT_SHARES:
        found, first = (".".join(map(str, version)) for version in (nccl_version, _FIRST_THAT_SHARES))
        raise UsageError(
            f"--ranks-per-gpu {ranks_per_gpu} needs NCCL {first} or newer, found {found}: leave it away, or "
            "update NCCL."
        )
    os.environ[_SHARING] = "1"


def count_sharers(nodes: Sequence[str], addresses: Sequence[str], ranks_per_gpu: int) -> list[int]:
    """For every rank how many drive its GPU. `addresses`: of GPUs, by rank; empty where there is none or it is unknown.

    Raises UsageError if they are more than `ranks_per_gpu`, which NCCL would refuse in the middle of the first call.
    """
    places = list(zip(nodes, addresses, strict=True))
    sharers = Counter(place for place in places if place[1])
    for (node, address), count in sharers.items():
        if count > ranks_per_gpu:
            ranks = format_ranks([rank for rank, place in enumerate(places) if place == (node, address)])
            raise UsageError(
                f"ranks {ranks} would share GPU {address} of {node.partition('/')[0]}, {ranks_per_gpu} may: start one "
                f"rank for every GPU that is visible, or add --ranks-per-gpu {count} to try it out."
            )
    return [sharers.get(place, 1) for place in places]
