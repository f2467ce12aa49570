"""Facts of all ranks come to rank 0, over a board in memory; what they are judged by is a rule of the tests' own."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from commbench.checks.registry import Rule, Scene, Seen, fail, ok, skip
from commbench.checks.result import CheckedNode, Placed
from commbench.errors import InterruptedRunError
from commbench.machine.facts import Facts, HostFacts, LimitFacts, ProcessFacts
from commbench.preflight.gather import NodeReport, gather, part_of
from commbench.preflight.passive import check_here, check_node, judge_world
from commbench.report.check_table import format_table
from tests.unit.boards import MemoryBoard


class Watch:
    """A watchdog that never bites."""

    interrupted = False

    @contextmanager
    def watching(self, what: str) -> Iterator[None]:
        yield


def _facts(nodes: int, ranks_per_node: int) -> list[Facts]:
    size = nodes * ranks_per_node
    return [
        Facts(
            host=HostFacts(name=f"n{rank // ranks_per_node + 1}", boot_id_hash="same"),
            limits=LimitFacts(memlock_nbytes=rank),
            process=ProcessFacts("Slurm", rank, size, rank % ranks_per_node, ranks_per_node),
        )
        for rank in range(size)
    ]


def _gather(
    facts: Sequence[Facts], judge: Callable[..., Sequence[Placed]]
) -> tuple[MemoryBoard, dict[int, tuple[NodeReport, ...] | None]]:
    board, results = MemoryBoard(), {}

    def come(one: Facts) -> None:
        results[one.process.rank] = gather(board, one, judge, Watch())  # type: ignore[arg-type]

    threads = [threading.Thread(target=come, args=(one,)) for one in facts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return board, results


def test_all_facts_reach_rank_0_and_the_board_is_left_empty() -> None:
    sent = _facts(nodes=3, ranks_per_node=2)
    board, results = _gather(sent, lambda here, nodes: [])
    reports = results.pop(0)
    assert reports is not None
    assert [facts for report in reports for facts in report.facts] == sent
    assert set(results.values()) == {None}
    assert board.texts == {}


def test_one_rank_of_each_node_judges_with_all_its_ranks_in_view() -> None:
    judged = []

    def judge(here: Sequence[Facts], nodes: int) -> list[Placed]:
        judged.append((nodes, here[0].host.name, [facts.process.rank for facts in here]))
        return []

    _gather(_facts(nodes=2, ranks_per_node=4), judge)
    assert sorted(judged) == [(2, "n1", [0, 1, 2, 3]), (2, "n2", [4, 5, 6, 7])]


def test_a_node_is_sent_once_and_a_rank_adds_little() -> None:
    lengths: dict[str, int] = {}

    class Counting(MemoryBoard):
        def put(self, key: str, text: str) -> None:
            lengths[key] = len(text)
            super().put(key, text)

    board = Counting()
    big = [replace(facts, kernel=replace(facts.kernel, command_line="x" * 4000)) for facts in _facts(1, 8)]
    threads = [threading.Thread(target=gather, args=(board, one, lambda here, nodes: [], Watch())) for one in big]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lengths) == 8 + 2  # a part a rank, a report a node, and the sign that all are here
    assert max(length for key, length in lengths.items() if key.startswith("facts/node/")) < 1000


def test_ctrl_c_ends_the_wait() -> None:
    watch = Watch()
    watch.interrupted = True
    with pytest.raises(InterruptedRunError):
        gather(MemoryBoard(), _facts(2, 1)[0], lambda here, nodes: [], watch)  # type: ignore[arg-type]


# -- rules on what was gathered ----------------------------------------------------------------------------------------


def _rule(id: str, check: Callable[[Scene], Sequence[Seen]]) -> Rule:
    return Rule(id, "fail", "", "the fix", "", "", check)


def _memlock(scene: Scene) -> Sequence[Seen]:
    least = min(facts.limits.memlock_nbytes or 0 for facts in (scene.facts, *scene.peers))
    return [ok("memlock", f"{least} here") if least < 2 else fail("memlock", f"{least} here, {scene.nodes} nodes")]


def _compare(scene: Scene) -> Sequence[Seen]:
    if not scene.peers:
        return [skip("ranks", "there is one rank")]
    return [fail("ranks", f"{1 + len(scene.peers)} ranks on {scene.nodes} nodes")]


RULES = [_rule("HOST-A", _memlock), _rule("CON-A", _compare)]


def test_rules_of_a_node_see_its_ranks_and_rules_over_ranks_see_all() -> None:
    _, results = _gather(_facts(nodes=2, ranks_per_node=2), lambda here, nodes: check_node(here, RULES, nodes))
    reports = results[0]
    assert reports is not None
    result = judge_world(reports, RULES)
    assert result.nodes == (CheckedNode("n1", (0, 1)), CheckedNode("n2", (2, 3)))
    assert [(placed.finding.rule, placed.finding.observed, placed.ranks) for placed in result.findings] == [
        ("CON-A", "4 ranks on 2 nodes", ()),
        ("HOST-A", "2 here, 2 nodes", (2, 3)),
        ("HOST-A", "0 here", (0, 1)),
    ]


def test_a_process_alone_has_nothing_to_compare_with() -> None:
    result = check_here(replace(Facts(), host=HostFacts(name="n1")), RULES, nodes=3)
    assert [(placed.finding.rule, placed.finding.verdict) for placed in result.findings] == [
        ("CON-A", "skip"), ("HOST-A", "ok"),
    ]  # fmt: skip
    assert result.nodes == (CheckedNode("n1"),)


def test_a_thousand_nodes_that_differ_are_two_lines() -> None:
    reports = [
        NodeReport(facts, (part_of(facts),), tuple(check_node([facts], RULES[:1], 1000)))
        for facts in _facts(nodes=1000, ranks_per_node=1)
    ]
    (bad, last) = format_table(judge_world(reports, RULES[:1])).splitlines()
    assert "memlock: 2 here, 1000 nodes (rank 2 on node n3); 3 here" in bad
    assert bad.endswith("and 995 more values [ranks 2-999 on nodes n[3-1000]] → the fix")
    assert last == "2 checks on 1000 ranks, 1000 nodes: 1 fail, 0 warn, 1 ok, 0 skipped"
