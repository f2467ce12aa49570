"""Rules: what one is, how a family declares its own, which of them are selected, and how they are run.

A rule is a function under `@rule(…)`; its docstring is the explanation that `--explain` prints. It looks at one `Scene`
and yields what it saw through `ok`, `warn`, `fail` and `skip`. A rule that saw what it needs yields at least an `ok`;
one that did not yields a `skip` with the reason, never nothing and never `ok`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from inspect import cleandoc
from typing import Literal

from commbench.errors import unknown_name
from commbench.machine.facts import Facts
from commbench.results.finding import Finding, Verdict
from commbench.topology.graph import Topology

FAMILIES = {
    "ENV": "environment variables and configuration files of NCCL, gloo, UCX, libfabric and torch",
    "HOST": "limits, memory, kernel settings",
    "GPU": "GPUs: errors, clocks, NVLink, who else uses them",
    "PCI": "PCI Express: width, speed, ACS, IOMMU",
    "NIC": "network: ports, rates, GIDs, counters, interfaces",
    "AFF": "which CPUs and NICs are near which GPU, and what the ranks are bound to",
    "SW": "versions and libraries",
    "CON": "consistency over ranks",
}
Severity = Literal["warn", "fail"]


@dataclass(frozen=True, slots=True)
class Scene:
    """What a rule looks at: one process's facts and its machine's wiring. `nodes`: of the job, 1 if it has no launcher.

    `peers`: the facts of the other ranks on this node where they are known, for rules about overlaps; rules of the
    family CON get all ranks of the world in it.
    """

    facts: Facts
    topology: Topology | None = None
    nodes: int = 1
    peers: tuple[Facts, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What a rule saw of one subject. `where`: the file or variable that it was read from."""

    verdict: Verdict
    subject: str
    observed: str
    expected: str = ""
    where: str = ""
    action: str = ""


def ok(subject: str, observed: str, expected: str = "", where: str = "") -> Seen:
    """As it should be."""
    return Seen("ok", subject, observed, expected, where)


def warn(subject: str, observed: str, expected: str = "", where: str = "", action: str = "") -> Seen:
    """Slower or riskier than need be; without `action` the rule's fix is said."""
    return Seen("warn", subject, observed, expected, where, action)


def fail(subject: str, observed: str, expected: str = "", where: str = "", action: str = "") -> Seen:
    """A job will fail, hang or crawl; without `action` the rule's fix is said."""
    return Seen("fail", subject, observed, expected, where, action)


def skip(subject: str, reason: str, where: str = "") -> Seen:
    """Could not be seen, or does not apply here, for `reason`."""
    return Seen("skip", subject, reason, "", where)


Check = Callable[[Scene], Iterable[Seen]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `severity`: the worst verdict that it gives; `fix`: what to do, for --explain and as default action."""

    id: str
    severity: Severity
    summary: str
    fix: str
    source: str
    explanation: str
    check: Check = field(repr=False)

    @property
    def family(self) -> str:
        """The part of the id before the first dash."""
        return self.id.partition("-")[0]


# The modules that declare rules: a new family is a new module and a line here.
_MODULES = (
    *("env_names", "env_values", "env_algorithms", "env_files", "env_interfaces", "env_devices"),
    *("env_production", "env_rendezvous", "env_process"),
    *("host", "host_kernel", "gpu_bus", "gpu", "gpu_state", "gpu_links", "pci"),
    *("nic", "nic_roce", "nic_counters", "nic_interfaces", "affinity", "affinity_ranks", "software"),
    *("con_software", "con_machine", "con_devices", "con_ranks"),
)
_RULES: dict[str, Rule] = {}


def rule(id: str, severity: Severity, *, summary: str, fix: str, source: str) -> Callable[[Check], Check]:
    """Declare the function below as the rule `id`, such as HOST-MEMLOCK. `source`: who says so."""
    if id.partition("-")[0] not in FAMILIES or id in _RULES:
        raise ValueError(f"rule {id}: the family is unknown, or the id is taken")

    def declare(check: Check) -> Check:
        _RULES[id] = Rule(id, severity, summary, fix, source, cleandoc(check.__doc__ or ""), check)
        return check

    return declare


def load_rules() -> tuple[Rule, ...]:
    """All rules, in the order of their families and modules."""
    for module in _MODULES:
        import_module(f"commbench.checks.{module}")
    return tuple(_RULES.values())


def select_rules(rules: Iterable[Rule], select: Sequence[str] = (), ignore: Sequence[str] = ()) -> list[Rule]:
    """The rules whose ids begin with one of `select` (all, if that is empty) and with none of `ignore`.

    Raises UsageError for a prefix that fits no rule.
    """
    known = list(rules)
    for prefix in (*select, *ignore):
        if not any(row.id.startswith(prefix.upper()) for row in known):
            raise unknown_name("rule", prefix, [*FAMILIES, *(row.id for row in known)])

    def begins(row: Rule, prefixes: Sequence[str]) -> bool:
        return any(row.id.startswith(prefix.upper()) for prefix in prefixes)

    return [row for row in known if (not select or begins(row, select)) and not begins(row, ignore)]


def run_rules(rules: Iterable[Rule], scene: Scene) -> Iterator[Finding]:
    """The findings of each rule, in the order of the rules."""
    for row in rules:
        for seen in row.check(scene):
            action = seen.action or (row.fix if seen.verdict in ("warn", "fail") else "")
            yield Finding(row.id, seen.subject, seen.verdict, seen.observed, seen.expected, seen.where, action)
