"""Groups are made by their members alone: what 2,016 pairs of 64 ranks cost one of them."""

import pytest

from commbench.engines.torch_dist import plan_creation
from commbench.plan.groups import World, cut_world

SIZE = 64


def test_a_rank_makes_its_own_pairs_and_waits_for_nobody_else() -> None:
    world = World.uniform(SIZE, 8)
    groups = [group for wave in cut_world(world, "pairs") for group in wave.groups]
    assert len(groups) == SIZE * (SIZE - 1) // 2
    orders = []
    for rank in range(SIZE):
        created = [(ranks, made_by) for ranks, made_by in plan_creation(groups) if rank in ranks]
        assert len(created) == SIZE - 1
        assert all(len(set(made_by.values())) == 1 for _, made_by in created)  # nobody makes up for any
        orders.append([ranks for ranks, _ in created])
    _check_that_nobody_waits_in_a_circle(orders)


@pytest.mark.parametrize(
    ("world", "layouts", "most_padded"),
    [
        (World.uniform(8, 4), ["world", "node"], 0),
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


def _check_that_nobody_waits_in_a_circle(orders: list[list[tuple[int, ...]]]) -> None:
    """Each rank makes its groups in its order, and a group is made when both are at it: all must come to their end."""
    at = [0] * len(orders)
    while any(place < len(order) for place, order in zip(at, orders, strict=True)):
        ready = [
            orders[rank][at[rank]]
            for rank in range(len(orders))
            if at[rank] < len(orders[rank])
            and all(at[peer] < len(orders[peer]) and orders[peer][at[peer]] == orders[rank][at[rank]]
                    for peer in orders[rank][at[rank]])
        ]  # fmt: skip
        assert ready, "every rank waits for another"
        for ranks in set(ready):
            for rank in ranks:
                at[rank] += 1
