"""How a rank joins its world: the interface, the board, the signs of life, and the roll call, in this order."""

import os
import socket
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from commbench.engines import load_board
from commbench.engines.base import Board
from commbench.errors import RendezvousError
from commbench.launch.environment import RankPlace, expected_hosts
from commbench.machine.network import CHOICE_VARIABLE, Interface, choose_interface
from commbench.machine.software import versions
from commbench.measure.monitor import Monitor
from commbench.measure.request import SweepRequest
from commbench.measure.rollcall import Presence, Roll, call_roll
from commbench.measure.watchdog import Watchdog

_PATIENCE_SECONDS = 300.0  # unless --timeout says otherwise: schedulers start nodes one by one


def meet(request: SweepRequest, place: RankPlace, watchdog: Watchdog) -> tuple[Board, Interface, Roll]:
    """Wait for all ranks, and let them hear of each other from now on. Raises RendezvousError if one does not come."""
    try:
        interface = choose_interface(place.master_addr, all_here=place.local_size == place.world_size)
    except RendezvousError as error:
        error.is_quiet = not (_speaks_second(place) or place.rank == 0)
        raise
    os.environ[CHOICE_VARIABLE] = interface.name
    board, roll = join(
        place, watchdog, engine=request.engine, order=_order(request), timeout_seconds=request.timeout_seconds
    )
    return board, interface, roll


def join(
    place: RankPlace, watchdog: Watchdog, *, engine: str, order: str, timeout_seconds: float | None
) -> tuple[Board, Roll]:
    """Open the board that all ranks share, and call the roll. `order`: the same text on ranks that shall do the same.

    Raises RendezvousError if a rank does not come within `timeout_seconds` (None: a patience for slow schedulers).
    """
    os.environ |= {"MASTER_ADDR": place.master_addr, "MASTER_PORT": str(place.master_port)}
    speaks_second = _speaks_second(place)
    patience = timeout_seconds or _PATIENCE_SECONDS
    try:
        with watchdog.watching("the rendezvous", allowed_seconds=2 * patience + 30.0):
            board: Board = load_board(engine)(rank=place.rank, size=place.world_size, timeout_seconds=patience)
            monitor = Monitor(board, place.rank, place.world_size, watchdog.look, speaks_second=speaks_second)
            watchdog.ask(monitor)
            me = Presence(socket.gethostname(), versions(), order)
            hosts = expected_hosts(os.environ, place)
            roll = call_roll(board, place.rank, me, hosts, patience, speaks=speaks_second)
    except RendezvousError as error:
        error.is_quiet = error.is_quiet or not (speaks_second or place.rank == 0)
        raise
    monitor.meet(roll.hosts)
    return board, roll


def _speaks_second(place: RankPlace) -> bool:
    """Whether this rank speaks where rank 0 cannot: the first of each node, and rank 1."""
    return place.local_rank == 0 or place.rank == 1


def _order(request: SweepRequest) -> str:
    """The same text for ranks that were asked to do the same; where to write, what to resume: rank 0's affair."""
    if request.resume:
        return "resume"
    asked = replace(request, directory=Path(), command=())
    return sha256(repr(asked).encode()).hexdigest()[:12]
