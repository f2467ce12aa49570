"""Hetu-Galvatron's four JSON files of hardware_configs. Its MB is 2^20 bytes, its bandwidth MiB/ms, its time ms.

Read by galvatron/utils/config_utils.py (2.4.0): a bandwidth becomes 1/value ms per MiB of bus traffic, and the points
of sp_time go through an unweighted least-squares line, so points of our line give our line back. Sizes are those of the
full bf16 tensor of profile_all2all.py: for all_to_all a rank holds 1/N of it.
"""

import json

from commbench.errors import CommbenchError
from commbench.export.records import Export, Need, Request, Shape, Tier

OVERLAP_COEFFICIENT = 1.3  # what its cost model takes where nothing was profiled (dp_overlap_coe, cost_model_args.py)
SIZES_MIB = tuple(1 << power for power in range(11))  # as its profiler: 1 to 1024 MB
_MIB = 1 << 20
_MS = 1e3  # a second


def needs(shape: Shape) -> tuple[Need, ...]:
    """Raises CommbenchError unless there are 2, 4, 8, … ranks: it halves the world until two are left."""
    world = shape.world_size
    if world < 2 or world & (world - 1):
        raise CommbenchError(
            f"galvatron halves the world until 2 ranks are left, and {world} ranks are no power of two."
        )
    degrees = _degrees(world)
    reduces = [Need("all_reduce", tier) for size in degrees for tier in dict.fromkeys(_both(size, world))]
    exchanges = [Need("all_to_all", Tier(size, 1)) for size in degrees]
    stages = [Need("send_recv", Tier(size, world // size), stand_ins=("all_gather",)) for size in degrees]
    return (*reduces, *exchanges, *stages)


def write(request: Request) -> Export:
    shape, world = request.shape, request.shape.world_size
    machine = f"{shape.nodes}nodes_{shape.ranks_per_node}gpus_per_node"
    reduce_rates: dict[str, float] = {}
    stage_rates: dict[str, float] = {}
    times: dict[str, float] = {}
    for size in _degrees(world):
        consecutive, strided = _both(size, world)
        reduce_rates[f"allreduce_size_{size}_consec_1"] = _rate(request.of("all_reduce", consecutive).bytes_per_second)
        if size < world:
            reduce_rates[f"allreduce_size_{size}_consec_0"] = _rate(request.of("all_reduce", strided).bytes_per_second)
        stage_rates[f"pp_size_{size}"] = _rate(request.of("send_recv", strided).bytes_per_second)
        reduce, exchange = request.of("all_reduce", consecutive), request.of("all_to_all", consecutive)
        times |= {f"allreduce_size_{size}_{mib}MB_time": reduce.seconds(mib * _MIB) * _MS for mib in SIZES_MIB}
        times |= {f"all2all_size_{size}_{mib}MB_time": exchange.seconds(mib * _MIB / size) * _MS for mib in SIZES_MIB}
    overlap, said = _overlap(request)
    return Export(
        {
            f"allreduce_bandwidth_{machine}.json": _json(reduce_rates),
            f"p2p_bandwidth_{machine}.json": _json(stage_rates),
            f"sp_time_{machine}.json": _json(times),
            "overlap_coefficient.json": _json({"overlap_coe": overlap}),
        },
        (
            said,
            "sp_time holds points of the fitted lines, which Galvatron fits again; beyond the window: an extrapolation",
            "its all_gather and reduce_scatter are half an all_reduce; data-parallel and pipeline times have no alpha",
            "p2p is a shift between all stages at once, each rank sending and receiving",
        ),
    )


def _overlap(request: Request) -> tuple[float, str]:
    """The largest coefficient of an all_reduce beside matrix products, and where it is from."""
    measured = [
        overlap.coefficient
        for run in request.runs
        for overlap in run.record.overlap
        if run.record.cases[overlap.case].collective == "all_reduce" and overlap.coefficient is not None
    ]
    if measured:
        return max(measured), f"overlap_coe is the largest of {len(measured)} measured beside an all_reduce"
    return OVERLAP_COEFFICIENT, f"overlap_coe {OVERLAP_COEFFICIENT} is Galvatron's default: sweep --overlap measures it"


def _degrees(world: int) -> list[int]:
    return [world >> power for power in range(world.bit_length() - 1)]


def _both(size: int, world: int) -> tuple[Tier, Tier]:
    """Groups of neighbours (consec_1), and of ranks as far apart as they can be (consec_0)."""
    return Tier(size, 1), Tier(size, world // size)


def _rate(bytes_per_second: float) -> float:
    return bytes_per_second / _MIB / _MS


def _json(document: dict[str, float]) -> bytes:
    return json.dumps(document, indent=4).encode() + b"\n"
