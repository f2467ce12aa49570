"""Coefficients and measured times in the files that planners and simulators load. Records in, bytes out.

`FORMATS` is the table of what can be written. A module of it has two functions: `needs`, of a Shape, the curves that it
cannot do without, and `write`, of a Request, an Export. To add a format: a module, a line here, and tests that load its
files with the planner's own code.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from commbench.errors import CommbenchError, UsageError, unknown_name

if TYPE_CHECKING:
    from commbench.analysis.records import FitRecord
    from commbench.export.records import Export
    from commbench.results.store import Run


@dataclass(frozen=True, slots=True)
class Format:
    """One row of the table of formats; the texts are what `--list` shows.

    `base`: whether --base is `optional` or `needed`; empty: it takes none.
    `has_shape`: whether the files speak of nodes and of ranks per node, which the run must then know.
    """

    name: str
    module: str
    planner: str
    needs: str
    units: str
    alpha: str
    tested: str
    base: str = ""
    has_shape: bool = True


FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format(
            "commbench-json", "commbench_json", "any program",
            "one curve with a line",
            "s, bytes, bytes/s", "total and per step, both named",
            "against its own JSON Schema", has_shape=False,
        ),
        Format(
            "galvatron", "galvatron", "Hetu-Galvatron, the hardware_configs folder",
            "all_reduce, all_to_all and send_recv, of neighbours and of strided groups of 2, 4, … ranks",
            "MiB/ms (2^20 bytes), ms, MiB of the full tensor", "total; the bandwidth files have none",
            "loaded by hetu-galvatron 2.4.0",
        ),
        Format(
            "aiconfigurator", "aiconfigurator", "NVIDIA AIConfigurator, a systems folder",
            "the four main collectives of all ranks of a node; send_recv; --base with a system's YAML",
            "ms, elements, bytes/s", "none: a table of times; total for p2p_latency, s",
            "loaded by aiconfigurator-core 0.12.0", "needed",
        ),
        Format(
            "torch", "torch_mesh", "PyTorch: DTensor's MeshTopoInfo, inductor's bandwidths",
            "all_reduce inside a node, and of one rank a node",
            "GiB/s (2^30) and us; inductor: GB/s (1e9), whole", "per step, beside 6.6 us that torch adds",
            "by torch 2.13's own cost functions",
        ),
        Format(
            "astra-sim", "astra_sim", "ASTRA-sim, the analytical network",
            "all_reduce inside a node, and of one rank a node",
            "GiB/s (2^30) and ns", "per hop: half a step, for a switch has two hops",
            "closed form; real code with COMMBENCH_ASTRA_SIM_CHECKOUT",
        ),
        Format(
            "calculon", "calculon", "Calculon, networks of a system file",
            "all_reduce, all_gather, reduce_scatter, send_recv inside a node, and of one rank a node",
            "GB/s (1e9) and s", "total, of all_reduce: one for all operations",
            "closed form; real code with COMMBENCH_CALCULON_CHECKOUT", "optional",
        ),
        Format(
            "simumax", "simumax", "SimuMax, networks of a system file",
            "the four main collectives and send_recv inside a node, and of one rank a node",
            "GiB/s (2^30), between nodes of a whole node, and us", "per step with 8 ranks a node, else total",
            "closed form; real code with COMMBENCH_SIMUMAX_CHECKOUT", "optional",
        ),
        Format(
            "nccl-tuner", "nccl_tuner", "NCCL's example tuner plugin, and its optimize_config.py",
            "runs under forced NCCL_ALGO and NCCL_PROTO, with as many least as most channels",
            "bytes; us and GB/s (1e9)", "none: measured times",
            "closed form; the plugin itself with COMMBENCH_NCCL_CHECKOUT", has_shape=False,
        ),
        Format(
            "llm-analysis", "llm_analysis", "llm-analysis, a GPU configuration",
            "all_reduce inside a node, and of one rank a node; --base with a GPU configuration",
            "GB/s (1e9) and s", "total, of all_reduce, as a floor: it is not added",
            "loaded by llm-analysis 0.2.2", "needed",
        ),
        Format(
            "simgrid", "simgrid", "SimGrid, platform XML",
            "all_reduce inside a node, and of one rank a node",
            "Bps (bytes/s) and s", "per link: half a step, for two links are crossed",
            "loaded by SimGrid 3.32 (model CM02)",
        ),
        Format(
            "nnscaler", "nnscaler", "nnScaler, the comm folder of AutoDist",
            "the four main collectives of 2, 4, 8, … neighbours",
            "MiB of the full tensor and s", "none: measured times",
            "closed form; real code with COMMBENCH_NNSCALER_CHECKOUT",
        ),
        Format(
            "vidur", "vidur", "Vidur, network profiles",
            "all_reduce of 2, 4, 8, … neighbours; both also of one rank a node, send_recv inside a node",
            "ms and bytes", "none: measured times",
            "loaded by vidur 0.0.26",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Base:
    """The planner's own system file, given with --base."""

    name: str
    text: str


def export_runs(
    format_name: str,
    records: Sequence["FitRecord"],
    runs: Sequence["Run"],
    *,
    name: str,
    base: Base | None = None,
    force: bool = False,
) -> "Export":
    """The files of a format, its side file included.

    Raises UsageError for a format or a base that cannot be right, CommbenchError where the runs lack what it needs or a
    line is below quality and `force` is not set.
    """
    from commbench.export.choose import check_quality, choose, of_one_mode
    from commbench.export.records import SIDE_FILE, UNKNOWN_SHAPE, Request
    from commbench.export.shape import find_shape, find_strides
    from commbench.export.side_file import side_file

    row = find_format(format_name)
    _check_base(row, base)
    if len(records) > 1:
        raise CommbenchError(
            f"the runs are of {len(records)} machines (other software, or other processors): export them one by one."
        )
    fits = of_one_mode(records[0].fits)
    shape = find_shape(runs, fits) if row.has_shape else UNKNOWN_SHAPE
    module: Any = import_module(f"{__name__}.{row.module}")
    chosen, assumptions = choose(row.name, module.needs(shape), fits, find_strides(runs), shape, runs)
    poor = check_quality(list(chosen.values()))
    if poor and not force:
        raise CommbenchError(
            f"{'; '.join(poor)}: no planner should take it; give another --window, like 16M:, or --force to write it "
            "all the same."
        )
    request = Request(
        name, shape, tuple(records), tuple(runs), fits, chosen,
        base.text if base else None, base.name if base else "", force,
    )  # fmt: skip
    made: Export = module.write(request)
    if fits and fits[0].key.mode == "latency":
        assumptions.append("times are of single calls after a barrier (--mode latency), no calls back to back")
    notes = [item.said_of_alpha for item in chosen.values() if item.alpha_is_unknown]
    warnings = (*made.warnings, *(f"below quality, written by --force: {text}" for text in poor), *notes)
    made = replace(made, assumptions=(*made.assumptions, *assumptions), warnings=warnings)
    description = {key: text for key, text in asdict(row).items() if key in ("planner", "units", "alpha")}
    side = side_file(request, made, {"format": row.name, **description}, poor)
    return replace(made, files={**made.files, SIDE_FILE: side})


def find_format(name: str) -> Format:
    """The row of a format. Raises UsageError with the nearest name."""
    if name not in FORMATS:
        raise unknown_name("format", name, FORMATS)
    return FORMATS[name]


def _check_base(row: Format, base: Base | None) -> None:
    if row.base == "needed" and base is None:
        raise UsageError(
            f"{row.name} also reads what is not measured here, such as memory and FLOPS: give --base with a system "
            "file of the planner's, whose network is then replaced."
        )
    if base is not None and not row.base:
        takers = ", ".join(other.name for other in FORMATS.values() if other.base)
        raise UsageError(f"{row.name} takes no --base: it holds nothing but communication; {takers} take one.")
