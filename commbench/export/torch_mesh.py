"""PyTorch: bandwidth and latency of DTensor's MeshTopoInfo, and inductor's bandwidths, with a module that sets them.

torch/distributed/tensor/_collective_utils.py (2.13): microseconds = 6.6 + hops × latency + 1e6 × GiB × hops / N /
bandwidth, with 2(N-1) hops of an all_reduce and N-1 of all_gather and reduce_scatter. Its callers give GiB of 2^30.
"""

from importlib.resources import files

from commbench.export.records import Export, Need, Request, Shape, Tier
from commbench.export.side_file import encode
from commbench.plan.collectives import COLLECTIVES

TORCH_SCHEMA_VERSION = 1
BASE_LATENCY_US = 6.6  # that torch adds to every collective
_US = 1e6  # a second
_GIB = 1 << 30
_GB = 1e9


def needs(shape: Shape) -> tuple[Need, ...]:
    return tuple(Need("all_reduce", tier) for tier in shape.tiers)


def write(request: Request) -> Export:
    assumptions = [
        "alpha per step and B of all_reduce hold for all_gather and reduce_scatter too: torch has one number each",
        "a mesh dimension within a node's ranks is inside a node, every other one is between nodes, as in torch itself",
        "torch has no cost of all_to_all",
    ]
    tiers, inductor = [], {}
    for tier in request.shape.tiers:
        item = request.of("all_reduce", tier)
        alpha_us, steps = item.alpha_total_seconds * _US, COLLECTIVES["all_reduce"].steps(tier.ranks)
        if alpha_us < BASE_LATENCY_US:
            assumptions.append(
                f"latency of {tier} is 0: all of its {alpha_us:.3g} us are below the 6.6 us that torch adds by itself"
            )
        where = "between" if _is_between(tier, request.shape) else "inside"
        tiers.append({
            "where": where, "ranks": tier.ranks,
            "bandwidth_gib_per_second": item.bytes_per_second / _GIB,
            "latency_us": max(0.0, alpha_us - BASE_LATENCY_US) / steps,
        })  # fmt: skip
        name = {"inside": "intra_node_bw", "between": "inter_node_bw"}[where]
        inductor[name] = max(1, round(item.bytes_per_second / _GB))
    assumptions.append("inductor takes whole GB/s")
    document = {
        "schema_version": TORCH_SCHEMA_VERSION,
        "ranks_per_node": request.shape.ranks_per_node,
        "tiers": tiers,
        "inductor": inductor,
    }
    shim = files("commbench.export").joinpath("templates", "commbench_torch.py.txt").read_bytes()
    return Export({"commbench-torch.json": encode(document), "commbench_torch.py": shim}, tuple(assumptions))


def _is_between(tier: Tier, shape: Shape) -> bool:
    return shape.nodes_of(tier) > 1
