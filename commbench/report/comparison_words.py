"""What a comparison found, as sentences: the verdict, each link class, what could not be compared."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from commbench.analysis.comparison import CoefficientChange, Comparison, LinkChange, Ratio, Side, Verdict
from commbench.analysis.matching import Unmatched
from commbench.report.reported import label_runs

_MOST_NAMED = 4
CHANGED = ("slower", "faster")

# By what alpha and B did: which became worse, and whether the other is known to have held, says where to look.
_ADVICE = {
    ("held", "worse"): "look at the links (rates, lanes, errors, other traffic), not at the software",
    (
        "unknown",
        "worse",
    ): "look at the links first (rates, lanes, errors, other traffic); alpha is not known well enough",
    ("worse", "held"): "look at the software and the hosts (versions, algorithm, binding, clocks), not at the links",
    (
        "worse",
        "unknown",
    ): "look at the software and the hosts first (versions, binding, clocks); B is not known well enough",
    ("worse", "worse"): "look at what both share: the path taken, the driver, other load",
}


def verdict_line(comparison: Comparison) -> str:
    """`slower: 12 of 36 cases, 0 faster, 20 the same, 4 in the noise; 2 could not be compared.`"""
    found = Counter(case.verdict for case in comparison.cases)
    total = len(comparison.cases)
    if not total:
        return f"not comparable: none of {len(comparison.unmatched)} cases is on both sides."
    counts = f"of {total} cases {found['slower']} slower, {found['faster']} faster, {found['same']} the same, "
    counts += f"{found['noisy']} in the noise (~)"
    others = f"; {len(comparison.unmatched)} could not be compared" if comparison.unmatched else ""
    return f"{comparison.verdict}: {counts}{others}."


def side_lines(comparison: Comparison) -> list[str]:
    """`base: 3 runs of 2026-01-02 to 2026-01-04: a, b, c`, and the same of new."""
    base, new = comparison.base, comparison.new
    labels = label_runs([Path(run) for run in (*base.runs, *new.runs)])
    return [_side_line("base", base, labels[: len(base.runs)]), _side_line("new", new, labels[len(base.runs) :])]


def _side_line(name: str, side: Side, labels: Sequence[str]) -> str:
    dates = [text[:10] for text in side.created_utc]
    days = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    names = ", ".join(labels[:_MOST_NAMED]) + (", …" if len(labels) > _MOST_NAMED else "")
    return f"{name}: {len(side.runs)} {'run' if len(side.runs) == 1 else 'runs'} of {days}: {names}"


def link_line(link: LinkChange) -> str:
    """`net: alpha unchanged (-1.2 to +0.8 %), B down 9.8 % (-10.9 to -8.7 %): look at the links, …`"""
    advice = _ADVICE.get((_state(link.alpha), _state(link.rate)))
    return coefficients_line(link) + (f": {advice}" if advice else "")


def _state(change: CoefficientChange | None) -> str:
    """`worse`, `held` (unchanged, or better), or `unknown` (noise, or not told by the sizes)."""
    states = {"slower": "worse", "same": "held", "faster": "held"}
    return "unknown" if change is None else states.get(change.verdict, "unknown")


def coefficients_line(link: LinkChange) -> str:
    """`net: alpha unchanged (-1.2 to +0.8 %), B down 9.8 % (-10.9 to -8.7 %)`"""
    parts = [f"{name} {_change(change)}" for name, change in (("alpha", link.alpha), ("B", link.rate))]
    return f"{link.link_class}: {', '.join(parts)}"


def _change(change: CoefficientChange | None) -> str:
    if change is None:
        return "not told by these sizes"
    if change.verdict in CHANGED:
        direction = "up" if change.ratio.value > 1 else "down"
        return f"{direction} {100 * abs(change.ratio.value - 1):.1f} % ({interval(change.ratio)})"
    known = "unchanged" if change.verdict == "same" else "~ (no change seen)"
    return f"{known} ({interval(change.ratio)})"


def interval(ratio: Ratio) -> str:
    """`-10.9 to -8.7 %`."""
    return f"{_percent(ratio.low)} to {_percent(ratio.high)} %"


def _percent(ratio: float) -> str:
    change = 100 * (ratio - 1)
    return "∞" if change > 1e6 else f"{change:+.1f}" if abs(change) < 99.5 else f"{change:+.0f}"


def change_cell(ratio: Ratio, verdict: Verdict) -> str:
    """`+11.2%`, or `~` where it is noise."""
    return "~" if verdict == "noisy" else f"{_percent(ratio.value)}%"


def unmatched_lines(unmatched: Sequence[Unmatched]) -> Iterator[str]:
    """What could not be compared, cases with one reason together."""
    reasons: dict[tuple[str, str], list[Unmatched]] = {}
    for case in unmatched:
        reasons.setdefault((case.verdict, case.reason), []).append(case)
    for (verdict, reason), cases in reasons.items():
        named = ", ".join(case.key.words() for case in cases[:_MOST_NAMED]) + (
            ", …" if len(cases) > _MOST_NAMED else ""
        )
        yield f"{verdict}: {len(cases)} {'case' if len(cases) == 1 else 'cases'} ({named}): {reason}"
