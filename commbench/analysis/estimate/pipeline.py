"""The bubble of a pipeline: the share of a step in which a stage has nothing to do.

Every micro-batch takes the same time on every stage, and messages none. Sources: Huang et al. 2019 (GPipe: all
forward, then all backward), Narayanan et al. 2019 (PipeDream: one forward, one backward) and 2021 (arXiv:2104.04473:
interleaved, where a rank has `chunks` pieces of the model and the bubble shrinks by as much).
"""

from dataclasses import dataclass

ALL_FORWARD, ONE_FORWARD, INTERLEAVED = "all forward, all backward", "one forward, one backward", "interleaved"


@dataclass(frozen=True, slots=True)
class Schedule:
    """`bubble`: share of the step; `in_flight`: micro-batches whose activations the first stage holds at most (of an
    interleaved rank: in chunks, over the number of chunks).
    """

    name: str
    bubble: float
    in_flight: float


def bubble(stages: int, micro_batches: int, chunks: int = 1) -> float:
    """(p - 1) / (v m + p - 1), the share of the step that a stage waits."""
    return (stages - 1) / (chunks * micro_batches + stages - 1)


def schedules(stages: int, micro_batches: int, chunks: int) -> tuple[Schedule, ...]:
    """The schedules that this pipeline can follow: with several chunks a rank the interleaved one too."""
    plain = bubble(stages, micro_batches)
    found = (
        Schedule(ALL_FORWARD, plain, micro_batches),
        Schedule(ONE_FORWARD, plain, min(stages, micro_batches)),
    )
    if chunks == 1:
        return found
    # Megatron-LM's warm-up: 2 (p - 1) + (v - 1) p chunks forward, and the one that goes in before the first leaves.
    held = min(2 * (stages - 1) + (chunks - 1) * stages + 1, chunks * micro_batches)
    return (*found, Schedule(INTERLEAVED, bubble(stages, micro_batches, chunks), held / chunks))
