"""The options of `commbench estimate`, as one table."""

from functools import reduce
from pathlib import Path

import click

from commbench.cli.options import Command, Parsed
from commbench.errors import UsageError, unknown_name
from commbench.plan.dtypes import find_dtype
from commbench.plan.links import parse_link_class, parse_link_line
from commbench.units import parse_flops, parse_nbytes, parse_seconds

SHARD_NAMES = ("none", "zero1", "zero2", "zero3", "fsdp")
AXIS_WORDS = ("tp", "cp", "ep", "pp", "dp", "edp")


def _dtype(text: str) -> str:
    return find_dtype(text).name


def _meant(text: str) -> tuple[str, str]:
    """Axis and link class of a text like `tp=nvlink`. Raises UsageError."""
    axis, equals, link_class = text.partition("=")
    if not equals:
        raise UsageError(f"cannot read {text!r}: write AXIS=CLASS, like tp=nvlink.")
    if axis not in AXIS_WORDS:
        raise unknown_name("axis", axis, AXIS_WORDS)
    return axis, parse_link_class(link_class)


def _search(text: str) -> int:
    from commbench.analysis.estimate.search import parse_search

    return parse_search(text)


_COUNT = click.IntRange(min=1, max=1 << 30)
_NONE_OR_MORE = click.IntRange(min=0, max=1 << 30)

_OPTIONS = (
    click.option("--model", help="A model of the table, like llama-70b; the sizes below go before its own."),
    click.option("--layers", type=_COUNT, help="Transformer layers."),
    click.option("--hidden", type=_COUNT, help="Hidden size."),
    click.option("--ffn", type=_COUNT, help="Width of the MLP, or of one expert. Default: 4 × hidden."),
    click.option("--heads", type=_COUNT, help="Attention heads. Default: hidden / 128."),
    click.option("--kv-heads", type=_COUNT, help="Heads of keys and values. Default: as many as heads."),
    click.option("--head-width", type=_COUNT, help="Elements of a head. Default: hidden / heads."),
    click.option("--vocabulary", type=_NONE_OR_MORE, help="Tokens. Default: embeddings are left out."),
    click.option("--experts", type=_NONE_OR_MORE, help="Experts of a layer."),
    click.option("--top-k", type=_NONE_OR_MORE, help="Experts that a token goes to."),
    click.option("--batch", type=_COUNT, default=1, show_default=True, help="Sequences of a micro-batch."),
    click.option("--sequence", type=_COUNT, default=4096, show_default=True, help="Tokens of a sequence."),
    click.option("--micro-batches", type=_COUNT, help="Of each data-parallel rank in a step. Default: 1."),
    click.option("--global-batch", type=_COUNT, help="Sequences of a step, instead of --micro-batches."),
    click.option("--dtype", type=Parsed("dtype", _dtype), default="bfloat16", show_default=True,
                 help="Of parameters and activations."),
    click.option("--gradient-dtype", type=Parsed("dtype", _dtype),
                 help="In which gradients are reduced. Default: --dtype."),
    click.option("--bucket", type=Parsed("size", parse_nbytes), default="25M", show_default=True,
                 help="Bytes of gradients in one message."),
    click.option("--tp", type=_COUNT, default=1, show_default=True, help="Tensor-parallel ranks."),
    click.option("--sp", is_flag=True, help="Sequence parallel beside --tp."),
    click.option("--pp", type=_COUNT, default=1, show_default=True, help="Pipeline stages."),
    click.option("--interleave", type=_COUNT, default=1, show_default=True, help="Pipeline chunks of a rank."),
    click.option("--dp", type=_COUNT, default=1, show_default=True, help="Data-parallel ranks."),
    click.option("--shard", type=click.Choice(SHARD_NAMES), default="none", show_default=True,
                 help="What data-parallel ranks divide: optimizer (zero1), gradients too (zero2), all (zero3, fsdp)."),
    click.option("--ep", type=_COUNT, default=1, show_default=True,
                 help="Expert-parallel ranks, out of those of a pipeline stage."),
    click.option("--cp", type=_COUNT, default=1, show_default=True, help="Context-parallel ranks (ring attention)."),
    click.option("--ranks-per-node", type=_COUNT, default=8, show_default=True, help="Nodes are filled one by one."),
    click.option("--using", type=click.Path(path_type=Path), metavar="RUN", multiple=True,
                 help="Seconds from the fit of this run; may be given again, for instance for another link class."),
    click.option("--link", "links", type=Parsed("class=rate", parse_link_line), multiple=True,
                 metavar="CLASS=RATE[,ALPHA]",
                 help="Rate of a rank's link, and seconds of a step of a ring: nvlink=150GB/s,3us; before --using."),
    click.option("--within", type=Parsed("class", parse_link_class), help="Link class within a node, of several."),
    click.option("--between", type=Parsed("class", parse_link_class), help="Link class between nodes, of several."),
    click.option("--meant", type=Parsed("axis=class", _meant), multiple=True, metavar="AXIS=CLASS",
                 help="Warn where groups of an axis cross another link class than this, like tp=nvlink; repeatable."),
    click.option("--step-time", type=Parsed("seconds", parse_seconds), help="A step's time, for shares of it."),
    click.option("--flops", type=Parsed("speed", parse_flops),
                 help="FLOP/s that a GPU reaches, like 400T, for a step's time."),
    click.option("--memory", type=Parsed("size", parse_nbytes),
                 help="Memory of a GPU: more static memory is a finding, and no layout of --search."),
    click.option("--search", type=Parsed("GPUs=N", _search), metavar="GPUs=N",
                 help="List the layouts of so many GPUs: every tp, pp and dp, the rest as given."),
    click.option("--format", "format_name", type=click.Choice(["table", "json", "markdown"]), default="table",
                 show_default=True, help="Form of the result."),
    click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
                 help="Write the result to FILE, not to stdout."),
)  # fmt: skip


def estimate_options(command: Command) -> Command:
    """Give `command` the options of an estimate, in the order of the table."""
    return reduce(lambda wrapped, option: option(wrapped), reversed(_OPTIONS), command)
