"""A check under a launcher: every rank comes, and rank 0 tells."""

from collections.abc import Callable, Mapping, Sequence

from commbench.checks.registry import Rule
from commbench.checks.result import CheckResult
from commbench.errors import UsageError
from commbench.launch.environment import RankPlace, find_place
from commbench.machine.facts import Facts
from commbench.machine.network import is_loopback
from commbench.measure.rendezvous import join
from commbench.measure.watchdog import Watchdog
from commbench.preflight.gather import gather
from commbench.preflight.passive import check_node, judge_world


def check_world(
    facts: Facts,
    place: RankPlace,
    rules: Sequence[Rule],
    order: str,
    timeout_seconds: float | None,
    say: Callable[[str], None],
) -> CheckResult | None:
    """What the rules find on all ranks, on rank 0; None on the others, which have nothing to tell.

    `say` gets the sentence with which the watchdog ends a hang. Raises what `join` and `gather` raise.
    """

    def on_end(_outcome: str, message: str, _ranks: tuple[int, ...]) -> None:
        if message:
            say(message)

    with Watchdog(place.rank, timeout_seconds, None, on_end) as watchdog:
        board, _ = join(place, watchdog, engine="torch", order=order, timeout_seconds=timeout_seconds)
        reports = gather(board, facts, lambda here, nodes: check_node(here, rules, nodes), watchdog)
    return judge_world(reports, rules) if reports else None


def find_meeting(place: RankPlace, environment: Mapping[str, str]) -> RankPlace:
    """The place, such that its world can meet even though MASTER_ADDR is wrong: a rule says that it is.

    A loopback address leads every node to itself; where the launcher knows the host of rank 0, that one is taken.
    """
    if place.local_size == place.world_size or not is_loopback(place.master_addr):
        return place
    try:
        return find_place({name: value for name, value in environment.items() if name != "MASTER_ADDR"}) or place
    except UsageError:  # the launcher does not know it either
        return place
