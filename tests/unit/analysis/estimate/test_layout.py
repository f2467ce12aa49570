"""Where the groups of an axis lie, held to groups that are cut out of the world one by one."""

import pytest

from commbench.analysis.estimate.layout import Layout, Work, check_layout, find_crossing
from commbench.errors import UsageError
from commbench.plan.groups import World, cut_world
from tests.unit.analysis.estimate.make import named

LAYOUTS = [
    Layout(tp=8, pp=4, dp=2),
    Layout(tp=2, cp=2, pp=2, dp=3),
    Layout(tp=6, dp=4),
    Layout(tp=16, pp=2),
    Layout(dp=24),
    Layout(tp=2, dp=8, ep=4, pp=2, sp=True),
    Layout(tp=4, cp=2, dp=4, ep=16, sp=True),
    Layout(),
]


@pytest.mark.parametrize("ranks_per_node", [1, 3, 4, 8, 100])
@pytest.mark.parametrize("layout", LAYOUTS, ids=Layout.words)
def test_crossings_are_those_of_the_mesh(layout: Layout, ranks_per_node: int) -> None:
    world = World.uniform(layout.world_size, ranks_per_node)
    edp = layout.ranks("edp")
    meshes = {
        "tp": f"mesh:pp={layout.pp},dp={layout.dp},cp={layout.cp},tp={layout.tp}",
        "cp": f"mesh:pp={layout.pp},dp={layout.dp},cp={layout.cp},tp={layout.tp}",
        "pp": f"mesh:pp={layout.pp},dp={layout.dp},cp={layout.cp},tp={layout.tp}",
        "dp": f"mesh:pp={layout.pp},dp={layout.dp * layout.cp},tp={layout.tp}",
        "ep": f"mesh:pp={layout.pp},edp={edp},ep={layout.ep}",
        "edp": f"mesh:pp={layout.pp},edp={edp},ep={layout.ep}",
    }
    for axis, mesh in meshes.items():
        (wave,) = [wave for wave in cut_world(world, mesh) if wave.layout == f"mesh:{axis}"]
        crossing = [group for group in wave.groups if world.nodes_of(group.ranks) > 1]
        found = find_crossing(layout, axis, ranks_per_node)  # type: ignore[arg-type]
        assert (found.groups, found.crossing) == (len(wave.groups), len(crossing)), axis
        assert layout.ranks(axis) == wave.groups[0].size  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("layout", "work", "said"),
    [
        (Layout(tp=3), Work(1, 4096), "64 heads do not divide by tp = 3"),
        (Layout(pp=3), Work(1, 4096), "80 layers do not divide by pp = 3"),
        (Layout(pp=4, interleave=3), Work(1, 4096), "80 layers do not divide by pp × chunks = 12"),
        (Layout(cp=3), Work(1, 4096), "4096 tokens of a sequence do not divide by cp = 3"),
        (Layout(tp=8, sp=True), Work(1, 4092), "4092 tokens on a rank do not divide by tp with sp = 8"),
        (Layout(dp=2, ep=2), Work(1, 4096), "--ep 2 needs experts"),
        (Layout(sp=True), Work(1, 4096), "give --tp above 1"),
        (Layout(interleave=2), Work(1, 4096), "give --pp above 1"),
        (Layout(pp=4, interleave=2), Work(1, 4096, 6), "rounds of pp = 4, found 6"),
    ],
)
def test_what_does_not_divide_is_said(layout: Layout, work: Work, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        check_layout(layout, named("llama-70b"), work)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (Layout(dp=8, ep=3), "8 experts do not divide by ep = 3"),
        (Layout(dp=2, ep=8), "2 ranks of a stage do not divide by ep = 8"),
        (Layout(tp=2, dp=4, ep=4), "add --sp"),
    ],
)
def test_what_experts_need_is_said(layout: Layout, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        check_layout(layout, named("mixtral-8x7b"), Work(1, 4096))
