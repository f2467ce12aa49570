"""nnScaler: intra_2.json, intra_4.json, … of AutoDist's comm folder. MiB of the full tensor, and seconds.

nnscaler/profiler/benchmark_comm.py and autodist/cost_database.py: sizes are those of the whole tensor, of which a rank
of all_to_all holds 1/N; between the points it interpolates, below the first it takes the first, above the last it
scales.
"""

import json

from commbench.errors import CommbenchError
from commbench.export.records import Export, Need, Request, Shape, Tier
from commbench.plan.collectives import MAIN_COLLECTIVES

_MIB = 1 << 20


def needs(shape: Shape) -> tuple[Need, ...]:
    """Raises CommbenchError for fewer than two ranks."""
    if shape.world_size < 2:
        raise CommbenchError("nnscaler reads times of 2, 4, 8, … ranks, and the run has one rank.")
    return tuple(Need(name, Tier(size, 1), only_points=True) for size in _degrees(shape) for name in MAIN_COLLECTIVES)


def write(request: Request) -> Export:
    files = {}
    for size in _degrees(request.shape):
        tables = {}
        for name in MAIN_COLLECTIVES:
            ranks_beside = size if name == "all_to_all" else 1  # whose parts make the full tensor
            points = request.measured(name, Tier(size, 1))
            tables[name.replace("_", " ")] = [
                [nbytes * ranks_beside / _MIB for nbytes, _ in points],
                [seconds for _, seconds in points],
            ]
        files[f"comm/intra_{size}.json"] = json.dumps(tables, indent=2).encode() + b"\n"
    return Export(
        files,
        (
            "times are medians as measured: there is no line in them",
            "groups are of neighbours; those larger than a node are called intra too, as nnScaler's own profiler does",
        ),
        ("put the folder comm into ~/.cache/nnscaler/autodist/1.0/<architecture>",),
    )


def _degrees(shape: Shape) -> list[int]:
    """2, 4, 8, … as far as the world goes."""
    return [1 << power for power in range(1, shape.world_size.bit_length())]
