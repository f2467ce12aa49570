"""Before anything else: is everybody here, and do all run the same programs on the same order?"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from commbench.engines.base import Board
from commbench.errors import RendezvousError
from commbench.measure.whereabouts import name_ranks
from commbench.plan.groups import format_ranks

_POLL_SECONDS = 0.05
_HEARD_SECONDS = 3.0
_ANSWER_SECONDS = 10.0  # that rank 0 may take to judge, after its patience is over


@dataclass(frozen=True, slots=True)
class Presence:
    """What a rank says of itself: where it runs, its versions by name, and what it was asked to do."""

    host: str
    versions: Mapping[str, str]
    order: str


@dataclass(frozen=True, slots=True)
class Roll:
    """Everybody is here: the host of every rank, and what is odd but no reason to stop."""

    hosts: tuple[str, ...]
    warnings: tuple[str, ...]


def call_roll(
    board: Board, rank: int, me: Presence, expected_hosts: Sequence[str], timeout_seconds: float, *, speaks: bool
) -> Roll:
    """Wait until all ranks are here. `expected_hosts`: of each rank, as its launcher says; `?` where it does not.

    Raises RendezvousError on all ranks that came, if one does not come within `timeout_seconds`, or if commbench's
    version or the order differ; with `is_quiet` set where another rank says so: rank 0, or one that `speaks`.
    """
    board.put(f"here/{rank}", json.dumps(asdict(me)))
    board.count("here", 1)
    size = len(expected_hosts)
    if rank == 0:
        board.put("roll", json.dumps(_judge(board, size, expected_hosts, timeout_seconds)))
    elif not board.wait("roll", timeout_seconds + _ANSWER_SECONDS):
        raise RendezvousError(
            f"rank 0 has opened the rendezvous but did not say within {timeout_seconds:g} s who is here: "
            "it is stopped, or its link is down.",
            is_quiet=not speaks,
            ranks=(0,),
        )
    answer = json.loads(board.get(["roll"])[0])
    board.count("heard", 1)
    if answer["error"]:
        if rank == 0:
            _wait_until_heard(board)
        raise RendezvousError(answer["error"], is_quiet=rank != 0, hosts=tuple(answer["missing"]))
    return Roll(tuple(answer["hosts"]), tuple(answer["warnings"]))


def _wait_until_heard(board: Board) -> None:
    """Give those that are here the time to read what is wrong: the store may end with this rank."""
    give_up = time.monotonic() + _HEARD_SECONDS
    while board.count("heard", 0) < board.count("here", 0) and time.monotonic() < give_up:
        time.sleep(_POLL_SECONDS)


def _judge(board: Board, size: int, expected_hosts: Sequence[str], timeout_seconds: float) -> dict[str, Any]:
    give_up = time.monotonic() + timeout_seconds
    while board.count("here", 0) < size and time.monotonic() < give_up:
        time.sleep(_POLL_SECONDS)
    ranks = [rank for rank in range(size) if board.has(f"here/{rank}")]
    texts = board.get([f"here/{rank}" for rank in ranks])
    came = {rank: Presence(**json.loads(text)) for rank, text in zip(ranks, texts, strict=True)}
    if len(came) < size:
        missing = [expected_hosts[rank] for rank in range(size) if rank not in came]
        return {
            "error": explain_missing(came, expected_hosts, timeout_seconds),
            "hosts": [],
            "warnings": [],
            "missing": [host for host in dict.fromkeys(missing) if host != "?"],
        }
    error, warnings = compare(came)
    return {"error": error, "hosts": [came[rank].host for rank in range(size)], "warnings": warnings, "missing": []}


def explain_missing(came: Mapping[int, Presence], expected_hosts: Sequence[str], timeout_seconds: float) -> str:
    """The sentence that names the ranks that did not come, the hosts that they belong to, and those that came."""
    size = len(expected_hosts)
    missing = [rank for rank in range(size) if rank not in came]
    hosts = [came[rank].host if rank in came else expected_hosts[rank] for rank in range(size)]
    known = name_ranks([rank for rank in missing if hosts[rank] != "?"], hosts)
    unknown = [rank for rank in missing if hosts[rank] == "?"]
    named = (
        f"{'rank' if len(unknown) == 1 else 'ranks'} {format_ranks(unknown)} on a host that the launcher does not name"
    )
    who = " and ".join(part for part in (known, named if unknown else "") if part)
    return (
        f"{who} did not come within {timeout_seconds:g} s: {len(came)} of {size} ranks are here, "
        f"{name_ranks(sorted(came), hosts)}; look whether the others were started, and whether they reach this host."
    )


def compare(came: Mapping[int, Presence]) -> tuple[str, list[str]]:
    """The error, empty if there is none, and the warnings that follow from what the ranks say of themselves."""
    errors: list[str] = []
    warnings: list[str] = []
    names = sorted({name for presence in came.values() for name in presence.versions})
    for name in names:
        text = _minority({rank: p.versions.get(name, "none") for rank, p in came.items()}, came, name)
        (errors if name == "commbench" else warnings).append(text)
    error = next((text for text in errors if text), "")
    if error:
        error = f"{error}; the ranks would not do the same: install the same version on every node."
    elif len({presence.order for presence in came.values()}) > 1:
        text = _minority({rank: p.order for rank, p in came.items()}, came, "the command line", show=False)
        error = f"{text}; start all ranks with the same options."
    return error, [f"{text}; numbers may mix two behaviours." for text in warnings if text]


def _minority(values: Mapping[int, str], came: Mapping[int, Presence], name: str, show: bool = True) -> str:
    """Who has another value than most, in a few words; empty if all are the same."""
    counted = Counter(values.values()).most_common()
    if len(counted) == 1:
        return ""
    usual = counted[0][0]
    hosts = [came[rank].host for rank in sorted(came)]
    parts = []
    for value, _ in counted[1:]:
        ranks = [rank for rank in sorted(values) if values[rank] == value]
        has = "has" if len(ranks) == 1 else "have"
        what = f"{name} {value}" if show else f"another {name.removeprefix('the ')}"
        parts.append(f"{name_ranks(ranks, hosts)} {has} {what}")
    rest = f"the other ranks have {usual}" if show else "than the other ranks"
    return f"{', '.join(parts)}{', ' if show else ' '}{rest}"
