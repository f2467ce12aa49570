"""What a message costs on a link class: from what the user says of it, or from a source of measured rates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from commbench.errors import UsageError
from commbench.plan.collectives import COLLECTIVES
from commbench.plan.links import LinkLine, is_network

GIVEN = "--link"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one message. `half_nbytes`: the size with half the bandwidth, None where it is not known; `error`: the mean
    relative error of the basis, None where that is not known.
    """

    seconds: float
    half_nbytes: float | None
    basis: str
    error: float | None = None


class Rates(Protocol):
    """Knows some link classes."""

    @property
    def link_classes(self) -> frozenset[str]: ...

    def cost(self, collective: str, nbytes: int, ranks: int, link_class: str) -> Cost | None:
        """Of one message of size S; None where nothing is known that covers it."""
        ...


class GivenRates:
    """Lines that the user gave."""

    def __init__(self, lines: Sequence[LinkLine]) -> None:
        """Raises UsageError if a class has two lines."""
        self._lines: dict[str, LinkLine] = {}
        for line in lines:
            if self._lines.setdefault(line.link_class, line) != line:
                raise UsageError(f"--link gives {line.link_class} two lines: a link class has one.")

    @property
    def link_classes(self) -> frozenset[str]:
        return frozenset(self._lines)

    def cost(self, collective: str, nbytes: int, ranks: int, link_class: str) -> Cost | None:
        line, spec = self._lines.get(link_class), COLLECTIVES[collective]
        if line is None:
            return None
        alpha, factor = spec.steps(ranks) * line.alpha_step_seconds, spec.factor(ranks)
        half_nbytes = alpha * line.bytes_per_second / factor
        return Cost(alpha + factor * nbytes / line.bytes_per_second, half_nbytes, GIVEN)


@dataclass(frozen=True, slots=True)
class Links:
    """The link classes within and between nodes, None where none is known, and who knows their rates, first first."""

    within: str | None
    between: str | None
    rates: tuple[Rates, ...]

    def link_class(self, between_nodes: bool) -> str | None:
        return self.between if between_nodes else self.within

    def cost(self, collective: str, nbytes: int, ranks: int, between_nodes: bool) -> Cost | None:
        """Of one message; None where no rate of its link class is known."""
        link_class = self.link_class(between_nodes)
        if link_class is None:
            return None
        costs = (rates.cost(collective, nbytes, ranks, link_class) for rates in self.rates)
        return next((cost for cost in costs if cost is not None), None)


def choose_links(rates: Sequence[Rates], within: str | None, between: str | None) -> Links:
    """The links, with the classes that `rates` know unless they are told. Raises UsageError where several would do."""
    known = sorted(set().union(*(source.link_classes for source in rates)))
    inner = within or _only((name for name in known if not is_network(name)), "within a node", "--within")
    outer = between or _only((name for name in known if is_network(name)), "between nodes", "--between")
    return Links(inner, outer, tuple(rates))


def _only(names: Iterable[str], where: str, option: str) -> str | None:
    found = list(names)
    if len(found) > 1:
        raise UsageError(f"several link classes are known {where}, {', '.join(found)}: say which with {option} CLASS.")
    return found[0] if found else None
