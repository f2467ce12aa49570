"""How many workers this machine gets where no launcher says it."""

import os

from commbench.engines import load_engine
from commbench.errors import UsageError

DEFAULT_GLOO_RANKS = 2


def count_local_ranks(wanted: int | None, backend: str | None, engine: str = "torch", ranks_per_gpu: int = 1) -> int:
    """The local workers: `ranks_per_gpu` per GPU that the backend can use, or as many as are `wanted`. Starts their
    server.

    Raises UsageError for a backend that cannot run here, and for more ranks than the GPUs may take.
    """
    # As torchrun does, for the workers share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from commbench.launch.local import warm_up_workers

    warm_up_workers()
    gpus = _count_gpus(backend, engine)
    if gpus is None:
        if ranks_per_gpu > 1:
            raise UsageError("--ranks-per-gpu is for ranks on GPUs, found a backend on the CPU: give --ranks instead.")
        return wanted or DEFAULT_GLOO_RANKS
    if (wanted or 1) > gpus * ranks_per_gpu:
        raise UsageError(
            f"--ranks {wanted} is more than the {gpus} visible GPUs take: nccl takes one rank a GPU, or as many as "
            "--ranks-per-gpu says."
        )
    return wanted or gpus * ranks_per_gpu


def _count_gpus(backend: str | None, engine: str) -> int | None:
    """The visible GPUs; None for a backend that works on the CPU."""
    if engine == "cupy":
        load_engine(engine)  # a CuPy that does not load is said in a sentence
        from commbench.engines.cupy_nccl import visible_gpus as visible_to_cupy

        return visible_to_cupy()
    from commbench.engines.torch_dist import check_backend, default_backend, visible_gpus

    backend = backend or default_backend()
    check_backend(backend)
    return visible_gpus() if backend == "nccl" else None
