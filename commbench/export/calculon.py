"""Calculon's networks. GB/s of 1e9 bytes, seconds for the whole operation.

calculon/network.py: seconds = latency + scalar × S × (1 + offset / N) / (bandwidth × efficiency), where the S of
all_gather and reduce_scatter is the full buffer. A network has one latency and one bandwidth, and each operation a
scalar, which takes its own B in.
"""

import json
from typing import Any

from commbench.export.base_file import read_base
from commbench.export.records import Export, Need, Request, Shape, Tier

_GB = 1e9
_OPERATIONS: dict[str, tuple[float, int | None]] = {  # scalar and offset of a ring
    "all_reduce": (2.0, -1), "all_gather": (1.0, -1), "reduce_scatter": (1.0, -1), "send_recv": (1.0, None),
}  # fmt: skip
_NAMES = {"send_recv": "p2p"}


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(Need(name, tier, stand_ins=_stand_ins(name)) for tier in shape.tiers for name in _OPERATIONS)


def write(request: Request) -> Export:
    """Raises UsageError for a base that is no system of Calculon's."""
    networks = [_network(request, tier) for tier in request.shape.tiers]
    assumptions = (
        "latency is alpha of all_reduce for every operation: a network has one",
        "the scalar of an operation holds its own B, as a share of the B of all_reduce",
        "processor_usage is 0, as if a collective took nothing from computing: overlap was not measured",
        "the last network's size is the measured world; there is no all_to_all",
    )
    if request.base is None:
        return Export({"networks.json": _json(networks)}, assumptions)
    system = read_base(request.base, request.base_name, ("networks", "matrix", "vector", "mem1", "mem2"))
    return Export({f"{request.name}.json": _json({**system, "networks": networks})}, assumptions)


def _stand_ins(name: str) -> tuple[str, ...]:
    return ("all_gather",) if name == "send_recv" else ()


def _network(request: Request, tier: Tier) -> dict[str, Any]:
    reference = request.of("all_reduce", tier)
    rate = reference.bytes_per_second
    nominal = max(reference.fit.nominal_bytes_per_second or rate, rate)  # an efficiency is at most 1
    operations = {}
    for name, (scalar, offset) in _OPERATIONS.items():
        operations[_NAMES.get(name, name)] = [scalar * rate / request.of(name, tier).bytes_per_second, offset]
    return {
        "bandwidth": nominal / _GB,
        "efficiency": rate / nominal,
        "size": tier.ranks * tier.stride,
        "latency": reference.alpha_total_seconds,
        "ops": operations,
        "must_be_filled": tier.stride == 1 and request.shape.nodes > 1,
        "processor_usage": 0.0,
    }


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
