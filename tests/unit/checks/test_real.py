"""The rules on the machine that the tests run on: nothing raises, and every rule says something."""

from commbench.checks.registry import Scene, load_rules, run_rules
from commbench.machine.read_facts import read_facts
from commbench.topology.from_facts import make_topology


def test_every_rule_says_something_of_this_machine() -> None:
    facts = read_facts()
    rules = load_rules()
    found = list(run_rules(rules, Scene(facts, make_topology(facts))))
    assert {finding.rule for finding in found} == {rule.id for rule in rules}
    assert all(finding.observed for finding in found)
    assert facts.host.disks
    assert all(0.0 <= used <= 1.0 for used in facts.host.disks.values())
