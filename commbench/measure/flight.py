"""What NCCL and torch have counted when ranks wait in vain: sentences that go behind the one of who is to blame."""

import os
from collections.abc import Mapping, Sequence
from itertools import groupby

from commbench.engines.base import Engine
from commbench.machine.nccl_ras import PATIENCE_SECONDS, ask_ras
from commbench.plan.groups import format_ranks
from commbench.results.flight_recorder import GroupProgress, parse_flight
from commbench.results.nccl_ras import Communicator, Launched, RasStatus, parse_ras

_MOST = 3  # communicators, process groups, or other counts in one communicator, that are told of
# NCCL's ncclProfilerStartTaskEvents, which counts for RAS too.
_NOT_COUNTED = "those in CUDA graphs, sends and receives are not counted"
_LONGEST_LIST = 60  # letters of a list of ranks


def explain_hang(engine: Engine, environment: Mapping[str, str]) -> str:
    """What the flight recorder of this rank and NCCL's RAS say; empty where nothing can be read, or nothing is NCCL's.

    Takes as long as `ask_ras` at most, and calls nothing that may wait for a GPU.
    """
    if engine.backend != "nccl":
        return ""
    flight = describe_flight(parse_flight(engine.flight_record()), engine.ranks[0])
    return f"{flight} {_explain_by_ras(environment)}".strip()


def _explain_by_ras(environment: Mapping[str, str]) -> str:
    reply = ask_ras(environment)
    if reply is None:
        return ""
    status = parse_ras(reply)
    return describe_ras(status, os.getpid()) if status else f"RAS: no readable status within {PATIENCE_SECONDS:g} s."


def describe_flight(groups: Sequence[GroupProgress], rank: int) -> str:
    """Of the groups in which something is under way, how far it is on this rank; empty where nothing is."""
    busy = [group for group in groups if group.completed < group.enqueued]
    told = [
        f"of {group.enqueued} collectives enqueued in {'a group' if place == 0 else 'another'}, "
        f"{'' if group.started is None else f'{group.started} have started and '}{group.completed} completed"
        for place, group in enumerate(busy[:_MOST])
    ]
    return f"Flight recorder of rank {rank}: {'; '.join(told)}{_more(len(busy), 'groups')}." if told else ""


def describe_ras(status: RasStatus, pid: int) -> str:
    """Where the ranks of a communicator have not launched the same, or do not answer; if nowhere, that.

    Empty where it is the status of another job: two on one node share RAS's port, and `pid` is in one of them.
    """
    if not status.total or (status.pids and pid not in status.pids):
        return ""
    uneven = [found for found in status.communicators if not found.is_even]
    if uneven:
        told = "; ".join(_describe(found) for found in uneven[:_MOST])
        return f"RAS: {told}{_more(len(uneven), 'communicators')}."
    if status.total == 1 and status.communicators and status.communicators[0].launched:
        return f"RAS: {_describe(status.communicators[0])}."
    where = "the only communicator" if status.total == 1 else f"each of {status.total} communicators"
    return f"RAS: in {where} all ranks have launched the same number of collectives; {_NOT_COUNTED}."


def _describe(communicator: Communicator) -> str:
    size = f" ({communicator.size} ranks)" if communicator.size else ""
    said = [
        _describe_operation(list(groups))
        for _, groups in groupby(communicator.launched, key=lambda found: found.operation)
    ]
    if communicator.missing:
        said.append(f"{_name(communicator.missing, communicator.missing_members)} gave no answer")
    return f"communicator {communicator.name}{size}: {', '.join(said)}"


def _describe_operation(groups: Sequence[Launched]) -> str:
    """`ranks 0-2,4-7 have launched 6650 AllReduce, rank 3 6649`."""
    first, *others = groups
    has = "has" if first.ranks == 1 else "have"
    told = [
        f"{_name(first.ranks, first.members)} {has} launched {first.calls} {first.operation or 'collectives'}",
        *(f"{_name(found.ranks, found.members)} {found.calls}" for found in others[:_MOST]),
    ]
    rest = sum(found.ranks for found in others[_MOST:])
    return ", ".join([*told, f"{rest} rank{'s' * (rest > 1)} other numbers"] if rest else told)


def _name(count: int, members: Sequence[int]) -> str:
    """The ranks by number where all are known and no long list, else how many they are."""
    names = format_ranks(members)
    if len(members) != count or len(names) > _LONGEST_LIST:
        return f"{count} rank{'s' * (count != 1)}"
    return f"rank{'s' * (count != 1)} {names}"


def _more(count: int, what: str) -> str:
    return f"; and in {count - _MOST} more {what}" if count > _MOST else ""
