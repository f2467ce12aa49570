"""The catalogue of collectives: one table that says what each moves, what its size means and what it must deliver.

A collective works on blocks. A buffer holds either one block or one block per rank of the group, and the size S is the
larger of one rank's send and receive buffers (nccl-tests' meaning), so a block has S or S/N bytes. Traffic factors are
those of nccl-tests, doc/PERFORMANCE.md, and of its sources for gather, scatter and send_recv.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from commbench.errors import unknown_name


class Blocks(Enum):
    """How many blocks a buffer holds."""

    NONE = "none"
    ONE = "one"
    PER_RANK = "per rank"

    def count(self, ranks: int) -> int:
        """Blocks of a group of `ranks` ranks."""
        return {Blocks.NONE: 0, Blocks.ONE: 1, Blocks.PER_RANK: ranks}[self]


class Placement(Enum):
    """What in-place means for a collective."""

    SAME_BUFFER = "receive buffer = send buffer"
    OWN_BLOCK = "the one-block buffer is the rank's own block of the other"
    NEVER = "not defined"


ROOT = 0  # the index in its group of the root of broadcast, reduce, gather and scatter

# Of an output block: the index in the group of the rank it comes from (None: reduced over all) and which block of
# that rank's send buffer it is.
Source = tuple[int | None, int]


@dataclass(frozen=True, slots=True)
class Collective:
    """One row of the catalogue.

    `factor(N)`: bytes that cross each rank's link per byte of S, so that busbw = factor * algbw.
    `steps(N)`: messages one after another in the ring (or chain) algorithm, so that alpha_total = steps * alpha_step.
    `source(me, block, N)`: what block `block` of rank `me`'s receive buffer must hold.
    """

    name: str
    send: Blocks
    receive: Blocks
    factor: Callable[[int], float]
    factor_text: str
    steps: Callable[[int], int]
    source: Callable[[int, int, int], Source]
    placement: Placement
    reduces: bool = False
    only_root_sends: bool = False
    only_root_receives: bool = False

    @property
    def per_rank(self) -> bool:
        """Whether S is cut into one block per rank."""
        return Blocks.PER_RANK in (self.send, self.receive)

    def count(self, nbytes: int, itemsize: int, ranks: int) -> int:
        """Whole elements in one block when S is at most `nbytes`: NCCL's count argument."""
        return nbytes // (itemsize * (ranks if self.per_rank else 1))

    def nbytes(self, count: int, itemsize: int, ranks: int) -> int:
        """The true S in bytes of a call with `count` elements a block."""
        return count * itemsize * max(self.send.count(ranks), self.receive.count(ranks))

    def sends(self, me: int) -> bool:
        """Whether rank `me` of the group gives data."""
        return self.send is not Blocks.NONE and (not self.only_root_sends or me == ROOT)

    def receives(self, me: int) -> bool:
        """Whether rank `me` of the group gets a result."""
        return self.receive is not Blocks.NONE and (not self.only_root_receives or me == ROOT)

    def bus_factor(self, ranks: int) -> float | None:
        """factor(N); None for one rank, where there is no bus, and for a collective that moves no data."""
        return self.factor(ranks) if ranks > 1 and self.send is not Blocks.NONE else None


def _all_but_own(n: int) -> float:
    return (n - 1) / n


def _once(n: int) -> float:
    return 1.0


def _hops(n: int) -> int:
    return n - 1


_ROWS = (
    Collective(
        "all_reduce", Blocks.ONE, Blocks.ONE, lambda n: 2 * (n - 1) / n, "2(N-1)/N", lambda n: 2 * (n - 1),
        lambda me, block, n: (None, block), Placement.SAME_BUFFER, reduces=True,
    ),
    Collective(
        "all_gather", Blocks.ONE, Blocks.PER_RANK, _all_but_own, "(N-1)/N", _hops,
        lambda me, block, n: (block, 0), Placement.OWN_BLOCK,
    ),
    Collective(
        "reduce_scatter", Blocks.PER_RANK, Blocks.ONE, _all_but_own, "(N-1)/N", _hops,
        lambda me, block, n: (None, me), Placement.OWN_BLOCK, reduces=True,
    ),
    Collective(
        "all_to_all", Blocks.PER_RANK, Blocks.PER_RANK, _all_but_own, "(N-1)/N", _hops,
        lambda me, block, n: (block, me), Placement.NEVER,
    ),
    Collective(
        "broadcast", Blocks.ONE, Blocks.ONE, _once, "1", _hops,
        lambda me, block, n: (ROOT, block), Placement.SAME_BUFFER, only_root_sends=True,
    ),
    Collective(
        "reduce", Blocks.ONE, Blocks.ONE, _once, "1", _hops,
        lambda me, block, n: (None, block), Placement.SAME_BUFFER, reduces=True, only_root_receives=True,
    ),
    Collective(
        "gather", Blocks.ONE, Blocks.PER_RANK, _all_but_own, "(N-1)/N", _hops,
        lambda me, block, n: (block, 0), Placement.OWN_BLOCK, only_root_receives=True,
    ),
    Collective(
        "scatter", Blocks.PER_RANK, Blocks.ONE, _all_but_own, "(N-1)/N", _hops,
        lambda me, block, n: (ROOT, me), Placement.OWN_BLOCK, only_root_sends=True,
    ),
    Collective(
        "send_recv", Blocks.ONE, Blocks.ONE, _once, "1", lambda n: 1,
        lambda me, block, n: ((me - 1) % n, block), Placement.NEVER,
    ),
    Collective(
        "barrier", Blocks.NONE, Blocks.NONE, lambda n: 0.0, "0", _hops,
        lambda me, block, n: (None, 0), Placement.NEVER,
    ),
)  # fmt: skip

COLLECTIVES: dict[str, Collective] = {row.name: row for row in _ROWS}
MAIN_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def find_collective(name: str) -> Collective:
    """The Collective called `name`. Raises UsageError with the nearest name."""
    if name not in COLLECTIVES:
        raise unknown_name("collective", name, COLLECTIVES)
    return COLLECTIVES[name]


def parse_collectives(text: str) -> tuple[str, ...]:
    """Names from `all_reduce,all_gather`, `main` or `all`, each once. Raises UsageError for a name that is unknown."""
    names: list[str] = []
    for word in text.split(","):
        names += {"all": list(COLLECTIVES), "main": list(MAIN_COLLECTIVES)}.get(word.strip(), [word.strip()])
    return tuple(find_collective(name).name for name in dict.fromkeys(names))
