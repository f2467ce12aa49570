"""AFF: the CPUs and GPUs that the ranks of a node take, and whether they share what they should not."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from commbench.checks.devices import NO_GPU, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts, GpuFacts
from commbench.topology.graph import enumerate_keys
from commbench.topology.numbers import count_cpus, is_cpu_list

_BINDING = "sched_getaffinity"
_FEW_CPUS = 2  # NCCL's proxy thread polls beside the thread that launches kernels


def _here(scene: Scene) -> list[Facts]:
    """The facts of all ranks that are known on this node, in their order."""
    host = scene.facts.host
    by_rank = {
        facts.process.rank: facts
        for facts in (*scene.peers, scene.facts)
        if (facts.host.name, facts.host.boot_id_hash) == (host.name, host.boot_id_hash)
    }
    return [by_rank[rank] for rank in sorted(by_rank)]


def _ranks(facts: list[Facts]) -> str:
    return enumerate_keys(f"rank {one.process.rank}" for one in facts)


def _cpus(text: str) -> set[int]:
    if not is_cpu_list(text):
        return set()
    runs = [run.partition("-") for run in text.split(",")]
    return {cpu for first, _, last in runs for cpu in range(int(first), int(last or first) + 1)}


def _own_gpu(facts: Facts) -> GpuFacts | None:
    return next((gpu for gpu in facts.gpus or () if gpu.address == facts.process.gpu_address), None)


@rule(
    "AFF-CPU",
    "warn",
    summary="a rank may run on CPUs near its GPU",
    fix="srun --gpu-bind=closest --cpu-bind=cores, mpirun --map-by numa, numactl --cpunodebind; or bind to nothing",
    source="NVIDIA's and Slurm's guides to affinity",
)
def check_local_cpus(scene: Scene) -> Iterator[Seen]:
    """The CPUs on which this process may run, against those on the NUMA node of its GPU.

    From the other socket every launch of a kernel and every step of NCCL's proxy crosses the link between the sockets.
    NCCL keeps to the near ones by itself if it may use any.
    """
    facts = scene.facts
    subject, gpu = "CPU binding", _own_gpu(facts)
    device = next((one for one in facts.pci or () if one.address == facts.process.gpu_address), None)
    if not facts.process.gpu_address:
        yield skip(subject, NO_GPU if facts.gpus == () else "which GPU it takes is not known", _BINDING)
    elif device is None or not device.cpus:
        yield unseen(scene, "pci.cpus", subject, _BINDING)
    elif not facts.process.cpus:
        yield unseen(scene, "process.cpus", subject, _BINDING)
    elif near := _cpus(device.cpus) & _cpus(facts.process.cpus):
        yield ok(subject, f"{len(near)} of its {count_cpus(facts.process.cpus)} CPUs are near its GPU", where=_BINDING)
    else:
        name = f"GPU{gpu.index}" if gpu else facts.process.gpu_address
        yield warn(subject, f"CPUs {facts.process.cpus}, none near {name}", f"of {device.cpus}", _BINDING)


@rule(
    "AFF-CPU-FEW",
    "warn",
    summary="a rank with a GPU may use two CPUs at least",
    fix="srun --cpus-per-task, mpirun --map-by ppr:N:numa:pe=M; in Kubernetes more of resources.limits.cpu",
    source="the number is ours: NCCL's proxy polls beside the thread that launches kernels",
)
def check_few_cpus(scene: Scene) -> Iterator[Seen]:
    """mpirun binds each rank to one core unless it is told otherwise.

    NCCL's proxy thread, which feeds the network, then takes turns with the program.
    """
    facts = scene.facts
    subject, count = "CPU binding", count_cpus(facts.process.cpus)
    if not facts.process.gpu_address:
        yield skip(subject, "it takes no GPU, as far as is known: gloo does well with one CPU", _BINDING)
    elif not count:
        yield unseen(scene, "process.cpus", subject, _BINDING)
    elif _is_oversubscribed(scene):
        yield skip(subject, "fewer CPUs than ranks: AFF-CPU-RANKS tells of it", _BINDING)
    else:
        yield (warn if count < _FEW_CPUS else ok)(subject, f"{count} CPUs", f"{_FEW_CPUS} at least", _BINDING)


@rule(
    "AFF-OVERLAP",
    "warn",
    summary="ranks that are bound do not share CPUs",
    fix="give each rank its own: srun --cpus-per-task=N --cpu-bind=cores; check the masks of a hand-made binding",
    source="Slurm's and Open MPI's guides to binding",
)
def check_overlap(scene: Scene) -> Iterator[Seen]:
    """Two ranks on the same cores take turns, and every collective waits for the slower one.

    Ranks that share whole NUMA nodes, or all that the job has, are left to the kernel, which keeps them apart.
    """
    ranks = [facts for facts in _here(scene) if facts.process.cpus]
    if len(ranks) < 2:
        known = scene.facts.process.local_size < 2
        yield skip("CPU binding", "the only rank here" if known else "the other ranks' CPUs are not known", _BINDING)
        return
    if _is_oversubscribed(scene):
        yield skip("CPU binding", "fewer CPUs than ranks: AFF-CPU-RANKS tells of it", _BINDING)
        return
    whole = [*(_cpus(node.cpus) for node in scene.facts.cpu.numa_nodes or ()), _together(ranks)]
    clashes: dict[str, list[Facts]] = defaultdict(list)
    for facts in ranks:
        own = _cpus(facts.process.cpus)
        others = _together(other for other in ranks if other is not facts)
        if own & others and not any(own == some for some in whole):
            clashes[_list(own & others)].append(facts)
    for shared, facts_of in clashes.items():
        yield warn(_ranks(facts_of), f"share the CPUs {shared}", "CPUs of their own", _BINDING)
    if not clashes:
        yield ok(_ranks(ranks), "CPUs of their own, whole NUMA nodes, or all", where=_BINDING)


def _together(ranks: Iterable[Facts]) -> set[int]:
    """The CPUs on which any of these ranks may run."""
    return {cpu for facts in ranks for cpu in _cpus(facts.process.cpus)}


def _is_oversubscribed(scene: Scene) -> bool:
    ranks = _here(scene)
    return 0 < len(_together(ranks)) < len(ranks)


def _list(cpus: set[int]) -> str:
    return enumerate_keys(str(cpu) for cpu in sorted(cpus))


@rule(
    "AFF-CPU-RANKS",
    "warn",
    summary="there are as many CPUs as ranks on the node",
    fix="start fewer ranks on the node, or ask the scheduler for more CPUs",
    source="PyTorch's and Open MPI's warnings of oversubscription",
)
def check_oversubscribed(scene: Scene) -> Iterator[Seen]:
    """The CPUs that all ranks of this node may use together. With fewer, some rank always waits for its turn."""
    ranks, size = _here(scene), scene.facts.process.local_size
    cpus = _together(ranks)
    subject = f"{size} rank{'s' if size > 1 else ''}"
    if not cpus:
        yield unseen(scene, "process.cpus", subject, _BINDING)
    elif len(ranks) < size and len(cpus) < size:
        yield skip(subject, f"the CPUs of {size - len(ranks)} of them are not known", _BINDING)
    else:
        yield (warn if len(cpus) < size else ok)(subject, f"{len(cpus)} CPUs", f"{size} at least", _BINDING)


@rule(
    "AFF-GPU-SHARED",
    "fail",
    summary="no two ranks take the same GPU",
    fix="set the device by the local rank (torch.cuda.set_device), and start no more ranks on a node than it has GPUs",
    source="NCCL: Duplicate GPU detected; vetnode",
)
def check_gpu_shared(scene: Scene) -> Iterator[Seen]:
    """NCCL refuses a communicator in which two ranks have one GPU; other libraries run at half its speed.

    It follows from local ranks that restart at 0, from CUDA_VISIBLE_DEVICES, or from a launcher that counts wrongly.
    """
    where = "the launcher's local rank, CUDA_VISIBLE_DEVICES"
    takers: dict[str, list[Facts]] = defaultdict(list)
    for facts in _here(scene):
        if facts.process.gpu_address:
            takers[facts.process.gpu_address].append(facts)
    shared = {address: facts for address, facts in takers.items() if len(facts) > 1}
    for address, facts_of in shared.items():
        gpu = _own_gpu(facts_of[0])
        yield fail(_ranks(facts_of), f"all take {f'GPU{gpu.index}' if gpu else address}", "a GPU each", where)
    if not takers:
        yield skip("ranks", NO_GPU if scene.facts.gpus == () else "which GPUs they take is not known", where)
    elif not shared:
        yield ok(enumerate_keys(f"rank {f.process.rank}" for one in takers.values() for f in one), "a GPU each")


@rule(
    "AFF-GPU-NONE",
    "fail",
    summary="every rank of a node with GPUs has one",
    fix="start no more ranks on a node than it has GPUs (--nproc-per-node, --ntasks-per-node, --gpus-per-node)",
    source="torchrun's guide; CUDA: invalid device ordinal",
)
def check_gpu_none(scene: Scene) -> Iterator[Seen]:
    """A local rank beyond the last GPU that it may see fails with `invalid device ordinal`, or waits for ever."""
    facts, where = scene.facts, "the launcher's local rank, CUDA_VISIBLE_DEVICES"
    subject = "GPU of the rank"
    if facts.gpus is None:
        yield unseen(scene, "gpus", subject, where)
    elif not facts.gpus:
        yield skip(subject, NO_GPU, where)
    elif facts.process.gpu_address:
        yield ok(subject, "one", where=where)
    else:
        observed = f"none for local rank {facts.process.local_rank}; the node has {len(facts.gpus)} GPUs"
        yield fail(subject, observed, "a GPU", where)
