"""What a comparison can and cannot know, in sentences with numbers."""

from collections.abc import Iterator, Sequence
from math import expm1
from statistics import median

from commbench.analysis.comparison import CaseChange, Rules
from commbench.analysis.environment import list_differences
from commbench.analysis.matching import MatchedCase
from commbench.analysis.significance import Difference, least_detectable, least_rank_p
from commbench.analysis.spread import MIN_FREEDOM
from commbench.results.store import Run

_SUSPICIOUS = 50  # of what differs among the runs of one side


def side_notes(base: Sequence[Run], new: Sequence[Run], same: bool) -> Iterator[str]:
    """On the runs as such."""
    if same:
        yield "both sides are the same runs: every ratio is 1, and nothing is learnt of noise or change."
    for name, runs in (("base", base), ("new", new)):
        for run in runs:
            yield from _run_notes(name, run)
        if len(runs) > 1:
            yield from _unlike_notes(name, runs)
    tools = [{run.record.origin.tool if run.record.origin else "commbench" for run in side} for side in (base, new)]
    if tools[0] != tools[1]:
        words = [" and ".join(sorted(side)) for side in tools]
        yield f"base was measured by {words[0]}, new by {words[1]}: two programs take times in two ways."


def _run_notes(side: str, run: Run) -> Iterator[str]:
    wrong = sum(row.status == "wrong" for row in run.rows)
    if wrong:
        yield f"{side} run {run.directory.name} has wrong data in {wrong} of {len(run.rows)} rows: see to that first."
    if run.record.outcome != "complete":
        lacking = sum(row.seconds_median is None for row in run.rows)
        partial = sum(row.status == "partial" for row in run.rows)
        yield (
            f"{side} run {run.directory.name} is {run.record.outcome}: of {len(run.rows)} rows {lacking} were not "
            f"measured and {partial} in part."
        )


def _unlike_notes(side: str, runs: Sequence[Run]) -> Iterator[str]:
    """Runs of one side are taken as launches of one thing: say where they are not."""
    first = [runs[0].record]
    for run in runs[1:]:
        unlike = [found for found in list_differences(first, [run.record]) if found.suspicion >= _SUSPICIOUS]
        if unlike:
            words = ", ".join(f"{found.name} ({found.base} / {found.new})" for found in unlike[:3])
            yield f"the runs of {side} are not of one set-up: {words}; their spread holds that difference too."
            return


def stranger_notes(matched: Sequence[MatchedCase], base: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    """On runs that have none of the cases which are compared."""
    for name, runs, timings in (
        ("base", base, [case.base for case in matched]),
        ("new", new, [case.new for case in matched]),
    ):
        for place, run in enumerate(runs):
            if timings and not any(case[place] for case in timings):
                yield f"{name} run {run.directory.name} has none of the compared cases, and counts for nothing."


def knowledge_notes(cases: Sequence[CaseChange], level: float, rules: Rules) -> Iterator[str]:
    """On the method, its noise, and the smallest change that could have been seen; `level`: of all cases together."""
    if not cases:
        return
    counts = (max(case.base_launches for case in cases), max(case.new_launches for case in cases))
    methods = {case.method for case in cases}
    runs = f"{counts[0]} base and {counts[1]} new {'run' if counts == (1, 1) else 'runs'}"
    if "assumed" in methods:
        need = MIN_FREEDOM + 2
        yield (
            f"{runs} do not show how far launches differ: {rules.assumed_spread:.0%} for a launch as a whole and as "
            "much for a case are assumed (standard deviation), more where its batches scatter more. Whether that holds "
            f"on this machine cannot be known from these runs; of {need} runs in all, such as 3 and 1, it is measured."
        )
    elif methods == {"ranks"}:
        yield f"{runs}: ranks of launches (Mann-Whitney, Holm over all claims), no distribution assumed."
    else:
        yield (
            f"{runs}: Student's t on launches, each with the level of its launch as noise (Holm over all claims); "
            f"ranks would need more runs: their smallest p here is {least_rank_p(counts):.2g}."
        )
    seen = [_least_seen(case, rules, level / len(cases)) for case in cases]
    yield (
        f"a launch differs from the next by {median(case.deviation for case in cases):.1%} (standard deviation, median "
        f"over cases); changes from about {median(seen):.0%} on (median over cases; {min(seen):.0%} at best) could "
        "have been called."
    )


def _least_seen(case: CaseChange, rules: Rules, level: float) -> float:
    difference = Difference(0.0, 0.0, 0.0, 1.0, case.deviation, case.freedom, case.method)
    tested = least_detectable(difference, (case.base_launches, case.new_launches), level)
    return max(rules.least_effect, 2 * case.deviation, expm1(min(tested, 50.0)))
