"""The parameters that a rank holds, and the memory that they, their gradients and Adam's state take all the time.

Activations, buffers of the library and fragmentation come on top. Bytes a parameter, with 2-byte parameters: 2 for it,
2 or 4 for its gradient, 12 for the optimizer (float32 copy, two moments): 16 as in Rajbhandari et al. 2020 (ZeRO,
section 3.1), 20 where float32 gradients are accumulated beside the others.
"""

from dataclasses import dataclass
from math import ceil

from commbench.analysis.estimate.layout import Layout, Work
from commbench.analysis.estimate.model import Model

LEAST_BYTES, MOST_BYTES = 16, 20  # a parameter, with 2-byte parameters and Adam


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters of one rank, before sharding: those replicated over dp, and its experts', replicated over edp."""

    dense: int
    expert: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """Bytes of one rank."""

    parameters: float
    gradients: float
    optimizer: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer


def layer_held(model: Model, layout: Layout) -> Held:
    """Of one layer on one rank. Keys and values of fewer heads than tp are replicated."""
    tp = layout.tp
    replicated_kv = 2 * model.hidden * model.head_width * max(0, tp - model.kv_heads)
    attention = ceil((model.attention_parameters + replicated_kv) / tp)
    if model.experts:
        return Held(attention + model.replicated_layer_parameters, model.experts // layout.ep * model.mlp_parameters)
    return Held(attention + ceil(model.mlp_parameters / tp) + model.replicated_layer_parameters, 0)


def embedding_held(model: Model, layout: Layout, first: bool, last: bool) -> int:
    """Parameters of a rank of this stage outside of the layers: embeddings on the first, norm and output on the last.

    Tied embeddings are one tensor on a rank that has both ends.
    """
    if not model.vocabulary:
        return 0
    tokens = ceil(model.vocabulary / layout.tp) * model.hidden
    output = 0 if first and model.tied_embeddings else tokens
    return first * (tokens + model.positions * model.hidden) + last * (output + model.norm_parameters)


def held(model: Model, layout: Layout, first: bool, last: bool) -> Held:
    """On a rank of a pipeline stage, `first` or `last` or neither or both."""
    layer, layers = layer_held(model, layout), model.layers // layout.pp
    return Held(layers * layer.dense + embedding_held(model, layout, first, last), layers * layer.expert)


def bytes_per_parameter(work: Work) -> tuple[int, int, int]:
    """(parameter, gradient, optimizer), Adam: moments in float32, and a float32 copy of narrower parameters."""
    accumulated = work.gradient_itemsize if work.gradient_itemsize > work.itemsize else 0
    return work.itemsize, work.itemsize + accumulated, 8 if work.itemsize >= 4 else 12


def static_ledger(parameters: Held, layout: Layout, work: Work) -> Ledger:
    """Of a rank that holds `parameters`: sharding divides the optimizer (zero1), gradients (zero2), all (zero3)."""
    order = ("none", "zero1", "zero2", "zero3")
    stage = order.index(layout.sharding)
    sizes = bytes_per_parameter(work)
    totals = []
    for nbytes, sharded_from in zip(sizes, (3, 2, 1), strict=True):
        shares = (layout.ranks("dp"), layout.ranks("edp")) if stage >= sharded_from else (1, 1)
        totals.append(nbytes * (parameters.dense / shares[0] + parameters.expert / shares[1]))
    return Ledger(*totals)
