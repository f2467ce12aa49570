"""A decoder-only transformer: what its sizes say of its parameters and its floating-point operations."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

from commbench.errors import UsageError, unknown_name


@dataclass(frozen=True, slots=True)
class Model:
    """The sizes of a transformer. `heads`: query heads of `head_width` elements, `kv_heads` those of keys and values.

    `ffn`: the width of the MLP, with experts that of one expert. `vocabulary` 0: embeddings are left out of everything.
    """

    name: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_width: int
    vocabulary: int = 0
    experts: int = 0
    top_k: int = 0
    positions: int = 0
    gated: bool = True
    linear_biases: bool = False
    qkv_biases: bool = False
    qk_norms: bool = False
    norm_biases: bool = False
    tied_embeddings: bool = False

    @property
    def query_width(self) -> int:
        return self.heads * self.head_width

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_width

    @property
    def norm_parameters(self) -> int:
        """Of one norm over the hidden size."""
        return self.hidden * (2 if self.norm_biases else 1)

    @property
    def attention_parameters(self) -> int:
        """Of one layer: queries, keys, values, output, their biases."""
        qkv = self.query_width + 2 * self.kv_width
        biases = (qkv if self.linear_biases or self.qkv_biases else 0) + (self.hidden if self.linear_biases else 0)
        return self.hidden * (qkv + self.query_width) + biases

    @property
    def mlp_parameters(self) -> int:
        """Of one MLP, or of one expert."""
        matrices = 3 if self.gated else 2
        biases = self.ffn * (matrices - 1) + self.hidden if self.linear_biases else 0
        return matrices * self.hidden * self.ffn + biases

    @property
    def replicated_layer_parameters(self) -> int:
        """Of one layer, what tensor parallelism leaves whole on every rank: norms and the router."""
        qk_norms = 2 * self.head_width if self.qk_norms else 0
        return 2 * self.norm_parameters + qk_norms + self.hidden * self.experts

    @property
    def layer_parameters(self) -> int:
        """Of one layer, all its experts included."""
        mlps = self.experts or 1
        return self.attention_parameters + mlps * self.mlp_parameters + self.replicated_layer_parameters

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding of tokens; the output layer has as many, unless both are one."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """Of the whole model."""
        embeddings = self.embedding_parameters * (1 if self.tied_embeddings else 2)
        rest = self.positions * self.hidden + self.norm_parameters if self.vocabulary else 0
        return self.layers * self.layer_parameters + embeddings + rest

    @property
    def active_parameters(self) -> int:
        """That one token meets in a matrix product: of the experts its `top_k`, of the embeddings the output."""
        mlps = self.top_k if self.experts else 1
        router = self.hidden * self.experts
        layer = self.attention_parameters + mlps * self.mlp_parameters + router
        return self.layers * layer + self.embedding_parameters

    def step_flops(self, tokens: int, sequence: int) -> float:
        """Operations of one step, forward and backward, without recomputation: 6 P + 12 layers × query width × sequence
        a token (Chowdhery et al. 2022, PaLM, appendix B: no discount for the causal mask).
        """
        return tokens * (6.0 * self.active_parameters + 12.0 * self.layers * self.query_width * sequence)


SIZES = ("layers", "hidden", "ffn", "heads", "kv_heads", "head_width", "vocabulary", "experts", "top_k")
_AT_LEAST_ZERO = frozenset({"vocabulary", "experts", "top_k"})


def make_model(name: str | None, given: dict[str, int | None]) -> Model:
    """The model called `name` with the sizes that are `given` (not None) put over its own, or one of these sizes alone.

    Left out, `ffn` is 4 hidden, a head 128 wide (or hidden wide, if that is less), and every query head has its own
    keys and values. Raises UsageError for an unknown name, and for sizes that do not fit each other.
    """
    if name is None and (given["layers"] is None or given["hidden"] is None):
        raise UsageError("which model? Give --model NAME, or at least --layers and --hidden.")
    facts: dict[str, Any] = _find(name) if name else {"name": "a model of your own"}
    changed = {size: value for size, value in given.items() if value is not None}
    if name and any(facts.get(size) != value for size, value in changed.items()):
        facts["name"] += " with other sizes"
    facts |= changed
    hidden = facts["hidden"]
    facts.setdefault("ffn", 4 * hidden)
    width = facts.get("head_width") or (hidden // facts["heads"] if "heads" in facts else min(128, hidden))
    facts.setdefault("heads", max(1, hidden // max(1, width)))
    facts.setdefault("head_width", width)
    facts.setdefault("kv_heads", facts["heads"])
    model = Model(**facts)
    _check(model)
    return model


def model_names() -> list[str]:
    """Every name and alias of the table."""
    return [name for key, facts in _table().items() for name in (key, *facts.get("aliases", ()))]


def published_parameters() -> Iterator[tuple[str, int]]:
    """The models of the table, each with its published count of parameters."""
    return ((name, facts["parameters"]) for name, facts in _table().items())


def _find(name: str) -> dict[str, Any]:
    for key, facts in _table().items():
        if name.lower() in (key, *facts.get("aliases", ())):
            kept = {field.name for field in fields(Model)} - {"parameters"}
            return {"name": key, **{fact: value for fact, value in facts.items() if fact in kept}}
    raise unknown_name("model", name, model_names())


@cache
def _table() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("commbench.data").joinpath("models.toml").read_text(encoding="utf-8"))


def _check(model: Model) -> None:
    for size in SIZES:
        least = 0 if size in _AT_LEAST_ZERO else 1
        if getattr(model, size) < least:
            raise UsageError(f"--{size.replace('_', '-')} is {getattr(model, size)}: it is at least {least}.")
    if model.heads % model.kv_heads:
        raise UsageError(f"{model.heads} heads do not divide into {model.kv_heads} of keys and values: see --kv-heads.")
    if not (1 <= model.top_k <= model.experts or model.top_k == model.experts == 0):
        raise UsageError(f"--top-k {model.top_k} of --experts {model.experts}: a token goes to 1 or more, at most all.")
