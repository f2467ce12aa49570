"""From words of the command line to runs: directories of runs, files of other tools, names of baselines."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from commbench.cli.options import read_input
from commbench.errors import CommbenchError

if TYPE_CHECKING:
    from commbench.results.store import Run


def load_named_runs(words: Iterable[str]) -> "list[Run]":
    """The runs that these words mean, each once: a run's directory, a directory of runs, a file that `commbench import`
    reads, or a baseline; what exists as a path goes before a baseline of that name.

    Raises UsageError for a word that is none of these, CommbenchError for what cannot be read.
    """
    found = {run.directory.resolve(): run for word in words for run in _runs_of(word)}
    return list(found.values())


def _runs_of(word: str) -> "list[Run]":
    from commbench.results.baselines import baselines_directory, load_baseline
    from commbench.results.store import RUN_FILE, load_run

    path = Path(word)
    if (path / RUN_FILE).exists():
        return [load_run(path)]
    if path.is_dir():
        inside = sorted(child.parent for child in path.glob(f"*/{RUN_FILE}"))
        if not inside:
            raise CommbenchError(f"{path} is no run and holds none: give the directory of a run, or one with runs.")
        return [load_run(child) for child in inside]
    if path.exists():
        return [_imported(path)]
    return load_baseline(baselines_directory(), word)


def _imported(path: Path) -> "Run":
    """The run in a file of another tool; its date is the file's."""
    from commbench.results.importers import import_source
    from commbench.results.importers.assemble import assemble
    from commbench.results.importers.lines import MAX_FILE_NBYTES
    from commbench.results.importers.records import Source
    from commbench.results.store import Run

    name, data = read_input(str(path), MAX_FILE_NBYTES)
    written = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    imported = assemble([import_source(Source(name, data))], written, ())
    return Run(path, imported.record, imported.rows)
