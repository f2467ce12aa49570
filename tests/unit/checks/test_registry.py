"""How rules are declared, selected and run."""

from dataclasses import replace

import pytest

from commbench.checks.registry import FAMILIES, Rule, Scene, load_rules, rule, run_rules, select_rules, warn
from commbench.errors import UsageError
from commbench.machine.facts import Facts, LimitFacts, RdmaDevice


def _rule(id: str) -> Rule:
    return Rule(id, "warn", "", "what to do", "", "", lambda scene: [warn("it", "seen")])


def test_every_rule_says_what_it_is() -> None:
    for row in load_rules():
        assert row.family in FAMILIES
        assert row.summary, row.id
        assert row.fix, row.id
        assert row.source, row.id
        assert len(row.explanation) > 40, row.id


def test_an_id_is_taken_once() -> None:
    load_rules()
    with pytest.raises(ValueError, match="HOST-MEMLOCK"):
        rule("HOST-MEMLOCK", "warn", summary="", fix="", source="")


def test_prefixes_select_and_ignore() -> None:
    rules = [_rule("ENV-A"), _rule("ENV-B"), _rule("HOST-A")]
    assert [row.id for row in select_rules(rules, ["env"], ["ENV-B"])] == ["ENV-A"]
    assert [row.id for row in select_rules(rules, [], ["ENV"])] == ["HOST-A"]


def test_an_unknown_prefix_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean HOST"):
        select_rules([_rule("HOST-A")], ["HOTS"])


def test_a_finding_has_the_rules_id_and_its_fix() -> None:
    (found,) = run_rules([_rule("ENV-A")], Scene(Facts()))
    assert (found.rule, found.verdict, found.action) == ("ENV-A", "warn", "what to do")


def test_what_nobody_could_see_is_skipped_with_its_reason() -> None:
    unseen = replace(Facts(), unseen={"limits": "not of this process"})
    rules = [row for row in load_rules() if row.id == "HOST-MEMLOCK"]
    assert [(f.verdict, f.observed) for f in run_rules(rules, Scene(unseen))] == [("skip", "not of this process")]


@pytest.mark.parametrize(
    ("limit", "rdma", "verdict"),
    [
        (-1, True, "ok"),
        (16 << 30, True, "ok"),
        (64 << 10, True, "fail"),
        (64 << 10, False, "warn"),
        (1 << 30, True, "warn"),
    ],
)
def test_memlock(limit: int, rdma: bool, verdict: str) -> None:
    facts = replace(Facts(), limits=LimitFacts(memlock_nbytes=limit), rdma=(RdmaDevice("mlx5_0"),) if rdma else ())
    rules = [row for row in load_rules() if row.id == "HOST-MEMLOCK"]
    assert [found.verdict for found in run_rules(rules, Scene(facts))] == [verdict]
