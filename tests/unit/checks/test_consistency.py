"""Whether ranks agree: one finding for each fact, which names who is in the minority."""

import pytest

from commbench.checks.registry import Scene, load_rules, run_rules
from commbench.machine.facts import Facts
from commbench.results.schema import Finding
from tests.unit.checks.machines import Change, healthy, part, ranks_of, set_variable, whole

RULES = {row.id: row for row in load_rules()}


def job(nodes: int, changes: dict[int, Change] | None = None, ranks: dict[int, Change] | None = None) -> list[Facts]:
    """A job of two ranks a node, with changes to whole nodes and to single ranks."""
    world = [facts for node in range(nodes) for facts in ranks_of(healthy(), node, nodes)]
    for node, change in (changes or {}).items():
        world[2 * node : 2 * node + 2] = map(change, world[2 * node : 2 * node + 2])
    for rank, change in (ranks or {}).items():
        world[rank] = change(world[rank])
    return world


def look(rule: str, world: list[Facts]) -> list[Finding]:
    return list(run_rules([RULES[rule]], Scene(world[0], None, len(world), tuple(world[1:]))))


def told(rule: str, world: list[Facts]) -> list[tuple[str, str, str]]:
    return [(found.subject, found.observed, found.expected) for found in look(rule, world) if found.verdict != "ok"]


OLD, OLDER = part("software", nccl_loadable="2.19.3"), part("software", nccl_loadable="2.18.1")


@pytest.mark.parametrize(
    ("nodes", "changes", "ranks", "expected"),
    [
        (8, {3: OLD}, {}, ("node n3 (ranks 6-7)", "NCCL: 2.19.3", "2.21.5, as the other 14 ranks")),
        (8, {3: OLD, 5: OLD}, {}, ("nodes n3, n5 (ranks 6-7, 10-11)", "NCCL: 2.19.3", "2.21.5, as the other 12 ranks")),
        (4, {}, {5: OLD}, ("rank 5 on n2", "NCCL: 2.19.3", "2.21.5, as the other 7 ranks")),
        (
            4,
            {1: OLD},
            {5: OLDER},
            (
                "node n1 (ranks 2-3), rank 5 on n2",
                "NCCL: node n1 (ranks 2-3): 2.19.3; rank 5 on n2: 2.18.1",
                "2.21.5, as the other 5 ranks",
            ),
        ),
        (
            2,
            {1: OLD},
            {},
            ("NCCL", "no majority: node n0 (ranks 0-1): 2.21.5; node n1 (ranks 2-3): 2.19.3", "one value"),
        ),
    ],
    ids=["a node", "two nodes", "a rank", "two values", "a tie"],
)
def test_the_minority_is_named(
    nodes: int, changes: dict[int, Change], ranks: dict[int, Change], expected: tuple[str, str, str]
) -> None:
    assert told("CON-NCCL", job(nodes, changes, ranks)) == [expected]


def test_facts_of_nodes_are_counted_in_nodes() -> None:
    world = job(4, {3: part("host", kernel="5.15.0-1")})
    assert told("CON-KERNEL", world) == [
        ("node n3 (ranks 6-7)", "kernel: 5.15.0-1", "5.15.0-1055-nvidia, as the other 3 nodes")
    ]


def test_variables_in_which_the_same_ranks_differ_are_one_finding() -> None:
    def set_two(facts: Facts) -> Facts:
        return set_variable("NCCL_ALGO", "Ring")(set_variable("GLOO_SOCKET_IFNAME", "eth1")(facts))

    world = job(4, {3: set_two}, {0: set_variable("NCCL_PROTO", "LL")})
    assert told("CON-ENV-NCCL", world) == [
        (
            "node n3 (ranks 6-7)",
            "environment: GLOO_SOCKET_IFNAME: `eth1`, NCCL_ALGO: `Ring`",
            "GLOO_SOCKET_IFNAME: not there, NCCL_ALGO: not there, as the other 6 ranks",
        ),
        ("rank 0 on n0", "environment: NCCL_PROTO: `LL`", "NCCL_PROTO: not there, as the other 7 ranks"),
    ]


@pytest.mark.parametrize(
    "name", ["LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "NCCL_DEBUG_FILE", "UCX_NET_DEVICES", "SLURM_PROCID", "RANK"]
)
def test_variables_of_a_rank_may_differ(name: str) -> None:
    rules = [RULES["CON-ENV"], RULES["CON-ENV-NCCL"]]
    world = job(3, {2: set_variable(name, "7")})
    assert {found.verdict for found in run_rules(rules, Scene(world[0], None, 3, tuple(world)))} == {"ok"}


def test_of_a_table_only_what_differs_is_told() -> None:
    world = job(3, {2: part("software", packages={"torch": "2.6.0+cu124", "numpy": "1.26.4", "mpi4py": "4.0.0"})})
    assert told("CON-PACKAGES", world) == [
        (
            "node n2 (ranks 4-5)",
            "Python packages: mpi4py: 4.0.0, numpy: 1.26.4",
            "mpi4py: not there, numpy: 2.2.0, as the other 4 ranks",
        )
    ]


def test_who_could_not_be_seen_is_told_apart() -> None:
    world = job(3, {2: part("host", kernel="")})
    assert [(found.verdict, found.subject, found.observed) for found in look("CON-KERNEL", world)] == [
        ("skip", "kernel", "not seen on node n2 (ranks 4-5)"),
        ("ok", "kernel", "5.15.0-1055-nvidia on all 2 nodes"),
    ]


def test_a_long_value_is_cut() -> None:
    world = job(3, {2: part("host", product="x" * 5000)})
    assert len(told("CON-PRODUCT", world)[0][1]) < 300


def test_nodes_of_one_name_are_told_apart() -> None:
    world = job(3, {2: part("host", name="n0")})
    assert [found.subject for found in look("CON-NAMES", world)] == ["n0"]
    world = job(3, {2: part("host", name="n0", kernel="5.15.0-1")})
    assert told("CON-KERNEL", world)[0][0] == "node n0[000000000002] (ranks 4-5)"


def test_snapshots_are_of_different_times_and_of_no_job() -> None:
    snapshot = [part("process", rank=0, world_size=1)(whole(source="a.json")(facts)) for facts in job(2)[::2]]
    assert {rule: [found.verdict for found in look(rule, snapshot)] for rule in ("CON-CLOCK", "CON-WORLD")} == {
        "CON-CLOCK": ["skip"],
        "CON-WORLD": ["skip"],
    }


def test_nodes_with_different_numbers_of_ranks_without_majority() -> None:
    assert told("CON-RANKS", job(2, {1: part("process", local_size=4)})) == [
        ("ranks a node", "no majority: 1 nodes with 2, 1 nodes with 4", "one number")
    ]
