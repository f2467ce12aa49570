"""What was measured and on what, as rows of words; runs side by side, so that what differs can be seen."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from commbench.report.reported import Reported
from commbench.results.schema import UNKNOWN, Host, RunRecord
from commbench.units import format_nbytes, format_seconds

_MOST_NAMED = 12  # hosts, files, layouts or versions of one run
_MOST_WORDS = 60  # of a command line


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: for each run the lines of its cell. `differs`: the runs do not agree."""

    name: str
    values: tuple[tuple[str, ...], ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def list_facts(reported: Sequence[Reported]) -> list[Fact]:
    """Every fact that at least one of the runs knows."""
    facts = [Fact(name, tuple(tuple(tell(one.run.record)) for one in reported)) for name, tell in _FACTS.items()]
    return [fact for fact in facts if any(fact.values)]


def _measured(record: RunRecord) -> Iterable[str]:
    took = f", {format_seconds(record.measured_seconds)} of measuring" if record.measured_seconds else ""
    yield f"{_format_utc(record.created_utc)}{took}"
    for resumed in record.resumed_utc:
        yield f"resumed {_format_utc(resumed)}"


def _format_utc(text: str) -> str:
    return text.replace("T", " ").replace("+00:00", " UTC")


def _outcome(record: RunRecord) -> Iterable[str]:
    yield record.outcome


def _command(record: RunRecord) -> Iterable[str]:
    words = record.command[:_MOST_WORDS]
    if words:
        yield shlex.join(words) + (" …" if len(record.command) > _MOST_WORDS else "")


def _origin(record: RunRecord) -> Iterable[str]:
    if record.origin is None:
        return
    yield f"results of {record.origin.tool} {record.origin.version}".removesuffix(f" {UNKNOWN}")
    yield f"time is its {record.origin.time_means}"
    files = [
        f"{file.name} ({format_nbytes(file.nbytes)}, {file.format}, sha256 {file.sha256[:12]}…)"
        for file in record.origin.files
    ]
    yield from _first(files)


def _engine(record: RunRecord) -> Iterable[str]:
    names = ", ".join(dict.fromkeys((record.engine, record.backend)))
    launcher = "" if record.launcher in (UNKNOWN, "none") else f", started by {record.launcher}"
    yield f"{names}{launcher}"


def _ranks(record: RunRecord) -> Iterable[str]:
    ranks = "?" if record.world_size is None else str(record.world_size)
    hosts = f" on {len(record.hosts)} {'node' if len(record.hosts) == 1 else 'nodes'}" if record.hosts else ""
    yield f"{ranks} ranks{hosts}"


def _hosts(record: RunRecord) -> Iterable[str]:
    yield from _first(_by_words(record.hosts, _hardware))


def _hardware(host: Host) -> str:
    cpus = "" if host.cpus is None else f"{host.cpus} CPUs"
    kernel = f"kernel {host.kernel}" if host.kernel else ""
    return ", ".join(word for word in (host.cpu, cpus, kernel) if word)


def _devices(record: RunRecord) -> Iterable[str]:
    yield from _first(_told_by_words(record, lambda host: ", ".join(host.devices)))


def _binding(record: RunRecord) -> Iterable[str]:
    yield from _first(_told_by_words(record, lambda host: host.binding))


def _interface(record: RunRecord) -> Iterable[str]:
    yield from _first(_told_by_words(record, lambda host: host.interface))


def _told_by_words(record: RunRecord, tell: Callable[[Host], str]) -> list[str]:
    return _by_words([host for host in record.hosts if tell(host)], tell)


def _by_words(hosts: Iterable[Host], tell: Callable[[Host], str]) -> list[str]:
    """Hosts of which the same is said share a line: `n1, n2: eth0 (…)`."""
    found: dict[str, list[str]] = {}
    for host in hosts:
        name = f"{host.name} (ranks {host.ranks})" if host.ranks else host.name
        found.setdefault(tell(host), []).append(name)
    return [f"{', '.join(_first(names))}{': ' if words else ''}{words}" for words, names in found.items()]


def _links(record: RunRecord) -> Iterable[str]:
    """A line for each layout and link class: how many groups cross it, and its nominal rate."""
    found: dict[tuple[str, str, float | None], int] = {}
    for group in record.groups:
        key = (group.layout, group.link_class, group.bytes_per_second)
        found[key] = found.get(key, 0) + 1
    lines = []
    for (layout, link_class, rate), count in found.items():
        nominal = "nominal rate not known" if rate is None else f"nominal {rate / 1e9:.4g} GB/s"
        lines.append(f"{layout}: {count} {'group' if count == 1 else 'groups'} over {link_class}, {nominal}")
    yield from _first(lines)


def _asked(record: RunRecord) -> Iterable[str]:
    if record.precision is not None and record.budget_seconds is not None:
        yield f"precision {100 * record.precision:.3g} %, budget {format_seconds(record.budget_seconds)}"
    if record.seed is not None:
        yield f"seed {record.seed}"


def _versions(record: RunRecord) -> Iterable[str]:
    words = [f"{name} {version}" for name, version in record.versions.items()]
    if words:
        yield ", ".join(words)


def _environment(record: RunRecord) -> Iterable[str]:
    yield from _first([f"{name}={value}" for name, value in sorted(record.environment.items())], most=40)


def _first(words: Sequence[str], most: int = _MOST_NAMED) -> list[str]:
    """The first words, and how many more run.json has."""
    more = len(words) - most
    return [*words[:most], f"and {more} more (run.json)"] if more > 0 else list(words)


_FACTS: dict[str, Callable[[RunRecord], Iterable[str]]] = {
    "measured": _measured,
    "outcome": _outcome,
    "command": _command,
    "imported": _origin,
    "engine": _engine,
    "ranks": _ranks,
    "hosts": _hosts,
    "devices": _devices,
    "binding": _binding,
    "interface": _interface,
    "layouts and links": _links,
    "asked for": _asked,
    "versions": _versions,
    "environment": _environment,
}
