"""The messages of one training step, for a rank of one pipeline stage. Sizes S are those of `plan/collectives.py`.

Sources: tensor parallel Shoeybi et al. 2019 (arXiv:1909.08053: two all_reduce forward, two backward a layer), sequence
parallel Korthikanti et al. 2022 (arXiv:2205.05198: each of them as reduce_scatter + all_gather), ZeRO Rajbhandari et
al. 2020 (arXiv:1910.02054), ring attention Liu et al. 2023 (arXiv:2310.01889), experts Lepikhin et al. 2020
(arXiv:2006.16668: all_to_all to the experts and back). Not counted: what recomputation repeats, and the second
all_gather of Megatron-LM's sequence parallel backward pass.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil

from commbench.analysis.estimate.layout import Axis, Layout, Work
from commbench.analysis.estimate.memory import embedding_held, held, layer_held
from commbench.analysis.estimate.model import Model
from commbench.plan.collectives import COLLECTIVES


@dataclass(frozen=True, slots=True)
class Stage:
    """A pipeline stage: `middle` where it is neither first nor last, `only` where it is both."""

    first: bool
    last: bool

    @property
    def name(self) -> str:
        return {(True, True): "only", (True, False): "first", (False, True): "last"}.get(
            (self.first, self.last), "middle"
        )


@dataclass(frozen=True, slots=True)
class Message:
    """`count` calls of `collective` a step, of size S = `nbytes` each, in a group of `ranks` ranks.

    `joinable`: several can be put into one message, such as gradients.
    """

    axis: Axis
    purpose: str
    collective: str
    nbytes: int
    ranks: int
    count: int
    joinable: bool = False

    @property
    def bus_nbytes(self) -> float:
        """Bytes that cross this rank's link, one way, in a step."""
        return COLLECTIVES[self.collective].factor(self.ranks) * self.nbytes * self.count


def stages(layout: Layout) -> tuple[Stage, ...]:
    """The kinds of stages that the pipeline has."""
    if layout.pp == 1:
        return (Stage(True, True),)
    middle = (Stage(False, False),) if layout.pp > 2 else ()
    return (Stage(True, False), *middle, Stage(False, True))


def step_messages(model: Model, layout: Layout, work: Work, stage: Stage) -> tuple[Message, ...]:
    """All messages of a step that a rank of `stage` takes part in, groups of one rank left out."""
    parts = (_tensor, _context, _expert, _pipeline, _data, _tied)
    return tuple(message for part in parts for message in part(model, layout, work, stage) if message.count)


def _activation_nbytes(model: Model, layout: Layout, work: Work) -> int:
    """Of one micro-batch's tokens on a rank, before sequence parallelism divides them."""
    return work.batch * (work.sequence // layout.cp) * model.hidden * work.itemsize


def _tensor(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Attention and MLP each end with a sum over tp, and so do their gradients; experts have none (they are whole)."""
    if layout.tp == 1:
        return
    nbytes, m, tp = _activation_nbytes(model, layout, work), work.micro_batches, layout.tp
    blocks = 1 if model.experts else 2
    each = blocks * model.layers // layout.pp * m
    ends = (stage.first + stage.last) * m if model.vocabulary else 0
    for purpose, count in (("outputs of layers", 2 * each), ("embedding and output", ends)):
        for collective in ("reduce_scatter", "all_gather") if layout.sp else ("all_reduce",):
            yield Message("tp", purpose, collective, nbytes, tp, count)
    if model.vocabulary and stage.last:  # the loss: maximum, target's logit, sum of exponentials, in float32
        yield Message("tp", "loss", "all_reduce", work.batch * (work.sequence // layout.cp) * 4, tp, 3 * m)


def _context(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Ring attention: keys and values go round once forward; backward they go round again, with their gradients."""
    if layout.cp == 1:
        return
    heads = max(1, model.kv_heads // layout.tp)
    tokens = work.batch * (work.sequence // layout.cp)
    nbytes = 2 * tokens * heads * model.head_width * work.itemsize
    count = 3 * (layout.cp - 1) * model.layers // layout.pp * work.micro_batches
    yield Message("cp", "keys and values", "send_recv", nbytes, layout.cp, count)


def _expert(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Every token to its experts and back, forward and backward; the load is taken to be balanced."""
    if layout.ep == 1:
        return
    nbytes = model.top_k * _activation_nbytes(model, layout, work) // layout.tp
    count = 4 * model.layers // layout.pp * work.micro_batches
    yield Message("ep", "tokens to experts and back", "all_to_all", nbytes, layout.ep, count)


def _pipeline(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Sent: activations to the next stage, gradients to the one before; the last chunk's loss and the input go nowhere.

    With interleaving the last stage's chunks but one send on to the first. Sequence parallel ranks send their share.
    """
    if layout.pp == 1:
        return
    nbytes = _activation_nbytes(model, layout, work) // (layout.tp if layout.sp else 1)
    forward, backward = layout.interleave - stage.last, layout.interleave - stage.first
    purpose = "activations and their gradients"
    yield Message("pp", purpose, "send_recv", nbytes, 2, (forward + backward) * work.micro_batches)


def _data(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Gradients, and of sharded states the parameters, of the dense part over dp and of the experts over edp."""
    mine, layer, layers = held(model, layout, stage.first, stage.last), layer_held(model, layout), model.layers
    rest = embedding_held(model, layout, stage.first, stage.last)
    dense = _gradients("dp", mine.dense, layer.dense, rest, layers // layout.pp, layout, work)
    yield from dense
    yield from _gradients("edp", mine.expert, layer.expert, 0, layers // layout.pp, layout, work)


def _gradients(
    axis: Axis, parameters: int, layer: int, rest: int, layers: int, layout: Layout, work: Work
) -> Iterable[Message]:
    """Of one kind of parameters on one rank. zero2 and zero3 reduce every micro-batch, the others the step's sum; zero3
    gathers each layer before its forward and again before its backward pass.
    """
    ranks, m = layout.ranks(axis), work.micro_batches
    if ranks == 1 or not parameters:
        return
    which = "" if axis == "dp" else " of experts"
    if layout.sharding == "zero3":
        for unit, size, count in (("layers", layer, layers), ("embedding and output", rest, 1)):
            if size:
                gathered, reduced = size * work.itemsize, size * work.gradient_itemsize
                yield Message(axis, f"parameters{which}, {unit}", "all_gather", gathered, ranks, 2 * count * m)
                yield Message(axis, f"gradients{which}, {unit}", "reduce_scatter", reduced, ranks, count * m)
        return
    collective = "all_reduce" if layout.sharding == "none" else "reduce_scatter"
    times = m if layout.sharding == "zero2" else 1
    size, count = _bucketed(parameters * work.gradient_itemsize, work.bucket_nbytes)
    yield Message(axis, f"gradients{which}", collective, size, ranks, count * times, joinable=True)
    if layout.sharding != "none":
        size, count = _bucketed(parameters * work.itemsize, work.bucket_nbytes)
        yield Message(axis, f"parameters{which}", "all_gather", size, ranks, count, joinable=True)


def _tied(model: Model, layout: Layout, work: Work, stage: Stage) -> Iterator[Message]:
    """Tied embeddings on two stages: their gradients are added up."""
    if layout.pp > 1 and model.tied_embeddings and model.vocabulary and (stage.first or stage.last):
        nbytes = ceil(model.vocabulary / layout.tp) * model.hidden * work.gradient_itemsize
        yield Message("pp", "gradients of tied embeddings", "all_reduce", nbytes, 2, 1)


def _bucketed(nbytes: int, bucket_nbytes: int) -> tuple[int, int]:
    """(size, count) of equal messages of about `bucket_nbytes` that carry `nbytes`."""
    count = ceil(nbytes / bucket_nbytes)
    return ceil(nbytes / count), count
