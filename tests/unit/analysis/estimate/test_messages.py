"""Messages of a step: the worked numbers, and counts by walking through a step one layer at a time."""

from collections import Counter
from dataclasses import replace

import pytest

from commbench.analysis.estimate.layout import Layout, Sharding, Work
from commbench.analysis.estimate.memory import held
from commbench.analysis.estimate.messages import Message, Stage, stages, step_messages
from tests.unit.analysis.estimate.make import named

MIB, GIB = 1 << 20, 1 << 30
ONLY = Stage(True, True)
WORKED = named(layers=100, hidden=4096), Work(batch=4, sequence=2048)


def of(axis: str, messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.axis == axis]


def test_the_worked_numbers_of_tensor_parallelism() -> None:
    (message,) = step_messages(WORKED[0], Layout(tp=8), WORKED[1], ONLY)
    assert (message.collective, message.nbytes, message.ranks) == ("all_reduce", 64 * MIB, 8)
    assert message.bus_nbytes / message.count == 112 * MIB
    assert message.bus_nbytes / 100 == 448 * MIB
    assert message.bus_nbytes == 43.75 * GIB


def test_sequence_parallel_moves_the_same_bytes() -> None:
    sequence_parallel = step_messages(WORKED[0], Layout(tp=8, sp=True), WORKED[1], ONLY)
    assert Counter(message.collective for message in sequence_parallel) == {"reduce_scatter": 1, "all_gather": 1}
    assert sum(message.bus_nbytes for message in sequence_parallel) == 43.75 * GIB


@pytest.mark.parametrize("sp", [False, True])
def test_both_move_the_same_with_embeddings_and_a_pipeline(sp: bool) -> None:
    model, work = named("llama-70b"), Work(1, 4096, 8)
    layout = Layout(tp=8, pp=4, sp=sp)
    for stage in stages(layout):
        moved = sum(message.bus_nbytes for message in of("tp", step_messages(model, layout, work, stage)))
        plain = sum(
            message.bus_nbytes for message in of("tp", step_messages(model, replace(layout, sp=False), work, stage))
        )
        assert moved == plain


def test_embedding_output_and_loss_are_at_the_ends() -> None:
    model, layout, work = named("llama-70b"), Layout(tp=8, pp=4), Work(2, 4096, 8)
    counts = {
        stage.name: {message.purpose: message.count for message in of("tp", step_messages(model, layout, work, stage))}
        for stage in stages(layout)
    }
    layers = {"outputs of layers": 4 * 20 * 8}
    assert counts == {
        "first": {**layers, "embedding and output": 8},
        "middle": layers,
        "last": {**layers, "embedding and output": 8, "loss": 24},
    }


@pytest.mark.parametrize(("p", "v", "m"), [(2, 1, 4), (4, 1, 8), (4, 2, 8), (2, 4, 2)])
def test_pipeline_sends_by_following_every_micro_batch(p: int, v: int, m: int) -> None:
    """Piece g of p v is on rank g mod p: it sends forward unless it is the last, backward unless the first."""
    sent: Counter[int] = Counter()
    for _ in range(m):
        for piece in range(p * v):
            sent[piece % p] += (piece < p * v - 1) + (piece > 0)
    model, layout, work = named(layers=16, hidden=64), Layout(pp=p, interleave=v), Work(2, 128, m)
    for rank in range(p):
        (message,) = step_messages(model, layout, work, Stage(rank == 0, rank == p - 1))
        assert (message.collective, message.ranks, message.count) == ("send_recv", 2, sent[rank])
        assert message.nbytes == 2 * 128 * 64 * 2


def test_sequence_parallel_ranks_send_their_share() -> None:
    model, work = named(layers=16, hidden=512), Work(2, 128, 4)
    whole, share = (
        of("pp", step_messages(model, Layout(pp=2, tp=4, sp=sp), work, Stage(True, False)))[0] for sp in (False, True)
    )
    assert share.nbytes * 4 == whole.nbytes


def test_keys_and_values_go_round_the_ring() -> None:
    """Every other block passes rank 0 of 4 once: forward keys and values, backward these and their gradients."""
    model, layout, work = named("llama-70b"), Layout(cp=4, tp=8), Work(1, 4096, 2)
    (message,) = of("cp", step_messages(model, layout, work, ONLY))
    own_block = 2 * 1024 * 1 * 128 * 2  # K and V of 1024 tokens, one head of 8 on a tp rank
    passed = 0
    for _micro_batch in range(2):
        for _layer in range(80):
            for direction in (1, 2):
                passed += direction * own_block * len([0, 1, 2, 3][1:])
    assert (message.nbytes, message.nbytes * message.count) == (own_block, passed)


def test_tokens_go_to_their_experts_and_back() -> None:
    model, layout, work = named("mixtral-8x7b"), Layout(tp=2, sp=True, dp=4, ep=8), Work(1, 4096, 3)
    messages = step_messages(model, layout, work, ONLY)
    (tokens,) = of("ep", messages)
    assert (tokens.collective, tokens.ranks, tokens.count) == ("all_to_all", 8, 4 * 32 * 3)
    assert tokens.nbytes == 2 * (4096 // 2) * 4096 * 2  # top 2 of the rank's half of the sequence
    assert of("edp", messages) == []  # every expert is on one rank
    layers = [message.count for message in of("tp", messages) if message.purpose == "outputs of layers"]
    assert layers == [2 * 32 * 3] * 2  # attention only: experts are not cut by tp


@pytest.mark.parametrize(
    ("sharding", "copies"), [("none", 2), ("zero1", 2), ("zero2", 1 + 4), ("zero3", 4 * 3)]
)  # of the model's bytes, a step of 4 micro-batches
def test_data_parallel_bytes_are_those_of_the_zero_paper(sharding: Sharding, copies: int) -> None:
    """Rajbhandari et al., section 7: 2 Ψ, with zero3 3 Ψ; what is done for each micro-batch counts as often."""
    model, layout, work = named("llama-3-8b"), Layout(dp=8, sharding=sharding), Work(1, 4096, 4)
    moved = sum(message.bus_nbytes for message in step_messages(model, layout, work, ONLY))
    assert moved == pytest.approx(copies * 7 / 8 * model.parameters * 2, rel=1e-6)


def test_gradients_go_in_buckets() -> None:
    model, layout = named("llama-3-8b"), Layout(dp=8)
    (message,) = step_messages(model, layout, Work(1, 4096, bucket_nbytes=100 * MIB), ONLY)
    assert 0.99 * 100 * MIB < message.nbytes <= 100 * MIB
    assert message.joinable
    (wide,) = step_messages(model, layout, Work(1, 4096, gradient_dtype="float32"), ONLY)
    assert wide.bus_nbytes == pytest.approx(2 * message.bus_nbytes)


def test_gradients_of_experts_are_reduced_among_their_copies() -> None:
    model, layout, work = named("mixtral-8x7b"), Layout(dp=16, ep=8), Work(1, 4096)
    messages = {message.axis: message for message in step_messages(model, layout, work, ONLY)}
    experts = 32 * 3 * 4096 * 14336  # one of 8 on a rank
    assert messages["edp"].ranks == 2
    assert messages["edp"].bus_nbytes == pytest.approx(experts * 2, rel=1e-6)
    assert messages["dp"].bus_nbytes == pytest.approx(2 * 15 / 16 * (model.parameters - 8 * experts) * 2, rel=1e-6)


@pytest.mark.parametrize("name", ["llama-70b", "gpt2-xl", "mixtral-8x7b"])
@pytest.mark.parametrize("pp", [1, 2, 8])
def test_the_stages_hold_the_whole_model(name: str, pp: int) -> None:
    model = named(name)
    ends = [(rank == 0, rank == pp - 1) for rank in range(pp)]
    parts = [held(model, Layout(pp=pp), *end) for end in ends]
    twice = model.embedding_parameters if model.tied_embeddings and pp > 1 else 0
    assert sum(part.dense + part.expert for part in parts) == model.parameters + twice


def test_tied_embeddings_on_two_stages_are_added_up() -> None:
    model, layout, work = named("gpt2-xl"), Layout(pp=4), Work(1, 1024)
    tied = [m for m in step_messages(model, layout, work, Stage(False, True)) if m.collective == "all_reduce"]
    assert [(message.nbytes, message.ranks, message.count) for message in tied] == [(50257 * 1600 * 2, 2, 1)]
    assert all(m.collective != "all_reduce" for m in step_messages(model, layout, work, Stage(False, False)))


def test_one_rank_sends_nothing() -> None:
    assert step_messages(named("llama-70b"), Layout(), Work(1, 4096), ONLY) == ()
