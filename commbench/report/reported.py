"""What a report is made of: a run, the name it goes by beside others, and the fit of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commbench.analysis.records import FitRecord
from commbench.results.store import Run

MOST_RUNS = 10  # in one report: as many as there are colours


@dataclass(frozen=True, slots=True)
class Reported:
    """One run of a report. `label` tells it from the others; `fit` is of this run alone."""

    label: str
    run: Run
    fit: FitRecord


def label_runs(directories: Sequence[Path]) -> list[str]:
    """A short name for each directory, no two alike: its name, or as much of its path as it takes."""
    labels = []
    for directory in directories:
        parts = directory.parts
        others = [other.parts for other in directories if other != directory]
        kept = 1
        while kept < len(parts) and any(other[-kept:] == parts[-kept:] for other in others):
            kept += 1
        labels.append("/".join(parts[-kept:]).replace("//", "/"))
    return labels
