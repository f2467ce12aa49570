"""Runs that other programs disturbed: they found the CPUs busy at their start, left their threads unbound, and say so.

Such a run differs from the next by more than launches do (small messages took two to three times as long), and what
it shows is the other programs. Beside runs that were not disturbed it does not count; alone it calls nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from commbench.analysis.comparison import CaseChange, CoefficientChange, LinkChange
from commbench.results.schema import OTHERS_BUSY
from commbench.results.store import Run

_REASON = "measured beside other programs"
_CALLED = ("slower", "faster")


def was_disturbed(run: Run) -> bool:
    """Whether a node of the run says that others took the CPUs."""
    return any(OTHERS_BUSY in host.binding for host in run.record.hosts)


def quiet_runs(runs: Sequence[Run]) -> Sequence[Run]:
    """Those that were not disturbed; all, if all were."""
    return [run for run in runs if not was_disturbed(run)] or runs


def blur(
    cases: Sequence[CaseChange], links: Sequence[LinkChange]
) -> tuple[list[CaseChange], list[LinkChange]]:  # fmt: skip
    """The same, with nothing called."""
    return (
        [replace(case, verdict="noisy", reason=_REASON) if case.verdict in _CALLED else case for case in cases],
        [replace(link, alpha=_blurred(link.alpha), rate=_blurred(link.rate)) for link in links],
    )


def disturbance_notes(base: Sequence[Run], new: Sequence[Run]) -> Iterator[str]:
    """Which runs were disturbed, and what follows."""
    for name, runs in (("base", base), ("new", new)):
        disturbed = [run.directory.name for run in runs if was_disturbed(run)]
        if disturbed and len(disturbed) == len(runs):
            yield (
                f"every run of {name} was measured while other programs took the CPUs, with its threads unbound: "
                "nothing is called. Measure it again when the machine is quiet, or both sides with --bind none."
            )
        elif disturbed:
            yield f"{', '.join(disturbed)} of {name}: other programs took the CPUs, so it counts for nothing."


def _blurred(change: CoefficientChange | None) -> CoefficientChange | None:
    return replace(change, verdict="noisy") if change and change.verdict in _CALLED else change
