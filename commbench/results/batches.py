"""samples.csv in one quick pass: a million rows in a few seconds. What it cannot read, `store` reads with care."""

from pathlib import Path

from commbench.results.schema import SAMPLE_COLUMNS
from commbench.results.summary import GroupSamples

_TOO_LARGE = 1 << 62  # as in store: a damaged file


def read_plain_samples(path: Path) -> dict[tuple[int, int], GroupSamples] | None:
    """The samples of every (case, group) in the file, warm-up left out; None if a row is not plainly as we write it.

    A torn last line is left out. Raises OSError if the file cannot be opened, as `open` does.
    """
    collected: dict[tuple[str, str], GroupSamples] = {}
    with path.open(newline="\n", encoding="utf-8", errors="replace") as file:
        if file.readline() != ",".join(SAMPLE_COLUMNS) + "\n":
            return None
        try:
            for line in file:
                if '"' in line or "\r" in line:  # a matter for a CSV reader
                    return None
                if line.endswith("\n"):
                    _add(collected, line[:-1].split(","))
            keys = [(int(case), int(group)) for case, group in collected]
        except ValueError:
            return None
    too_large = any(abs(number) >= _TOO_LARGE for key in keys for number in key)
    return None if too_large else dict(zip(keys, collected.values(), strict=True))


def _add(collected: dict[tuple[str, str], GroupSamples], cells: list[str]) -> None:
    """Add one row. Raises ValueError for a cell that is not what its column holds."""
    case, group, kind, visit, calls, seconds, enqueue, wrong = cells
    value = float(seconds)
    if value - value != 0.0 or not -_TOO_LARGE < int(visit) < _TOO_LARGE or not -_TOO_LARGE < int(calls) < _TOO_LARGE:
        raise ValueError(seconds)
    samples = collected.get((case, group))
    if samples is None:
        samples = collected[case, group] = GroupSamples()
    if kind == "batch":
        samples.seconds.append(value)
        if enqueue:
            samples.enqueue_seconds.append(_finite(enqueue))
    elif kind == "first":
        samples.first_call_seconds = value
        samples.wrong = int(wrong) if wrong else None


def _finite(cell: str) -> float:
    value = float(cell)
    if value - value != 0.0:
        raise ValueError(cell)
    return value
