"""What an imported case may be beside the catalogue: traffic and element types that only foreign tools have."""

from collections.abc import Callable
from dataclasses import dataclass

from commbench.plan.collectives import COLLECTIVES
from commbench.plan.dtypes import DTYPES
from commbench.results.schema import UNKNOWN

POINT_TO_POINT = "point_to_point"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of traffic. `bus_factor(N)` is None where there is no bus, and where it or N is not known."""

    name: str
    factor_text: str
    reduces: bool
    factor: Callable[[int], float | None]

    def bus_factor(self, ranks: int | None) -> float | None:
        """Bytes that cross each rank's link per byte of S in a group of `ranks` ranks."""
        return None if ranks is None else self.factor(ranks)


KINDS: dict[str, Kind] = {
    **{row.name: Kind(row.name, row.factor_text, row.reduces, row.bus_factor) for row in COLLECTIVES.values()},
    # One rank sends, another receives, nothing flows back. The catalogue's send_recv is the ring shift, in which every
    # rank does both: what perftest, OSU's bandwidth test or iperf3 measure is not that.
    POINT_TO_POINT: Kind(POINT_TO_POINT, "1", False, lambda ranks: 1.0 if ranks > 1 else None),
    UNKNOWN: Kind(UNKNOWN, "0", False, lambda ranks: None),
}

# Bytes of one element; None: not known.
ITEMSIZES: dict[str, int | None] = {
    **{dtype.name: dtype.itemsize for dtype in DTYPES.values()},
    "uint32": 4,
    "uint64": 8,
    "float8_e4m3": 1,
    "float8_e5m2": 1,
    UNKNOWN: None,
}
