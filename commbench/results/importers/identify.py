"""Which collective a table is, and how many ranks it had: from its numbers, from what its text says, from the user."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from commbench.results.importers import checks
from commbench.results.importers.checks import Interval
from commbench.results.importers.records import ForeignRow, Hints
from commbench.results.kinds import ITEMSIZES, KINDS
from commbench.results.schema import UNKNOWN, Finding

_PER_RANK = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
_WHOLE_BUFFER = ("all_reduce", "broadcast", "reduce", "send_recv")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a table's text says beside its numbers.

    `named`: the collective in a text, `named_by`: where that stood. `listed_ranks`: the ranks of the device list.
    `redop_column`, `root_column`: whether the header has them; None without a header or where all layouts have them.
    """

    hints: Hints = field(default_factory=Hints)
    named: str | None = None
    named_by: str = ""
    listed_ranks: tuple[int, ...] = ()
    said_ranks: int | None = None
    redop_column: bool | None = None
    root_column: bool | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """What was found; `rows` are flagged. `listed_all`: the device list names each of the ranks once."""

    rows: tuple[ForeignRow, ...]
    collective: str
    ranks: int | None
    listed_all: bool
    findings: tuple[Finding, ...] = field(default=())


def identify(rows: Sequence[ForeignRow], evidence: Evidence) -> Identity:
    """Find collective and ranks of the table, check its rows, and say what does not fit."""
    findings: list[Finding] = []
    sound = [row for row in rows if row.nbytes and row.seconds is not None and row.status in ("ok", "wrong")]
    factor, ratio = checks.measured_factor(sound), checks.block_ratio(sound, ITEMSIZES)
    alone = _is_alone(sound)
    collective = _collective(sound, evidence, factor, ratio, alone, findings)
    ranks = 1 if alone else _ranks(collective, evidence, factor, ratio, findings)
    if alone:
        findings.append(_alone_finding(evidence))
    listed = evidence.listed_ranks
    listed_all = ranks is not None and sorted(listed) == list(range(ranks))
    if listed and ranks is not None and not listed_all and not alone:
        findings.append(_list_finding(evidence, ranks))
    scale, more = _scale(sound, ranks)
    findings += [replace(finding, where=evidence.where) for finding in more]
    flagged = checks.flag_contradictions(rows, scale)
    findings += _factor_findings(collective, ranks, factor, scale, evidence)
    return Identity(flagged, collective, ranks, listed_all, tuple(findings))


def _is_alone(rows: Sequence[ForeignRow]) -> bool:
    """Whether bus bandwidth is 0 where there is bandwidth: nccl-tests' factor for one rank."""
    telling = [row for row in rows if row.algbw and row.busbw and row.algbw.value > 10 * row.algbw.half_unit]
    return bool(telling) and all(row.busbw is not None and row.busbw.value == 0 for row in telling)


def _collective(
    rows: Sequence[ForeignRow],
    evidence: Evidence,
    factor: Interval | None,
    ratio: int | None,
    alone: bool,
    findings: list[Finding],
) -> str:
    possible = _possible(rows, evidence, factor, ratio, alone)
    said = evidence.hints.collective or evidence.named
    by = "--collective" if evidence.hints.collective else evidence.named_by
    if said is not None:
        if possible and said not in possible:
            fits = " or ".join(possible)
            findings.append(
                Finding("collective-contradicts", said, "warn", f"the numbers fit {fits}", f"{said}, named by {by}",
                        evidence.where, "check which test this table is of; the numbers are kept as they are")
            )  # fmt: skip
            return possible[0] if len(possible) == 1 else UNKNOWN
        if by == "the file's name":
            findings.append(
                Finding("collective-named-by-file", said, "warn", "the text does not name the collective", "",
                        evidence.where, "it is taken from the file's name, and the numbers do not contradict it")
            )  # fmt: skip
        return said
    if len(possible) > 1:
        possible = _told_by_layout(possible, rows, evidence)
    if len(possible) == 1:
        return possible[0]
    if rows:
        fits = " or ".join(possible) if possible else "no collective of the catalogue"
        findings.append(
            Finding("collective-unknown", UNKNOWN, "skip", f"the table does not name it, and the numbers fit {fits}",
                    "", evidence.where, "give --collective NAME")
        )  # fmt: skip
    return UNKNOWN


def _possible(
    rows: Sequence[ForeignRow], evidence: Evidence, factor: Interval | None, ratio: int | None, alone: bool
) -> list[str]:
    """The collectives that size, count, factor, operator and root allow; empty where there is nothing to judge by."""
    if not rows or (factor is None and ratio is None):
        return []
    names = [*_WHOLE_BUFFER, *_PER_RANK]
    if ratio is not None and not alone:
        names = [name for name in names if (name in _PER_RANK) == (ratio > 1)]
    if factor is not None and not alone:
        names = [name for name in names if _factor_fits(name, factor, ratio)]
    redops, roots = {row.redop for row in rows} - {UNKNOWN}, {row.root for row in rows} - {None}
    if redops:
        reducing = redops != {"none"}  # nccl-tests prints `sum` for send_recv too
        names = [name for name in names if KINDS[name].reduces == reducing or (reducing and name == "send_recv")]
    if roots:
        rooted = all(root is not None and root >= 0 for root in roots)
        names = [name for name in names if (name in ("broadcast", "reduce", "gather", "scatter")) == rooted]
    elif evidence.root_column is False:
        names = [name for name in names if name not in ("broadcast", "reduce", "gather", "scatter")]
    return names


def _told_by_layout(names: list[str], rows: Sequence[ForeignRow], evidence: Evidence) -> list[str]:
    """nccl-tests up to 2.11 gave all_to_all an empty operator column, and all_gather none; later versions never check
    all_to_all and send_recv in place.
    """
    if evidence.redop_column is not None and "all_to_all" in names and {row.redop for row in rows} == {"none"}:
        return ["all_to_all"] if evidence.redop_column else [name for name in names if name != "all_to_all"]
    if evidence.redop_column:
        return [name for name in names if name != "send_recv"] or names
    checked = {row.in_place: row.wrong is not None for row in rows if row.status in ("ok", "wrong")}
    if not checked.get(False) or True not in checked:
        return names
    told = [name for name in names if (name in ("all_to_all", "send_recv")) != checked[True]]
    return told or names


def _factor_fits(name: str, factor: Interval, ratio: int | None) -> bool:
    if name in ("broadcast", "reduce", "send_recv"):
        return factor.holds(1.0)
    if name != "all_reduce" and ratio is not None:
        # 1: nccl-tests before June 2020, whose algbw of all_gather and reduce_scatter already had the factor in it
        return factor.holds((ratio - 1) / ratio) or factor.holds(1.0)
    if name != "all_reduce" and factor.high >= 1.0:
        return False
    return bool(checks.ranks_of_factor(factor, doubled=name == "all_reduce"))


def _ranks(
    collective: str, evidence: Evidence, factor: Interval | None, ratio: int | None, findings: list[Finding]
) -> int | None:
    listed = evidence.listed_ranks
    complete = len(listed) if listed and sorted(listed) == list(range(len(listed))) else None
    if ratio is not None and ratio > 1:
        possible = [ratio]
    elif factor is not None and (collective == "all_reduce" or collective in _PER_RANK or factor.high < 0.999):
        possible = checks.ranks_of_factor(factor, doubled=collective == "all_reduce")
    else:
        possible = []
    said = [value for value in (evidence.hints.ranks, evidence.said_ranks, complete) if value is not None]
    for value in said:
        if not possible or value in possible:
            return value
    if len(possible) == 1:
        return possible[0]
    if possible:
        many = f"{possible[0]} to {possible[-1]}{' and more' if len(possible) == 100 else ''}"
        findings.append(
            Finding("ranks-unknown", collective, "skip", f"the printed digits allow {many} ranks", "", evidence.where,
                    "give --ranks N")
        )  # fmt: skip
    return None


def _alone_finding(evidence: Evidence) -> Finding:
    return Finding(
        "not-built-with-mpi", "every process is alone", "fail", "busbw is 0 in every row that has bandwidth",
        "a factor above 0", evidence.where,
        "each process measured itself: build nccl-tests with MPI=1, or give -g; there is no traffic between ranks here",
    )  # fmt: skip


def _list_finding(evidence: Evidence, ranks: int) -> Finding:
    listed = evidence.listed_ranks
    return Finding(
        "ranks-contradict-devices", f"{ranks} ranks", "warn", f"the device list names {len(listed)}", f"{ranks}",
        evidence.where, "the list is cut, or the table is another run's: nodes and devices are not taken from it",
    )  # fmt: skip


def _scale(sound: Sequence[ForeignRow], ranks: int | None) -> tuple[float, tuple[Finding, ...]]:
    """The factor on S/t that the table's algbw follows, and the finding that says so."""
    old = {"(N-1)/N": (ranks - 1) / ranks} if ranks is not None and ranks > 1 else {}
    name = checks.convention(sound, old)
    if name is None:
        return 1.0, ()
    if name == "GiB":
        found = Finding("gib-labelled-gb", "algbw", "warn", "algbw is in GiB/s", "GB/s of 1e9 bytes", "",
                        "bandwidths are recomputed from size and time")  # fmt: skip
        return 1 / 1.073741824, (found,)
    found = Finding("old-algbw", "algbw", "warn", "algbw is S(N-1)/N over t, as nccl-tests did before June 2020", "S/t",
                    "", "bandwidths are recomputed from size and time")  # fmt: skip
    return old[name], (found,)


def _factor_findings(
    collective: str, ranks: int | None, factor: Interval | None, scale: float, evidence: Evidence
) -> list[Finding]:
    expected = KINDS[collective].bus_factor(ranks)
    if factor is None or expected is None or factor.holds(expected) or scale != 1.0:
        return []
    low, high = f"{factor.low:.4g}", f"{factor.high:.4g}"
    return [
        Finding("factor-contradicts", f"{collective} on {ranks} ranks", "warn", f"busbw/algbw is {low} to {high}",
                f"{expected:.4g}", evidence.where, "collective or ranks are others than they are said to be")
    ]  # fmt: skip
