"""The estimate of a step: seconds, memory, shares, findings; and the search."""

import pytest

from commbench.analysis.estimate.layout import Layout, Sharding, Work
from commbench.analysis.estimate.memory import Held, bytes_per_parameter, static_ledger
from commbench.analysis.estimate.rates import GivenRates, choose_links
from commbench.analysis.estimate.search import parse_search, search_layouts
from commbench.analysis.estimate.step import StepEstimate, estimate_step
from commbench.errors import UsageError
from commbench.plan.links import LinkLine
from tests.unit.analysis.estimate.make import lines, named, question

WORKED = named(layers=100, hidden=4096), Layout(tp=8), Work(batch=4, sequence=2048)
MIB = 1 << 20


def rules(estimate: StepEstimate) -> list[str]:
    return [finding.rule for finding in estimate.findings]


@pytest.mark.parametrize(("rate", "seconds"), [(150e9, 0.31), (25e9, 1.9)])
def test_the_worked_seconds(rate: float, seconds: float) -> None:
    estimate = estimate_step(question(*WORKED, links=lines(nvlink=rate)))
    assert estimate.communication_seconds == pytest.approx(43.75 * (1 << 30) / rate, rel=1e-12)
    assert float(f"{estimate.communication_seconds:.2g}") == seconds


def test_seventy_billion_parameters_take_1_1_to_1_4_terabytes() -> None:
    one_rank = Layout()
    totals = [
        static_ledger(Held(70_000_000_000, 0), one_rank, Work(1, 1, gradient_dtype=dtype)).total
        for dtype in ("bfloat16", "float32")
    ]
    assert totals == pytest.approx([1.12e12, 1.40e12], rel=1e-12)
    whole = estimate_step(question(named("llama-70b"), one_rank, Work(1, 4096))).whole_static_nbytes
    assert [round(nbytes / 1e12, 1) for nbytes in whole] == [1.1, 1.4]


@pytest.mark.parametrize(
    ("dtype", "gradients", "expected"),
    [("bfloat16", "bfloat16", (2, 2, 12)), ("bfloat16", "float32", (2, 6, 12)), ("float32", "float32", (4, 4, 8))],
)
def test_bytes_of_a_parameter(dtype: str, gradients: str, expected: tuple[int, int, int]) -> None:
    assert bytes_per_parameter(Work(1, 1, dtype=dtype, gradient_dtype=gradients)) == expected


@pytest.mark.parametrize(("sharding", "nbytes"), [("none", 120), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)])
def test_the_memory_of_the_zero_paper(sharding: Sharding, nbytes: float) -> None:
    """Rajbhandari et al., figure 1: 7.5e9 parameters over 64 ranks, in GB."""
    ledger = static_ledger(Held(7_500_000_000, 0), Layout(dp=64, sharding=sharding), Work(1, 1))
    assert round(ledger.total / 1e9, 1) == nbytes


def test_alpha_is_of_a_step_of_the_ring() -> None:
    estimate = estimate_step(question(*WORKED, links=lines(nvlink=(150e9, 3e-6))))
    without = 43.75 * (1 << 30) / 150e9
    assert estimate.communication_seconds == pytest.approx(without + 400 * 14 * 3e-6)


def test_the_busiest_stage_is_told_and_the_fullest_counts() -> None:
    model = named("llama-70b")
    estimate = estimate_step(question(model, Layout(tp=8, pp=4), Work(1, 4096, 8)))
    assert estimate.stage.name == "last"  # it has the loss, and as much else as the others
    first_or_last = 20 * model.layer_parameters + model.embedding_parameters
    assert estimate.ledger.parameters == pytest.approx(first_or_last * 2 / 8, rel=1e-3)


def test_shares_of_a_measured_step_and_of_one_from_flops() -> None:
    measured = estimate_step(question(*WORKED, links=lines(nvlink=150e9), step_seconds=1.0))
    assert measured.totals[0].share == pytest.approx(0.3132, abs=1e-4)
    model = named("llama-3-8b")
    work = Work(2, 4096, 8)
    asked = question(model, Layout(pp=4, tp=2, dp=2), work, links=lines(nvlink=1e11, net=1e10), flops_per_second=4e14)
    estimate = estimate_step(asked)
    ideal = model.step_flops(2 * 2 * 8 * 4096, 4096) / (16 * 4e14)
    assert estimate.compute_seconds == pytest.approx(ideal / (1 - 3 / 11))
    assert estimate.communication_seconds is not None
    assert estimate.step_seconds == pytest.approx(estimate.compute_seconds + estimate.communication_seconds)


def test_tensor_groups_that_leave_the_node_are_warned_of() -> None:
    work = Work(1, 4096)
    beyond = estimate_step(question(named("llama-70b"), Layout(tp=16), work))
    within = estimate_step(question(named("llama-70b"), Layout(tp=8, dp=2), work))
    assert rules(beyond) == ["tp-leaves-node"]
    assert beyond.totals[0].crossing.between_nodes
    assert rules(within) == []


def test_groups_on_unlike_links_are_warned_of() -> None:
    """On nodes of 6 ranks every third group of 4 neighbours leaves its node."""
    estimate = estimate_step(question(named("mixtral-8x7b"), Layout(dp=24, ep=4), Work(1, 4096), ranks_per_node=6))
    mixed = [finding for finding in estimate.findings if finding.rule == "mixed-links"]
    assert [finding.observed for finding in mixed] == ["2 of 6 groups leave the node (6 ranks)"]
    assert mixed[0].subject == "expert groups"


@pytest.mark.parametrize(("known", "found"), [(True, "net"), (False, "between nodes")])
def test_a_link_class_that_was_not_meant_is_warned_of(known: bool, found: str) -> None:
    links = {"links": lines(nvlink=1e11, net=1e10)} if known else {}
    asked = question(named("llama-70b"), Layout(tp=8, dp=2), Work(1, 4096), **links)
    wrong = estimate_step(question(**{**_fields(asked), "meant": (("dp", "nvlink"), ("tp", "nvlink"))}))
    assert rules(wrong).count("link-not-meant") == 1
    (finding,) = [one for one in wrong.findings if one.rule == "link-not-meant"]
    assert (finding.subject, finding.expected) == ("data groups", "nvlink")
    assert finding.observed.endswith(found)


def _fields(asked: object) -> dict[str, object]:
    return {name: getattr(asked, name) for name in ("model", "layout", "work", "links")}


def test_data_traffic_over_30_percent_is_warned_of() -> None:
    asked = {"links": lines(nvlink=1e11, net=1e10)}
    model, layout, work = named("llama-3-8b"), Layout(dp=16), Work(1, 4096)
    traffic = estimate_step(question(model, layout, work, **asked)).communication_seconds
    assert traffic
    below = estimate_step(question(model, layout, work, **asked, step_seconds=traffic / 0.29))
    above = estimate_step(question(model, layout, work, **asked, step_seconds=traffic / 0.31))
    assert ("data-share" in rules(below), "data-share" in rules(above)) == (False, True)


def test_small_messages_are_warned_of_with_the_bucket_that_helps() -> None:
    """S½ = 2 (N-1) alpha B N / (2 (N-1)) = N alpha B = 16 MiB; four times that is 80 % of B."""
    alpha = 16 * MIB / 16 / 1e10
    model, layout = named("llama-3-8b"), Layout(dp=16)

    def estimate(bucket: int) -> StepEstimate:
        work = Work(1, 4096, bucket_nbytes=bucket)
        return estimate_step(question(model, layout, work, links=lines(net=(1e10, alpha))))

    small, just, good = estimate(15 * MIB), estimate(17 * MIB), estimate(64 * MIB)
    assert (rules(small), rules(just)) == (["small-messages"], [])
    (finding,) = small.findings
    assert "at least 16 MiB" in finding.expected
    assert finding.action.endswith("--bucket 64M")
    (message,) = good.messages
    assert message.cost is not None
    busbw = 2 * 15 / 16 * message.message.nbytes / message.cost.seconds
    assert busbw == pytest.approx(0.8e10, rel=0.001)


def test_small_messages_that_take_next_to_nothing_are_not() -> None:
    links = lines(nvlink=(150e9, 3e-6))
    estimate = estimate_step(question(named("llama-70b"), Layout(tp=8), Work(4, 4096), links=links))
    assert "loss" in {priced.message.purpose for priced in estimate.messages}
    assert rules(estimate) == []


def test_a_rate_that_is_not_known_leaves_the_total_open() -> None:
    estimate = estimate_step(question(named("llama-70b"), Layout(tp=8, dp=2), Work(1, 4096), links=lines(nvlink=1e11)))
    assert estimate.communication_seconds is None
    assert [total.seconds is None for total in estimate.totals] == [False, True]
    (finding,) = [one for one in estimate.findings if one.rule == "no-rate"]
    assert (finding.subject, finding.verdict, finding.observed) == (
        "all_reduce",
        "skip",
        "no rate between nodes for 2 ranks",
    )
    assert "--link net=RATE" in finding.action


def test_memory_above_the_limit_is_a_finding() -> None:
    asked = question(named("llama-70b"), Layout(tp=8), Work(1, 4096), memory_nbytes=80 << 30)
    assert [(one.rule, one.verdict) for one in estimate_step(asked).findings] == [("memory", "fail")]


def test_several_classes_must_be_told_apart() -> None:
    rates = [GivenRates([LinkLine("nvlink", 1e11), LinkLine("sys", 1e10), LinkLine("net", 1e9)])]
    with pytest.raises(UsageError, match="several link classes are known within a node, nvlink, sys"):
        choose_links(rates, None, None)
    links = choose_links(rates, "sys", None)
    assert (links.within, links.between) == ("sys", "net")
    with pytest.raises(UsageError, match="--link gives net two lines"):
        GivenRates([LinkLine("net", 1e9), LinkLine("net", 2e9)])


# -- search ------------------------------------------------------------------------------------------------------------

CLUSTER = lines(nvlink=(150e9, 3e-6), net=(25e9, 5e-6))


def test_search_lists_what_is_feasible_by_communication_time() -> None:
    limit = 80 << 30
    asked = question(named("llama-70b"), Layout(sp=True, sharding="zero1"), Work(1, 4096), links=CLUSTER)
    found = search_layouts(question(**_fields(asked), memory_nbytes=limit), 64, 512)
    seconds = [estimate.communication_seconds for estimate in found.estimates]
    assert None not in seconds
    assert seconds == sorted(seconds, key=lambda value: value or 0.0)
    assert all(estimate.ledger.total <= limit for estimate in found.estimates)
    assert all(estimate.question.layout.world_size == 64 for estimate in found.estimates)
    batches = {one.question.work.micro_batches * one.question.layout.dp for one in found.estimates}
    assert batches == {512}
    # Every tp × pp × dp = 64 = 2^6 is tried: 28 of them.
    assert len(found.estimates) + sum(count for _, count in found.left_out) == 28
    assert dict(found.left_out)["more memory than there is"] > 0
    leaving = [one for one in found.estimates if one.question.layout.tp > 8]
    assert leaving
    assert all("tp-leaves-node" in rules(one) for one in leaving)


def test_each_found_layout_is_the_estimate_of_its_own() -> None:
    found = search_layouts(question(named("llama-3-8b"), Layout(), Work(1, 4096), links=CLUSTER), 16, 64)
    for one in found.estimates:
        assert estimate_step(one.question).communication_seconds == one.communication_seconds


def test_search_keeps_context_and_experts_as_given() -> None:
    asked = question(named("mixtral-8x7b"), Layout(ep=8, cp=2, sp=True), Work(1, 4096), links=CLUSTER)
    found = search_layouts(asked, 32, 64)
    assert {(one.question.layout.cp, one.question.layout.ep) for one in found.estimates} == {(2, 8)}


def test_a_search_without_an_answer_says_why() -> None:
    asked = question(named("llama-70b"), Layout(), Work(1, 4096), links=CLUSTER, memory_nbytes=1 << 30)
    with pytest.raises(UsageError, match=r"no layout of 8 GPUs is possible .*more memory than there is: "):
        search_layouts(asked, 8, 64)


@pytest.mark.parametrize(("text", "gpus"), [("GPUs=64", 64), ("gpus = 8", 8)])
def test_parse_search(text: str, gpus: int) -> None:
    assert parse_search(text) == gpus


@pytest.mark.parametrize("text", ["64", "GPUs=0", "GPUs=1e3", "GPUs=999999999", "nodes=8", "GPUs=" + "9" * 5000])
def test_a_search_that_does_not_read_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="write GPUs=N"):
        parse_search(text)
