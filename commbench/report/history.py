"""A history as a table for people: a row a run, a column a coefficient, and the steps below; or as JSON."""

from collections.abc import Callable, Iterator

from commbench.analysis.history import History, HistoryStep, Trend
from commbench.report.comparison_words import interval
from commbench.report.text_table import format_text_table


def format_history(history: History) -> str:
    """The table, steps marked with `*` at the first run of the new level."""
    rows = []
    for place, created in enumerate(history.created_utc):
        cells = [_cell(trend, place) for trend in history.trends]
        rows.append([created[:16].replace("T", " "), history.runs[place], *cells])
    names = [f"{trend.coefficient} of {trend.link_class}" for trend in history.trends]
    table = format_text_table(["measured", "run", *names], rows, 2)
    title = f"{len(history.runs)} runs, {history.cases} cases; each value against the median of all runs, * at a step:"
    below = [*step_lines(history), *_noise_lines(history), *history.notes]
    below += [f"left out, measured something else: {', '.join(history.left_out)}"] if history.left_out else []
    return "\n".join([title, table, "", *below]) + "\n"


def step_lines(history: History) -> list[str]:
    """A sentence for each step, or that there is none."""
    lines = [_step_line(trend, step) for trend in history.trends for step in trend.steps]
    return lines or ["no step found."]


def _step_line(trend: Trend, step: HistoryStep) -> str:
    direction = "worse" if step.is_worse else "better"
    when = f"between {step.before_utc[:16].replace('T', ' ')} and {step.after_utc[:16].replace('T', ' ')}"
    causes = ", ".join(f"{cause.name} ({cause.base} → {cause.new})" for cause in step.causes)
    changed = f"; then changed: {causes}" if causes else "; nothing else is known to have changed then"
    change = f"{100 * (step.ratio.value - 1):+.1f} % ({interval(step.ratio)})"
    return f"{trend.coefficient} of {trend.link_class} {change}, {direction}, {when}{changed}"


def _noise_lines(history: History) -> Iterator[str]:
    words = ", ".join(f"{trend.coefficient} of {trend.link_class} {trend.noise:.1%}" for trend in history.trends)
    yield f"noise from run to run (standard deviation): {words}."


def _cell(trend: Trend, place: int) -> str:
    value = trend.values[place]
    mark = "*" if any(step.index == place for step in trend.steps) else ""
    return "?" if value is None else f"{mark}{100 * (value - 1):+.1f}%"


def _json(history: History) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(history), indent=1).decode() + "\n"


HISTORY_FORMATS: dict[str, Callable[[History], str]] = {"table": format_history, "json": _json}
