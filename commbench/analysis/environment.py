"""What else changed between two sets of runs, the most suspicious first."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from commbench.results.schema import RunRecord

NOT_SET = "not set"
_MOST_SHOWN = 6  # values of one fact on one side


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One fact that is not the same on both sides; `suspicion` from 0 to 100."""

    name: str
    base: str
    new: str
    suspicion: int
    why: str


# The first pattern that matches counts. Names with a blank are facts of run.json, the others versions and variables.
SUSPICIONS: tuple[tuple[str, int, str], ...] = (
    ("NCCL_DEBUG*", 10, "debug output costs little, unless it is TRACE"),
    ("NCCL_ALGO", 100, "forces the algorithm"),
    ("NCCL_PROTO", 100, "forces the protocol, and with it latency and rate"),
    ("nccl", 98, "chooses algorithms, protocols and channels by tables of its own"),
    ("NCCL_TUNER*", 96, "chooses the algorithm and the protocol"),
    ("NCCL_*", 95, "changes how NCCL works"),
    ("link *", 94, "groups cross another kind of link, or a link of another rate"),
    ("*firmware*", 92, "of a NIC or switch: decides on rates and congestion control"),
    ("*driver*", 90, "moves the data below NCCL"),
    ("backend", 90, "another library moves the data"),
    ("interface", 88, "another way between nodes"),
    ("UCX_*", 85, "changes the transport"),
    ("FI_*", 85, "changes the transport"),
    ("GLOO_*", 85, "changes gloo's interface or transport"),
    ("TORCH_NCCL_*", 80, "changes how torch calls NCCL"),
    ("devices", 78, "other GPUs or NICs"),
    ("hosts", 75, "other machines, perhaps on other switches"),
    ("CUDA_VISIBLE_DEVICES", 70, "other GPUs, or in another order"),
    ("kernel", 65, "drivers, the network stack and its mitigations come with it"),
    ("cuda", 62, "launch cost"),
    ("torch", 60, "brings NCCL or gloo, and the cost of a call"),
    ("binding", 55, "on CPUs it decides small messages"),
    ("cpu", 55, "another processor"),
    ("cpus", 50, "other room for helper threads"),
    ("OMP_NUM_THREADS", 40, "threads compete with those of the transport"),
    ("launcher", 35, "places and binds ranks in its own way"),
    ("engine", 30, "another program took the times"),
    ("commbench", 30, "another version took the times"),
    ("measuring", 20, "another precision or budget: other noise"),
    ("python", 15, "the cost of a call"),
    ("MASTER_ADDR", 5, "the rendezvous only"),
    ("*", 12, "no known effect"),
)


def list_differences(base: Sequence[RunRecord], new: Sequence[RunRecord]) -> list[EnvironmentDifference]:
    """The facts that differ between at least one run a side, the most suspicious first."""
    sides = [_collect(base), _collect(new)]
    found = []
    for name in dict.fromkeys((*sides[0], *sides[1])):
        values = [side.get(name, {NOT_SET}) for side in sides]
        if values[0] != values[1]:
            suspicion, why = suspicion_of(name)
            found.append(EnvironmentDifference(name, _words(values[0]), _words(values[1]), suspicion, why))
    return sorted(found, key=lambda difference: (-difference.suspicion, difference.name))


def suspicion_of(name: str) -> tuple[int, str]:
    """From 0 to 100 how likely a change of this fact changes times, and why."""
    return next((weight, why) for pattern, weight, why in SUSPICIONS if fnmatchcase(name, pattern))


def _words(values: set[str]) -> str:
    ordered = sorted(values)
    more = len(ordered) - _MOST_SHOWN
    return " | ".join(ordered[:_MOST_SHOWN]) + (f" | and {more} more" if more > 0 else "")


def _collect(records: Sequence[RunRecord]) -> Mapping[str, set[str]]:
    """The values of every fact over these runs; `not set` among them where some run lacks it."""
    by_run = []
    for record in records:
        facts: dict[str, set[str]] = defaultdict(set)
        for name, value in _facts(record):
            facts[name].add(value)
        by_run.append(facts)
    names = dict.fromkeys(name for facts in by_run for name in facts)
    return {name: set().union(*(facts.get(name, {NOT_SET}) for facts in by_run)) for name in names}


def _facts(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield from record.versions.items()
    yield from record.environment.items()
    yield "engine", record.engine
    yield "backend", record.backend
    yield "launcher", record.launcher
    if record.precision is not None and record.budget_seconds is not None:
        yield "measuring", f"precision {record.precision:.3g}, budget {record.budget_seconds:.4g} s"
    if record.hosts:
        yield "hosts", ",".join(sorted(host.name for host in record.hosts))
    for host in record.hosts:
        told = {"kernel": host.kernel, "cpu": host.cpu, "binding": host.binding, "interface": host.interface}
        yield from ((name, value) for name, value in told.items() if value)
        if host.cpus is not None:
            yield "cpus", str(host.cpus)
        if host.devices:
            yield "devices", ", ".join(host.devices)
    for group in record.groups:
        rate = "" if group.bytes_per_second is None else f" {group.bytes_per_second / 1e9:.4g} GB/s"
        yield f"link of {group.layout}, {group.size} ranks", f"{group.link_class}{rate}"
