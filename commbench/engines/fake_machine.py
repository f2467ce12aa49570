"""The machine that the fake engine plays: links with alpha and rate, regimes, noise, drift, what is slow."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commbench.errors import UsageError, unknown_name
from commbench.units import parse_fraction, parse_nbytes, parse_rate, parse_seconds


@dataclass(frozen=True, slots=True)
class FakeLine:
    """alpha and rate of a link class from `from_nbytes` on."""

    link_class: str
    from_nbytes: int
    alpha_step_seconds: float
    bytes_per_second: float


_DEFAULT_LINES = (FakeLine("nvlink", 0, 3e-6, 200e9), FakeLine("net", 0, 12e-6, 25e9))


@dataclass(frozen=True, slots=True)
class FakeMachine:
    """Nodes of `ranks_per_node` ranks; `noise` is the scale of the one-sided, heavy-tailed relative noise.

    `drift`: of the heavy-tailed relative difference from run to run, of a run as a whole and again of each case in it.
    `contention`: how many times slower a group between nodes is beside others of its layout. `overlap`: how many times
    slower a matrix product is beside a collective, and a collective beside products.
    """

    ranks_per_node: int = 8
    lines: tuple[FakeLine, ...] = _DEFAULT_LINES
    noise: float = 0.0
    drift: float = 0.0
    slow_ranks: dict[int, float] = field(default_factory=dict)
    slow_links: dict[tuple[int, int], float] = field(default_factory=dict)
    contention: float = 1.0
    overlap: tuple[float, float] = (1.0, 1.0)

    def line(self, link_class: str, nbytes: int) -> FakeLine:
        """The line that holds for messages of `nbytes`: the one with the largest `from_nbytes` at or below it."""
        fitting = [line for line in self.lines if line.link_class == link_class and line.from_nbytes <= nbytes]
        return max(fitting, key=lambda line: line.from_nbytes)

    def slowdown(self, ranks: Sequence[int]) -> float:
        """The factor of the slowest rank or link among `ranks`: 1 if none of them is slow."""
        if not self.slow_ranks and not self.slow_links:
            return 1.0
        members = set(ranks)
        factors = [factor for rank, factor in self.slow_ranks.items() if rank in members]
        factors += [factor for pair, factor in self.slow_links.items() if members.issuperset(pair)]
        return max(factors, default=1.0)

    def named_ranks(self) -> set[int]:
        """The ranks that are slow, or at the end of a slow link."""
        return {*self.slow_ranks, *(rank for pair in self.slow_links for rank in pair)}


FAKE_KEYS = {
    "ranks-per-node": "N",
    "nvlink": "ALPHA:RATE (within a node; nvlink@SIZE=… from that size on)",
    "net": "ALPHA:RATE (between nodes; net@SIZE=… from that size on)",
    "noise": "PERCENT",
    "drift": "PERCENT (from run to run, by --seed)",
    "contention": "FACTOR (of groups between nodes that run together)",
    "overlap": "FACTOR:FACTOR (of a matrix product, of a collective, while both run)",
    "slow-rank": "RANK:FACTOR",
    "slow-link": "RANK-RANK:FACTOR",
}


def parse_fake_machine(spec: str) -> FakeMachine:
    """The machine in a text like `ranks-per-node=4,net=10us:25GB/s`. Raises UsageError naming the bad part."""
    machine = FakeMachine()
    for part in filter(None, (part.strip() for part in spec.split(","))):
        key, equals, value = part.partition("=")
        key, at, from_size = key.partition("@")
        if key not in FAKE_KEYS:
            raise unknown_name("key of --fake", key, FAKE_KEYS)
        try:
            if at and not (from_size and key in ("nvlink", "net")):
                raise ValueError(part)
            machine = _with_part(machine, key, from_size, value if equals else "")
        except (ValueError, UsageError):
            raise UsageError(f"cannot read {part!r} of --fake: write {key}={FAKE_KEYS[key]}.") from None
    return machine


def _with_part(machine: FakeMachine, key: str, from_size: str, value: str) -> FakeMachine:
    """`machine` with one part changed. Raises ValueError for a value without the form of its key."""
    if key == "ranks-per-node":
        return replace(machine, ranks_per_node=_at_least(1, value))
    if key == "noise":
        return replace(machine, noise=parse_fraction(value))
    if key == "drift":
        return replace(machine, drift=parse_fraction(value))
    if key == "contention":
        return replace(machine, contention=_factor(value))
    subject, number = value.split(":")
    if key == "overlap":
        return replace(machine, overlap=(_factor(subject), _factor(number)))
    if key == "slow-rank":
        return replace(machine, slow_ranks={**machine.slow_ranks, _at_least(0, subject): _factor(number)})
    if key == "slow-link":
        a, b = (_at_least(0, rank) for rank in subject.split("-"))
        if a == b:
            raise ValueError(subject)
        return replace(machine, slow_links={**machine.slow_links, (a, b): _factor(number)})
    line = FakeLine(key, parse_nbytes(from_size) if from_size else 0, parse_seconds(subject), parse_rate(number))
    others = [old for old in machine.lines if (old.link_class, old.from_nbytes) != (key, line.from_nbytes)]
    return replace(machine, lines=(*others, line))


def _at_least(least: int, text: str) -> int:
    if int(text) < least:
        raise ValueError(text)
    return int(text)


def _factor(text: str) -> float:
    factor = float(text.removeprefix("x"))
    if not 1e-3 <= factor <= 1e6:
        raise ValueError(text)
    return factor
