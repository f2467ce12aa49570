"""What torch's flight recorder has counted on one rank: `pg_status` of its JSON (torch's FlightRecorderDetail.hpp)."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """The numbers of the last collectives of one process group. `started` is None where torch does not look."""

    enqueued: int
    started: int | None
    completed: int


@dataclass(frozen=True, slots=True)
class _Status:
    last_enqueued_collective: int
    last_completed_collective: int
    last_started_collective: int = -1  # torch writes -1 for none; it looks only with TORCH_NCCL_ENABLE_TIMING


@dataclass(frozen=True, slots=True)
class _Dump:
    pg_status: Mapping[str, _Status] = field(default_factory=dict)


def parse_flight(text: str) -> tuple[GroupProgress, ...]:
    """How far each process group is; empty where nothing was recorded, or the text is something else."""
    import msgspec

    try:
        dump = msgspec.json.decode(text, type=_Dump, strict=False)  # newer torch writes the numbers as strings
    except (msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(
        GroupProgress(
            max(0, status.last_enqueued_collective),
            status.last_started_collective if status.last_started_collective >= 0 else None,
            max(0, status.last_completed_collective),
        )
        for status in dump.pg_status.values()
    )
