"""Ranks that meet over their board: what an engine needs beside its library, where that has no group on the CPU.

Each meeting costs every rank a few questions to the board, which one process answers: right for some hundred ranks.
"""

import json
import time

import numpy as np

from commbench.engines.base import Board, Seconds
from commbench.errors import TransportError
from commbench.plan.groups import format_ranks

_LOOK_SECONDS = 0.4  # between two looks at the time limit


class Meetings:
    """The meetings of one rank. Every group counts its own; all its members must meet in the same order.

    Raises TransportError where somebody does not come within `timeout_seconds`; None: the watchdog ends that.
    """

    def __init__(self, board: Board, rank: int, size: int, timeout_seconds: float | None) -> None:
        self.world = tuple(range(size))
        self._board = board
        self._rank = rank
        self._timeout_seconds = timeout_seconds
        self._held: dict[tuple[int, ...], int] = {}

    def barrier(self, ranks: tuple[int, ...]) -> None:
        """Wait until all of `ranks` are here."""
        self._leave(ranks, self._meet(ranks), ())

    def gather(self, text: str, ranks: tuple[int, ...]) -> list[str]:
        """The texts of `ranks`, in their order, on each of them."""
        number = self._held.get(ranks, 0)
        keys = [f"{_key(ranks, number)}/{rank}" for rank in ranks]
        self._board.put(keys[ranks.index(self._rank)], text)
        self._meet(ranks)
        texts = self._board.get(keys)
        self._leave(ranks, number, keys)
        return texts

    def maximum(self, values: Seconds) -> Seconds:
        """The maximum over all ranks of the world, element by element."""
        rows = [json.loads(text) for text in self.gather(json.dumps(values.tolist()), self.world)]
        found: Seconds = np.max(np.array(rows, dtype=np.float64), axis=0)
        return found

    def _meet(self, ranks: tuple[int, ...]) -> int:
        number = self._held.get(ranks, 0)
        self._held[ranks] = number + 1
        key = _key(ranks, number)
        if self._board.count(f"{key}/here", 1) == len(ranks):
            self._board.put(f"{key}/all", "")
            return number
        gives_up = time.monotonic() + (self._timeout_seconds or float("inf"))
        while not self._board.wait(f"{key}/all", _LOOK_SECONDS):
            if time.monotonic() > gives_up:
                raise TransportError(f"not all of ranks {format_ranks(ranks)} came within {self._timeout_seconds:g} s")
        return number

    def _leave(self, ranks: tuple[int, ...], number: int, keys: tuple[str, ...] | list[str]) -> None:
        """Whoever is the last to have read takes everything away."""
        key = _key(ranks, number)
        if self._board.count(f"{key}/read", 1) == len(ranks):
            for name in (*keys, f"{key}/here", f"{key}/all", f"{key}/read"):
                self._board.delete(name)


def _key(ranks: tuple[int, ...], number: int) -> str:
    return f"meet/{format_ranks(ranks)}/{number}"
