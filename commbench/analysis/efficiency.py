"""Is it as good as it could be? Findings from fits: rates against links, collectives against each other, order in size
and in N. An explanation comes with each: what is odd is often a property of the algorithm, not an error.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from commbench.analysis.records import CurveFit, Window
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import Finding
from commbench.units import GB, format_nbytes, format_seconds

LOW_EFFICIENCY = 0.7
ABOVE_LINK = 1.05
NO_RING = frozenset({"gather", "scatter", "send_recv", POINT_TO_POINT})  # the link of one rank carries it all
SAME_TIME = 0.85  # reduce_scatter over all_reduce from which it may be the same work,
MORE_THAN_GATHER = 1.3  # and over all_gather from which it is: else all_reduce is the one that is odd
PARTS_LOW, PARTS_HIGH = 0.8, 1.25  # all_reduce over reduce_scatter + all_gather
FASTER_LARGER = 0.05  # how much shorter a larger size's time may be
RATE_LOSS = 0.8  # of B at the least N
MAX_GROUP_SPREAD = 0.1  # of the slowest group over the median one

# What an observation means, and what to do: by rule, and by kind where a rule has two.
ACTIONS = {
    "fit.rate above": "more than one rank's link carries is no error: a network that reduces (SHARP, NVLS) or a tree "
    "on two nodes moves fewer bytes in an all_reduce than its factor counts, and a ring over nodes uses all links of a "
    "node",
    "fit.rate wrong": "no algorithm saves that many bytes, so the nominal rate is not that of these links",
    "fit.rate below": "look at the link's width and speed, at the rails in use, and at how many channels the library "
    "opens",
    "fit.line": "the window holds several regimes, or noisy cases: narrow --window, or measure with a larger --budget",
    "fit.monotony": "the library changes its algorithm too late here, or the smaller size met a disturbance: measure "
    "it again; if it stays, padding to the larger size is faster",
    "fit.bend": "a cache or buffer that spills, a saturated network interface, or a fallback path: predict with the "
    "regimes, not with one line",
    "fit.groups": "the fit is of the median group; find the slow group in the run's table",
    "fit.reduce-scatter": "reduce_scatter takes as long as all_reduce here: this backend reduces everything and drops "
    "the rest",
    "fit.parts above": "all_reduce is slower than its two parts: its algorithm or protocol is badly chosen here",
    "fit.parts below": "all_reduce has what its parts lack here, such as a reduction in the network or a tree: no "
    "error",
    "fit.scaling": "more ranks share a link or a switch, or a link of the larger group is slower than the others",
}


def find_efficiency(fits: Sequence[CurveFit], window: Window) -> list[Finding]:
    """All findings on one machine's fits."""
    rules = (_line, _rate, _monotony, _bend, _groups)
    findings = [finding for fit in fits for rule in rules for finding in rule(fit)]
    for family in _families(fits):
        findings += _parts(family, window)
    return [*findings, *_scaling(fits), *_unknown_rates(fits)]


def _subject(fit: CurveFit) -> str:
    key = fit.key
    return f"{key.collective}, {key.ranks} ranks, {key.layout}, {key.dtype}, {key.mode}"


def _line(fit: CurveFit) -> Iterable[Finding]:
    if fit.line is not None and fit.line.quality == "poor":
        yield _warn("fit.line", _subject(fit), "; ".join(fit.line.reasons), "a line that a planner may take")


def _unknown_rates(fits: Sequence[CurveFit]) -> Iterable[Finding]:
    for link_class in sorted({fit.key.link_class for fit in fits if fit.nominal_bytes_per_second is None}):
        yield Finding("fit.rate", link_class, "skip", "the nominal rate of this link is not known, so no efficiency")


def _rate(fit: CurveFit) -> Iterable[Finding]:
    """Measured B over the nominal rate of one rank's link."""
    if fit.efficiency is None or fit.nominal_bytes_per_second is None:
        return
    nominal = f"{fit.nominal_bytes_per_second / GB:.4g} GB/s of {fit.key.link_class}"
    observed = f"B is {fit.efficiency:.1%} of the link's nominal rate"
    if fit.efficiency > ABOVE_LINK * _most_over_link(fit):
        yield Finding("fit.rate", _subject(fit), "warn", observed, nominal, action=ACTIONS["fit.rate wrong"])
    elif fit.efficiency > ABOVE_LINK:
        yield Finding("fit.rate", _subject(fit), "ok", observed, nominal, action=ACTIONS["fit.rate above"])
    elif fit.efficiency < LOW_EFFICIENCY:
        expected = f"at least {LOW_EFFICIENCY:.0%} of {nominal}"
        yield Finding("fit.rate", _subject(fit), "warn", observed, expected, action=ACTIONS["fit.rate below"])


def _most_over_link(fit: CurveFit) -> float:
    """The bus bandwidth that is possible over one rank's link, in rates of that link.

    Each rank of an all_reduce sends and receives S where the network reduces, and factor(N) S in a ring. Between nodes
    a ring passes every node once, over the links of all its ranks together; all_to_all keeps a part in the node.
    """
    key = fit.key
    per_node = key.ranks / (key.nodes or 1)
    across = key.nodes is not None and key.nodes > 1
    if key.collective == "all_to_all":
        return (key.ranks - 1) / (key.ranks - per_node) if across else 1.0
    if key.collective in NO_RING:
        return 1.0
    return (fit.factor if key.collective == "all_reduce" else 1.0) * (per_node if across else 1.0)


def _monotony(fit: CurveFit) -> Iterable[Finding]:
    """A larger size that takes less time, by more than the noise of both."""
    for small, large in pairwise(fit.points):
        noise = (small.half_width or 0.0) + (large.half_width or 0.0)
        if large.seconds < small.seconds * (1.0 - max(FASTER_LARGER, noise)):
            observed = ", ".join(
                f"{format_nbytes(point.nbytes)} takes {format_seconds(point.seconds)}" for point in (small, large)
            )
            yield _warn("fit.monotony", _subject(fit), observed, "a larger size takes no less time")


def _bend(fit: CurveFit) -> Iterable[Finding]:
    """Regimes whose bytes surely cost more to the right: no choice of the fastest algorithm makes that."""
    for left, right in pairwise(fit.regimes.estimates):
        before, after = left.bytes_per_second, right.bytes_per_second
        if before.value and before.low and after.value and after.high and after.high < before.low:
            start = format_nbytes(right.first_nbytes)
            observed = f"from {start} on a byte costs {before.value / after.value:.2f} times what it costs before"
            yield _warn("fit.bend", _subject(fit), observed, "the fastest of several algorithms never bends upwards")


def _groups(fit: CurveFit) -> Iterable[Finding]:
    if fit.slowest_ratio > 1.0 + MAX_GROUP_SPREAD:
        observed = f"the slowest of {fit.groups} groups takes {fit.slowest_ratio:.2f} times the median's time"
        yield _warn("fit.groups", _subject(fit), observed, "groups of one link class are alike")


def _warn(rule: str, subject: str, observed: str, expected: str) -> Finding:
    return Finding(rule, subject, "warn", observed, expected, action=ACTIONS[rule])


def _families(fits: Sequence[CurveFit]) -> Iterable[dict[str, CurveFit]]:
    """Fits that differ in the collective alone, by collective."""
    families: dict[object, dict[str, CurveFit]] = defaultdict(dict)
    for fit in fits:
        key = fit.key
        name = (key.source, key.link_class, key.layout, key.ranks, key.dtype, key.concurrency, key.mode, key.variant)
        families[name].setdefault(key.collective, fit)
    return families.values()


def _parts(family: dict[str, CurveFit], window: Window) -> Iterable[Finding]:
    """all_reduce is reduce_scatter followed by all_gather: by time, too, where all three are done well."""
    if not {"all_reduce", "reduce_scatter", "all_gather"} <= family.keys():
        return
    whole, scatter, gather = (_times(family[name], window) for name in ("all_reduce", "reduce_scatter", "all_gather"))
    common = sorted(whole.keys() & scatter.keys() & gather.keys())
    if not common:
        return
    subject = _subject(family["all_reduce"]).removeprefix("all_reduce, ")
    alike = float(np.median([scatter[size] / whole[size] for size in common]))
    beyond = float(np.median([scatter[size] / gather[size] for size in common]))
    parts = float(np.median([whole[size] / (scatter[size] + gather[size]) for size in common]))
    observed = f"T(all_reduce) is {parts:.2f} of T(reduce_scatter) + T(all_gather), median of {len(common)} sizes"
    drops_the_rest = alike >= SAME_TIME and beyond >= MORE_THAN_GATHER
    if drops_the_rest:
        yield _warn("fit.reduce-scatter", subject, f"T(reduce_scatter) is {alike:.2f} of T(all_reduce)", "about half")
    expected = f"{PARTS_LOW:g} to {PARTS_HIGH:g}"
    if parts > PARTS_HIGH:
        yield Finding("fit.parts", subject, "warn", observed, expected, action=ACTIONS["fit.parts above"])
    elif parts >= PARTS_LOW:
        yield Finding("fit.parts", subject, "ok", observed, expected)
    elif not drops_the_rest:
        yield Finding("fit.parts", subject, "ok", observed, expected, action=ACTIONS["fit.parts below"])


def _times(fit: CurveFit, window: Window) -> dict[int, float]:
    return {point.nbytes: point.seconds for point in fit.points if window.contains(point.nbytes)}


def _scaling(fits: Sequence[CurveFit]) -> Iterable[Finding]:
    """B at each N against B at the least one: bus bandwidth does not depend on N where every link is as good."""
    groups: dict[object, dict[int, CurveFit]] = defaultdict(dict)
    for fit in fits:
        key = fit.key
        if fit.line and fit.line.bytes_per_second.value:
            name = (key.collective, key.link_class, key.dtype, key.concurrency, key.mode)
            groups[name].setdefault(key.ranks, fit)
    for by_ranks in groups.values():
        rates = {ranks: fit.line.bytes_per_second.value or 0.0 for ranks, fit in by_ranks.items() if fit.line}
        least = min(rates)
        kept = {ranks: rate / rates[least] for ranks, rate in sorted(rates.items()) if ranks != least}
        lost = {ranks: share for ranks, share in kept.items() if share < RATE_LOSS}
        if lost:
            observed = ", ".join(f"{share:.0%} at {ranks} ranks" for ranks, share in kept.items())
            observed = f"B against {least} ranks: {observed}"
            yield _warn("fit.scaling", _subject(by_ranks[least]), observed, f"at least {RATE_LOSS:.0%}")
