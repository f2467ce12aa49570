"""AIConfigurator: a system's YAML and its table of NCCL times. Message sizes are elements, times ms, rates bytes/s.

Layout and columns: aiconfigurator's collector/network/collect_nccl.py and sdk/operations/communication.py. It
interpolates in the table; point-to-point is nbytes / inter_node_bw + p2p_latency.
"""

from io import BytesIO
from typing import Any

from commbench.errors import CommbenchError
from commbench.export.base_file import replace_yaml_values
from commbench.export.choose import preference
from commbench.export.records import Chosen, Export, Need, Request, Shape, Tier
from commbench.export.shape import find_strides
from commbench.plan.collectives import MAIN_COLLECTIVES
from commbench.plan.dtypes import DTYPES

_OP_NAMES = {**{name: name for name in MAIN_COLLECTIVES}, "all_to_all": "alltoall"}
_DTYPES = {"half": 2, "int8": 1}  # bytes an element
_MS = 1e3  # a second


def needs(shape: Shape) -> tuple[Need, ...]:
    inside = Tier(shape.ranks_per_node, 1) if shape.ranks_per_node > 1 else Tier(shape.nodes, 1)
    tables = [Need(name, inside, only_points=True) for name in MAIN_COLLECTIVES if name != "all_reduce"]
    between = [Need("send_recv", tier) for tier in shape.tiers if tier.stride > 1 or shape.ranks_per_node == 1]
    return (Need("all_reduce", inside), *tables, *between)


def write(request: Request) -> Export:
    """Raises UsageError for a base that is no system of AIConfigurator's, CommbenchError without pyarrow."""
    shape, version = request.shape, _nccl_version(request)
    inside = needs(shape)[0].tier
    values = {
        "data_dir": f"data/{request.name}",
        "num_gpus_per_node": str(shape.ranks_per_node),
        "intra_node_bw": repr(request.of("all_reduce", inside).bytes_per_second),
        "nccl_version": f"'{version}'",
    }
    assumptions = [
        "a time depends on the bytes, not on the element type: half and int8 rows of one size are one measurement "
        "where only one type was measured",
        "intra_node_bw is B of all_reduce inside a node; all that is not communication is the base's",
    ]
    between = [item for (name, _), item in request.chosen.items() if name == "send_recv"]
    for item in between:
        values |= {"inter_node_bw": repr(item.bytes_per_second), "p2p_latency": repr(item.alpha_total_seconds)}
    if not between:
        assumptions.append("inter_node_bw and p2p_latency are the base's: one node was measured")
    fits = _fits(request)
    rows = [row for item in fits for row in _rows(item, request, version)]
    spec = replace_yaml_values(request.base or "", request.base_name, values)
    return Export(
        {
            f"{request.name}.yaml": f"# {request.source_line}\n{spec}".encode(),
            f"data/{request.name}/comm/nccl/{version}/nccl_perf.parquet": _parquet(rows),
        },
        tuple(assumptions),
        (f"put the base's compute tables beside comm below data/{request.name}: the loader looks for its backend",),
        tuple(item for item in fits if (item.need.collective, item.need.tier) not in request.chosen),
    )


def _nccl_version(request: Request) -> str:
    """The path has it, so it must be a word."""
    version = next((run.record.versions["nccl"] for run in request.runs if "nccl" in run.record.versions), "unknown")
    return "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in version).strip(".") or "unknown"


def _fits(request: Request) -> list[Chosen]:
    """The best curve of neighbours for every collective, number of ranks and bytes an element."""
    strides, found = find_strides(request.runs), {}
    for fit in sorted(request.fits, key=preference, reverse=True):
        key = fit.key
        if key.collective in _OP_NAMES and strides.get((key.layout, key.ranks)) == 1:
            need = Need(key.collective, Tier(key.ranks, 1), only_points=True)
            found[key.collective, key.ranks, _itemsize(key.dtype)] = Chosen(need, fit)
    return list(found.values())


def _itemsize(dtype: str) -> int:
    return 1 if dtype in DTYPES and DTYPES[dtype].itemsize == 1 else 2


def _rows(item: Chosen, request: Request, version: str) -> list[dict[str, Any]]:
    """The points as rows of the type that was measured, and as the other one's where that was not."""
    key = item.fit.key
    others = {_itemsize(fit.key.dtype) for fit in request.fits
              if (fit.key.collective, fit.key.ranks) == (key.collective, key.ranks)}  # fmt: skip
    rows = []
    for dtype, itemsize in _DTYPES.items():
        if itemsize != _itemsize(key.dtype) and itemsize in others:
            continue
        for point in item.fit.points:
            if point.nbytes % itemsize == 0:
                rows.append({
                    "framework": "commbench", "version": version, "device": _device(request),
                    "op_name": _OP_NAMES[key.collective], "kernel_source": "NCCL", "nccl_dtype": dtype,
                    "num_gpus": key.ranks, "message_size": point.nbytes // itemsize, "latency": point.seconds * _MS,
                })  # fmt: skip
    return rows


def _device(request: Request) -> str:
    host = request.runs[0].record.hosts[0] if request.runs[0].record.hosts else None
    return host.devices[0] if host and host.devices else host.cpu if host and host.cpu else "unknown"


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise CommbenchError(
            "AIConfigurator's table is Parquet, and writing it needs pyarrow: pip install 'commbench[parquet]'."
        ) from error
    whole = {"num_gpus": pa.int64(), "message_size": pa.int64(), "latency": pa.float64()}
    schema = pa.schema([(name, whole.get(name, pa.string())) for name in rows[0]])
    buffer = BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), buffer)
    return buffer.getvalue()
