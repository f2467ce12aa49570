"""What is expected of a link: published floors, a file of the user, or an earlier run; and how a result stands to it.

A file is TOML, with a table `[[expectation]]` each:

    link_class = "net"            as in summary.csv
    collective = "send_recv"
    size = "64M"                  bandwidth: this size and larger; time: this size alone
    ranks = 2                     left out: any number
    unit = "GB/s"                 of busbw; "Gbit/s" likewise; "us": of time
    value = 48.5                  what is usual
    lower = 45.0                  below it a bandwidth is too low
    upper = 52.0                  above it a time is too long, and a bandwidth asks for a new expectation
    source = "…"                  where the numbers are from, and
    measured_with = "…"           with what

One-sided: faster is never a failure. Where no expectation fits there is no reference, which is not the same as fine.
"""

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from commbench.errors import CommbenchError, UsageError, unknown_name
from commbench.plan.links import LINK_CLASSES
from commbench.results.kinds import KINDS
from commbench.results.schema import Finding, SummaryRow
from commbench.results.store import Run
from commbench.units import GB, parse_nbytes

Unit = Literal["GB/s", "Gbit/s", "us"]

SCALES: dict[str, float] = {"GB/s": GB, "Gbit/s": GB / 8, "us": 1e-6}  # to bytes per second, and seconds
LATENCY_NBYTES = 4096  # below it a run's time is kept, from it on its bandwidth
KEPT_BANDWIDTH, KEPT_TIMES = 0.93, 2.1  # of what was measured here; the ratios by which pairs are judged, too
_REFRESH = "measure the expectation anew: it is lower than what this link can do"
_LOOK = "measure again; if it stays, look at the link, and at what changed since the reference was measured"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row of a file, in its own unit; `bounds` has bytes per second or seconds."""

    link_class: str
    collective: str
    size: str
    unit: Unit
    source: str
    measured_with: str
    ranks: int | None = None
    value: float | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def nbytes(self) -> int:
        return parse_nbytes(self.size)

    @property
    def is_time(self) -> bool:
        return self.unit == "us"

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """Lower and upper bound in bytes per second of busbw, or in seconds."""
        scale = SCALES[self.unit]
        return tuple(bound if bound is None else bound * scale for bound in (self.lower, self.upper))  # type: ignore[return-value]

    def is_of(self, link_class: str, collective: str, ranks: int | None) -> bool:
        """Whether it speaks of this collective on so many ranks, at whatever size."""
        is_like = (link_class, collective) == (self.link_class, self.collective)
        return is_like and (self.ranks is None or self.ranks == ranks)

    def holds_for(self, link_class: str, collective: str, nbytes: int, ranks: int | None) -> bool:
        """Bandwidth grows with the size, so a floor at one size holds for larger ones; a time holds for its size."""
        holds_at = self.nbytes == nbytes if self.is_time else self.nbytes <= nbytes
        return holds_at and self.is_of(link_class, collective, ranks)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    expectation: list[Expectation]
    title: str = ""


def read_expectations(text: str, source: str) -> tuple[Expectation, ...]:
    """The expectations of a TOML text. Raises CommbenchError that names `source` and what is wrong in it."""
    try:
        found = msgspec.convert(tomllib.loads(text), type=_File).expectation
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise CommbenchError(f"{source} is no file of expectations: {error}.") from error
    for number, expectation in enumerate(found, 1):
        if problem := _problem(expectation):
            raise CommbenchError(f"{source}, expectation {number}: {problem}.")
    return tuple(found)


def write_expectations(expectations: Iterable[Expectation], title: str) -> str:
    """TOML that `read_expectations` reads again."""
    blocks = [f"title = {_toml(title)}\n"]
    for expectation in expectations:
        fields = ((name, getattr(expectation, name)) for name in expectation.__struct_fields__)
        lines = [f"{name} = {_toml(value)}" for name, value in fields if value is not None]
        blocks.append("\n".join(["[[expectation]]", *lines, ""]))
    return "\n".join(blocks)


@cache
def published_platforms() -> dict[str, str]:
    """Platforms that come with commbench, and what each is."""
    found = (path for path in files("commbench.data").joinpath("expectations").iterdir() if path.name.endswith(".toml"))
    titles = {path.name.removesuffix(".toml"): tomllib.loads(path.read_text()).get("title", "") for path in found}
    return dict(sorted(titles.items()))


def published_expectations(platform: str) -> tuple[Expectation, ...]:
    """The published floors of `platform`. Raises UsageError for one that is not known."""
    if platform not in published_platforms():
        raise unknown_name("platform", platform, published_platforms())
    path = files("commbench.data").joinpath("expectations", f"{platform}.toml")
    return read_expectations(path.read_text(), path.name)


def expectations_from_run(run: Run, source: str) -> tuple[Expectation, ...]:
    """What a run measured as expectations, marked as measured here: busbw, and below 4 KiB the time.

    Of several cases or groups of one kind the median-low row counts; rows that are wrong, noisy or cut off do not.
    """
    like: dict[tuple[Any, ...], list[SummaryRow]] = {}
    for row in run.rows:
        if row.status == "ok" and row.seconds_median and row.size_bytes:
            like.setdefault((row.link_class, row.collective, row.ranks, row.size_bytes), []).append(row)
    measured_with = f"measured here by commbench, {run.record.backend}, {run.record.created_utc[:10]}"
    made = []
    for rows in like.values():
        rows.sort(key=lambda row: row.seconds_median or 0.0)
        expectation = _from_row(rows[(len(rows) - 1) // 2], source, measured_with)
        made += [expectation] if expectation is not None else []
    return tuple(made)


def find_expectation(
    expectations: Sequence[Expectation], link_class: str, collective: str, nbytes: int, ranks: int | None
) -> Expectation | None:
    """The one that holds, the nearest in size; None where there is no reference."""
    holding = [one for one in expectations if one.holds_for(link_class, collective, nbytes, ranks)]
    return max(holding, key=lambda one: (one.ranks is not None, one.nbytes), default=None)


def allowed_seconds(expectation: Expectation, nbytes: int, bus_factor: float) -> float | None:
    """Up to which time `nbytes` are as expected; None where the expectation has no bound on that side."""
    lower, upper = expectation.bounds
    if expectation.is_time:
        return upper
    return bus_factor * nbytes / lower if lower else None


def judge(rule: str, subject: str, expected: Expectation, nbytes: int, seconds: float, bus_factor: float) -> Finding:
    """`ok` or `fail` of a collective that took `seconds` at `nbytes`, for which `expected` holds."""
    scale = SCALES[expected.unit]
    observed = seconds / scale if expected.is_time else bus_factor * nbytes / seconds / scale
    is_worse = expected.upper is not None and observed > expected.upper
    is_better = expected.lower is not None and observed < expected.lower
    if not expected.is_time:
        is_worse, is_better = is_better, is_worse
    bound = f"at most {expected.upper:g}" if expected.is_time else f"at least {expected.lower:g}"
    return Finding(
        rule=rule,
        subject=subject,
        verdict="fail" if is_worse else "ok",
        observed=f"{observed:.4g} {expected.unit}",
        expected=f"{bound} {expected.unit} ({expected.measured_with})",
        where=expected.source,
        action=_LOOK if is_worse else _REFRESH if is_better else "",
    )


def _from_row(row: SummaryRow, source: str, measured_with: str) -> Expectation | None:
    made = Expectation(
        link_class=row.link_class,
        collective=row.collective,
        size=str(row.size_bytes),
        unit="us",
        source=source,
        measured_with=measured_with,
        ranks=row.ranks,
    )
    if (row.size_bytes or 0) < LATENCY_NBYTES:
        microseconds = (row.seconds_median or 0.0) / SCALES["us"]
        return msgspec.structs.replace(made, value=_four(microseconds), upper=_four(KEPT_TIMES * microseconds))
    if not row.busbw_gbps:
        return None
    return msgspec.structs.replace(
        made, unit="GB/s", value=_four(row.busbw_gbps), lower=_four(KEPT_BANDWIDTH * row.busbw_gbps)
    )


def _problem(expectation: Expectation) -> str:
    bounds = [bound for bound in (expectation.lower, expectation.value, expectation.upper) if bound is not None]
    if expectation.link_class not in LINK_CLASSES:
        return f"link class {expectation.link_class!r} is none of {', '.join(LINK_CLASSES)}"
    if expectation.collective not in KINDS:
        return f"collective {expectation.collective!r} is none of {', '.join(KINDS)}"
    if (expectation.upper if expectation.is_time else expectation.lower) is None:
        return f"in {expectation.unit} it needs {'upper' if expectation.is_time else 'lower'}, the bound that judges"
    if not all(0.0 < bound < float("inf") for bound in bounds) or bounds != sorted(bounds):
        return f"lower, value and upper are {bounds}: they must be above 0 and ascend"
    try:
        parse_nbytes(expectation.size)
    except UsageError as error:
        return str(error).removesuffix(".")
    return ""


def _toml(value: str | float) -> str:
    """JSON's strings are TOML's, but for a character that TOML wants escaped."""
    text = msgspec.json.encode(value).decode()
    return text.replace("\x7f", "\\u007f")


def _four(value: float) -> float:
    return float(f"{value:.4g}")
