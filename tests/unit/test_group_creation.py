"""Groups are made by their members alone: what 2,016 pairs of 64 ranks cost one of them."""

from collections import Counter
from typing import Any

from commbench.measure.worker import _create_groups
from commbench.plan.groups import Group, World
from commbench.plan.plan import PlanRequest, build_plan

SIZE = 64


class CountingEngine:
    """One rank of the world, which counts what it is asked to do; whatever waits for all ranks is a surprise."""

    def __init__(self, rank: int) -> None:
        self.ranks = (rank,)
        self.created: list[Group] = []
        self.asked: Counter[str] = Counter()

    def create_group(self, group: Group) -> None:
        self.created.append(group)

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return lambda *arguments: None


def test_a_rank_makes_its_own_pairs_and_waits_for_nobody_else() -> None:
    world = World.uniform(SIZE, 8)
    request = PlanRequest(collectives=("all_reduce", "all_gather"), sizes_nbytes=(1024, 65536), layouts=("pairs",))
    cases = build_plan(request, world, frozenset())
    orders = []
    for rank in range(SIZE):
        engine = CountingEngine(rank)
        groups = _create_groups(engine, cases)  # type: ignore[arg-type]
        assert len(groups) == SIZE * (SIZE - 1) // 2
        assert len(engine.created) == SIZE - 1
        assert all(rank in group.ranks for group in engine.created)
        assert engine.asked == {}
        orders.append([group.ranks for group in engine.created])
    _check_that_nobody_waits_in_a_circle(orders)


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
