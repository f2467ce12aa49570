"""The estimate of a training step, and the layouts that a search found: for people, for programs, for a page."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from commbench.analysis.estimate.layout import AXIS_NAMES
from commbench.analysis.estimate.memory import bytes_per_parameter
from commbench.analysis.estimate.search import Found
from commbench.analysis.estimate.step import AxisTotal, PricedMessage, StepEstimate
from commbench.report.text_table import format_text_table
from commbench.results.schema import Finding
from commbench.units import format_nbytes, format_seconds

PURPOSE = (
    "An estimate to choose and check a layout by, not a planner: commbench export writes the files that planners load."
)
LEGEND = (
    "size: S as in commbench sweep; bytes: what crosses a rank's link, one way, factor × S × count.",
    "Times are as if nothing were hidden behind computation. Static memory is without activations and buffers.",
)
MOST_LISTED = 20  # layouts of a search in a table; JSON has all


@dataclass(frozen=True, slots=True)
class Section:
    """A titled table; the first `left` columns are words. A column without a cell is not shown."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int


def step_sections(estimate: StepEstimate) -> list[Section]:
    """Messages, totals by group, memory, and the pipeline where there is one."""
    stage = "" if estimate.stage.name == "only" else f" of the {estimate.stage.name} stage, the busiest"
    sections = [
        Section(
            f"Messages of a step, on each rank{stage}",
            ("groups", "what", "collective", "ranks", "link", "size", "count", "bytes", "a message", "time", "basis"),
            tuple(map(_message_cells, estimate.messages)),
            3,
        ),
        Section(
            "By group",
            ("groups", "ranks", "lie", "link", "bytes", "time", "of the step"),
            tuple(_total_cells(estimate, total) for total in estimate.totals),
            1,
        ),
    ]
    sections = [section for section in sections if section.rows]
    sections.append(_memory_section(estimate))
    if estimate.schedules:
        rows = tuple((one.name, f"{one.bubble:.1%}", f"{one.in_flight:.4g}") for one in estimate.schedules)
        sections.append(Section("Pipeline", ("schedule", "bubble", "micro-batches held"), rows, 1))
    return sections


def format_step_table(estimate: StepEstimate) -> str:
    """All of it as text."""
    parts = ["\n".join(_head(estimate))]
    parts += [f"{one.title}\n{format_text_table(one.headings, one.rows, one.left)}" for one in step_sections(estimate)]
    parts += ["\n".join(lines) for lines in (_time_lines(estimate), _finding_lines(estimate.findings)) if lines]
    return "\n\n".join([*parts, "\n".join((*LEGEND, PURPOSE))]) + "\n"


def format_step_markdown(estimate: StepEstimate) -> str:
    """The same as Markdown."""
    parts = ["  \n".join(_head(estimate))]
    parts += [f"**{one.title}**\n\n{_markdown_table(one)}" for one in step_sections(estimate)]
    parts += ["  \n".join(lines) for lines in (_time_lines(estimate), _finding_lines(estimate.findings)) if lines]
    return "\n\n".join([*parts, " ".join((*LEGEND, PURPOSE))]) + "\n"


def format_step_json(estimate: StepEstimate) -> str:
    """One object. Seconds, bytes; shares are fractions."""
    return json.dumps(_step_document(estimate), indent=1) + "\n"


def search_section(found: Found) -> Section:
    """The layouts, best first."""
    rows = tuple(_layout_cells(number, estimate) for number, estimate in enumerate(found.estimates[:MOST_LISTED], 1))
    headings = (
        "", "layout", "micro-\nbatches", "commu-\nnication", "tensor", "context", "expert", "pipeline", "data",
        "bubble", "step", "static\nmemory", "warns of",
    )  # fmt: skip
    return Section(f"Layouts of {found.gpus} GPUs, the least communication time first", headings, rows, 2)


def format_search_table(found: Found) -> str:
    """The first layouts as text, and why others are not there."""
    section = search_section(found)
    table = f"{section.title}\n{format_text_table(section.headings, section.rows, section.left)}"
    return "\n\n".join([_search_head(found), table, "\n".join((*_left_out(found), *LEGEND[1:], PURPOSE))]) + "\n"


def format_search_markdown(found: Found) -> str:
    """The same as Markdown."""
    section = search_section(found)
    parts = [_search_head(found), f"**{section.title}**\n\n{_markdown_table(section)}"]
    return "\n\n".join([*parts, " ".join((*_left_out(found), *LEGEND[1:], PURPOSE))]) + "\n"


def format_search_json(found: Found) -> str:
    """One object, with the whole estimate of every layout."""
    document = {
        "gpus": found.gpus,
        "left_out": dict(found.left_out),
        "layouts": [_step_document(estimate) for estimate in found.estimates],
    }
    return json.dumps(document, indent=1) + "\n"


STEP_FORMATS: dict[str, Callable[[StepEstimate], str]] = {
    "table": format_step_table,
    "json": format_step_json,
    "markdown": format_step_markdown,
}
SEARCH_FORMATS: dict[str, Callable[[Found], str]] = {
    "table": format_search_table,
    "json": format_search_json,
    "markdown": format_search_markdown,
}


# -- cells -------------------------------------------------------------------------------------------------------------


def _head(estimate: StepEstimate) -> list[str]:
    question = estimate.question
    model, layout, work = question.model, question.layout, question.work
    sequences = work.batch * work.micro_batches * layout.dp
    return [
        f"{model.name}: {_decimal(model.parameters)} parameters, {model.layers} layers, hidden {model.hidden}",
        f"{layout.world_size} ranks, {question.ranks_per_node} a node: {layout.words()}",
        f"a step: {sequences} sequences of {work.sequence} tokens, in micro-batches of {work.batch}, "
        f"{work.micro_batches} for each data-parallel rank; {work.dtype}",
    ]


def _message_cells(priced: PricedMessage) -> tuple[str, ...]:
    message, cost = priced.message, priced.cost
    return (
        AXIS_NAMES[message.axis], message.purpose, message.collective, str(message.ranks), _link(priced),
        format_nbytes(message.nbytes), str(message.count), format_nbytes(message.bus_nbytes),
        "" if cost is None else format_seconds(cost.seconds), _seconds(priced.seconds),
        "" if cost is None else cost.basis + ("" if cost.error is None else f" ±{cost.error:.0%}"),
    )  # fmt: skip


def _link(one: PricedMessage | AxisTotal) -> str:
    return one.link_class or ("between nodes" if one.crossing.between_nodes else "within a node")


def _total_cells(estimate: StepEstimate, total: AxisTotal) -> tuple[str, ...]:
    crossing = total.crossing
    lie = f"{crossing.crossing} of {crossing.groups} between nodes" if crossing.crossing else "within a node"
    share = "" if total.share is None else f"{total.share:.1%}"
    nbytes, seconds = format_nbytes(total.bus_nbytes), _seconds(total.seconds)
    return AXIS_NAMES[total.axis], str(total.ranks), lie, total.link_class or "", nbytes, seconds, share


def _memory_section(estimate: StepEstimate) -> Section:
    ledger, sizes = estimate.ledger, bytes_per_parameter(estimate.question.work)
    names = ("parameters", "gradients", "optimizer (Adam)")
    amounts = (ledger.parameters, ledger.gradients, ledger.optimizer)
    rows = [(name, str(size), format_nbytes(nbytes)) for name, size, nbytes in zip(names, sizes, amounts, strict=True)]
    low, high = map(_decimal, estimate.whole_static_nbytes)
    title = f"Static memory of the fullest rank (the whole model, unsharded: {low} to {high} bytes)"
    rows.append(("sum", str(sum(sizes)), format_nbytes(ledger.total)))
    return Section(title, ("of", "bytes each", "memory"), tuple(rows), 1)


def _time_lines(estimate: StepEstimate) -> list[str]:
    lines = []
    if estimate.communication_seconds is not None and estimate.messages:
        lines.append(f"communication: {format_seconds(estimate.communication_seconds)} a step")
    if estimate.compute_seconds is not None:
        speed = (estimate.question.flops_per_second or 0.0) / 1e12
        bubble = f", bubble of {estimate.bubble:.1%} included" if estimate.schedules else ""
        lines.append(f"computation: {format_seconds(estimate.compute_seconds)} at {speed:.4g} TFLOP/s a GPU{bubble}")
    if estimate.step_seconds and estimate.communication_seconds is not None:
        share = estimate.communication_seconds / estimate.step_seconds
        lines.append(f"of a step of {format_seconds(estimate.step_seconds)} communication is {share:.1%}")
    return lines


def _finding_lines(findings: Sequence[Finding]) -> list[str]:
    return [
        f"{one.verdict}: {one.rule}: {one.subject}: {one.observed}"
        + (f" (expected: {one.expected})" if one.expected else "")
        + (f"; {one.action}" if one.action else "")
        for one in findings
    ]


def _layout_cells(number: int, estimate: StepEstimate) -> tuple[str, ...]:
    seconds = {total.axis: total.seconds for total in estimate.totals}
    data = [value for value in (seconds.get("dp"), seconds.get("edp")) if value is not None]
    return (
        str(number), estimate.question.layout.words(), str(estimate.question.work.micro_batches),
        _seconds(estimate.communication_seconds),
        *(_seconds(seconds.get(axis)) for axis in ("tp", "cp", "ep", "pp")), _seconds(sum(data) if data else None),
        f"{estimate.bubble:.1%}" if estimate.schedules else "", _seconds(estimate.step_seconds),
        format_nbytes(estimate.ledger.total), ", ".join(dict.fromkeys(one.rule for one in estimate.findings)),
    )  # fmt: skip


def _search_head(found: Found) -> str:
    question, first = found.estimates[0].question, found.estimates[0]
    sequences = first.question.work.micro_batches * question.work.batch * first.question.layout.dp
    memory = "" if question.memory_nbytes is None else f", at most {format_nbytes(question.memory_nbytes)} static"
    return (
        f"{question.model.name}: {_decimal(question.model.parameters)} parameters; {sequences} sequences of "
        f"{question.work.sequence} tokens a step, {question.ranks_per_node} ranks a node{memory}"
    )


def _left_out(found: Found) -> Iterable[str]:
    more = len(found.estimates) - MOST_LISTED
    if more > 0:
        yield f"{more} more layouts are possible: --format json has them."
    for reason, count in found.left_out:
        yield f"left out, {reason}: {count} {'layout' if count == 1 else 'layouts'}."


def _decimal(number: float) -> str:
    """`70.55e9`: four digits and an exponent of whole thousands, as parameters are told."""
    exponent = next((power for power in (12, 9, 6, 3) if number >= 10**power), 0)
    return f"{number / 10**exponent:.4g}" + (f"e{exponent}" if exponent else "")


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def _markdown_table(section: Section) -> str:
    shown = [place for place in range(len(section.headings)) if any(row[place] for row in section.rows)]
    headings = [section.headings[place].replace("-\n", "").replace("\n", " ") for place in shown]
    rule = [":---" if place < section.left else "---:" for place in shown]
    rows = [headings, rule, *([row[place] for place in shown] for row in section.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


# -- JSON --------------------------------------------------------------------------------------------------------------


def _step_document(estimate: StepEstimate) -> dict[str, Any]:
    question = estimate.question
    return {
        "model": {**asdict(question.model), "parameters": question.model.parameters},
        "layout": {**asdict(question.layout), "world_size": question.layout.world_size},
        "work": asdict(question.work),
        "ranks_per_node": question.ranks_per_node,
        "stage": estimate.stage.name,
        "messages": [
            {
                **asdict(priced.message),
                "bus_nbytes": priced.message.bus_nbytes,
                "link_class": priced.link_class,
                "between_nodes": priced.crossing.between_nodes,
                "cost": None if priced.cost is None else asdict(priced.cost),
                "seconds": priced.seconds,
            }
            for priced in estimate.messages
        ],
        "totals": [asdict(total) for total in estimate.totals],
        "memory_nbytes": {**asdict(estimate.ledger), "total": estimate.ledger.total},
        "whole_static_nbytes": estimate.whole_static_nbytes,
        "bubble": estimate.bubble,
        "schedules": [asdict(schedule) for schedule in estimate.schedules],
        "communication_seconds": estimate.communication_seconds,
        "compute_seconds": estimate.compute_seconds,
        "step_seconds": estimate.step_seconds,
        "findings": [asdict(finding) for finding in estimate.findings],
    }
