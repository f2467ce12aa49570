"""HOST: limits of the process, memory, shared memory."""

from collections.abc import Iterator

from commbench.checks.devices import is_cluster_node, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.units import format_nbytes

_UNLIMITED = -1
_ENOUGH_MEMLOCK_NBYTES = 16 << 30  # awsome-distributed-training's health check
_TINY_MEMLOCK_NBYTES = 64 << 20
_ENOUGH_NOFILE = 65536  # ours: a rank has several sockets for each rank on another node
_ENOUGH_NPROC = 16384  # ours: threads count, and a rank has some hundred with its data loaders
_DEFAULT_STACK_NBYTES = 8 << 20  # Linux's own, which NCCL's guide knows to be enough
_ENOUGH_SHM_NBYTES = 1 << 30  # ml-engineering's `docker --shm-size=1g`
_DOCKER_SHM_NBYTES = 64 << 20  # what docker gives unasked
_ENOUGH_SHM_FREE = 0.1  # of its size; ours
_ENOUGH_MEMORY_FREE = 0.1  # of the node's; ours
_ENOUGH_RANK_NBYTES = 1 << 30  # ours: torch with NCCL alone takes about that
_IDLE_HUGE_PAGES = 0.25  # of the node's memory; ours
_NOT_A_NODE = "no GPU, no RDMA device, and one node: a cluster's settings do not matter here"


@rule(
    "HOST-MEMLOCK",
    "fail",
    summary="memory that a rank may lock is unlimited, or at least 16 GiB",
    fix="ulimit -l unlimited before the job starts: limits.conf, LimitMEMLOCK= of slurmd, docker --ulimit memlock=-1",
    source="NCCL's troubleshooting guide; awsome-distributed-training's health check; nccl-tests issue 206",
)
def check_memlock(scene: Scene) -> Iterator[Seen]:
    """RDMA registers the buffers that it sends, and what is registered is locked in memory.

    The limit is that of the rank, not of a login shell: Slurm and containers give their own. At 64 KiB or 8 MiB, the
    defaults, the first connection over InfiniBand or RoCE fails; without an RDMA device nothing is locked.
    """
    limit, where = scene.facts.limits.memlock_nbytes, "getrlimit(RLIMIT_MEMLOCK)"
    if limit is None:
        yield unseen(scene, "limits.memlock_nbytes", "memlock", where)
    elif limit == _UNLIMITED or limit >= _ENOUGH_MEMLOCK_NBYTES:
        yield ok("memlock", _shown(limit), where=where)
    elif not is_cluster_node(scene):
        yield skip("memlock", f"{_shown(limit)}; {_NOT_A_NODE}", where)
    elif limit <= _TINY_MEMLOCK_NBYTES and scene.facts.rdma:
        yield fail("memlock", _shown(limit), "unlimited", where)
    else:
        yield warn("memlock", _shown(limit), "unlimited, or 16 GiB at least", where)


@rule(
    "HOST-NOFILE",
    "warn",
    summary="a rank may open 65,536 files",
    fix="ulimit -n 131072 before the job starts: limits.conf, LimitNOFILE= of slurmd, docker --ulimit nofile=131072",
    source="NCCL's troubleshooting guide (at scale); the number is ours",
)
def check_nofile(scene: Scene) -> Iterator[Seen]:
    """Every connection is a file. Sockets of NCCL's bootstrap, of gloo and of the store grow with the number of ranks.

    A job that works on 16 nodes fails on 256 with `Too many open files` or hangs in its first collective.
    """
    yield from _count(scene, "nofile", _ENOUGH_NOFILE, "files", "getrlimit(RLIMIT_NOFILE)")


@rule(
    "HOST-NPROC",
    "warn",
    summary="a user may run 16,384 threads",
    fix="ulimit -u 65536 before the job starts: limits.conf, LimitNPROC= and TasksMax= of slurmd, docker --pids-limit",
    source="common lists of limits for training nodes; the number is ours",
)
def check_nproc(scene: Scene) -> Iterator[Seen]:
    """Threads of all ranks and data loaders of a user count against RLIMIT_NPROC.

    At the limit, pthread_create fails in the middle of a run: `Resource temporarily unavailable`.
    """
    yield from _count(scene, "nproc", _ENOUGH_NPROC, "threads", "getrlimit(RLIMIT_NPROC)")


def _count(scene: Scene, name: str, enough: int, what: str, where: str) -> Iterator[Seen]:
    limit = getattr(scene.facts.limits, name)
    if limit is None:
        yield unseen(scene, f"limits.{name}", name, where)
    elif limit == _UNLIMITED or limit >= enough:
        yield ok(name, "unlimited" if limit == _UNLIMITED else f"{limit} {what}", where=where)
    elif not is_cluster_node(scene):
        yield skip(name, f"{limit} {what}; {_NOT_A_NODE}", where)
    else:
        yield warn(name, f"{limit} {what}", f"{enough} at least", where)


@rule(
    "HOST-STACK",
    "warn",
    summary="the limit of the stack is 8 MiB or more, and not `unlimited`",
    fix="ulimit -s 8192, or NCCL_SET_THREAD_STACK_SIZE=1 where NCCL knows it (2.28)",
    source="NCCL's troubleshooting guide: stack size",
)
def check_stack(scene: Scene) -> Iterator[Seen]:
    """glibc gives threads a stack of the limit's size, but only 2 MiB where the limit is `unlimited`.

    NCCL's search for rings and trees is deeply recursive and runs in such threads: with 2 MiB it has crashed.
    """
    limit, where = scene.facts.limits.stack_nbytes, "getrlimit(RLIMIT_STACK)"
    if limit is None:
        yield unseen(scene, "limits.stack_nbytes", "stack", where)
    elif not scene.facts.gpus:
        yield skip("stack", f"{_shown(limit)}; only NCCL asks, and there is no GPU", where)
    elif scene.facts.variables.get("NCCL_SET_THREAD_STACK_SIZE") == "1":
        yield ok("stack", f"{_shown(limit)}; NCCL_SET_THREAD_STACK_SIZE=1", where=where)
    elif limit == _UNLIMITED or limit < _DEFAULT_STACK_NBYTES:
        means = " (2 MiB for threads)" if limit == _UNLIMITED else ""
        yield warn("stack", _shown(limit) + means, format_nbytes(_DEFAULT_STACK_NBYTES), where)
    else:
        yield ok("stack", _shown(limit), where=where)


@rule(
    "HOST-SHM",
    "fail",
    summary="/dev/shm has 1 GiB at least",
    fix="docker --shm-size=16g or --ipc=host; in Kubernetes an emptyDir of medium Memory at /dev/shm",
    source="ml-engineering's network guide; NCCL issue 290",
)
def check_shm(scene: Scene) -> Iterator[Seen]:
    """NCCL's transport between processes of a node, and the data loaders of torch, take their memory from /dev/shm.

    docker gives 64 MiB unasked: NCCL then fails with `unhandled system error`, or loaders die of a bus error.
    """
    total, where = scene.facts.memory.shm_total_nbytes, "statvfs /dev/shm"
    if total is None:
        yield unseen(scene, "memory.shm_total_nbytes", "/dev/shm", where)
    elif total >= _ENOUGH_SHM_NBYTES:
        yield ok("/dev/shm", format_nbytes(total), where=where)
    else:
        tiny = total <= _DOCKER_SHM_NBYTES and scene.facts.gpus
        yield (fail if tiny else warn)("/dev/shm", format_nbytes(total), "1 GiB at least", where)


@rule(
    "HOST-SHM-FREE",
    "warn",
    summary="a tenth of /dev/shm is free",
    fix="look at ls -l /dev/shm and remove what dead jobs left (nccl-*, torch_*, sem.*) when no job runs",
    source="NCCL issue 290; the number is ours",
)
def check_shm_free(scene: Scene) -> Iterator[Seen]:
    """A job that is killed leaves its segments in /dev/shm, and the next one finds it full.

    What lies there also counts as memory that is taken.
    """
    memory, where = scene.facts.memory, "statvfs /dev/shm"
    if memory.shm_free_nbytes is None or not memory.shm_total_nbytes:
        yield unseen(scene, "memory.shm_free_nbytes", "/dev/shm", where)
        return
    observed = f"{format_nbytes(memory.shm_free_nbytes)} of {format_nbytes(memory.shm_total_nbytes)} free"
    if memory.shm_free_nbytes < _ENOUGH_SHM_FREE * memory.shm_total_nbytes:
        yield warn("/dev/shm", observed, "a tenth at least", where)
    else:
        yield ok("/dev/shm", observed, where=where)


@rule(
    "HOST-SWAP",
    "warn",
    summary="no swap on a cluster's node",
    fix="swapoff -a, and take it out of /etc/fstab",
    source="imbue-ai/cluster-health; Azure's node health checks",
)
def check_swap(scene: Scene) -> Iterator[Seen]:
    """A rank whose pages are on a disk is late, and all others wait for it in every collective.

    Without swap the kernel ends the process that takes too much, and the job says so.
    """
    total, where = scene.facts.memory.swap_total_nbytes, "/proc/swaps"
    if total is None:
        yield unseen(scene, "memory.swap_total_nbytes", "swap", where)
    elif total == 0:
        yield ok("swap", "none", where=where)
    elif not is_cluster_node(scene):
        yield skip("swap", f"{format_nbytes(total)}; {_NOT_A_NODE}", where)
    else:
        yield warn("swap", format_nbytes(total), "none", where)


@rule(
    "HOST-MEMORY-FREE",
    "warn",
    summary="a tenth of the memory is available",
    fix="look for processes of earlier jobs, files in /dev/shm, and reserved huge pages",
    source="Azure's node health checks (memory); the number is ours",
)
def check_memory_free(scene: Scene) -> Iterator[Seen]:
    """What the kernel could give without swapping, MemAvailable.

    A node that another job still fills ends ours by the out-of-memory killer, often minutes after the start.
    """
    memory, where = scene.facts.memory, "/proc/meminfo"
    if memory.available_nbytes is None or not memory.total_nbytes:
        yield unseen(scene, "memory.available_nbytes", "memory", where)
        return
    observed = f"{format_nbytes(memory.available_nbytes)} of {format_nbytes(memory.total_nbytes)} available"
    if memory.available_nbytes < _ENOUGH_MEMORY_FREE * memory.total_nbytes:
        yield warn("memory", observed, "a tenth at least", where)
    else:
        yield ok("memory", observed, where=where)


@rule(
    "HOST-MEMORY-LIMIT",
    "warn",
    summary="the cgroup leaves each rank 1 GiB",
    fix="ask for more memory: --mem of Slurm, resources.limits.memory of Kubernetes, docker --memory",
    source="the number is ours: torch with NCCL takes about that much",
)
def check_memory_limit(scene: Scene) -> Iterator[Seen]:
    """A container's or a job's cgroup ends the process that passes its limit, whatever the node has.

    The limit holds for all ranks of the node together, and pinned buffers and /dev/shm count.
    """
    limit, where = scene.facts.limits.cgroup_memory_nbytes, "memory.max of the cgroup"
    enough = _ENOUGH_RANK_NBYTES * scene.facts.process.local_size
    if limit is None:
        yield unseen(scene, "limits.cgroup_memory_nbytes", "cgroup memory", where)
    elif limit == _UNLIMITED or limit >= enough:
        yield ok("cgroup memory", _shown(limit), where=where)
    else:
        ranks = f"{scene.facts.process.local_size} local ranks"
        yield warn("cgroup memory", f"{_shown(limit)} for {ranks}", f"{format_nbytes(enough)} at least", where)


@rule(
    "HOST-HUGEPAGES",
    "warn",
    summary="reserved huge pages that nobody uses take no quarter of the memory",
    fix="sysctl vm.nr_hugepages=0, and take it out of sysctl.d and the kernel's command line",
    source="the number is ours",
)
def check_huge_pages(scene: Scene) -> Iterator[Seen]:
    """Reserved huge pages are lost to every program that does not ask for them by name, and NCCL and torch do not.

    They are often left from a time when the node ran something else, such as DPDK or a database.
    """
    memory, where = scene.facts.memory, "/proc/meminfo"
    if memory.huge_pages_free is None or memory.huge_page_nbytes is None or not memory.total_nbytes:
        yield unseen(scene, "memory.huge_pages_free", "huge pages", where)
        return
    idle = memory.huge_pages_free * memory.huge_page_nbytes
    transparent = f"; transparent ones: {memory.transparent_huge_pages}" if memory.transparent_huge_pages else ""
    observed = f"{format_nbytes(idle)} reserved and unused{transparent}"
    if idle > _IDLE_HUGE_PAGES * memory.total_nbytes:
        yield warn("huge pages", observed, f"a quarter of {format_nbytes(memory.total_nbytes)} at most", where)
    else:
        yield ok("huge pages", observed, where=where)


def _shown(limit: int) -> str:
    return "unlimited" if limit == _UNLIMITED else format_nbytes(limit)
