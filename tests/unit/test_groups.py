"""commbench.plan.groups: every layout, cut from worlds whose groups are known."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.errors import UsageError
from commbench.plan.groups import LAYOUTS, Group, World, check_layout, cut_world, format_ranks, read_ranks

ONE = World((0,))
EVEN = World((0, 0, 0, 0, 1, 1, 1, 1))
UNEVEN = World((0, 0, 0, 1, 1))
CYCLIC = World((0, 1, 0, 1))


@pytest.mark.parametrize(
    ("world", "text", "waves"),
    [
        (EVEN, "world", {"world": ["0-7"]}),
        (ONE, "world", {"world": ["0"]}),
        (EVEN, "node", {"node": ["0-3", "4-7"]}),
        (UNEVEN, "node", {"node": ["0-2", "3-4"]}),
        (CYCLIC, "node", {"node": ["0,2", "1,3"]}),
        (EVEN, "rail", {"rail": ["0,4", "1,5", "2,6", "3,7"]}),
        (CYCLIC, "rail", {"rail": ["0-1", "2-3"]}),
        (ONE, "rail", {"rail": ["0"]}),
        (EVEN, "halves", {"halves": ["0-3", "4-7"]}),
        (UNEVEN, "halves", {"halves": ["0-1", "2-4"]}),
        (EVEN, "strided:4", {"strided:4": ["0,4", "1,5", "2,6", "3,7"]}),
        (UNEVEN, "strided:2", {"strided:2": ["0,2,4", "1,3"]}),
        (UNEVEN, "strided:1", {"strided:1": ["0-4"]}),
        (CYCLIC, "strided:4", {"strided:4": ["0", "1", "2", "3"]}),
        (EVEN, "mesh:dp=2,tp=4", {"mesh:dp": ["0,4", "1,5", "2,6", "3,7"], "mesh:tp": ["0-3", "4-7"]}),
        (EVEN, "mesh:dp=4,tp=2", {"mesh:dp": ["0,2,4,6", "1,3,5,7"], "mesh:tp": ["0-1", "2-3", "4-5", "6-7"]}),
        (
            EVEN,
            "mesh:a=2, b=2,c=2",
            {
                "mesh:a": ["0,4", "1,5", "2,6", "3,7"],
                "mesh:b": ["0,2", "1,3", "4,6", "5,7"],
                "mesh:c": ["0-1", "2-3", "4-5", "6-7"],
            },
        ),
        (UNEVEN, "mesh:dp=1,tp=5", {"mesh:dp": ["0", "1", "2", "3", "4"], "mesh:tp": ["0-4"]}),
        (EVEN, "ranks:0-3/4-7", {"ranks:0-3/4-7": ["0-3", "4-7"]}),
        (EVEN, "ranks:5,1-2/0", {"ranks:5,1-2/0": ["5,1-2", "0"]}),
    ],
)
def test_layout_of_one_wave_a_word(world: World, text: str, waves: dict[str, list[str]]) -> None:
    cut = cut_world(world, text)
    assert {wave.layout: [_written(group) for group in wave.groups] for wave in cut} == waves
    assert len(cut) == len(waves)
    assert all(group.name in ("world", _written(group)) for wave in cut for group in wave.groups)


def _written(group: Group) -> str:
    """The ranks of a group, with runs of consecutive ones as first-last."""
    text, ranks = "", list(group.ranks)
    while ranks:
        first = last = ranks.pop(0)
        while ranks and ranks[0] == last + 1:
            last = ranks.pop(0)
        text += f",{first}" if first == last else f",{first}-{last}"
    return text[1:]


@pytest.mark.parametrize(
    ("size", "rungs"),
    [(2, [2]), (3, [2, 3]), (4, [2, 4]), (6, [2, 4, 6]), (8, [2, 4, 8]), (9, [2, 4, 8, 9])],
)
def test_ladder_climbs_by_two_and_ends_with_all(size: int, rungs: list[int]) -> None:
    waves = cut_world(World.uniform(size, size), "ladder")
    assert [(wave.layout, [group.ranks for group in wave.groups]) for wave in waves] == [
        ("ladder", [tuple(range(rung))]) for rung in rungs
    ]


@pytest.mark.parametrize(
    ("world", "rungs"),
    [
        (EVEN, {"2 nodes": (0, 1, 2, 3, 4, 5, 6, 7)}),
        (CYCLIC, {"2 nodes": (0, 1, 2, 3)}),
        (UNEVEN, {"2 nodes": (0, 1, 2, 3, 4)}),
        (World.uniform(5, 1), {"2 nodes": (0, 1), "4 nodes": (0, 1, 2, 3), "5 nodes": (0, 1, 2, 3, 4)}),
        (World((0, 1, 2, 0, 1, 2)), {"2 nodes": (0, 1, 3, 4), "3 nodes": (0, 1, 2, 3, 4, 5)}),
        (World.uniform(3, 3), {"first 2": (0, 1), "first 3": (0, 1, 2)}),
    ],
)
def test_ladder_climbs_in_nodes_where_there_are_several(world: World, rungs: dict[str, tuple[int, ...]]) -> None:
    groups = [group for wave in cut_world(world, "ladder") for group in wave.groups]
    assert {group.name: group.ranks for group in groups} == rungs


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8, 9, 16, 17])
def test_pairs_come_once_each_in_as_few_disjoint_rounds_as_can_be(size: int) -> None:
    waves = cut_world(World.uniform(size, 4), "pairs")
    rounds = [[group.ranks for group in wave.groups] for wave in waves]
    assert sorted(pair for pairs in rounds for pair in pairs) == list(combinations(range(size), 2))
    assert len(rounds) == (size - 1 if size % 2 == 0 else size)
    for pairs in rounds:
        ranks = [rank for pair in pairs for rank in pair]
        assert len(set(ranks)) == len(ranks) == size // 2 * 2


def test_pairs_have_names() -> None:
    names = [group.name for wave in cut_world(World.uniform(4, 4), "pairs") for group in wave.groups]
    assert sorted(names) == ["0-1", "0-2", "0-3", "1-2", "1-3", "2-3"]


@pytest.mark.parametrize(
    ("world", "text", "message"),
    [
        (EVEN, "wrold", "unknown layout 'wrold': did you mean world?"),
        (EVEN, "Nodes", "did you mean node?"),
        (EVEN, "", "unknown layout ''"),
        (EVEN, "world:", "layout world takes no argument"),
        (EVEN, "node:2", "layout node takes no argument, found 'node:2'"),
        (EVEN, "mesh", "layout mesh needs an argument: write mesh:AXIS=N"),
        (EVEN, "strided:", "layout strided needs an argument"),
        (UNEVEN, "rail", "as many ranks on every node, found [2, 3]"),
        (EVEN, "mesh:dp=2,tp=3", "mesh dp=2 x tp=3 is 6 ranks, but the world has 8"),
        (EVEN, "mesh:dp", "cannot read the mesh axis 'dp'"),
        (EVEN, "mesh:dp=2,", "cannot read the mesh axis ''"),
        (EVEN, "mesh:dp=0,tp=8", "cannot read the mesh axis 'dp=0'"),
        (EVEN, "mesh:dp=-2,tp=4", "cannot read the mesh axis 'dp=-2'"),
        (EVEN, "mesh:2=8", "cannot read the mesh axis '2=8'"),
        (EVEN, "mesh:dp=٨", "cannot read the mesh axis 'dp=٨'"),
        (EVEN, "mesh:dp=2,dp=4", "names the axis 'dp' twice"),
        (EVEN, "mesh:dp=" + "9" * 5000, "cannot read the mesh axis"),
        *((EVEN, f"strided:{n}", "a whole number from 1 to the world size 8") for n in ("0", "9", "-1", "x", "2.0")),
        (EVEN, "strided:" + "9" * 5000, "a whole number from 1 to the world size 8"),
        (EVEN, "ranks:0-3/3-7", "names rank 3 2 times"),
        (EVEN, "ranks:1,1", "names rank 1 2 times"),
        (EVEN, "ranks:7-8", "'7-8' leave the world: its ranks are 0 to 7"),
        (EVEN, "ranks:0-999999999", "leave the world"),
        (EVEN, "ranks:3-1", "'3-1' run backwards: write 1-3"),
        *((EVEN, f"ranks:{spec}", "cannot read the ranks") for spec in ("a", "0//1", "-1", "0-", "0 1", "/", "٣")),
        (EVEN, "ranks:" + "9" * 5000, "cannot read the ranks"),
        *((ONE, text, f"layout {text} needs at least 2 ranks") for text in ("pairs", "halves", "ladder")),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_refuses_a_layout_that_cannot_be(world: World, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        cut_world(world, text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["mesh:dp=3", "strided:99", "ranks:0-99", "rail"])
def test_check_accepts_what_some_world_could_have(text: str) -> None:
    check_layout(text)


@pytest.mark.parametrize("text", ["grid", "rail:2", "ranks"])
def test_check_refuses_what_no_world_has(text: str) -> None:
    with pytest.raises(UsageError, match="layout"):
        check_layout(text)


def test_world_knows_its_nodes() -> None:
    assert World.uniform(5, 2).node_of_rank == (0, 0, 1, 1, 2)
    assert [world.size for world in (ONE, EVEN, UNEVEN)] == [1, 8, 5]
    assert [CYCLIC.nodes_of(ranks) for ranks in ([0, 2], [0, 1, 2], [])] == [1, 2, 0]
    assert World((1, 0, 1)).ranks_by_node() == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([4], "4"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 3, 8, 10], "0-3,8,10"),
        ([3, 2, 1], "3,2,1"),
        ([5, 0, 1], "5,0-1"),
    ],
)
def test_format_ranks(ranks: list[int], text: str) -> None:
    assert format_ranks(ranks) == text


@given(st.lists(st.integers(0, 4000), max_size=30))
def test_read_ranks_reads_what_format_ranks_writes(ranks: list[int]) -> None:
    assert read_ranks(format_ranks(ranks)) == tuple(ranks)


@pytest.mark.parametrize("text", ["x", "1-", "-1", "1,,2", "0-1048576", "0-999999999", "9" * 5000, "٣", "1 2", "0-3;4"])
def test_read_ranks_reads_nothing_else(text: str) -> None:
    assert read_ranks(text) == ()


WORLDS = st.lists(st.integers(0, 3), min_size=1, max_size=14).map(lambda nodes: World(tuple(nodes)))
TEXTS = (
    st.sampled_from([name for name, layout in LAYOUTS.items() if not layout.argument])
    | st.integers(0, 15).map("strided:{}".format)
    | st.lists(st.integers(1, 7), min_size=1, max_size=3).map(
        lambda lengths: "mesh:" + ",".join(f"{axis}={length}" for axis, length in zip("abc", lengths, strict=False))
    )
    | st.text("0123456789-,/", max_size=12).map("ranks:{}".format)
)


@given(WORLDS, TEXTS)
def test_groups_of_a_wave_are_disjoint_and_within_the_world(world: World, text: str) -> None:
    try:
        waves = cut_world(world, text)
    except UsageError:
        return
    assert waves
    for wave in waves:
        ranks = [rank for group in wave.groups for rank in group.ranks]
        assert all(group.size > 0 for group in wave.groups)
        assert len(set(ranks)) == len(ranks)
        assert set(ranks) <= set(range(world.size))
        if not text.startswith(("pairs", "ladder", "ranks")):
            assert len(ranks) == world.size


@given(WORLDS, st.text() | st.builds("{}:{}".format, st.sampled_from(list(LAYOUTS)), st.text()))
def test_any_text_is_cut_or_refused(world: World, text: str) -> None:
    try:
        assert cut_world(world, text)
    except UsageError:
        return
