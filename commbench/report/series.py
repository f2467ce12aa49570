"""What the plots of a report show: the measured points of every curve with its fit, sorted into panels that read well.

One run: a panel for each layout, a colour for each collective. Several runs: a panel for each layout and collective, a
colour for each run, for what is compared is one collective under both. Panels of too many curves are split alike.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter

from commbench.analysis.curves import PLAUSIBLE_SECONDS, CurveKey
from commbench.analysis.records import CurveFit
from commbench.report.reported import Reported
from commbench.results.kinds import KINDS
from commbench.results.schema import SummaryRow
from commbench.results.store import Run
from commbench.units import GB

COLOURS = 10
MOST_CURVES = COLOURS  # in one panel
MOST_PANELS = 12  # a picture takes some 30 kB
MOST_POINTS = 200  # of one curve
_CROWDED = 6  # curves of a panel from which on collectives get panels of their own

_CONDITIONS = tuple(field.name for field in fields(CurveKey) if field.name != "source")
conditions_of: Callable[[SummaryRow | CurveKey], tuple[object, ...]] = attrgetter(*_CONDITIONS)
_OF_A_COLLECTIVE = frozenset({"redop", "in_place"})  # they say something only where one collective has several


@dataclass(frozen=True, slots=True)
class Measured:
    """One size: the median group's time in seconds with its 95 % interval, and the slowest group's.

    `is_plain`: its status is `ok`. `slowest_seconds` is None where there is one group only.
    """

    nbytes: int
    seconds: float
    low: float | None
    high: float | None
    is_plain: bool
    slowest_seconds: float | None
    theory_seconds: float | None


@dataclass(frozen=True, slots=True)
class Series:
    """One curve of a panel. `factor`: bus bytes per byte of S, None where there is no bus; `colour`: its number."""

    label: str
    colour: int
    points: tuple[Measured, ...]
    factor: float | None
    link_class: str
    nominal_bytes_per_second: float | None
    fit: CurveFit | None


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves that belong into one picture. `left_out`: how many more it would have."""

    title: str
    subtitle: str
    series: tuple[Series, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class _Curve:
    """A curve before it has a label and a colour. `run`: the position of its run."""

    run: int
    run_label: str
    row: SummaryRow
    points: tuple[Measured, ...]
    nominal_bytes_per_second: float | None
    fit: CurveFit | None


def make_panels(reported: Sequence[Reported]) -> list[Panel]:
    """All panels of these runs, in the order of their plans; [] where nothing was timed over a known size."""
    curves = [curve for position, one in enumerate(reported) for curve in _curves(position, one)]
    views: dict[tuple[object, ...], list[_Curve]] = {}
    for curve in curves:
        views.setdefault((curve.row.layout, curve.row.concurrency, curve.row.mode), []).append(curve)
    panels = []
    for shown in views.values():
        for part in _split(shown, len(reported) > 1):
            panels.append(_panel(part, len(reported) > 1))
    return panels


def group_rates(run: Run) -> dict[tuple[str, str], float]:
    """The nominal rate in bytes per second of one rank's link, by layout and group, where it is known."""
    return {(group.layout, group.name): group.bytes_per_second for group in run.record.groups if group.bytes_per_second}


def _curves(position: int, reported: Reported) -> Iterable[_Curve]:
    fits = {conditions_of(fit.key): fit for fit in reported.fit.fits}
    rates = group_rates(reported.run)
    found: dict[tuple[object, ...], dict[int, list[SummaryRow]]] = {}
    for row in reported.run.rows:
        if row.seconds_median and _is_plausible(row.seconds_median) and row.size_bytes and row.size_bytes > 0:
            found.setdefault(conditions_of(row), {}).setdefault(row.size_bytes, []).append(row)
    for conditions, by_size in found.items():
        points = [_measured(nbytes, rows) for nbytes, rows in sorted(by_size.items())]
        row = next(iter(by_size.values()))[0]
        known = [rates.get((row.layout, each.group)) for rows in by_size.values() for each in rows]
        nominal = min((rate for rate in known if rate), default=None)
        yield _Curve(position, reported.label, row, _thinned(points), nominal, fits.get(conditions))


def _is_plausible(seconds: float) -> bool:
    return PLAUSIBLE_SECONDS[0] <= seconds <= PLAUSIBLE_SECONDS[1]


def _measured(nbytes: int, rows: Sequence[SummaryRow]) -> Measured:
    """Of an even number of groups the two in the middle make the median, as in the fit."""
    ordered = sorted(rows, key=lambda row: row.seconds_median or 0.0)
    faster, slower = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return Measured(
        nbytes=nbytes,
        seconds=_mean(faster.seconds_median, slower.seconds_median) or 0.0,
        low=_mean(faster.seconds_ci_low, slower.seconds_ci_low),
        high=_mean(faster.seconds_ci_high, slower.seconds_ci_high),
        is_plain=faster.status == slower.status == "ok",
        slowest_seconds=ordered[-1].seconds_median if len(ordered) > 1 else None,
        theory_seconds=slower.theory_seconds,
    )


def _mean(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else (one + other) / 2


def _thinned(points: Sequence[Measured]) -> tuple[Measured, ...]:
    """At most MOST_POINTS of them, evenly, the first and the last included."""
    if len(points) <= MOST_POINTS:
        return tuple(points)
    last = len(points) - 1
    return tuple(points[round(step * last / (MOST_POINTS - 1))] for step in range(MOST_POINTS))


def _split(curves: Sequence[_Curve], several_runs: bool) -> list[list[_Curve]]:
    if not several_runs and len(curves) <= _CROWDED:
        return [list(curves)]
    parts: dict[str, list[_Curve]] = {}
    for curve in curves:
        parts.setdefault(curve.row.collective, []).append(curve)
    return list(parts.values())


def _panel(curves: Sequence[_Curve], several_runs: bool) -> Panel:
    kept = curves[:MOST_CURVES]
    varying = _varying_fields([curve.row for curve in kept])
    colours = _colours(kept, several_runs)
    series = tuple(
        Series(
            label=_label(curve, varying, several_runs),
            colour=colour,
            points=curve.points,
            factor=KINDS[curve.row.collective].bus_factor(curve.row.ranks),
            link_class=curve.row.link_class,
            nominal_bytes_per_second=curve.nominal_bytes_per_second,
            fit=curve.fit,
        )
        for curve, colour in zip(kept, colours, strict=True)
    )
    rows = [curve.row for curve in kept]
    row, collectives = rows[0], list(dict.fromkeys(row.collective for row in rows))
    what = collectives[0] if len(collectives) == 1 else f"{len(collectives)} collectives"
    title = f"{what}, layout {row.layout}, {row.concurrency}"
    return Panel(title, _subtitle(rows), series, len(curves) - len(kept))


def _subtitle(rows: Sequence[SummaryRow]) -> str:
    """What the curves have in common, and the plural where they differ."""
    ranks = _joined("?" if row.ranks is None else str(row.ranks) for row in rows)
    links = _joined(row.link_class for row in rows)
    dtypes, backends = _joined(row.dtype for row in rows), _joined(row.backend for row in rows)
    return f"{ranks} ranks over {links}; {backends}, {dtypes}, {rows[0].mode}"


def _joined(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _varying_fields(rows: Sequence[SummaryRow]) -> list[str]:
    """The conditions in which the curves of a panel differ, collective first; nodes only where nothing else tells."""
    varying = []
    for name in _CONDITIONS:
        found: dict[str, set[object]] = {}
        for row in rows:
            found.setdefault(row.collective if name in _OF_A_COLLECTIVE else "", set()).add(getattr(row, name))
        if any(len(values) > 1 for values in found.values()):
            varying.append(name)
    others = [name for name in varying if name != "nodes"]
    return others if _count_kinds(rows, others) == _count_kinds(rows, varying) else varying


def _count_kinds(rows: Sequence[SummaryRow], names: Sequence[str]) -> int:
    return len({tuple(getattr(row, name) for name in names) for row in rows})


_WORDS: dict[str, Callable[[SummaryRow], str]] = {
    "ranks": lambda row: f"{'?' if row.ranks is None else row.ranks} ranks",
    "nodes": lambda row: "1 node" if row.nodes == 1 else f"{'?' if row.nodes is None else row.nodes} nodes",
    "in_place": lambda row: "in place" if row.in_place else "out of place",
    "link_class": lambda row: f"over {row.link_class}",
}


def _label(curve: _Curve, varying: Sequence[str], several_runs: bool) -> str:
    words = [_WORDS[name](curve.row) if name in _WORDS else str(getattr(curve.row, name)) for name in varying]
    if several_runs:
        words.insert(0, curve.run_label)
    return ", ".join(word for word in words if word) or curve.row.collective


def _colours(curves: Sequence[_Curve], several_runs: bool) -> list[int]:
    """A run, or a collective, has its colour in all panels, unless a panel needs more colours than that."""
    order = list(KINDS)
    wanted = [curve.run if several_runs else order.index(curve.row.collective) for curve in curves]
    fits = len(set(wanted)) == len(wanted) and max(wanted, default=0) < COLOURS
    return wanted if fits else list(range(len(curves)))


def busbw_gbps(series: Series, nbytes: float, seconds: float) -> float | None:
    """GB/s of 1e9 bytes that cross each rank's link; None where there is no bus."""
    return None if series.factor is None or not seconds else series.factor * nbytes / seconds / GB
