"""SimuMax's networks. Its gbps are 2^30 bytes a second; between nodes they are those of a whole node. Latencies are us.

simumax/core/config.py, compute_net_op_time: ms = scale × S × (1 + offset / N) / (gbps × 2^30 × efficient_factor) × 1e3
plus the latency, which with num_per_node 8 is taken (N + offset) × scale times for collectives, that is once a ring
step, and once otherwise. An operation may have its own efficient_factor and latency_us: its own B and alpha.
"""

import json
from typing import Any

from commbench.export.base_file import read_base
from commbench.export.records import Chosen, Export, Need, Request, Shape, Tier

_GIB = 1 << 30
_US = 1e6  # a second
_STEPWISE = 8  # ranks a node for which SimuMax multiplies a latency by the steps
_OPERATIONS: dict[str, tuple[str, int, int]] = {  # its name, scale and offset of a ring
    "all_reduce": ("all_reduce", 2, -1), "all_gather": ("all_gather", 1, -1),
    "reduce_scatter": ("reduce_scatter", 1, -1), "send_recv": ("p2p", 1, 0), "all_to_all": ("all2all", 1, -1),
}  # fmt: skip


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(
        Need(name, tier, stand_ins=("all_gather",) if name == "send_recv" else ())
        for tier in shape.tiers
        for name in _OPERATIONS
    )


def write(request: Request) -> Export:
    """Raises UsageError for a base that is no system of SimuMax's."""
    shape = request.shape
    networks: dict[str, Any] = {}
    for tier in shape.tiers:
        network = _network(request, tier)
        between = shape.nodes_of(tier) > 1
        networks |= {"inter_node": network} if between else {"low_intra_node": network, "high_intra_node": network}
    stepwise = shape.ranks_per_node == _STEPWISE
    assumptions = (
        f"latency_us is {'a step' if stepwise else 'the whole collective'}'s: SimuMax multiplies it by the steps with "
        f"8 ranks a node only, and here are {shape.ranks_per_node}",
        "inter_node.gbps is a whole node's, B of one rank a node times the ranks: SimuMax divides it by the groups",
        "low_intra_node and high_intra_node are the same; efficient_factor is an operation's B over that of all_reduce",
        "processor_usage is 0, as if a collective took nothing from computing: overlap was not measured",
    )
    if request.base is None:
        document = {"num_per_node": shape.ranks_per_node, "networks": networks}
        return Export({"networks.json": _json(document)}, assumptions)
    system = read_base(request.base, request.base_name, ("networks", "accelerator", "num_per_node", "sys_name"))
    merged = {**system, "num_per_node": shape.ranks_per_node, "networks": {**system["networks"], **networks}}
    return Export({f"{request.name}.json": _json(merged)}, assumptions)


def _network(request: Request, tier: Tier) -> dict[str, Any]:
    shape, reference = request.shape, request.of("all_reduce", tier)
    ranks_beside = shape.ranks_per_node if shape.nodes_of(tier) > 1 else 1
    operations = {}
    for name, (its_name, scale, offset) in _OPERATIONS.items():
        item = request.of(name, tier)
        operations[its_name] = {
            "scale": scale,
            "offset": offset,
            "efficient_factor": item.bytes_per_second / reference.bytes_per_second,
            "latency_us": _latency_us(item, shape),
        }
    bandwidth = {
        "efficient_factor": 1.0,
        "gbps": reference.bytes_per_second * ranks_beside / _GIB,
        "latency_us": _latency_us(reference, shape),
    }
    return {"processor_usage": 0.0, "bandwidth": bandwidth, "op": operations}


def _latency_us(item: Chosen, shape: Shape) -> float:
    alpha = item.alpha_step_seconds if shape.ranks_per_node == _STEPWISE else item.alpha_total_seconds
    return alpha * _US


def _json(document: Any) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
