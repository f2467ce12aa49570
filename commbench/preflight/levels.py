"""How thorough a preflight is, and how long it is expected to take."""

from dataclasses import dataclass

from commbench.plan.rounds import circle_rounds

_START_SECONDS = 8.0  # until all ranks have loaded torch and are connected
_ROUND_OVERHEAD_SECONDS = 0.3  # connecting pairs, latency, and telling


@dataclass(frozen=True, slots=True)
class Level:
    """`call_seconds`: what one transfer between two nodes may take, from which its size follows, up to `most_nbytes`.

    `samples`: transfers for each direction of a pair. `most_rounds` of pairs; fewer nodes need fewer.
    """

    name: str
    budget_seconds: float
    call_seconds: float
    most_nbytes: int
    samples: int
    most_rounds: int
    has_ladder: bool
    correct_nbytes: tuple[int, ...] = (1 << 10, 64 << 10, 1 << 20)


LEVELS = {
    level.name: level
    for level in (
        Level("quick", 60.0, 0.15, 64 << 20, 3, 10, has_ladder=False),
        Level("standard", 180.0, 0.25, 256 << 20, 5, 20, has_ladder=True),
        Level("full", 600.0, 0.5, 1 << 30, 9, 1000, has_ladder=True, correct_nbytes=(1 << 10, 1 << 20, 16 << 20)),
    )
}


def expected_seconds(level: Level, nodes: int) -> float:
    """Roughly how long a preflight of so many healthy nodes takes; with suspects, retests come on top."""
    rounds = min(level.most_rounds, circle_rounds(nodes)) if nodes > 1 else 1
    each = 2 * (level.samples + 1) * level.call_seconds + _ROUND_OVERHEAD_SECONDS
    ladder = 3 * nodes.bit_length() * level.call_seconds if level.has_ladder else 0.0
    return _START_SECONDS + rounds * each + ladder
