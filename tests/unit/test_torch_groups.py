"""In which order torch's groups are made, and with how many before: all members of a group must have made as many."""

import pytest

from commbench.engines.torch_dist import plan_creation
from commbench.plan.groups import World, cut_world


@pytest.mark.parametrize(
    ("world", "layouts", "most_padded"),
    [
        (World.uniform(8, 4), ["world", "node"], 0),  # each rank is in as many groups: nobody has to make up for any
        (World.uniform(8, 4), ["pairs"], 0),
        (World.uniform(8, 8), ["ladder"], 2),
        (World.uniform(5, 5), ["pairs"], 1),
        (World.uniform(3, 3), ["ranks:0/1-2", "pairs", "world", "ladder"], 1),
    ],
)
def test_members_make_up_for_groups_that_they_are_not_in(world: World, layouts: list[str], most_padded: int) -> None:
    groups = [group for text in layouts for wave in cut_world(world, text) for group in wave.groups]
    made, padded = [0] * world.size, [0] * world.size
    planned = list(plan_creation(groups))
    for ranks, made_by in planned:
        assert made_by == {rank: made[rank] for rank in ranks}
        for rank in ranks:
            padded[rank] += max(made_by.values()) - made[rank]
            made[rank] = max(made_by.values()) + 1  # as torch counts once the group is made: the same on all members
    assert [ranks for ranks, _ in planned] == list(dict.fromkeys(group.ranks for group in groups))
    assert max(padded) == most_padded
