"""Which rank this process is, from what its launcher left in the environment. Pure: a mapping in, a place out."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from commbench.errors import UsageError

LOOPBACK = "127.0.0.1"
_FIRST_PORT, _PORTS = 20_000, 10_000  # below the ephemeral range, which starts at 32768 on Linux


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One process of a world, and where its world meets. `launcher`: who says so."""

    launcher: str
    rank: int
    world_size: int
    local_rank: int
    local_size: int
    master_addr: str
    master_port: int


@dataclass(frozen=True, slots=True)
class _Launcher:
    """How one launcher names things. Seeing `rank` set means that it started this process."""

    name: str
    rank: str
    size: str
    local_rank: str
    local_size: str
    job: str  # whatever tells two jobs on one machine apart
    address: Callable[[Mapping[str, str]], str | None]


def _no_address(_: Mapping[str, str]) -> str | None:
    return None


def _first_slurm_host(environment: Mapping[str, str]) -> str | None:
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_JOB_NODELIST")
    if not nodes:
        return None
    from hostlist import BadHostlist, expand_hostlist  # loaded only under Slurm

    try:
        return str(expand_hostlist(nodes)[0])
    except (BadHostlist, IndexError, ValueError) as error:
        raise UsageError(f"cannot read SLURM_STEP_NODELIST={nodes!r}: {error}; set MASTER_ADDR.") from error


# torchrun and Kubernetes' PyTorchJob set the same four; torchrun adds the local ones. They come first: torchrun under
# srun or mpirun is the launcher that counts.
_LAUNCHERS = (
    _Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", _no_address),
    _Launcher(
        "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE", _first_slurm_host,
    ),
    _Launcher(
        "MPICH (PMI)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
        "PMI_JOBID", _first_slurm_host,
    ),
    _Launcher(
        "Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_JOB_ID", _first_slurm_host,
    ),
)  # fmt: skip


def find_place(environment: Mapping[str, str]) -> RankPlace | None:
    """The place that the environment gives this process; None if no launcher started it.

    Raises UsageError, naming the variables, where they are half set, contradict each other or are no numbers.
    """
    for launcher in _LAUNCHERS:
        # In a batch script, outside srun, Slurm sets SLURM_PROCID too: only a step has a number of tasks.
        if launcher.rank in environment and not (launcher.name == "Slurm" and launcher.size not in environment):
            return _place(launcher, environment)
    half = [name for name in ("WORLD_SIZE", "LOCAL_RANK") if name in environment]
    if half:
        raise UsageError(
            f"{half[0]} is set but RANK is not: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none."
        )
    return None


def expected_hosts(environment: Mapping[str, str], place: RankPlace) -> tuple[str, ...]:
    """The host of every rank, as far as the launcher says it before anybody has come; `?` where it does not."""
    nodes, tasks = environment.get("SLURM_STEP_NODELIST"), environment.get("SLURM_STEP_TASKS_PER_NODE")
    is_known = (
        place.launcher == "Slurm" and nodes and tasks and "cyclic" not in environment.get("SLURM_DISTRIBUTION", "")
    )
    if not (nodes and tasks and is_known):
        return ("?",) * place.world_size
    from hostlist import expand_hostlist

    counts = _slurm_tasks(tasks)
    hosts = [host for host, count in zip(expand_hostlist(nodes), counts, strict=False) for _ in range(count)]
    return tuple(hosts) if len(hosts) == place.world_size else ("?",) * place.world_size


def _place(launcher: _Launcher, environment: Mapping[str, str]) -> RankPlace:
    rank, size = (_number(environment, name, launcher) for name in (launcher.rank, launcher.size))
    if not 0 <= rank < size:
        raise UsageError(
            f"{launcher.rank}={rank} and {launcher.size}={size} contradict each other: ranks are 0 to {size - 1}."
        )
    _check_mpi(launcher, rank, size, environment)
    local_rank = _number(environment, launcher.local_rank, launcher) if launcher.local_rank in environment else 0
    local_size = _local_size(launcher, environment, local_rank)
    if local_rank >= local_size or local_size > size:
        raise UsageError(
            f"{launcher.local_rank}={local_rank}, {launcher.local_size}={local_size} and {launcher.size}={size} "
            "contradict each other."
        )
    # Only a launcher that says how many ranks are here can say that all are.
    all_here = size == 1 or (launcher.local_size in environment and local_size == size)
    address = environment.get("MASTER_ADDR") or (LOOPBACK if all_here else launcher.address(environment))
    if address is None:
        raise UsageError(
            f"{launcher.name} started {size} ranks on several nodes and MASTER_ADDR is not set: "
            "set it to the host of rank 0, on all ranks."
        )
    return RankPlace(launcher.name, rank, size, local_rank, local_size, address, _port(launcher, environment, size))


def _number(environment: Mapping[str, str], name: str, launcher: _Launcher) -> int:
    value = environment.get(name)
    if value is None:
        raise UsageError(
            f"{launcher.rank} is set but {name} is not: {launcher.name} sets both; set it, or unset {launcher.rank}."
        )
    if not _is_number(value):
        raise UsageError(f"{name}={value!r} is not a whole number.")
    return int(value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _local_size(launcher: _Launcher, environment: Mapping[str, str], local_rank: int) -> int:
    """Ranks on this node; where the launcher does not say, one more than the local rank is all that is known."""
    value = environment.get(launcher.local_size)
    if value is None:
        return local_rank + 1
    if launcher.name != "Slurm":
        return _number(environment, launcher.local_size, launcher)
    node = _number(environment, "SLURM_NODEID", launcher) if "SLURM_NODEID" in environment else 0
    counts = _slurm_tasks(value)
    if node >= len(counts):
        raise UsageError(f"SLURM_NODEID={node} and SLURM_STEP_TASKS_PER_NODE={value!r} contradict each other.")
    return counts[node]


def _slurm_tasks(text: str) -> list[int]:
    """Tasks of every node in Slurm's `4(x2),3`."""
    counts: list[int] = []
    for part in text.split(","):
        tasks, _, times = part.partition("(x")
        times = times.removesuffix(")") or "1"
        if not (_is_number(tasks) and _is_number(times) and int(times) < 1_000_000):
            raise UsageError(f"cannot read SLURM_STEP_TASKS_PER_NODE={text!r}: expected something like 4(x2),3.")
        counts += [int(tasks)] * int(times)
    return counts


def _check_mpi(launcher: _Launcher, rank: int, size: int, environment: Mapping[str, str]) -> None:
    """RANK and WORLD_SIZE copied from an MPI launcher by a wrapper script must be that launcher's."""
    theirs = next((other for other in _LAUNCHERS[1:3] if other.rank in environment and other.size in environment), None)
    if launcher.name != "torchrun" or theirs is None or "TORCHELASTIC_RUN_ID" in environment:
        return
    found = (environment[theirs.rank], environment[theirs.size])
    if found != (str(rank), str(size)):
        raise UsageError(
            f"RANK={rank} WORLD_SIZE={size} and {theirs.rank}={found[0]} {theirs.size}={found[1]} "
            "contradict each other: unset the pair that is stale."
        )


def _port(launcher: _Launcher, environment: Mapping[str, str], size: int) -> int:
    if "MASTER_PORT" in environment:
        port = _number(environment, "MASTER_PORT", launcher)
        if not 0 < port < 65536:
            raise UsageError(f"MASTER_PORT={port} is not a port: 1 to 65535.")
        return port
    if launcher.name == "torchrun" and size > 1:
        raise UsageError(
            "RANK is set but MASTER_PORT is not: set it to a free port of MASTER_ADDR, the same on all ranks."
        )
    job = f"{launcher.name}/{environment.get(launcher.job, '')}/{environment.get('SLURM_STEP_ID', '')}"
    return _FIRST_PORT + zlib.crc32(job.encode(errors="backslashreplace")) % _PORTS
