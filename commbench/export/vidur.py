"""Vidur's network profiles: all_reduce and send_recv. Milliseconds and bytes of one rank's buffer.

vidur/execution_time_predictor/sklearn_execution_time_predictor.py (0.0.26) reads the medians, with size / (2 × hidden)
as the number of tokens; of all_reduce the rows whose num_workers and devices_per_node are the tensor-parallel size, of
send_recv those with 2 devices per node inside a node and 1 between nodes.
"""

import csv
import json
import lzma
from io import StringIO

from commbench.export.records import Export, Need, Request, Shape, Tier

_MS = 1e3  # a second
_TIMES = ("min", "max", "mean", "median", "std")
_COLUMNS = ("rank", "num_workers", "size", "collective", "devices_per_node", "max_devices_per_node")


def needs(shape: Shape) -> tuple[Need, ...]:
    reduces = [Tier(1 << power, 1) for power in range(1, shape.ranks_per_node.bit_length())]
    reduces += [tier for tier in shape.tiers if shape.nodes_of(tier) > 1]
    return (
        *(Need("all_reduce", tier, only_points=True) for tier in reduces),
        *(Need("send_recv", tier, only_points=True, stand_ins=("all_gather",)) for tier in shape.tiers),
    )


def write(request: Request) -> Export:
    files = {"config.json": json.dumps({"sku": request.name}).encode() + b"\n"}
    for collective in ("all_reduce", "send_recv"):
        text = _table(request, collective).encode()
        files |= {f"{collective}.csv": text, f"{collective}.csv.xz": lzma.compress(text)}
    return Export(
        files,
        (
            "times are medians as measured; min, max, mean and std, which it does not read, are empty",
            "send_recv is a shift between all ranks of a group at once, each sending and receiving",
            "its predictor adds a launch and a skew of its own to each all_reduce",
        ),
    )


def _table(request: Request, collective: str) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["", *(f"time_stats.{collective}.{name}" for name in _TIMES), *_COLUMNS])
    number = 0
    for name, tier in request.chosen:
        if name != collective:
            continue
        inside = request.shape.nodes_of(tier) == 1
        workers = 2 if collective == "send_recv" else tier.ranks
        for nbytes, seconds in request.measured(name, tier):
            times = [seconds * _MS if statistic == "median" else "" for statistic in _TIMES]
            devices = workers if inside else 1
            writer.writerow([number, *times, 0, workers, nbytes, collective, devices, request.shape.ranks_per_node])
            number += 1
    return text.getvalue()
