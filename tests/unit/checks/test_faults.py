"""Every planted fault is found by the rule that names it, and by no other; a healthy machine has no warning at all."""

import pytest

from tests.unit.checks.faults import FAULTS
from tests.unit.checks.machines import Fault, healthy, ranks_of, worse


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule}: {fault.name}")
def test_a_fault_is_found_by_the_rule_that_names_it_alone(fault: Fault) -> None:
    assert {finding.rule for finding in worse(fault.plant())} == {fault.rule}


@pytest.mark.parametrize("roce", [False, True], ids=["InfiniBand", "RoCE"])
@pytest.mark.parametrize("nodes", [1, 3])
def test_a_healthy_machine_has_no_warning(nodes: int, roce: bool) -> None:
    world = tuple(facts for node in range(nodes) for facts in ranks_of(healthy(roce), node, nodes))
    assert worse(world) == []
