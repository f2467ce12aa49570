"""The lines below a table that say what was found amiss while it was measured."""

from commbench.results.store import Run

_MOST_LINES = 6


def finding_lines(run: Run) -> list[str]:
    """A line for each `warn` or `fail`, the first few; none of an imported run: `commbench import` says them."""
    amiss = [found for found in run.record.findings if found.verdict in ("warn", "fail")]
    if run.record.origin or not amiss:
        return []
    lines = [
        f"{found.verdict}: {found.subject}: {found.observed}{f' ({found.action})' if found.action else ''}"
        for found in amiss[:_MOST_LINES]
    ]
    left = len(amiss) - len(lines)
    return [*lines, f"… and {left} more: run.json, or commbench report"] if left else lines
