"""ASTRA-sim's analytical network: network.yml and system.json. Its GB is 2^30 bytes, its latency ns for each hop.

common/NetworkFunction.cpp and congestion_unaware/basic-topology: a message takes hops × latency + nbytes / bandwidth,
with two hops through a Switch; a ring all_reduce sends 2(N-1) messages of S/N.
"""

import json
from typing import Any

from commbench.export.records import Export, Need, Request, Shape

_HOPS = 2  # into the switch and out of it
_GIB = 1 << 30
_NS = 1e9  # a second


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(Need("all_reduce", tier) for tier in shape.tiers)


def write(request: Request) -> Export:
    tiers = request.shape.tiers
    items = [request.of("all_reduce", tier) for tier in tiers]
    lists: dict[str, list[Any]] = {
        "topology": ["Switch" for _ in tiers],
        "npus_count": [tier.ranks for tier in tiers],
        "bandwidth": [item.bytes_per_second / _GIB for item in items],
        "latency": [item.alpha_step_seconds / _HOPS * _NS for item in items],
    }
    network = f"# {request.source_line}\n# bandwidth: GiB/s (2^30 bytes); latency: ns a hop, two hops a message\n"
    network += "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in lists.items())
    ring = ["ring" for _ in tiers]
    system = {
        "scheduling-policy": "LIFO",
        "endpoint-delay": 0,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "all-reduce-implementation": ring,
        "all-gather-implementation": ring,
        "reduce-scatter-implementation": ring,
        "all-to-all-implementation": ring,
        "collective-optimization": "baseline",
        "local-mem-bw": 0,
        "boost-mode": 0,
    }
    return Export(
        {"network.yml": network.encode(), "system.json": json.dumps(system, indent=2).encode() + b"\n"},
        (
            "alpha per step and B of all_reduce hold for every collective: a dimension has one of each",
            "every dimension is a Switch: two hops between any two ranks, so a hop's latency is half a step's alpha",
            "collectives are rings of one chunk without an endpoint delay, so that alpha is counted once",
        ),
        ("local-mem-bw in system.json is 0, for memory is not measured here: set your own",),
    )
