"""How many workers this machine gets where no launcher says it."""

import os

from commbench.errors import UsageError

DEFAULT_GLOO_RANKS = 2


def count_local_ranks(wanted: int | None, backend: str | None) -> int:
    """The local workers: one per GPU that the backend can use, or as many as are `wanted`. Starts their server.

    Raises UsageError for a backend that cannot run here, and for more ranks than GPUs.
    """
    # As torchrun does, for the workers share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from commbench.launch.local import warm_up_workers

    warm_up_workers()
    from commbench.engines.torch_dist import check_backend, default_backend, visible_gpus

    backend = backend or default_backend()
    check_backend(backend)
    if backend != "nccl":
        return wanted or DEFAULT_GLOO_RANKS
    if (wanted or 1) > visible_gpus():
        raise UsageError(f"--ranks {wanted} is more than the {visible_gpus()} visible GPUs: nccl takes one rank a GPU.")
    return wanted or visible_gpus()
