"""What moved between two readings."""

from dataclasses import replace

import pytest

from commbench.machine.facts import Facts, GpuFacts, InterfaceFacts, KernelFacts, RdmaDevice, RdmaPort
from commbench.preflight.moved import find_moved


def facts(*, counters: dict[str, int] | None = None, flaps: int | None = 3, gpu: GpuFacts | None = None,
          messages: tuple[str, ...] | None = ()) -> Facts:  # fmt: skip
    port = RdmaPort("mlx5_0", 1, counters={"symbol_error": 7, "port_rcv_errors": 50, **(counters or {})})
    return replace(
        Facts(),
        rdma=(RdmaDevice("mlx5_0", ports=(port,)),),
        interfaces=(InterfaceFacts("eth0", carrier_changes=flaps),),
        gpus=(gpu or GpuFacts(0, "0000:1b:00.0", ecc_uncorrected=0, throttle_reasons=()),),
        kernel=KernelFacts(messages=messages),
    )


def test_what_stayed_is_no_finding() -> None:
    assert find_moved(facts(), facts()) == []


@pytest.mark.parametrize(
    ("after", "rule", "verdict"),
    [
        (facts(counters={"symbol_error": 8}), "PRE-COUNTER", "warn"),
        (facts(counters={"link_downed": 1}), "PRE-COUNTER", "fail"),
        (facts(counters={"port_rcv_errors": 151}), "PRE-COUNTER", "warn"),
        (facts(flaps=5), "PRE-FLAP", "fail"),
        (facts(gpu=GpuFacts(0, "0000:1b:00.0", ecc_uncorrected=2, throttle_reasons=())), "PRE-ECC", "fail"),
        (facts(gpu=GpuFacts(0, "0000:1b:00.0", ecc_uncorrected=0, throttle_reasons=("hw_thermal",))), "PRE-THROTTLE",
         "warn"),
        (facts(messages=("NVRM: Xid 79",)), "PRE-KERNEL", "warn"),
    ],
)  # fmt: skip
def test_what_rose_is_one_finding(after: Facts, rule: str, verdict: str) -> None:
    [found] = find_moved(facts(), after)
    assert (found.rule, found.verdict) == (rule, verdict)
    assert found.action


@pytest.mark.parametrize(
    "after", [facts(counters={"port_rcv_errors": 150}), facts(flaps=None), facts(messages=None), Facts()]
)
def test_what_is_allowed_or_was_not_seen_twice_is_none(after: Facts) -> None:
    assert find_moved(facts(), after) == []
