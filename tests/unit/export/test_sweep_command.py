"""The sweep that a refusal prints measures the very groups that the format needs."""

from importlib import import_module
from itertools import pairwise

import pytest

from commbench.errors import CommbenchError
from commbench.export import FORMATS
from commbench.export.records import Shape, Tier
from commbench.export.sweep_command import layout_of
from commbench.plan.groups import World, cut_world

SHAPES = [Shape(1, 2), Shape(1, 6), Shape(1, 8), Shape(2, 1), Shape(2, 8), Shape(3, 4), Shape(4, 1), Shape(8, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("format_name", FORMATS)
def test_the_layout_of_a_need_has_its_groups(format_name: str, shape: Shape) -> None:
    module = import_module(f"commbench.export.{FORMATS[format_name].module}")
    if format_name == "galvatron" and shape.world_size.bit_count() > 1:  # it halves the world
        with pytest.raises(CommbenchError, match="power of two"):
            module.needs(shape)
        return
    needs = module.needs(shape)
    world = World.uniform(shape.world_size, shape.ranks_per_node)
    for need in needs:
        tier = need.tier
        groups = [group.ranks for wave in cut_world(world, layout_of(tier, shape)) for group in wave.groups]
        fitting = [ranks for ranks in groups if len(ranks) == tier.ranks and _stride(ranks) == tier.stride]
        assert fitting, (need, groups)
        assert world.nodes_of(fitting[0]) == shape.nodes_of(tier)


def _stride(ranks: tuple[int, ...]) -> int:
    (stride,) = {right - left for left, right in pairwise(ranks)}
    return stride


@pytest.mark.parametrize(
    ("tier", "layout"),
    [(Tier(16, 1), "world"), (Tier(8, 1), "node"), (Tier(2, 8), "rail"), (Tier(4, 1), "mesh:outer=4,group=4"),
     (Tier(4, 4), "mesh:group=4,inner=4"), (Tier(2, 2), "mesh:outer=4,group=2,inner=2"), (Tier(3, 1), "ranks:0-2")],
)  # fmt: skip
def test_layouts_by_name(tier: Tier, layout: str) -> None:
    assert layout_of(tier, Shape(2, 8)) == layout
