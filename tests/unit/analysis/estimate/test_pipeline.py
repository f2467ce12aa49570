"""Bubbles against schedules that are played out operation by operation."""

from collections.abc import Callable

import pytest

from commbench.analysis.estimate.pipeline import ALL_FORWARD, INTERLEAVED, ONE_FORWARD, bubble, schedules

Operation = tuple[str, int, int]  # F or B, chunk, micro-batch


@pytest.mark.parametrize(
    ("stages", "micro_batches", "chunks", "percent"), [(8, 16, 1, 30), (8, 64, 1, 10), (8, 32, 2, 10)]
)
def test_worked_bubbles(stages: int, micro_batches: int, chunks: int, percent: int) -> None:
    assert round(100 * bubble(stages, micro_batches, chunks)) == percent


def all_forward(rank: int, p: int, m: int, v: int) -> list[Operation]:
    return [*(("F", 0, i) for i in range(m)), *(("B", 0, i) for i in range(m))]


def one_forward(rank: int, p: int, m: int, v: int) -> list[Operation]:
    return _alternate([("F", 0, i) for i in range(m)], [("B", 0, i) for i in range(m)], min(m, p - rank - 1))


def interleaved(rank: int, p: int, m: int, v: int) -> list[Operation]:
    """Rounds of p micro-batches, each through all chunks of the rank: the order of Megatron-LM."""
    forward = [("F", c, r * p + i) for r in range(m // p) for c in range(v) for i in range(p)]
    backward = [("B", v - 1 - c, r * p + i) for r in range(m // p) for c in range(v) for i in range(p)]
    return _alternate(forward, backward, min(m * v, 2 * (p - rank - 1) + (v - 1) * p))


def _alternate(forward: list[Operation], backward: list[Operation], ahead: int) -> list[Operation]:
    order = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        order += [one, other]
    return order + backward[len(forward) - ahead :]


def play(order: Callable[[int, int, int, int], list[Operation]], p: int, m: int, v: int) -> tuple[float, float]:
    """(share of the step that a stage waits, micro-batches held at most by the first): forward takes 1, backward 2."""
    seconds = {"F": 1.0 / v, "B": 2.0 / v}
    left = [order(rank, p, m, v) for rank in range(p)]
    free, done = [0.0] * p, {}
    while any(left):
        before = len(done)
        for rank in range(p):
            while left[rank] and all(need in done for need in _needs(rank, left[rank][0], p, v)):
                kind, chunk, micro = left[rank].pop(0)
                ready = max((done[need] for need in _needs(rank, (kind, chunk, micro), p, v)), default=0.0)
                free[rank] = max(free[rank], ready) + seconds[kind]
                done[kind, chunk * p + rank, micro] = free[rank]
        assert len(done) > before, "the schedule waits for itself"
    held = peak = 0
    for kind, _, _ in order(0, p, m, v):
        held += 1 if kind == "F" else -1
        peak = max(peak, held)
    return 1.0 - 3.0 * m / max(free), peak / v


def _needs(rank: int, operation: Operation, p: int, v: int) -> list[Operation]:
    """In terms of the p × v pieces of the model."""
    kind, chunk, micro = operation
    piece = chunk * p + rank
    if kind == "F":
        return [("F", piece - 1, micro)] if piece else []
    after = [("B", piece + 1, micro)] if piece < p * v - 1 else []
    return [("F", piece, micro), *after]


@pytest.mark.parametrize(("p", "m"), [(2, 1), (2, 4), (4, 3), (4, 8), (8, 16), (8, 64), (3, 7)])
@pytest.mark.parametrize(("name", "order"), [(ALL_FORWARD, all_forward), (ONE_FORWARD, one_forward)])
def test_plain_schedules_played_out(name: str, order: Callable[..., list[Operation]], p: int, m: int) -> None:
    (told,) = [one for one in schedules(p, m, 1) if one.name == name]
    assert play(order, p, m, 1) == pytest.approx((told.bubble, told.in_flight))


@pytest.mark.parametrize(("p", "m", "v"), [(2, 2, 2), (2, 4, 3), (4, 4, 2), (4, 8, 2), (4, 16, 4), (8, 32, 2)])
def test_the_interleaved_schedule_played_out(p: int, m: int, v: int) -> None:
    (told,) = [one for one in schedules(p, m, v) if one.name == INTERLEAVED]
    assert play(interleaved, p, m, v) == pytest.approx((told.bubble, told.in_flight))


def test_only_a_rank_with_chunks_can_interleave() -> None:
    assert [one.name for one in schedules(4, 8, 1)] == [ALL_FORWARD, ONE_FORWARD]
