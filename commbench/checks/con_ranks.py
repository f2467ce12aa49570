"""CON: what the ranks say of the world, of their nodes' memory, names and clocks."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

from commbench.checks.consistency import everyone, name_ranks, one_per_node
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.topology.graph import enumerate_keys
from commbench.units import format_nbytes

_MEMORY_TOLERANCE = 0.05  # Azure's node health checks
_SKEW_SECONDS = 5.0  # ours: ranks read their clocks within some seconds of each other, not at once
_LAUNCHER = "the launcher's variables"
_ALONE = "one node: nothing to compare with"


@rule(
    "CON-MEMORY",
    "warn",
    summary="all nodes have the same memory, within 5 %",
    fix="look for failed memory modules there (dmidecode -t memory, ipmitool sel list)",
    source="Azure's node health checks (5 %)",
)
def check_memory(scene: Scene) -> Iterator[Seen]:
    """A module that failed at start is missing from the sum, with its share of bandwidth."""
    ranks = everyone(scene)
    nodes = one_per_node(ranks)
    known = [(facts, facts.memory.total_nbytes) for facts in nodes if facts.memory.total_nbytes]
    if len(nodes) < 2 or len(known) < 2:
        yield skip("memory", _ALONE if len(nodes) < 2 else "not seen on enough of them to compare", "/proc/meminfo")
        return
    usual = median(total for _, total in known)
    odd = [(facts, total) for facts, total in known if abs(total - usual) > _MEMORY_TOLERANCE * usual]
    for facts, total in odd:
        subject = name_ranks([facts], ranks, "node")
        yield warn(subject, f"memory: {format_nbytes(total)}", f"{format_nbytes(usual)}, the median", "/proc/meminfo")
    if not odd:
        yield ok("memory", f"{format_nbytes(usual)} within 5 % on all {len(known)} nodes", where="/proc/meminfo")


@rule(
    "CON-CLOCK",
    "warn",
    summary="the nodes' clocks agree within 5 s",
    fix="systemctl enable --now chronyd, and look at chronyc tracking",
    source="the number is ours",
)
def check_clock(scene: Scene) -> Iterator[Seen]:
    """Logs of several nodes cannot be put in order, tokens and certificates fail, builds see files of the future.

    Each rank reads its clock when it starts, so differences of some seconds are not seen here.
    """
    ranks = everyone(scene)
    nodes, where = one_per_node(ranks), "the system's clock"
    known = [(facts, facts.host.clock_utc_seconds) for facts in nodes if facts.host.clock_utc_seconds is not None]
    if len(nodes) < 2:
        yield skip("clock", _ALONE, where)
    elif any(facts.source != "/" for facts in nodes):
        yield skip("clock", "snapshots were taken at different times", where)
    elif len(known) < 2:
        yield skip("clock", "not seen on enough of them to compare", where)
    else:
        usual = median(clock for _, clock in known)
        odd = [(facts, clock - usual) for facts, clock in known if abs(clock - usual) > _SKEW_SECONDS]
        for facts, offset in odd:
            subject = name_ranks([facts], ranks, "node")
            yield warn(subject, f"clock: {offset:+.1f} s off the median", f"within {_SKEW_SECONDS:g} s", where)
        if not odd:
            yield ok("clock", f"within {_SKEW_SECONDS:g} s on all {len(known)} nodes", where=where)


@rule(
    "CON-WORLD",
    "fail",
    summary="the ranks are 0 to N-1, each once, and all say the same N",
    fix="start all ranks with one command of the launcher; unset RANK and WORLD_SIZE left from an earlier one",
    source="torchrun's and PyTorch's guides (init_process_group)",
)
def check_world(scene: Scene) -> Iterator[Seen]:
    """Two ranks of one number, or a number that nobody has: the rendezvous waits until its timeout."""
    ranks = everyone(scene)
    if len(ranks) < 2:
        yield skip("world", "one rank is known", _LAUNCHER)
        return
    if any(facts.source != "/" for facts in ranks) and all(facts.process.world_size == 1 for facts in ranks):
        yield skip("world", "snapshots of machines, not of one job", _LAUNCHER)
        return
    sizes = Counter(facts.process.world_size for facts in ranks)
    size = sizes.most_common(1)[0][0]
    odd = [facts for facts in ranks if facts.process.world_size != size]
    if odd:
        said = ", ".join(str(other) for other in sizes if other != size)
        yield fail(name_ranks(odd, ranks), f"world size: {said}", f"{size}, as the others", _LAUNCHER)
    counted = Counter(facts.process.rank for facts in ranks)
    twice = [str(number) for number, times in counted.items() if times > 1]
    missing = [str(number) for number in range(size) if number not in counted]
    if twice:
        yield fail(f"rank {enumerate_keys(twice)}", "more than one process has it", "one", _LAUNCHER)
    elif missing and not odd:
        yield skip(f"rank {enumerate_keys(missing)}", "its facts did not arrive", _LAUNCHER)
    if not odd and not twice and not missing:
        yield ok("world", f"{size} ranks, each once", where=_LAUNCHER)


@rule(
    "CON-RANKS",
    "warn",
    summary="all nodes run the same number of ranks",
    fix="--ntasks-per-node of Slurm, --nproc-per-node of torchrun, ppr of mpirun; look for a node that lost a GPU",
    source="torchrun's guide; NCCL's rings and trees",
)
def check_ranks_per_node(scene: Scene) -> Iterator[Seen]:
    """Rails and hierarchical groups need the same local ranks on every node; NCCL's channels follow the smallest."""
    ranks = everyone(scene)
    nodes = one_per_node(ranks)
    if len(nodes) < 2:
        yield skip("ranks a node", _ALONE, _LAUNCHER)
        return
    sizes = Counter(facts.process.local_size for facts in nodes)
    usual = sizes.most_common(1)[0][0]
    odd = [facts for facts in nodes if facts.process.local_size != usual]
    if not odd:
        yield ok("ranks a node", f"{usual} on all {len(nodes)} nodes", where=_LAUNCHER)
    elif sizes[usual] * 2 <= len(nodes):
        observed = ", ".join(f"{count} nodes with {size}" for size, count in sorted(sizes.items()))
        yield warn("ranks a node", f"no majority: {observed}", "one number", _LAUNCHER)
    else:
        observed = ", ".join(str(facts.process.local_size) for facts in odd)
        yield warn(name_ranks(odd, ranks, "node"), f"ranks: {observed}", f"{usual}, as most nodes", _LAUNCHER)


@rule(
    "CON-NAMES",
    "warn",
    summary="no two nodes have the same host name",
    fix="hostnamectl set-hostname, or the containers' --hostname",
    source="NCCL's host hash (NCCL_HOSTID), Open MPI's and Slurm's guides",
)
def check_names(scene: Scene) -> Iterator[Seen]:
    """Libraries that tell nodes apart by their names take two of them for one, and try shared memory between them."""
    nodes = one_per_node(everyone(scene))
    if len(nodes) < 2:
        yield skip("host names", _ALONE, "hostname")
        return
    twice = [name for name, times in Counter(facts.host.name for facts in nodes).items() if times > 1]
    if twice:
        yield warn(enumerate_keys(twice), "the name of more than one node", "a name each", "hostname")
    else:
        yield ok("host names", f"{len(nodes)}, all different", where="hostname")
