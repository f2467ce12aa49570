"""Who is slow: groups against their like, suspects among the ranks, and their hosts."""

from itertools import combinations
from typing import Any

import pytest

from commbench.plan.groups import World, cut_world
from commbench.report.slow_groups import SLOW, slow_group_lines
from commbench.results.schema import Host
from commbench.results.store import Run
from tests.factories import make_case_record, make_group_record, make_row, make_run

HOSTS = tuple(Host(f"host{letter}", "", 1, "", str(rank)) for rank, letter in enumerate("ABCDEFGH"))


def grouped(seconds: dict[str, float], layout: str = "pairs", hosts: tuple[Host, ...] = HOSTS, **changes: Any) -> Run:
    """Groups by name, such as `0-2`, and their time; every pair of rank numbers is a case of its own."""
    rows, groups = [], []
    for case, (name, median) in enumerate(seconds.items()):
        ranks = name.replace("-", ",") if layout == "pairs" else name
        groups.append(make_group_record(layout=layout, name=name, ranks=ranks))
        fields = {"layout": layout, "group": name, "link_class": "net", "seconds_median": median,
                  "seconds_ci_low": 0.99 * median, "seconds_ci_high": 1.01 * median}  # fmt: skip
        rows.append(make_row(case, **(fields | changes)))
    cases = tuple(make_case_record(row.case, requested_nbytes=row.size_bytes) for row in rows)
    return make_run(*rows, world_size=8, hosts=hosts, groups=tuple(groups), cases=cases)


def all_pairs(size: int, slow_ranks: set[int] = frozenset(), slow_pairs: set[str] = frozenset()) -> dict[str, float]:  # type: ignore[assignment]
    """Every pair takes 1 ms, those with a slow rank 3 ms, slow pairs 2 ms."""
    return {
        f"{a}-{b}": 3e-3 if slow_ranks & {a, b} else 2e-3 if f"{a}-{b}" in slow_pairs else 1e-3
        for a, b in combinations(range(size), 2)
    }


@pytest.mark.parametrize("size", [3, 4, 5, 8])
@pytest.mark.parametrize("slow", [0, 2])
def test_one_slow_rank_is_in_all_slow_pairs(size, slow):
    line, legend = slow_group_lines(grouped(all_pairs(size, {slow})))
    assert line.startswith("slow in all_reduce 1 KiB float32 sum on pairs alone over net: ")
    assert line.count("3.00x") == size - 1
    assert line.endswith(
        f" of {size * (size - 1) // 2} groups, usual 1.00 ms; all with rank {slow} on {HOSTS[slow].name}."
    )
    assert legend.startswith(f"slow: at least {SLOW:g} times the usual time")


def test_two_slow_ranks_are_found_though_most_pairs_are_slow():
    (line, _) = slow_group_lines(grouped(all_pairs(6, {1, 4})))  # 9 of 15 pairs
    assert line.endswith("and 1 more of 15 groups, usual 1.00 ms; all with rank 1 on hostB or rank 4 on hostE.")


def test_ranks_of_one_host_are_named_together():
    hosts = tuple(Host(f"host{node}", "", 1, "", f"{2 * node}-{2 * node + 1}") for node in range(4))
    seconds = {name: time for name, time in all_pairs(8, {4, 5}).items() if name not in ("0-1", "2-3", "4-5", "6-7")}
    (line, _) = slow_group_lines(grouped(seconds, hosts=hosts))
    assert line.endswith("; all with ranks 4-5 on host2.")


def test_a_slow_link_is_a_pair_with_both_hosts():
    (line, _) = slow_group_lines(grouped(all_pairs(4, slow_pairs={"1-3"})))
    assert ": 1-3 (hostB, hostD) 2.00x of 6 groups, usual 1.00 ms." in line


def test_a_slow_rank_and_a_slow_link_are_told_as_pairs():
    (line, _) = slow_group_lines(grouped(all_pairs(5, {0}, {"2-3"})))
    assert "0-1 (hostA, hostB) 3.00x" in line
    assert "2-3 (hostC, hostD) 2.00x of 10 groups, usual 1.00 ms." in line


def test_a_slow_node_has_its_host():
    hosts = (Host("a", "", 1, "", "0-1"), Host("b", "", 1, "", "2-3"), Host("c", "", 1, "", "4-5"))
    (line, _) = slow_group_lines(grouped({"0-1": 1e-3, "2-3": 5e-3, "4-5": 1e-3}, "node", hosts))
    assert ": 2-3 (b) 5.00x of 3 groups, usual 1.00 ms." in line


def test_many_hosts_are_counted():
    run = grouped({"0-3": 1e-3, "4-7": 2e-3}, "halves")
    assert ": 4-7 (4 nodes) 2.00x of 2 groups" in slow_group_lines(run)[0]


@pytest.mark.parametrize("hosts", [(), (Host("only", "", 1, "", "0-7"),), (Host("odd", "", 1, "", "?"),)], ids=len)
def test_a_host_that_tells_nothing_is_not_named(hosts):
    line = slow_group_lines(grouped({"0-1": 1e-3, "2-3": 5e-3}, "node", hosts))[0]
    assert ": 2-3 5.00x of 2 groups" in line


@pytest.mark.parametrize(
    ("slowest", "low", "named"),
    [(1.26e-3, 1.25e-3, True), (1.26e-3, 1.2e-3, False), (1.25e-3, None, True), (1.24e-3, None, False)],
)
def test_slow_is_beyond_the_factor_at_the_low_end_too(slowest, low, named):
    run = grouped({"0-1": 1e-3, "2-3": slowest}, "node")
    changed = make_run(
        run.rows[0],
        make_row(1, layout="node", group="2-3", link_class="net", seconds_median=slowest, seconds_ci_low=low),
        hosts=HOSTS, groups=run.record.groups, cases=run.record.cases,
    )  # fmt: skip
    assert bool(slow_group_lines(changed)) is named


@pytest.mark.parametrize("changes", [{"link_class": "loopback"}, {"ranks": 4}])
def test_unlike_groups_are_not_compared(changes):
    run = grouped({"0-1": 1e-3, "2-3": 5e-3}, "node")
    unlike = make_row(1, **({"layout": "node", "group": "2-3", "link_class": "net", "seconds_median": 5e-3} | changes))
    assert slow_group_lines(make_run(run.rows[0], unlike, groups=run.record.groups, cases=run.record.cases)) == []


def test_the_largest_size_counts():
    small, large = grouped(all_pairs(4, {1})), grouped(all_pairs(4), size_bytes=4096)
    shifted = [make_row(row.case + 6, **{name: getattr(row, name) for name in
                                         ("layout", "group", "link_class", "seconds_median", "size_bytes")})
               for row in large.rows]  # fmt: skip
    cases = tuple(make_case_record(number, requested_nbytes=1024 if number < 6 else 4096) for number in range(12))
    assert slow_group_lines(make_run(*small.rows, *shifted, groups=small.record.groups, cases=cases)) == []


@pytest.mark.parametrize(
    "layout", ["node", "rail", "mesh:dp=2,tp=4", "pairs", "halves", "strided:4", "ladder", "world"]
)
def test_an_even_world_has_nobody_to_blame(layout):
    groups = [group for wave in cut_world(World.uniform(8, 4), layout) for group in wave.groups]
    assert slow_group_lines(grouped({group.name: 1e-3 for group in groups}, layout)) == []
