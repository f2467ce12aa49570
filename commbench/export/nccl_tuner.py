"""NCCL's example tuner plugin: nccl_tuner.conf, and the table that its scripts/optimize_config.py reads.

plugins/tuner/example/plugin.c (NCCL 2.30): a line is collective, least and most bytes, algorithm, protocol, channels,
nodes, ranks, pipeline operations, registered buffers; the first that matches wins. Without a channel count the plugin
leaves one channel, also for calls that no line matches. Sizes are ours: the larger of a rank's buffers.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from commbench.errors import CommbenchError
from commbench.export.records import Export, Need, Request, Shape
from commbench.results.schema import SummaryRow
from commbench.results.store import Run

_COLLECTIVES = {
    "broadcast": "broadcast", "reduce": "reduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
    "all_reduce": "allreduce",
}  # fmt: skip
_ALGORITHMS = {
    "tree": "tree", "ring": "ring", "collnetdirect": "collnet_direct", "collnetchain": "collnet_chain", "nvls": "nvls",
    "nvlstree": "nvls_tree", "pat": "pat",
}  # fmt: skip
_PROTOCOLS = {"ll": "ll", "ll128": "ll128", "simple": "simple"}
_CHANNELS = (("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"), ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS"))
_US = 1e6  # a second
_MOST_NBYTES = (1 << 32) - 1  # what the plugin's numbers hold
_ANY = -1
_COLUMNS = (
    "collective", "size_bytes", "algorithm", "protocol", "channels", "nodes", "ranks", "pipeOps", "regBuff",
    "bandwidth_gbps", "latency_us",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a run forced."""

    algorithm: str
    protocol: str
    channels: int


@dataclass(frozen=True, slots=True)
class _Case:
    collective: str
    nodes: int
    ranks: int


_Times = dict[_Case, dict[int, dict[_Setting, SummaryRow]]]


def needs(shape: Shape) -> tuple[Need, ...]:
    """Not curves but runs, one for each setting."""
    return ()


def write(request: Request) -> Export:
    """Raises CommbenchError unless two runs forced settings of the same case, and their channels are known."""
    times: _Times = {}
    for run in request.runs:
        if (setting := _setting(run)) is not None:
            _add(times, run, setting)
    compared = {case: sizes for case, sizes in times.items() if len({s for by in sizes.values() for s in by}) > 1}
    if not compared:
        raise CommbenchError(
            f"nccl-tuner compares runs of the same cases under forced settings, and {len(request.runs)} given "
            f"{'run has' if len(request.runs) == 1 else 'runs have'} no two of them. "
            "Measure each setting, and export all runs:\n"
            "  NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_MIN_CTAS=16 NCCL_MAX_CTAS=16 commbench sweep --sizes 1K:1G:x2"
        )
    unknown = {s for sizes in compared.values() for by in sizes.values() for s in by if s.channels == _ANY}
    if unknown and not request.force:
        raise CommbenchError(
            "the number of channels of a run is not known, and the plugin takes one where its file has none: set "
            "NCCL_MIN_CTAS and NCCL_MAX_CTAS to one number when measuring, or give --force."
        )
    one_channel = (
        ("channels is -1 where it is not known: the example plugin of NCCL then takes ONE channel",) if unknown else ()
    )
    return Export(
        {"nccl_tuner.conf": _configuration(request, compared).encode(), "performance.csv": _table(compared).encode()},
        (
            "the fastest median at each measured size; between two sizes the border is in the middle",
            "below the smallest and above the largest measured size the nearest choice holds, up to 4 GiB",
            "any number of pipeline operations and registered buffers; the plugin knows no all_to_all",
        ),
        (*one_channel, "calls that no line matches get one channel from NCCL's example plugin up to 2.30"),
    )


def _setting(run: Run) -> _Setting | None:
    environment = run.record.environment
    algorithm = _ALGORITHMS.get(environment.get("NCCL_ALGO", "").lower())
    protocol = _PROTOCOLS.get(environment.get("NCCL_PROTO", "").lower())
    return _Setting(algorithm, protocol, _channels(environment)) if algorithm and protocol else None


def _channels(environment: dict[str, str]) -> int:
    """As many least as most channels, or -1."""
    for least, most in _CHANNELS:
        value = environment.get(least, "")
        if value and value == environment.get(most) and value.isascii() and value.isdigit():
            return int(value)
    return _ANY


def _add(times: _Times, run: Run, setting: _Setting) -> None:
    """The run's medians; of several groups or repeats the slowest, as a job would see it."""
    for row in run.rows:
        known = row.size_bytes and row.seconds_median and row.ranks and row.nodes and row.status in ("ok", "noisy")
        if not known or row.collective not in _COLLECTIVES:
            continue
        case = _Case(row.collective, row.nodes or 0, row.ranks or 0)
        by_setting = times.setdefault(case, {}).setdefault(row.size_bytes or 0, {})
        other = by_setting.get(setting)
        if other is None or (other.seconds_median or 0.0) < (row.seconds_median or 0.0):
            by_setting[setting] = row


def _fastest(by_setting: dict[_Setting, SummaryRow]) -> _Setting:
    return min(by_setting, key=lambda setting: by_setting[setting].seconds_median or 0.0)


def _ranges(sizes: dict[int, dict[_Setting, SummaryRow]]) -> Iterable[tuple[int, int, _Setting]]:
    """(first byte, last byte, setting), without gaps from 0 to the end."""
    best = [(nbytes, _fastest(by_setting)) for nbytes, by_setting in sorted(sizes.items()) if nbytes <= _MOST_NBYTES]
    first = 0
    for (nbytes, setting), (following, other) in zip(best, [*best[1:], (None, None)], strict=True):
        if following is None:
            yield first, _MOST_NBYTES, setting
        elif other != setting:
            border = (nbytes + following) // 2
            yield first, border, setting
            first = border + 1


def _configuration(request: Request, times: _Times) -> str:
    lines = [
        f"# {request.source_line}"[:250],
        "# collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff",
    ]
    for case, sizes in times.items():
        for first, last, s in _ranges(sizes):
            name = _COLLECTIVES[case.collective]
            words = (name, first, last, s.algorithm, s.protocol, s.channels, case.nodes, case.ranks, _ANY, _ANY)
            lines.append(",".join(map(str, words)))
    return "\n".join(lines) + "\n"


def _table(times: _Times) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for case, sizes in times.items():
        for nbytes, by_setting in sorted(sizes.items()):
            for s, row in by_setting.items():
                latency_us = (row.seconds_median or 0.0) * _US
                shown = (
                    _COLLECTIVES[case.collective],
                    nbytes,
                    s.algorithm,
                    s.protocol,
                    s.channels,
                    case.nodes,
                    case.ranks,
                )
                writer.writerow([*shown, _ANY, _ANY, row.busbw_gbps, latency_us])
    return text.getvalue()
