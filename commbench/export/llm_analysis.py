"""llm-analysis: the GPU configuration. GB/s of 1e9 bytes; its latency is a floor in seconds, and is not added.

llm_analysis/analysis.py (0.2.2): a tensor-parallel all_reduce takes max(2(N-1)/N × S / bandwidth, latency).
"""

import json

from commbench.export.base_file import read_base
from commbench.export.records import Chosen, Export, Need, Request, Shape

_GB = 1e9
_KEYS = ("mem_per_GPU_in_GB", "hbm_bandwidth_in_GB_per_sec", "peak_fp16_TFLOPS")


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(Need("all_reduce", tier) for tier in shape.tiers)


def write(request: Request) -> Export:
    """Raises UsageError for a base that is no GPU configuration of llm-analysis."""
    gpu = read_base(request.base or "", request.base_name, _KEYS)
    measured: dict[str, float] = {}
    assumptions = [
        "memory and FLOPS are the base's",
        "there is no alpha in its formula beside the floor for small messages",
    ]
    for tier in request.shape.tiers:
        item = request.of("all_reduce", tier)
        if request.shape.nodes_of(tier) > 1:
            measured["inter_node_bandwidth_in_GB_per_sec"] = item.bytes_per_second / _GB
        else:
            measured["intra_node_bandwidth_in_GB_per_sec"] = item.bytes_per_second / _GB
            measured["intra_node_min_message_latency"], said = _floor(item)
            assumptions.append(said)
    if len(measured) < 3:
        assumptions.append("what of the network was not measured (one node, or one rank a node) is the base's")
    document = {**gpu, "name": request.name, **measured}
    return Export({f"{request.name}.json": json.dumps(document, indent=2).encode() + b"\n"}, tuple(assumptions))


def _floor(item: Chosen) -> tuple[float, str]:
    """The time of small messages, in seconds."""
    if item.fit.small_seconds is None:
        return item.alpha_total_seconds, "the floor is alpha of the line: no small sizes were measured"
    return item.fit.small_seconds, "the floor is the median time of the sizes whose bytes cost under a tenth of it"
