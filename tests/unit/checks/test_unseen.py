"""What nobody could see is skipped with the reason, by every rule; what is not there is no fault."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from commbench.checks.registry import Rule, Scene, load_rules, run_rules
from commbench.machine.facts import CpuFacts, Facts, HostFacts, NumaNode
from commbench.results.schema import Finding
from tests.unit.checks.machines import healthy

# Rules about the environment see that nothing is set.
RULES = [row for row in load_rules() if row.family != "ENV" and row.id != "SW-PRELOAD"]
DEVICES = [row for row in RULES if row.family in ("GPU", "PCI", "NIC", "AFF")]
UNSEEN = replace(Facts(), unseen={"limits": "the limits are another's"})
# Ranks, names and variables are always known.
ALWAYS = {"CON-WORLD", "CON-RANKS", "CON-NAMES", "CON-TRANSPORTS", "CON-COMMAND-LINE", "CON-ENV", "CON-ENV-NCCL"}


def _find(rule: Rule, facts: Facts, others: Iterable[Facts] = ()) -> list[Finding]:
    return list(run_rules([rule], Scene(facts, peers=tuple(others))))


@pytest.mark.parametrize("rule", [row for row in RULES if row.id not in ALWAYS], ids=lambda rule: rule.id)
def test_what_nobody_could_see_is_a_skip_with_a_reason(rule: Rule) -> None:
    second = replace(UNSEEN, host=HostFacts("n1", boot_id_hash="1"))
    found = _find(rule, UNSEEN, [second] if rule.family == "CON" else [])
    assert found
    assert {finding.verdict for finding in found} == {"skip"}
    assert all(finding.observed for finding in found)


def test_the_reason_is_that_of_the_reader() -> None:
    (rule,) = (row for row in RULES if row.id == "HOST-NOFILE")
    assert [finding.observed for finding in _find(rule, UNSEEN)] == ["the limits are another's"]


@pytest.mark.parametrize("rule", DEVICES, ids=lambda rule: rule.id)
def test_a_laptop_without_gpu_and_nic_has_no_warning(rule: Rule) -> None:
    facts = replace(
        Facts(), pci=(), gpus=(), rdma=(), interfaces=(), cpu=CpuFacts(online="0-7", numa_nodes=(NumaNode(0, "0-7"),))
    )
    found = _find(rule, facts)
    assert found
    assert {finding.verdict for finding in found} <= {"skip", "ok"}


@pytest.mark.parametrize("rule", [row for row in RULES if row.family == "CON"], ids=lambda rule: rule.id)
def test_one_rank_has_nobody_to_be_compared_with(rule: Rule) -> None:
    assert [finding.verdict for finding in _find(rule, healthy())] == ["skip"]


# What only NVML says of a GPU, and which rules of GPUs do not need it.
FROM_NVML: dict[str, Any] = dict.fromkeys(
    (
        *("persistence", "mig", "temperature_celsius", "sm_clock_max_hertz", "throttle_reasons", "ecc_enabled"),
        *("ecc_uncorrected", "ecc_corrected", "remapped_pending", "remapped_failed", "retired_pages_pending"),
        *("nvlinks", "processes", "memory_used_nbytes"),
    )
) | dict.fromkeys(("compute_mode", "recovery_action", "fabric_state"), "")
FROM_KERNEL = ("GPU-BUS", "GPU-DRIVER", "GPU-XID", "GPU-SXID", "GPU-DIRECT", "GPU-VBIOS", "GPU-GSP", "GPU-MODEL")


@pytest.mark.parametrize(
    "rule", [row for row in RULES if row.family == "GPU" and row.id not in FROM_KERNEL], ids=lambda rule: rule.id
)
def test_without_nvml_nothing_that_only_the_driver_knows_is_ok(rule: Rule) -> None:
    machine = healthy()
    blind = tuple(replace(gpu, **FROM_NVML) for gpu in machine.gpus or ())
    facts = replace(machine, gpus=blind, unseen={"gpus": "nvidia-ml-py is not installed"})
    assert {finding.verdict for finding in _find(rule, facts)} == {"skip"}
