"""The estimate of one training step: its messages with their cost, memory, bubble, and warnings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from commbench.analysis.estimate.layout import (
    AXES,
    AXIS_NAMES,
    Axis,
    Crossing,
    Layout,
    Work,
    check_layout,
    find_crossing,
)
from commbench.analysis.estimate.memory import LEAST_BYTES, MOST_BYTES, Ledger, held, static_ledger
from commbench.analysis.estimate.messages import Message, Stage, stages, step_messages
from commbench.analysis.estimate.model import Model
from commbench.analysis.estimate.pipeline import Schedule, bubble, schedules
from commbench.analysis.estimate.rates import Cost, Links
from commbench.plan.links import is_network
from commbench.results.schema import Finding
from commbench.units import format_nbytes

MAX_DATA_SHARE = 0.30  # of a step
_GOOD_MULTIPLE = 4  # of the size with half the bandwidth: alpha + S / B is S / 0.8 B there
_NOTABLE = 0.01  # of the communication: messages that take less may be small


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be estimated. Of `step_seconds` (a measured step) and `flops_per_second` (of one GPU, as reached) at
    most one is given; `meant`: the link class that groups of an axis are meant to cross; `memory_nbytes`: of a rank.
    """

    model: Model
    layout: Layout
    work: Work
    ranks_per_node: int
    links: Links
    step_seconds: float | None = None
    flops_per_second: float | None = None
    meant: tuple[tuple[Axis, str], ...] = ()
    memory_nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class PricedMessage:
    """A message, where its groups lie, and its cost where that is known. `link_class` None: not known."""

    message: Message
    crossing: Crossing
    link_class: str | None
    cost: Cost | None

    @property
    def seconds(self) -> float | None:
        """Of all its calls in a step."""
        return None if self.cost is None else self.cost.seconds * self.message.count


@dataclass(frozen=True, slots=True)
class AxisTotal:
    """What a rank sends along one axis in a step; `share` of the step, where that is known."""

    axis: Axis
    ranks: int
    crossing: Crossing
    link_class: str | None
    bus_nbytes: float
    seconds: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """`messages` and `totals` are of a rank of `stage`, the busiest kind; `ledger` is of the stage with most memory.

    `communication_seconds`: as if nothing were hidden behind computation; None where a message has no rate.
    `compute_seconds`: with the bubble, where the speed was given.
    """

    question: Question
    stage: Stage
    messages: tuple[PricedMessage, ...]
    totals: tuple[AxisTotal, ...]
    ledger: Ledger
    whole_static_nbytes: tuple[int, int]
    schedules: tuple[Schedule, ...]
    communication_seconds: float | None
    compute_seconds: float | None
    step_seconds: float | None
    findings: tuple[Finding, ...]

    @property
    def bubble(self) -> float:
        layout, work = self.question.layout, self.question.work
        return bubble(layout.pp, work.micro_batches, layout.interleave)


def estimate_step(question: Question) -> StepEstimate:
    """The estimate. Raises UsageError for a layout that cannot cut the model."""
    model, layout, work = question.model, question.layout, question.work
    check_layout(layout, model, work)
    crossings = {axis: find_crossing(layout, axis, question.ranks_per_node) for axis in AXES}
    by_stage = {stage: _price(question, stage, crossings) for stage in stages(layout)}
    stage, messages = max(by_stage.items(), key=lambda item: _weight(item[1]))
    communication = _sum_seconds(messages)
    compute = _compute_seconds(question)
    step = question.step_seconds
    if step is None and compute is not None and communication is not None:
        step = compute + communication
    totals = tuple(_totals(messages, step))
    ledgers = [static_ledger(held(model, layout, end.first, end.last), layout, work) for end in by_stage]
    ledger = max(ledgers, key=lambda one: one.total)
    return StepEstimate(
        question=question,
        stage=stage,
        messages=messages,
        totals=totals,
        ledger=ledger,
        whole_static_nbytes=(LEAST_BYTES * model.parameters, MOST_BYTES * model.parameters),
        schedules=schedules(layout.pp, work.micro_batches, layout.interleave) if layout.pp > 1 else (),
        communication_seconds=communication,
        compute_seconds=compute,
        step_seconds=step,
        findings=tuple(_findings(question, messages, totals, ledger)),
    )


def _price(question: Question, stage: Stage, crossings: Mapping[Axis, Crossing]) -> tuple[PricedMessage, ...]:
    priced = []
    for message in step_messages(question.model, question.layout, question.work, stage):
        crossing = crossings[message.axis]
        cost = question.links.cost(message.collective, message.nbytes, message.ranks, crossing.between_nodes)
        link_class = question.links.link_class(crossing.between_nodes)
        priced.append(PricedMessage(message, crossing, link_class, cost))
    return tuple(priced)


def _weight(messages: Sequence[PricedMessage]) -> tuple[float, float]:
    return _sum_seconds(messages) or 0.0, sum(priced.message.bus_nbytes for priced in messages)


def _sum_seconds(messages: Sequence[PricedMessage]) -> float | None:
    seconds = [priced.seconds for priced in messages]
    return sum(value for value in seconds if value is not None) if None not in seconds else None


def _compute_seconds(question: Question) -> float | None:
    if question.flops_per_second is None:
        return None
    layout, work = question.layout, question.work
    tokens = work.batch * work.micro_batches * layout.dp * work.sequence
    ideal = question.model.step_flops(tokens, work.sequence) / (layout.world_size * question.flops_per_second)
    return ideal / (1.0 - bubble(layout.pp, work.micro_batches, layout.interleave))


def _totals(messages: Sequence[PricedMessage], step_seconds: float | None) -> Iterator[AxisTotal]:
    for axis in dict.fromkeys(priced.message.axis for priced in messages):
        mine = [priced for priced in messages if priced.message.axis == axis]
        seconds = _sum_seconds(mine)
        share = seconds / step_seconds if seconds is not None and step_seconds else None
        nbytes = sum(priced.message.bus_nbytes for priced in mine)
        first = mine[0]
        yield AxisTotal(axis, first.message.ranks, first.crossing, first.link_class, nbytes, seconds, share)


# -- findings ----------------------------------------------------------------------------------------------------------


def _findings(
    question: Question, messages: Sequence[PricedMessage], totals: Sequence[AxisTotal], ledger: Ledger
) -> Iterator[Finding]:
    yield from _placement(question, totals)
    yield from _data_share(totals)
    notable = _NOTABLE * sum(priced.seconds or 0.0 for priced in messages)
    for priced in messages:
        if (priced.seconds or 0.0) >= notable:
            yield from _small_message(priced)
    yield from _unknown_rates(messages)
    if question.memory_nbytes is not None and ledger.total > question.memory_nbytes:
        found = f"{format_nbytes(ledger.total)} of parameters, gradients and optimizer alone"
        action = "more tp, pp or ep, or more --shard, divide it"
        yield Finding("memory", "a rank", "fail", found, f"at most {format_nbytes(question.memory_nbytes)}", "", action)


def _placement(question: Question, totals: Sequence[AxisTotal]) -> Iterator[Finding]:
    meant = dict(question.meant)
    for total in totals:
        subject, crossing = f"{AXIS_NAMES[total.axis]} groups", total.crossing
        of_all = f"{crossing.crossing} of {crossing.groups} groups leave the node ({question.ranks_per_node} ranks)"
        if total.axis == "tp" and crossing.between_nodes:
            action = "its messages are on the critical path of every layer: choose tp that divides the ranks of a node"
            yield Finding("tp-leaves-node", subject, "warn", of_all, "all within a node", "", action)
        elif crossing.mixed:
            action = "every step waits for the slowest group: choose sizes that divide the ranks of a node"
            yield Finding("mixed-links", subject, "warn", of_all, "all alike", "", action)
        wanted = meant.get(total.axis)
        if wanted is not None and not _is_meant(wanted, total):
            found = f"the slowest link that they cross is {total.link_class or _place(crossing)}"
            yield Finding("link-not-meant", subject, "warn", found, wanted, "", "change the order or the sizes")


def _is_meant(wanted: str, total: AxisTotal) -> bool:
    """Without rates only whether the node is left is known."""
    if total.link_class is None:
        return is_network(wanted) == total.crossing.between_nodes
    return total.link_class == wanted


def _data_share(totals: Sequence[AxisTotal]) -> Iterator[Finding]:
    shares = [total.share for total in totals if total.axis in ("dp", "edp") and total.share is not None]
    if sum(shares) > MAX_DATA_SHARE:
        found = f"{sum(shares):.0%} of the step, if none of it is hidden"
        action = "more micro-batches a step, a larger batch, or hide it behind the backward pass"
        yield Finding("data-share", "data parallel traffic", "warn", found, f"at most {MAX_DATA_SHARE:.0%}", "", action)


def _small_message(priced: PricedMessage) -> Iterator[Finding]:
    message, cost = priced.message, priced.cost
    if cost is None or not cost.half_nbytes or message.nbytes >= cost.half_nbytes:
        return
    wanted = _GOOD_MULTIPLE * cost.half_nbytes
    found = f"{format_nbytes(message.nbytes)} a message, {message.count} a step"
    large = f"messages of {format_nbytes(wanted)} reach {_GOOD_MULTIPLE / (_GOOD_MULTIPLE + 1):.0%} of the bandwidth"
    action = f"{large}: --bucket {ceil(wanted / (1 << 20))}M" if message.joinable else f"{large}: a larger --batch"
    subject = f"{AXIS_NAMES[message.axis]} {message.collective}, {message.purpose}"
    half = f"at least {format_nbytes(cost.half_nbytes)}, the size with half the bandwidth"
    yield Finding("small-messages", subject, "warn", found, half, "", action)


def _unknown_rates(messages: Sequence[PricedMessage]) -> Iterator[Finding]:
    """Where some messages have a cost and others have none, the total is not known; without any rate nobody asked."""
    if all(priced.cost is None for priced in messages):
        return
    for name in dict.fromkeys(priced.message.collective for priced in messages if priced.cost is None):
        lacking = [priced for priced in messages if priced.cost is None and priced.message.collective == name]
        first = lacking[0]
        where = first.link_class or _place(first.crossing)
        found = f"no rate {where if first.link_class is None else f'over {where}'} for {first.message.ranks} ranks"
        option = first.link_class or ("net" if first.crossing.between_nodes else "nvlink")
        yield Finding("no-rate", name, "skip", found, "", "", f"measure it, or give --link {option}=RATE")


def _place(crossing: Crossing) -> str:
    return "between nodes" if crossing.between_nodes else "within a node"
