"""Curves: what a fit is made of. All times of one collective over sizes, under conditions that are the same.

Runs on the same hosts with the same software and settings are launches of one source, and their times are put together;
the others stay apart. So do the two modes, which answer different questions: `throughput` times calls back to back,
`latency` one call after a barrier.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from commbench.analysis.environment import suspicion_of
from commbench.analysis.lines import Floats
from commbench.plan.collectives import COLLECTIVES
from commbench.results.kinds import POINT_TO_POINT
from commbench.results.schema import RunRecord, SummaryRow
from commbench.results.store import Run
from commbench.results.summary import GroupSamples
from commbench.stats import median_interval_ranks

MIN_SIZES = 3  # a line through two always fits
_A_SETTING = 80  # suspicion from which a variable makes another measurement: NCCL_ALGO does, NCCL_DEBUG does not
PLAUSIBLE_SECONDS = (1e-12, 1e9)  # a time outside is a damaged file's, or a clock's that stood still
FITTED_STATUSES = frozenset({"ok", "noisy", "partial", "incomplete"})

Samples = Mapping[tuple[int, int], GroupSamples]


@dataclass(frozen=True, slots=True)
class CurveKey:
    """The conditions of a curve. `source`: the directory of its first launch. `link_class`: as in the run."""

    source: str
    collective: str
    link_class: str
    layout: str
    ranks: int
    nodes: int | None
    dtype: str
    redop: str
    in_place: bool
    concurrency: str
    engine: str
    backend: str
    mode: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """One size: its time, the median over launches; and each launch's values, sorted, whose median is the launch's.

    A launch's values are the batches of its one group, or the medians of its several groups.
    """

    nbytes: int
    seconds: float
    launches: tuple[Floats, ...]

    @property
    def half_width(self) -> float:
        """Relative half-width of the 95 % interval of the median; NaN where there are too few values for one."""
        pooled = np.sort(np.concatenate(self.launches))
        ranks = median_interval_ranks(len(pooled))
        if ranks is None:
            return float("nan")
        return float(max(pooled[ranks[1]] - self.seconds, self.seconds - pooled[ranks[0]]) / self.seconds)


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by rising size. `factor`: bus bytes per byte of S; `steps`: messages one after another in the ring.

    `nominal_bytes_per_second`: the rate of one rank's link where the run knows it. `slowest_ratio`: the slowest group
    over the median group at the largest size, 1 for a single group.
    """

    key: CurveKey
    points: tuple[Point, ...]
    factor: float
    steps: int
    groups: int
    nominal_bytes_per_second: float | None
    slowest_ratio: float

    @property
    def nbytes(self) -> Floats:
        return np.array([point.nbytes for point in self.points], dtype=float)

    @property
    def seconds(self) -> Floats:
        return np.array([point.seconds for point in self.points])

    @property
    def half_widths(self) -> Floats:
        return np.array([point.half_width for point in self.points])

    @property
    def launches(self) -> int:
        return max(len(point.launches) for point in self.points)


@dataclass(frozen=True, slots=True)
class Unfitted:
    """Conditions without a curve, and why."""

    collective: str
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One run and, where it has them, its samples."""

    run: Run
    samples: Samples


@dataclass(frozen=True, slots=True)
class _Value:
    """One group at one size in one launch."""

    values: Floats
    rate: float | None


def group_launches(launches: Sequence[Launch]) -> list[list[Launch]]:
    """The launches by machine, in the order given: the same software on the same kind of processor."""
    by_machine: dict[object, list[Launch]] = {}
    for launch in launches:
        by_machine.setdefault(_machine(launch.run.record), []).append(launch)
    return list(by_machine.values())


def _machine(record: RunRecord) -> tuple[object, ...]:
    processors = frozenset(host.cpu for host in record.hosts)
    return record.engine, record.backend, processors, tuple(sorted(record.versions.items()))


def _source(record: RunRecord) -> tuple[object, ...]:
    """What launches of one measurement have in common: the hosts, and the settings that make another measurement."""
    settings = {name: value for name, value in record.environment.items() if suspicion_of(name)[0] >= _A_SETTING}
    return frozenset(host.name for host in record.hosts), frozenset(settings.items())


def make_curves(launches: Sequence[Launch]) -> tuple[list[Curve], list[Unfitted]]:
    """The curves of one machine's launches, in the order of the first plan, and what gives none.

    Launches on the same hosts with the same settings are put together; the others are another source.
    """
    sources: dict[object, str] = {}
    found: dict[CurveKey, dict[int, list[list[_Value]]]] = defaultdict(lambda: defaultdict(list))
    refused: dict[tuple[str, str], str] = {}
    for launch in launches:
        source = sources.setdefault(_source(launch.run.record), launch.run.directory.name)
        here: dict[tuple[CurveKey, int], list[_Value]] = defaultdict(list)
        for row, value in _values(launch):
            reason, ranks, nbytes = _no_curve(row), row.ranks, row.size_bytes
            if reason or not ranks or not nbytes:
                refused[row.collective, _conditions(row)] = reason or "the size is not known"
            else:
                here[_key(source, row, ranks), nbytes].append(value)
        for (key, nbytes), values in here.items():
            found[key][nbytes].append(values)
    unfitted = [Unfitted(*name, reason) for name, reason in refused.items()]
    few = {key for key, sizes in found.items() if len(sizes) < MIN_SIZES}
    unfitted += [_too_few(key, len(found[key])) for key in found if key in few]
    return [_curve(key, sizes) for key, sizes in found.items() if key not in few], unfitted


def _too_few(key: CurveKey, sizes: int) -> Unfitted:
    subject = f"{key.layout}, {key.ranks} ranks, {key.dtype}, {key.mode}"
    measured = f"{sizes} measured {'size' if sizes == 1 else 'sizes'}"
    return Unfitted(key.collective, subject, f"{measured}, a line needs {MIN_SIZES}")


def _values(launch: Launch) -> Iterable[tuple[SummaryRow, _Value]]:
    record = launch.run.record
    places = [(case.index, position) for case in record.cases for position in case.groups]
    for place, row in zip(places, launch.run.rows, strict=True):
        if row.status in FITTED_STATUSES and row.seconds_median is not None:
            samples = launch.samples.get(place)
            seconds = np.sort(np.array(samples.seconds if samples and samples.seconds else [row.seconds_median]))
            if PLAUSIBLE_SECONDS[0] <= seconds[0] and seconds[-1] <= PLAUSIBLE_SECONDS[1]:
                yield row, _Value(seconds, record.groups[place[1]].bytes_per_second)


def _no_curve(row: SummaryRow) -> str | None:
    """Why the row belongs to no curve. Imported rows may not say their ranks or size, or be of a foreign collective."""
    if row.collective not in {*COLLECTIVES, POINT_TO_POINT}:
        return "its traffic factor is not known"
    if row.ranks is None:
        return "the number of ranks is not known, so the traffic on a link is not"
    if row.ranks < 2 or not _traffic(row.collective, row.ranks)[0]:
        return "one rank has no link" if row.ranks == 1 else "it moves no data"
    return None


def _traffic(collective: str, ranks: int) -> tuple[float, int]:
    """The factor and the steps of a collective, or of a message from one rank to another."""
    if collective == POINT_TO_POINT:
        return 1.0, 1
    return COLLECTIVES[collective].factor(ranks), COLLECTIVES[collective].steps(ranks)


def _conditions(row: SummaryRow) -> str:
    return f"{row.layout}, {row.ranks or '?'} ranks, {row.dtype}, {row.mode}"


def _key(source: str, row: SummaryRow, ranks: int) -> CurveKey:
    return CurveKey(
        source=source,
        collective=row.collective,
        link_class=row.link_class,
        layout=row.layout,
        ranks=ranks,
        nodes=row.nodes,
        dtype=row.dtype,
        redop=row.redop,
        in_place=row.in_place,
        concurrency=row.concurrency,
        engine=row.engine,
        backend=row.backend,
        mode=row.mode,
        variant=row.variant,
    )


def _curve(key: CurveKey, sizes: Mapping[int, list[list[_Value]]]) -> Curve:
    points = [_point(nbytes, launches) for nbytes, launches in sorted(sizes.items())]
    largest = [float(np.median(value.values)) for values in sizes[max(sizes)] for value in values]
    rates = [value.rate for launches in sizes.values() for values in launches for value in values if value.rate]
    factor, steps = _traffic(key.collective, key.ranks)
    return Curve(
        key=key,
        points=tuple(points),
        factor=factor,
        steps=steps,
        groups=max(len(values) for launches in sizes.values() for values in launches),
        nominal_bytes_per_second=min(rates, default=None),
        slowest_ratio=max(largest) / float(np.median(largest)),
    )


def _point(nbytes: int, launches: Sequence[Sequence[_Value]]) -> Point:
    values = []
    for groups in launches:
        several = len(groups) > 1
        medians = [float(np.median(group.values)) for group in groups]
        values.append(np.sort(np.array(medians)) if several else groups[0].values)
    return Point(nbytes, float(np.median([np.median(launch) for launch in values])), tuple(values))
