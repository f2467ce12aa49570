"""A parallel layout: how many ranks share what, which ranks these are, and which of them sit on one node.

Ranks are numbered as in Megatron-LM: tensor parallel ranks are neighbours, then context, data and pipeline parallel
ones, that is `mesh:pp=…,dp=…,cp=…,tp=…`. Experts cut each pipeline stage anew, their ranks neighbours:
`mesh:pp=…,edp=…,ep=…`, where edp are the ranks with the same experts.
"""

from dataclasses import dataclass
from typing import Literal

from commbench.analysis.estimate.model import Model
from commbench.errors import UsageError
from commbench.plan.dtypes import DTYPES

Sharding = Literal["none", "zero1", "zero2", "zero3"]
SHARDINGS: dict[str, Sharding] = {"none": "none", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3", "fsdp": "zero3"}
Axis = Literal["tp", "cp", "pp", "dp", "ep", "edp"]
AXES: tuple[Axis, ...] = ("tp", "cp", "ep", "pp", "dp", "edp")
AXIS_NAMES: dict[Axis, str] = {
    "tp": "tensor",
    "cp": "context",
    "ep": "expert",
    "pp": "pipeline",
    "dp": "data",
    "edp": "expert data",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Ranks along each axis. `sp`: sequence parallel beside tensor parallel; `interleave`: pipeline chunks a rank."""

    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    sp: bool = False
    interleave: int = 1
    sharding: Sharding = "none"

    @property
    def world_size(self) -> int:
        return self.tp * self.cp * self.pp * self.dp

    @property
    def stage_size(self) -> int:
        """Ranks of one pipeline stage."""
        return self.tp * self.cp * self.dp

    def ranks(self, axis: Axis) -> int:
        """Ranks in one group of `axis`. Gradients are reduced over the ranks of dp and cp: both have the parameters."""
        return {
            "tp": self.tp,
            "cp": self.cp,
            "pp": self.pp,
            "dp": self.dp * self.cp,
            "ep": self.ep,
            "edp": self.stage_size // self.ep,
        }[axis]

    def stride(self, axis: Axis) -> int:
        """From one rank of a group of `axis` to the next."""
        return {"tp": 1, "cp": self.tp, "pp": self.stage_size, "dp": self.tp, "ep": 1, "edp": self.ep}[axis]

    def words(self) -> str:
        """`tp 8 (sp), pp 4, dp 2 (zero1)`: what is more than one."""
        remarks = {
            "tp": "sp" if self.sp else "",
            "pp": f"{self.interleave} chunks" if self.interleave > 1 else "",
            "dp": self.sharding if self.sharding != "none" and self.ranks("dp") > 1 else "",
        }
        sizes = {"tp": self.tp, "cp": self.cp, "pp": self.pp, "dp": self.dp, "ep": self.ep}
        told = [
            f"{axis} {size}" + (f" ({remarks[axis]})" if remarks.get(axis) else "")
            for axis, size in sizes.items()
            if size > 1 or remarks.get(axis)
        ]
        return ", ".join(told) or "one rank"


@dataclass(frozen=True, slots=True)
class Work:
    """One step: `micro_batches` for each data-parallel rank, of `batch` sequences of `sequence` tokens.

    `gradient_dtype`: in which gradients are reduced; beside 2-byte parameters a 4-byte one is accumulated apart.
    `bucket_nbytes`: gradients are reduced in messages of about so much.
    """

    batch: int
    sequence: int
    micro_batches: int = 1
    dtype: str = "bfloat16"
    gradient_dtype: str = "bfloat16"
    bucket_nbytes: int = 25 << 20

    @property
    def itemsize(self) -> int:
        return DTYPES[self.dtype].itemsize

    @property
    def gradient_itemsize(self) -> int:
        return DTYPES[self.gradient_dtype].itemsize


@dataclass(frozen=True, slots=True)
class Crossing:
    """How the groups of an axis lie: `crossing` of `groups` have ranks on more than one node."""

    groups: int
    crossing: int

    @property
    def between_nodes(self) -> bool:
        """Whether the slowest of them leaves the node: a step waits for it."""
        return self.crossing > 0

    @property
    def mixed(self) -> bool:
        return 0 < self.crossing < self.groups


def find_crossing(layout: Layout, axis: Axis, ranks_per_node: int) -> Crossing:
    """Where the groups of `axis` lie, on nodes that are filled one after another."""
    length, stride = layout.ranks(axis), layout.stride(axis)
    block, reach, groups = length * stride, (length - 1) * stride, layout.world_size // length
    if not reach:
        return Crossing(groups, 0)
    starts = (first + offset for first in range(0, layout.world_size, block) for offset in range(stride))
    crossing = sum(start // ranks_per_node != (start + reach) // ranks_per_node for start in starts)
    return Crossing(groups, crossing)


def check_layout(layout: Layout, model: Model, work: Work) -> None:
    """Raise UsageError if `layout` cannot cut this model and work, saying what does not divide."""
    dense = () if model.experts else ((model.ffn, "ffn", layout.tp, "tp"),)
    chunks = layout.pp * layout.interleave
    parts = [
        (model.heads, "heads", layout.tp, "tp"),
        *dense,
        (model.layers, "layers", chunks, "pp × chunks" if layout.interleave > 1 else "pp"),
        (work.sequence, "tokens of a sequence", layout.cp, "cp"),
        (work.sequence // layout.cp, "tokens on a rank", layout.tp if layout.sp else 1, "tp with sp"),
        (max(model.kv_heads, layout.tp), "heads of keys and values", min(model.kv_heads, layout.tp), "tp"),
        (model.experts, "experts", layout.ep, "ep"),
        (layout.stage_size, "ranks of a stage", layout.ep, "ep"),
    ]
    for whole, what, divisor, name in parts:
        if whole % divisor:
            raise UsageError(f"{whole} {what} do not divide by {name} = {divisor}: choose a divisor of {whole}.")
    if layout.ep > 1 and not model.experts:
        raise UsageError(f"--ep {layout.ep} needs experts: give --experts and --top-k, or --ep 1.")
    if model.experts and layout.tp > 1 and not layout.sp:
        raise UsageError("experts beside tensor parallelism need --sp, or each token is sent tp times: add --sp.")
    if layout.sp and layout.tp == 1:
        raise UsageError("--sp divides what --tp leaves whole: give --tp above 1 with it.")
    if layout.interleave > 1 and layout.pp == 1:
        raise UsageError(f"--interleave {layout.interleave} needs a pipeline: give --pp above 1 with it.")
    if layout.interleave > 1 and work.micro_batches % layout.pp:
        raise UsageError(
            f"the interleaved schedule takes micro-batches in rounds of pp = {layout.pp}, found {work.micro_batches}: "
            "make it a multiple."
        )
