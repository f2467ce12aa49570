"""The `commbench sweep` that would measure what a format lacks."""

import shlex
from collections.abc import Sequence

from commbench.export.records import Need, Shape, Tier
from commbench.plan.groups import format_ranks
from commbench.results.store import Run

_SIZES = "1M:1G:x2"  # three sizes or more in the window of a planner's line
_ALL_SIZES = "1K:1G:x2"


def sweep_command(needs: Sequence[Need], shape: Shape, runs: Sequence[Run]) -> str:
    """A command line. Of more than one node it is to be started by the launcher that started the run."""
    collectives = dict.fromkeys(need.collective for need in needs)
    layouts = dict.fromkeys(layout_of(need.tier, shape) for need in needs)
    sizes = _ALL_SIZES if any(need.only_points for need in needs) else _SIZES
    words = ["commbench", "sweep", *_machine(shape, runs), "--collectives", ",".join(collectives), "--sizes", sizes]
    for layout in layouts:
        words += ["--layout", layout]
    return shlex.join(words)


def layout_of(tier: Tier, shape: Shape) -> str:
    """The layout whose groups the tier's are."""
    if tier.ranks == shape.world_size:
        return "world"
    if (tier.ranks, tier.stride) == (shape.ranks_per_node, 1):
        return "node"
    if (tier.ranks, tier.stride) == (shape.nodes, shape.ranks_per_node):
        return "rail"
    outer, left_over = divmod(shape.world_size, tier.ranks * tier.stride)
    if left_over:  # groups of this size do not fill the world: the first one alone
        return f"ranks:{format_ranks(range(0, tier.ranks * tier.stride, tier.stride))}"
    axes = [("outer", outer), ("group", tier.ranks), ("inner", tier.stride)]
    return "mesh:" + ",".join(f"{name}={length}" for name, length in axes if length > 1)


def _machine(shape: Shape, runs: Sequence[Run]) -> list[str]:
    """Engine and ranks as in the first run, where that started its ranks itself."""
    record = runs[0].record
    if record.engine == "fake":
        spec = _option(record.command, "--fake")
        return ["--engine", "fake", "--ranks", str(shape.world_size), *(["--fake", spec] if spec else [])]
    if record.launcher == "local":
        return ["--ranks", str(shape.world_size)]
    return []


def _option(command: Sequence[str], name: str) -> str:
    """The value of an option that was given as `NAME VALUE` or `NAME=VALUE`; empty where it was not."""
    for word, following in zip(command, (*command[1:], ""), strict=True):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return ""
