"""From the directories on the command line to launches, as fits want them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from commbench.analysis.curves import Launch


def load_launches(directories: Sequence[Path]) -> "list[Launch]":
    """Each run once, with its samples where it has them. Raises CommbenchError for one that cannot be read."""
    from commbench.analysis.curves import Launch
    from commbench.results.store import SAMPLES_FILE, collect_samples, load_run

    launches = []
    for directory in dict.fromkeys(path.resolve() for path in directories):
        run = load_run(directory)
        samples = collect_samples(directory) if (directory / SAMPLES_FILE).exists() else {}
        launches.append(Launch(run, samples))
    return launches
