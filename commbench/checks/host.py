"""HOST: limits, memory and kernel settings."""

from collections.abc import Iterator

from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.units import format_nbytes

_UNLIMITED = -1
_ENOUGH_MEMLOCK_NBYTES = 16 << 30
_TINY_MEMLOCK_NBYTES = 64 << 20


@rule(
    "HOST-MEMLOCK",
    "fail",
    summary="memory that a rank may lock is unlimited, or at least 16 GiB",
    fix="ulimit -l unlimited before the job starts: limits.conf, LimitMEMLOCK= of slurmd, docker --ulimit memlock=-1",
    source="NCCL's troubleshooting guide; awsome-distributed-training's health check",
)
def check_memlock(scene: Scene) -> Iterator[Seen]:
    """RDMA registers the buffers that it sends, and what is registered is locked in memory.

    The limit is that of the rank, not of a login shell: Slurm and containers give their own. At 64 KiB or 8 MiB, the
    defaults, the first connection over InfiniBand or RoCE fails; without an RDMA device nothing is locked.
    """
    limit, where = scene.facts.limits.memlock_nbytes, "getrlimit(RLIMIT_MEMLOCK)"
    if limit is None:
        yield skip("memlock", scene.facts.why_unseen("limits.memlock_nbytes"), where)
    elif limit == _UNLIMITED or limit >= _ENOUGH_MEMLOCK_NBYTES:
        yield ok("memlock", _shown(limit), where=where)
    elif limit <= _TINY_MEMLOCK_NBYTES and scene.facts.rdma:
        yield fail("memlock", _shown(limit), "unlimited", where)
    else:
        yield warn("memlock", _shown(limit), "unlimited, or 16 GiB at least", where)


def _shown(limit: int) -> str:
    return "unlimited" if limit == _UNLIMITED else format_nbytes(limit)
