"""Who is missing: pure judgements on what the ranks' beats say, read twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from commbench.measure.heartbeat import Beat
from commbench.plan.groups import format_ranks


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The ranks of a world, each in one of four places.

    `silent`: no new beat between the two readings, and no failure told before. `failed`: alive or gone, but said that
    its collective failed. `behind`: alive, and not as far as the furthest. `arrived`: alive, and as far.
    """

    silent: tuple[int, ...]
    failed: tuple[int, ...]
    behind: tuple[int, ...]
    arrived: tuple[int, ...]


def find_ranks(before: Mapping[int, Beat], after: Mapping[int, Beat]) -> Whereabouts:
    """Where every rank is, from its beats at two moments that are more than one interval apart."""
    failed = [rank for rank, beat in after.items() if beat.failed]
    silent = [rank for rank, beat in after.items() if not beat.failed and beat.number == before[rank].number]
    alive = [rank for rank in after if rank not in {*failed, *silent}]
    front = max((after[rank].position for rank in alive), default=0)
    behind = [rank for rank in alive if after[rank].position < front]
    arrived = [rank for rank in alive if after[rank].position == front]
    return Whereabouts(tuple(silent), tuple(failed), tuple(behind), tuple(arrived))


def name_ranks(ranks: Sequence[int], hosts: Sequence[str]) -> str:
    """`rank 2 on n3`, `ranks 4-5 on n3, rank 6 on n4`: ranks with the hosts that they run on."""
    by_host: dict[str, list[int]] = {}
    for rank in ranks:
        by_host.setdefault(hosts[rank], []).append(rank)
    return ", ".join(
        f"{'rank' if len(found) == 1 else 'ranks'} {format_ranks(found)} on {host}" for host, found in by_host.items()
    )


def describe_stall(found: Whereabouts, beats: Mapping[int, Beat], hosts: Sequence[str], me: int) -> str:
    """Who keeps the others waiting, in one sentence, as far as the beats say; with stacks on lines of their own."""
    if found.silent:
        return (
            f"{_describe_silent(found, beats, hosts, me)}; {_describe_arrived([*found.arrived, *found.behind], hosts)}"
        )
    if found.behind:
        first = beats[found.behind[0]]
        doing = f"in {first.what}" if first.what else "between two collectives"
        missing = f"{name_ranks(found.behind, hosts)} {_are(found.behind)} alive but {_have(found.behind)} not arrived"
        stack = f"\n{first.stack.rstrip()}\n" if first.stack else ""
        return f"{missing}, still {doing}; {_describe_arrived(found.arrived, hosts)}{stack}"
    return "all ranks are alive and have arrived, so look at the links between them, and at the library"


def describe_failure(found: Whereabouts, beats: Mapping[int, Beat], hosts: Sequence[str], me: int) -> str:
    """Who is gone, in one sentence, after a collective failed on this rank."""
    if found.silent:
        return _describe_silent(found, beats, hosts, me)
    return f"all ranks are alive, so a connection between {name_ranks(found.failed, hosts)} broke: look at their links"


def _describe_silent(found: Whereabouts, beats: Mapping[int, Beat], hosts: Sequence[str], me: int) -> str:
    silent = found.silent
    last = beats[silent[0]].what or "between two collectives"
    text = f"{name_ranks(silent, hosts)} {_give(silent)} no sign of life, last seen in {last}"
    others = [rank for rank in beats if hosts[rank] != hosts[me]]
    if set(silent) >= set(others) and len({hosts[rank] for rank in others}) > 1:
        text += f" (all nodes but {hosts[me]}: the link of {hosts[me]} itself may be down)"
    return text


def _describe_arrived(ranks: Sequence[int], hosts: Sequence[str]) -> str:
    if not ranks:
        return "nobody else has arrived"
    return f"{name_ranks(sorted(ranks), hosts)} {_have(ranks)} arrived"


def _are(ranks: Sequence[int]) -> str:
    return "is" if len(ranks) == 1 else "are"


def _have(ranks: Sequence[int]) -> str:
    return "has" if len(ranks) == 1 else "have"


def _give(ranks: Sequence[int]) -> str:
    return "gives" if len(ranks) == 1 else "give"
