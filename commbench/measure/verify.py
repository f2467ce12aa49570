"""Right before fast: data whose result is known exactly, written before the first call and compared after it.

Every value is a whole number that the dtype holds exactly, and so are all partial results of a reduction, in whatever
order they are taken. A value depends on the rank, the block and the position in it, so that a block in the wrong place,
a block twice and a block shifted by one element all show.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commbench.engines.base import BufferAccess, Call
from commbench.plan.dtypes import Dtype
from commbench.plan.plan import Case

PERIOD = 113  # prime, and below 128 so that int8 holds every value
POISON = 119  # no pattern holds it: what a collective did not write shows
_REPEATS = 4096
_CHUNK = PERIOD * _REPEATS  # elements compared at a time: bounds the memory that verification takes
_REDUCTIONS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum}
_MAX_EXPONENT = 62  # products are computed in int64


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first wrong element of one rank's receive buffer, and how many there are."""

    rank: int
    index: int
    expected: float
    got: float
    wrong: int


def write_pattern(data: BufferAccess, case: Case, call: Call) -> None:
    """Fill the buffers of `call` for one verified call of `case`."""
    spec, count = case.spec, case.count(call.group)
    if call.receive is not None:
        poison = np.full(PERIOD, POISON, dtype=np.int64)
        _write(
            data,
            call.receive,
            0,
            count * spec.receive.count(call.group.size),
            _repeated(poison, case.element),
        )
    if spec.sends(call.me):
        for block in range(spec.send.count(call.group.size)):
            tile = _repeated(send_tile(case, call.group.size, call.me, block), case.element)
            _write(data, call.send, block * count, count, tile)


def write_steady(data: BufferAccess, case: Case, call: Call) -> None:
    """Before timing: values that a reduction in place leaves as they are, so that no number overflows on the way."""
    if not (case.in_place and case.spec.reduces) or case.redop not in ("sum", "prod"):
        return
    value = 0 if case.redop == "sum" else 1
    length = case.count(call.group) * case.spec.send.count(call.group.size)
    _write(data, call.send, 0, length, _repeated(np.full(PERIOD, value, dtype=np.int64), case.element))


def find_mismatch(data: BufferAccess, case: Case, call: Call) -> Mismatch | None:
    """Compare every element that `call` must have received. None if all are right."""
    spec, count = case.spec, case.count(call.group)
    if not spec.receives(call.me):
        return None
    first: tuple[int, float, float] | None = None
    wrong = 0
    for block in range(spec.receive.count(call.group.size)):
        expected = receive_tile(case, call.group.size, call.me, block)
        for start, stop in _chunks(count):
            got = data.read(call.receive, block * count + start, block * count + stop)
            want = np.resize(expected, stop - start)
            bad = np.flatnonzero(_differs(case, call.group.size, got, want))
            wrong += len(bad)
            if len(bad) and first is None:
                first = (block * count + start + int(bad[0]), float(want[bad[0]]), float(got[bad[0]]))
    return Mismatch(call.group.ranks[call.me], *first, wrong) if first else None


def send_tile(case: Case, ranks: int, rank: int, block: int) -> NDArray[np.int64]:
    """The first PERIOD elements of block `block` that rank `rank` of `ranks` sends; the rest repeats them."""
    position = np.arange(PERIOD, dtype=np.int64)
    spread = 37 * rank + 59 * block + position
    if not case.spec.reduces or case.redop in ("min", "max"):
        return spread % PERIOD
    mixed = spread * spread % PERIOD  # few different values, in an order without a rule: sums over ranks differ too
    if case.redop == "prod":
        return np.where(_takes_part(case, rank, position, ranks) & (mixed % 2 == 0), 2, 1)
    highest = min(PERIOD - 1, case.element.exact_limit // ranks)
    if highest == PERIOD - 1:
        return spread % PERIOD
    if highest:
        return mixed % (highest + 1)
    return np.where(_takes_part(case, rank, position, ranks) & (mixed % 2 == 1), 1, 0)


def receive_tile(case: Case, ranks: int, me: int, block: int) -> NDArray[Any]:
    """The first PERIOD elements that block `block` of rank `me`'s receive buffer must hold."""
    source, source_block = case.spec.source(me, block, ranks)
    if source is not None:
        return send_tile(case, ranks, source, source_block)
    return _reduced_tile(case, ranks, source_block)


def _takes_part(case: Case, rank: int, position: NDArray[np.int64], ranks: int) -> NDArray[np.bool_]:
    """Which elements of `rank` take part, when the dtype cannot hold the contribution of all ranks exactly."""
    limit = min(case.element.power_of_two_limit, _MAX_EXPONENT) if case.redop == "prod" else case.element.exact_limit
    takes_part: NDArray[np.bool_] = (rank + position) % ceil(ranks / limit) == 0
    return takes_part


def _reduced_tile(case: Case, ranks: int, block: int) -> NDArray[Any]:
    tiles = np.stack([send_tile(case, ranks, rank, block) for rank in range(ranks)])
    if case.redop == "avg":
        mean: NDArray[Any] = tiles.sum(axis=0) / ranks if case.element.kind == "float" else tiles.sum(axis=0) // ranks
        return mean
    reduced: NDArray[Any] = _REDUCTIONS[case.redop].reduce(tiles)
    return reduced


def _differs(case: Case, ranks: int, got: NDArray[Any], want: NDArray[Any]) -> NDArray[np.bool_]:
    if case.redop == "avg" and case.element.kind == "float":
        # A library may scale by 1/N before it adds: every step may then round once.
        off = np.abs(got.astype(np.float64) - want) > want * (ranks + 1) / case.element.exact_limit
    else:
        off = got != want
    different: NDArray[np.bool_] = off | (got != got)  # NaN differs from everything, itself included
    return different


def _repeated(tile: NDArray[np.int64], element: Dtype) -> NDArray[Any]:
    numpy_dtype = "float32" if element.name == "bfloat16" else element.name
    return np.tile(tile.astype(numpy_dtype), _REPEATS)


def _write(data: BufferAccess, buffer: Any, offset: int, count: int, repeated: NDArray[Any]) -> None:
    for start, stop in _chunks(count):
        data.write(buffer, offset + start, repeated[: stop - start])


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))
