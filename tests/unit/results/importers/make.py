"""Foreign files of our own making: tables that obey S, t and the factor, in the layouts that other tools print."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from commbench.results.importers import import_source
from commbench.results.importers.assemble import Imported, assemble
from commbench.results.importers.records import ForeignTable, Hints, Source

SIZES = (1024, 65536, 1 << 20, 1 << 24, 1 << 28)
FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}


def seconds_of(nbytes: int, alpha: float = 20e-6, rate: float = 100e9) -> float:
    """What a call of `nbytes` takes in these tables."""
    return alpha + nbytes / rate


def factor_of(collective: str, ranks: int) -> float:
    """busbw over algbw."""
    return FACTORS.get(collective, 0.0) * (ranks - 1) / ranks if collective in FACTORS else 1.0


def body(nbytes: int, factor: float, wrong: str = "0", scale: float = 1.0) -> str:
    """time, algbw, busbw, #wrong. `scale`: on algbw, for conventions of other days."""
    seconds = seconds_of(nbytes)
    algbw = nbytes / seconds / 1e9 * scale
    return f"{seconds * 1e6:8.2f} {algbw:7.2f} {algbw * factor:7.2f} {wrong:>6}"


def row(
    collective: str, ranks: int, nbytes: int, wrong: str = "0", dtype: str = "float", redop: str | None = None
) -> str:
    """A row of 2.13 and later."""
    per_rank = collective in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
    count = nbytes // 4 // (ranks if per_rank else 1)
    operator = (
        redop if redop is not None else "sum" if collective in ("all_reduce", "reduce_scatter", "reduce") else "none"
    )
    root = 0 if collective in ("broadcast", "reduce", "gather", "scatter") else -1
    half = body(nbytes, factor_of(collective, ranks), wrong)
    return f"{nbytes:12d} {count:12d} {dtype:>9} {operator:>7} {root:7d} {half} {half}"


HEADER = """#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"""


def average(collective: str, ranks: int, sizes: Iterable[int] = SIZES) -> float:
    rates = [round(nbytes / seconds_of(nbytes) / 1e9 * factor_of(collective, ranks), 2) for nbytes in sizes]
    return sum(rates) / len(rates)


def devices(ranks: int, per_node: int = 8) -> list[str]:
    return [
        f"#  Rank {rank:2d} Group  0 Pid {4000 + rank} on  node{rank // per_node:02d} device {rank % per_node:2d} "
        f"[0000:{rank % per_node:02x}:00] NVIDIA H100 80GB HBM3"
        for rank in range(ranks)
    ]


def nccl(
    collective: str = "all_reduce",
    ranks: int = 16,
    sizes: Sequence[int] = SIZES,
    *,
    named: bool = True,
    listed: bool = True,
    footer: bool = True,
    rows: Sequence[str] | None = None,
    header: str = HEADER,
    validation: int = 1,
) -> str:
    """The text of one run of nccl-tests 2.18."""
    program = {"send_recv": "sendrecv", "all_to_all": "alltoall"}.get(collective, collective)
    lines = []
    if named:
        lines += ["# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=23007"]
        lines += [f"# Collective test starting: {program}_perf"]
    lines += [
        f"# nThread 1 nGpus 1 minBytes {min(sizes)} maxBytes {max(sizes)} step: 16(factor) warmup iters: 1 iters: 20 "
        f"agg iters: 1 validation: {validation} graph: 0",
        "#",
        "# Using devices",
    ]
    lines += devices(ranks) if listed else []
    lines += ["#", header]
    lines += list(rows) if rows is not None else [row(collective, ranks, nbytes) for nbytes in sizes]
    if footer:
        lines += [
            "# Out of bounds values : 0 OK",
            f"# Avg bus bandwidth    : {average(collective, ranks, sizes):.4f}",
            "#",
        ]
    return "\n".join([*lines, ""])


def nccl_json(**changes: Any) -> str:
    """What -J writes for an all_reduce on two processes with two GPUs each."""
    results = [
        {
            "size": nbytes, "count": nbytes // 4, "type": "float", "redop": "sum", "root": "    -1",
            **{
                place: {
                    "time": round(seconds_of(nbytes) * 1e6, 6), "alg_bw": nbytes / seconds_of(nbytes) / 1e9,
                    "bus_bw": nbytes / seconds_of(nbytes) / 1e9 * 1.5, "nwrong": 0.0,
                }
                for place in ("out_of_place", "in_place")
            },
        }
        for nbytes in SIZES
    ]  # fmt: skip
    hosts = [
        {"rank": rank, "group": 0, "hostname": f"node{rank // 2}", "device_info": "NVIDIA H100"} for rank in (0, 2)
    ]
    document: dict[str, Any] = {
        "version": 2,
        "start_time": "2026-01-02 03:04:05",
        "args": ["/opt/build/all_reduce_perf", "-J", "out.json"],
        "env": ["SECRET=hunter2"],
        "nccl_version": 23007,
        "config": {"nthreads": 1, "ngpus": 2, "validation": 1, "devices": hosts},
        "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": 10.0, "okay": "unchecked"},
        "errors": [],
        "end_time": "2026-01-02 03:05:05",
    }
    return json.dumps({**document, **changes}, indent=1)


def read(data: str | bytes, name: str = "log.txt", as_format: str | None = None, **hints: Any) -> list[ForeignTable]:
    """The tables of a file."""
    content = data.encode() if isinstance(data, str) else data
    return list(import_source(Source(name, content, Hints(**hints)), as_format).tables)


def read_one(data: str | bytes, name: str = "log.txt", as_format: str | None = None, **hints: Any) -> ForeignTable:
    """The only table of a file."""
    (table,) = read(data, name, as_format, **hints)
    return table


def imported(data: str | bytes, name: str = "log.txt", **hints: Any) -> Imported:
    """The run that a file becomes."""
    content = data.encode() if isinstance(data, str) else data
    found = import_source(Source(name, content, Hints(**hints)))
    return assemble([found], "2026-01-02T03:04:05+00:00", ("commbench", "import", name))


def rules(table: ForeignTable) -> set[str]:
    return {finding.rule for finding in table.findings}


def statuses(table: ForeignTable) -> list[str]:
    return [row.status for row in table.rows]
