"""Two sets of runs: what is faster, what is slower, and what is noise. Blocks are launches, not batches."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, inf, log1p

import numpy as np

from commbench.analysis.coefficients import Coefficients, Values, link_coefficients
from commbench.analysis.comparison import (
    CaseChange,
    CoefficientChange,
    Comparison,
    LinkChange,
    Ratio,
    Rules,
    Side,
    Verdict,
)
from commbench.analysis.disturbed import blur, disturbance_notes, quiet_runs, was_disturbed
from commbench.analysis.environment import list_differences
from commbench.analysis.lines import Floats
from commbench.analysis.matching import MatchedCase, Timing, launch_timings, match_cases
from commbench.analysis.notes import knowledge_notes, side_notes, stranger_notes
from commbench.analysis.significance import Difference, holm, least_rank_p, rank_difference, t_difference
from commbench.analysis.spread import ASSUMED_FREEDOM, FLOOR, MIN_FREEDOM, Spread, measure_level, measure_spread
from commbench.errors import UsageError
from commbench.results.store import Run

_LEAST_COEFFICIENT = 0.01  # of the base's: noise may take it below zero
_NEIGHBOUR_SHARE = 0.5  # of a case's change: a size beside it that changed by so much agrees


def compare_runs(base: Sequence[Run], new: Sequence[Run], rules: Rules) -> Comparison:
    """The comparison of at least one run a side. Raises UsageError for a run that is on both sides beside others."""
    same = _is_same(base, new)
    quiet = [quiet_runs(side) for side in (base, new)]
    matched, unmatched = match_cases(*([launch_timings(run) for run in side] for side in quiet))
    differences = list_differences([run.record for run in base], [run.record for run in new])
    cases, links = _same_runs(matched) if same else _judge(matched, rules)
    if any(was_disturbed(side[0]) for side in quiet):
        cases, links = blur(cases, links)
    return Comparison(
        base=_side(base),
        new=_side(new),
        rules=rules,
        environment=tuple(differences),
        links=tuple(links),
        cases=tuple(cases),
        unmatched=tuple(unmatched),
        notes=(
            *side_notes(base, new, same),
            *disturbance_notes(base, new),
            *stranger_notes(matched, *quiet),
            *([] if same else knowledge_notes(cases, rules.family_level(bool(links)), rules)),
        ),
        verdict=_verdict(cases, links),
    )


def _is_same(base: Sequence[Run], new: Sequence[Run]) -> bool:
    """Whether both sides are the same runs. Raises UsageError where they share some."""
    shared = [run for run in new if any(run.record == other.record and run.rows == other.rows for other in base)]
    if shared and (len(shared) < len(new) or len(new) != len(base)):
        raise UsageError(
            f"{shared[0].directory} is on both sides: a change of a run against itself is always nothing; leave it out."
        )
    return bool(shared)


def _side(runs: Sequence[Run]) -> Side:
    names = tuple(str(run.directory) for run in runs)
    return Side(names, tuple(sorted(run.record.created_utc for run in runs)))


def _verdict(cases: Sequence[CaseChange], links: Sequence[LinkChange]) -> Verdict:
    found = Counter(case.verdict for case in cases)
    found.update(change.verdict for link in links for change in (link.alpha, link.rate) if change)
    claims: tuple[Verdict, ...] = ("slower", "faster")
    unclaimed: Verdict = "noisy" if found["noisy"] > found["same"] else "same"
    return next((verdict for verdict in claims if found[verdict]), unclaimed if cases else "not comparable")


def _same_runs(matched: Sequence[MatchedCase]) -> tuple[list[CaseChange], list[LinkChange]]:
    nothing = Difference(0.0, 0.0, 0.0, 1.0, 0.0, 1.0, "same runs")
    return [_case_change(case, nothing, "same") for case in matched], []


def _judge(matched: Sequence[MatchedCase], rules: Rules) -> tuple[list[CaseChange], list[LinkChange]]:
    if not matched:
        return [], []
    sides = _log_seconds([case.base for case in matched]), _log_seconds([case.new for case in matched])
    spread = measure_spread(sides, _half_widths(matched), rules.assumed_spread)
    coefficients = link_coefficients(
        [case.key for case in matched],
        times=np.exp(np.concatenate(sides, axis=1)),
        base=np.exp(np.nanmean(sides[0], axis=1)),
        variances=np.array([spread.of_case(index)[0] for index in range(len(matched))]),
    )
    level = rules.family_level(bool(coefficients))
    differences = [_case_difference(index, sides, spread, level / len(matched)) for index in range(len(matched))]
    cases = _case_changes(matched, differences, holm([one.p for one in differences], level), rules)
    estimates = np.array([one.estimate for one in differences])
    return cases, _link_changes(coefficients, estimates, sides, level, rules)


def _link_changes(
    coefficients: Sequence[Coefficients],
    estimates: Floats,
    sides: tuple[Floats, Floats],
    level: float,
    rules: Rules,
) -> list[LinkChange]:
    values = [one for found in coefficients for one in (found.alpha, found.beta)]
    first = level / max(1, sum(one is not None for one in values))
    changes = [_value_difference(one, sides, first, rules.assumed_spread) if one else None for one in values]
    rejected = iter(holm([one.p for one in changes if one], level))
    judged = [_coefficient(one, next(rejected), rules) if one else None for one in changes]
    links = []
    for place, found in enumerate(coefficients):
        alpha, beta = judged[2 * place : 2 * place + 2]
        links.append(
            LinkChange(
                found.link_class,
                _borne_out(alpha, beta, found.alpha, estimates, rules),
                _inverted(_borne_out(beta, alpha, found.beta, estimates, rules)),
            )
        )
    return links


def _borne_out(
    change: CoefficientChange | None,
    other: CoefficientChange | None,
    values: Values | None,
    estimates: Floats,
    rules: Rules,
) -> CoefficientChange | None:
    """The change, called only if the sizes that tell it show it: their median changed so by the least effect or more,
    and is nearer to what the change makes of them than to what the `other` coefficient makes of them alone.
    """
    if change is None or values is None or change.verdict not in ("slower", "faster"):
        return change
    beside = (1 - values.share) * (other.ratio.value if other else 1.0)
    claimed, unchanged = (np.log(values.share * ratio + beside) for ratio in (change.ratio.value, 1.0))
    median = float(np.median(estimates[list(values.places)]))
    is_seen = median * np.log(change.ratio.value) > 0 and abs(median) >= log1p(rules.least_effect)
    is_nearer = abs(median - claimed) <= abs(median - unchanged)
    return change if is_seen and is_nearer else replace(change, verdict="noisy")


def _log_seconds(cases: Sequence[Sequence[Timing | None]]) -> Floats:
    """Shape (cases, launches), NaN for none; launches without any of these cases are left out."""
    seconds: Floats = np.array([[timing.seconds if timing else np.nan for timing in case] for case in cases])
    return np.log(seconds[:, ~np.isnan(seconds).all(axis=0)])


def _half_widths(matched: Sequence[MatchedCase]) -> Floats:
    """The widest interval of each case inside one launch, relative; NaN where no launch has one."""
    widths = [[timing.half_width for timing in (*case.base, *case.new) if timing] for case in matched]
    return np.array([max((width for width in case if width is not None), default=np.nan) for case in widths])


def _case_difference(case: int, sides: tuple[Floats, Floats], spread: Spread, level: float) -> Difference:
    base, new = (side[case][~np.isnan(side[case])] for side in sides)
    counts = len(base), len(new)
    variance, freedom = spread.of_case(case)
    if least_rank_p(counts) <= level:
        return rank_difference(base, new)
    method = "assumed" if spread.is_assumed else "t"
    return t_difference(float(new.mean() - base.mean()), variance, freedom, counts, method)


def _value_difference(values: Values, sides: tuple[Floats, Floats], level: float, assumed: float) -> Difference | None:
    """Of a coefficient of each launch, over that of the base; None where no launch of a side tells.

    As of cases, a variance that came out small by luck is raised, to the mean with what its cases make one expect.
    """
    logs = np.log(np.maximum(values.launches, _LEAST_COEFFICIENT))
    base_launches = sides[0].shape[1]
    base, new = (side[~np.isnan(side)] for side in (logs[:base_launches], logs[base_launches:]))
    if not len(base) or not len(new):
        return None
    counts, freedom = (len(base), len(new)), len(base) + len(new) - 2
    squares = float(((base - base.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    variance = max(squares / freedom if freedom else 0.0, FLOOR**2)
    if least_rank_p(counts) <= level:
        return rank_difference(base, new)
    estimate = float(new.mean() - base.mean())
    if freedom < MIN_FREEDOM:
        least = assumed**2 + max(assumed**2, values.variance)  # of the launch's level, and of the cases beside it
        return t_difference(estimate, max(variance, least), ASSUMED_FREEDOM, counts, "assumed")
    typical = measure_level(sides, values.places) + values.variance
    if variance < typical:
        variance, freedom = (variance + typical) / 2, 2 * freedom
    return t_difference(estimate, variance, float(freedom), counts)


def _verdict_of(difference: Difference, is_rejected: bool, rules: Rules) -> Verdict:
    """Changed: more than chance over all claims, and by more than the least effect and twice the noise of a launch."""
    least = log1p(rules.least_effect)
    if is_rejected and abs(difference.estimate) >= max(least, 2 * difference.standard_deviation):
        return "slower" if difference.estimate > 0 else "faster"
    return "same" if -least <= difference.low and difference.high <= least else "noisy"


def _ratio(difference: Difference) -> Ratio:
    return Ratio(*(exp(min(value, 700.0)) for value in (difference.estimate, difference.low, difference.high)))


def _coefficient(difference: Difference, is_rejected: bool, rules: Rules) -> CoefficientChange:
    verdict = _verdict_of(difference, is_rejected, rules)
    return CoefficientChange(_ratio(difference), verdict, difference.p, difference.standard_deviation)


def _inverted(beta: CoefficientChange | None) -> CoefficientChange | None:
    """B = 1/beta."""
    if beta is None:
        return None
    ratio = Ratio(1 / beta.ratio.value, 1 / beta.ratio.high, 1 / beta.ratio.low if beta.ratio.low else inf)
    return replace(beta, ratio=ratio)


def _case_changes(
    matched: Sequence[MatchedCase], differences: Sequence[Difference], rejected: Sequence[bool], rules: Rules
) -> list[CaseChange]:
    verdicts = [_verdict_of(*pair, rules) for pair in zip(differences, rejected, strict=True)]
    agreed = _agreement(matched, differences)
    changes = []
    for case, difference, verdict, agrees in zip(matched, differences, verdicts, agreed, strict=True):
        if verdict in ("slower", "faster") and not agrees:
            changes.append(_case_change(case, difference, "noisy", "the sizes beside it do not agree"))
        else:
            changes.append(_case_change(case, difference, verdict))
    return changes


def _agreement(matched: Sequence[MatchedCase], differences: Sequence[Difference]) -> list[bool]:
    """Whether a size beside a case changed in its direction by at least half as much, or there is none beside it."""
    curves: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index in sorted(range(len(matched)), key=lambda i: matched[i].key.size_bytes or 0):
        curves[matched[index].key.series].append(index)
    agreed = [True] * len(matched)
    for places in curves.values():
        for position, index in enumerate(places):
            own = differences[index].estimate
            beside = [differences[other].estimate for other in _beside(places, position)]
            agreed[index] = not beside or any(other * own >= _NEIGHBOUR_SHARE * own**2 for other in beside)
    return agreed


def _beside(places: Sequence[int], position: int) -> Iterable[int]:
    return (*places[max(position - 1, 0) : position], *places[position + 1 : position + 2])


def _case_change(case: MatchedCase, difference: Difference, verdict: Verdict, reason: str = "") -> CaseChange:
    base, new = ([timing for timing in side if timing] for side in (case.base, case.new))
    slowest = max(new, key=lambda timing: timing.seconds)
    return CaseChange(
        key=case.key,
        base_seconds=_typical(base),
        new_seconds=_typical(new),
        base_launches=len(base),
        new_launches=len(new),
        time=_ratio(difference),
        verdict=verdict,
        p=difference.p,
        deviation=difference.standard_deviation,
        freedom=difference.freedom,
        method=difference.method,
        slowest_group=slowest.group,
        reason=reason,
    )


def _typical(timings: Sequence[Timing]) -> float:
    return exp(float(np.mean(np.log([timing.seconds for timing in timings]))))
