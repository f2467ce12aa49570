"""Who is to blame, in words: the verdict first, culprits with their evidence and what to do, then who was cleared."""

from collections.abc import Iterable, Sequence
from math import exp

from commbench.analysis.localize import Diagnosis
from commbench.analysis.racks import collect_hosts
from commbench.analysis.suspects import LINKS, Suspect, Verdict
from commbench.units import format_nbytes, format_seconds

_MOST_NAMED = 8
_MOST_CULPRITS = 20
_SIDES = {"both": "sending and receiving", "send": "sending", "receive": "receiving"}
# By kind, those that concern most first: whether its hosts are left out of the next job, what it is, and what to do.
_KINDS: dict[str, tuple[bool, str, str]] = {
    "dead": (
        True,
        "does not answer",
        "leave the node out; look whether it is up, and at its firewall and routes",
    ),
    "group": (
        True,
        "is slow as a whole",
        "look at what its members share: the uplinks of its switch, its power, its image",
    ),
    "rail": (
        False,
        "is slower than the other rails",
        "look at the switches and the NICs of this rail on all nodes",
    ),
    "node": (
        True,
        "is slow",
        "leave the node out; look at its NIC (rate, errors, PCIe width), its cable and switch port, and at what else "
        "runs there",
    ),
    "pair": (
        False,
        "",
        "measure with a third node: with one pair it cannot be told which end it is",
    ),
    "cut": (
        False,
        "does not connect, and both ends answer others",
        "look at routes, firewall and addresses between the two",
    ),
    "link": (
        False,
        "is slow, and both ends are as usual with others",
        "keep the two nodes out of one job; look at the way between their switches",
    ),
    "noisy": (
        False,
        "varies: half of its times are this long or longer",
        "look at what else uses its CPUs and links, then measure again",
    ),
}


def excluded_hosts(diagnosis: Diagnosis, verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """The hosts of confirmed culprits, in the order of the nodes. A link, a rail or noise excludes none."""
    confirmed = [one.suspect for one in verdicts if one.state == "confirmed" and _KINDS[one.suspect.kind][0]]
    ends = sorted({end for suspect in confirmed for end in suspect.members})
    return tuple(dict.fromkeys(diagnosis.cluster.host(end) for end in ends))


def exclude_option(hosts: Sequence[str]) -> str:
    """`--exclude=n[2,7]`, as srun and sbatch take it; empty for no host."""
    return f"--exclude={collect_hosts(hosts)}" if hosts else ""


def tell_culprits(diagnosis: Diagnosis, verdicts: Sequence[Verdict]) -> list[str]:
    """The lines of one size's verdict."""
    confirmed = _by_weight(one for one in verdicts if one.state == "confirmed")
    lines = [_headline(diagnosis, confirmed)]
    for verdict in confirmed[:_MOST_CULPRITS]:
        lines += [f"  {_culprit(diagnosis, verdict)}", f"    {_evidence(diagnosis, verdict)}"]
        lines.append(f"    to do: {_KINDS[verdict.suspect.kind][2]}.")
    if len(confirmed) > _MOST_CULPRITS:
        lines.append(f"  and {len(confirmed) - _MOST_CULPRITS} more.")
    if option := exclude_option(excluded_hosts(diagnosis, verdicts)):
        lines.append(f"  {option}")
    for state, words in (
        ("open", "suspected, but not measured again often enough"),
        ("slight", "slower again when measured again, but by too little to accuse"),
        ("within expectation", "slower than the others, but within the expectation"),
        ("not reproduced", "suspected, but not reproduced when measured again"),
    ):
        named = [_subject(diagnosis, one.suspect) for one in _by_weight(v for v in verdicts if v.state == state)]
        if named:
            lines.append(f"  {words}: {_some(named)}.")
    return [*lines, f"  {_basis(diagnosis)}"]


def _headline(diagnosis: Diagnosis, confirmed: Sequence[Verdict]) -> str:
    what = format_nbytes(diagnosis.nbytes)
    if diagnosis.is_below_expectation and diagnosis.allowed_seconds is not None:
        usual, allowed = (
            format_seconds(value or 0.0) for value in (diagnosis.usual_seconds, diagnosis.allowed_seconds)
        )
        rest = f", and {_some([_subject(diagnosis, one.suspect) for one in confirmed])} above that" if confirmed else ""
        return (
            f"{what}: all are slower than expected: the usual pair takes {usual}, at most {allowed} is expected{rest}."
        )
    if confirmed:
        return f"{what}: to blame: {_some([_subject(diagnosis, one.suspect) for one in confirmed])}."
    if diagnosis.usual_seconds is None:
        return f"{what}: nothing was measured, so nothing is known."
    if any(one.kind == "pair" for one in diagnosis.suspects):
        return f"{what}: the two nodes differ, but it was not confirmed."
    return f"{what}: nobody stands out among {len(diagnosis.cluster.hosts)} nodes."


def _culprit(diagnosis: Diagnosis, verdict: Verdict) -> str:
    suspect, subject = verdict.suspect, _subject(diagnosis, verdict.suspect)
    if suspect.kind == "pair":
        arrow = "→".join(diagnosis.cluster.name(end) for end in suspect.members)
        is_failure = verdict.ratio == float("inf")
        found = "does not connect" if is_failure else f"takes {_times(verdict)} of the other direction"
        return f"{arrow} {found}: which of the two is to blame cannot be told."
    if suspect.kind in ("dead", "cut"):
        return f"{subject} {_KINDS[suspect.kind][1]}."
    side = f", {_SIDES[suspect.side]}" if suspect.kind in ("node", "group") else ""
    usual = format_seconds(exp(suspect.usual))
    return f"{subject} {_KINDS[suspect.kind][1]}{side}: {_times(verdict)}, usual {usual}."


def _times(verdict: Verdict) -> str:
    return f"{verdict.ratio:.2f} times the time ({1 / verdict.ratio:.0%} of the rate)"


def _evidence(diagnosis: Diagnosis, verdict: Verdict) -> str:
    suspect = verdict.suspect
    first = f"{_count(suspect.results, 'result')} in the first {_count(diagnosis.rounds, 'round')}"
    partners = _with(diagnosis, suspect.partners)
    again = f"again in {verdict.again} of {verdict.retests} retests{_with(diagnosis, verdict.partners)}"
    far = f", {suspect.z:.1f} times the noise" if suspect.z < 1e6 else ""
    return f"{first}{partners}{far}; {again}."


def _with(diagnosis: Diagnosis, partners: Sequence[int]) -> str:
    return f" with {_some([diagnosis.cluster.name(end) for end in partners])}" if partners else ""


def _subject(diagnosis: Diagnosis, suspect: Suspect) -> str:
    names = [diagnosis.cluster.name(end) for end in suspect.members]
    if suspect.kind in ("group", "rail"):
        return suspect.name
    if suspect.kind == "pair":
        return " or ".join(names)
    return f"the link {('–' if suspect.side == 'both' else '→').join(names)}" if suspect.kind in LINKS else names[0]


def _basis(diagnosis: Diagnosis) -> str:
    usual, allowed = diagnosis.usual_seconds, diagnosis.allowed_seconds
    told = [f"{_count(diagnosis.pairs, 'pair')} in {_count(diagnosis.rounds, 'round')}"]
    if diagnosis.failed_results:
        told.append(f"{_count(diagnosis.failed_results, 'direction')} failed")
    if usual is not None:
        told.append(f"usual {format_seconds(usual)}")
    if usual is not None and diagnosis.cluster.endpoints > 2:
        told.append(
            f"noise {diagnosis.noise:.1%}, so a node {diagnosis.detectable_ratio - 1:.0%} slower would stand out"
        )
    told.append(
        "no reference: judged against each other alone" if allowed is None
        else f"expected at most {format_seconds(allowed)}"
    )  # fmt: skip
    return "; ".join(told) + "."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _by_weight(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that concern most first: failures, groups, nodes, then by how slow."""
    order = list(_KINDS)
    return sorted(verdicts, key=lambda one: (order.index(one.suspect.kind), -round(one.effect, 1), one.suspect.members))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
