"""`commbench export` in this process: what it writes, assumes, refuses. What the planners say of it: tests/planners."""

import csv
import json
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from commbench.analysis.record_file import load_record
from commbench.export import FORMATS
from commbench.results.store import load_run
from tests.cli.conftest import Call
from tests.factories import make_case_record, make_record, make_row, write_run
from tests.planners.bases import AICONFIGURATOR_SYSTEM, CALCULON_SYSTEM, LLM_ANALYSIS_GPU
from tests.planners.conftest import commbench

SWEEP = ["sweep", "--engine", "fake", "--no-plots", "-q", "--budget", "2s"]
MIB, GIB = 1 << 20, 1 << 30
BASES = {"aiconfigurator": AICONFIGURATOR_SYSTEM, "llm-analysis": json.dumps(LLM_ANALYSIS_GPU)}


def sweep(call: Call, directory: Path, *options: str) -> Path:
    assert call(*SWEEP, "--out", str(directory), *options).code == 0
    return directory


@pytest.fixture
def run(call: Call, tmp_path: Path) -> Path:
    """Eight ranks of one node, all_reduce only."""
    options = ["--ranks", "8", "--collectives", "all_reduce", "--sizes", "1M:1G:x4", "--fake", "nvlink=2us:100GB/s"]
    return sweep(call, tmp_path / "run", *options)


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def base_of(format_name: str, folder: Path) -> list[str]:
    """The --base that a format needs."""
    if format_name not in BASES:
        return []
    (folder / "base").write_text(BASES[format_name])
    return ["--base", str(folder / "base")]


def test_the_list_says_of_each_format_what_it_needs_its_units_alpha_and_its_test(call: Call) -> None:
    ended = call("export", "--list")
    assert (ended.code, ended.err) == (0, "")
    blocks = ended.out.split("\n  for ")
    assert len(blocks) == len(FORMATS) + 1
    for name, row in FORMATS.items():
        assert f"{name}\n  for     {row.planner}\n  needs   {row.needs}\n  units   {row.units}\n" in ended.out
        assert row.alpha
        assert row.tested


def test_files_on_stdout_assumptions_on_stderr_all_of_it_in_the_side_file(
    call: Call, run: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    ended = call("export", str(run), "--to", "astra-sim", "-o", str(out))
    assert ended.code == 0
    assert ended.out.split() == [str(out / name) for name in ("network.yml", "system.json", "commbench-export.json")]
    side = load(out / "commbench-export.json")
    assert [f"assumed: {text}." for text in side["assumptions"]] == ended.err.splitlines()[: len(side["assumptions"])]
    assert [f"warning: {text}." for text in side["warnings"]] == ended.err.splitlines()[len(side["assumptions"]) :]
    assert (side["schema_version"], side["format"], side["ranks_per_node"], side["nodes"]) == (1, "astra-sim", 8, 1)
    assert side["window"] == {"first_nbytes": MIB, "last_nbytes": None}
    assert side["runs"][0]["name"] == "run"
    (used,) = side["used"]
    assert used["for"] == "all_reduce of 8 ranks"
    line = used["line"]
    assert line["alpha_total"]["low"] <= 28e-6 <= line["alpha_total"]["high"]
    assert line["errors"]["largest"] < 0.01
    assert line["window"] == {"first_nbytes": MIB, "last_nbytes": GIB}
    assert "commbench export of run" in (out / "network.yml").read_text()


def test_quiet_leaves_stderr_empty(call: Call, run: Path, tmp_path: Path) -> None:
    ended = call("export", str(run), "--to", "astra-sim", "-o", str(tmp_path / "out"), "-q")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("format_name", ["galvatron", "simumax", "nnscaler", "vidur", "aiconfigurator"])
def test_what_is_missing_is_refused_and_the_printed_sweep_gives_it(
    format_name: str, call: Call, run: Path, tmp_path: Path
) -> None:
    options = ["--to", format_name, "-o", str(tmp_path / "out"), *base_of(format_name, tmp_path)]
    refused = call("export", str(run), *options)
    assert (refused.code, refused.out) == (3, "")
    said, command = refused.err.strip().split("\n  ")
    assert said.startswith(f"commbench: {format_name} needs what the run does not have:")
    words = shlex.split(command)
    assert words[:2] == ["commbench", "sweep"]
    more = tmp_path / "more"
    assert call(*words[1:], "--no-plots", "-q", "--budget", "2s", "--out", str(more)).code == 0
    ended = call("export", str(run), str(more), *options)
    assert ended.code == 0, ended.err
    assert not (tmp_path / "out" / "commbench-export.json").read_text().count("stands in")


def test_two_nodes_are_asked_for_one_rank_of_each(call: Call, tmp_path: Path) -> None:
    options = ["--ranks", "16", "--collectives", "all_reduce", "--sizes", "1M:64M:x4", "--layout", "node"]
    run = sweep(call, tmp_path / "run", *options)
    refused = call("export", str(run), "--to", "torch", "-o", str(tmp_path / "out"))
    assert refused.code == 3
    assert "all_reduce of 2 ranks, 8 apart" in refused.err
    assert "--layout rail" in refused.err


def test_too_few_sizes_in_the_window_are_missing_too(call: Call, run: Path, tmp_path: Path) -> None:
    refused = call("export", str(run), "--to", "torch", "-o", str(tmp_path), "--window", "512M:")
    assert refused.code == 3
    assert "all_reduce of 8 ranks (1 size in the window (from 512 MiB), a line needs 3: give --window)" in refused.err
    assert "--sizes 1M:1G:x2" in refused.err


SIZES = [MIB << power for power in range(8)]


def write_curves(folder: Path, curves: dict[str, list[float]]) -> Path:
    """A run of two ranks with these seconds for SIZES by collective."""
    rows, cases = [], []
    for name, times in curves.items():
        for size, seconds in zip(SIZES, times, strict=True):
            rows.append(make_row(len(rows), collective=name, size_bytes=size, seconds_median=seconds))
            cases.append(make_case_record(len(cases), collective=name, requested_nbytes=size))
    return write_run(folder, rows=rows, record=make_record(cases=tuple(cases)))


BENT = [1e-3 * (1 + number % 2) for number in range(len(SIZES))]  # no line describes them


@pytest.fixture
def bent(tmp_path: Path) -> Path:
    """An all_reduce of two ranks below quality."""
    return write_curves(tmp_path / "bent", {"all_reduce": BENT})


@pytest.mark.parametrize("format_name", ["torch", "astra-sim", "simgrid", "llm-analysis", "commbench-json"])
def test_a_line_below_quality_is_written_with_force_only(
    format_name: str, call: Call, bent: Path, tmp_path: Path
) -> None:
    options = ["--to", format_name, "-o", str(tmp_path / "out"), *base_of(format_name, tmp_path)]
    refused = call("export", str(bent), *options)
    assert (refused.code, refused.out) == (3, "")
    assert "the mean error" in refused.err
    assert "--force" in refused.err
    assert not (tmp_path / "out").exists()
    forced = call("export", str(bent), *options, "--force")
    assert forced.code == 0
    side = load(tmp_path / "out" / "commbench-export.json")
    assert side["forced"] is True
    if format_name == "commbench-json":
        (curve,) = load(tmp_path / "out" / "commbench-coefficients.json")["curves"]
        assert curve["line"]["quality"] == "poor"
    else:
        assert any("below quality, written by --force" in text for text in side["warnings"])


def test_our_own_format_withholds_single_lines(call: Call, tmp_path: Path) -> None:
    """Its other curve is good: the poor one has no line in the file, and says why."""
    good = [20e-6 + size / 2 / 1e9 for size in SIZES]
    run = write_curves(tmp_path, {"all_reduce": BENT, "all_gather": good})
    ended = call("export", str(run), "--to", "commbench-json", "-o", str(tmp_path / "out"))
    assert ended.code == 0
    assert "warning: 1 of 2 curves have no line in the file: no_line says why." in ended.err
    poor, line = load(tmp_path / "out" / "commbench-coefficients.json")["curves"]
    assert (poor["line"], poor["regimes"]) == (None, None)
    assert "the mean error" in poor["no_line"]
    assert (line["stride"], line["no_line"]) == (1, "")
    assert line["line"]["bytes_per_second"]["value"] == pytest.approx(1e9)


def test_files_that_are_there_stay(call: Call, run: Path, tmp_path: Path) -> None:
    options = ["export", str(run), "--to", "torch", "-o", str(tmp_path)]
    (tmp_path / "commbench-torch.json").write_text("mine")
    refused = call(*options)
    assert refused.code == 3
    assert "is there already" in refused.err
    assert (tmp_path / "commbench-torch.json").read_text() == "mine"
    assert not (tmp_path / "commbench_torch.py").exists()
    assert call(*options, "--overwrite").code == 0
    assert load(tmp_path / "commbench-torch.json")["tiers"][0]["ranks"] == 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--to", "galvatrn", "-o", "x"], "did you mean galvatron?"),
        (["--to", "torch"], "-o DIRECTORY"),
        (["-o", "x"], "--to FORMAT"),
        (["--to", "torch", "-o", "x", "--name", "../up"], "cannot take the name '../up'"),
        (["--to", "torch", "-o", "x", "--window", "1M"], "write FIRST:LAST"),
        (["--to", "llm-analysis", "-o", "x"], "give --base with a system file"),
    ],
)
def test_what_cannot_be_right_is_one_sentence(options: list[str], said: str, call: Call, run: Path) -> None:
    ended = call("export", str(run), *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


@pytest.mark.parametrize(
    ("format_name", "text", "said"),
    [
        ("torch", "{}", "torch takes no --base"),
        ("llm-analysis", "{", "does not read as JSON"),
        ("llm-analysis", "[]", "lacks mem_per_GPU_in_GB"),
        ("llm-analysis", "[" * 100_000, "does not read as JSON"),
        ("aiconfigurator", "gpu: {}", "it has not one line"),
        ("aiconfigurator", AICONFIGURATOR_SYSTEM + "inter_node_bw: 3\n", "it has not one line 'inter_node_bw: …'"),
    ],
)
def test_a_base_that_is_none_is_refused(format_name: str, text: str, said: str, call: Call, tmp_path: Path) -> None:
    options = ["--ranks", "4", "--collectives", "main,send_recv", "--sizes", "1M:64M:x4", "--layout", "world"]
    options += ["--layout", "rail", "--fake", "ranks-per-node=2", "--layout", "node"]
    run = sweep(call, tmp_path / "run", *options)
    (tmp_path / "base").write_text(text)
    ended = call("export", str(run), "--to", format_name, "-o", str(tmp_path / "out"), "--base", str(tmp_path / "base"))
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_what_cannot_be_read_or_written_is_exit_code_3(call: Call, run: Path, tmp_path: Path) -> None:
    assert call("export", str(tmp_path / "none"), "--to", "torch", "-o", str(tmp_path / "out")).code == 3
    (tmp_path / "file").write_text("")
    ended = call("export", str(run), "--to", "torch", "-o", str(tmp_path / "file" / "below"))
    assert ended.code == 3
    assert "cannot write" in ended.err
    ended = call("export", str(run), "--to", "calculon", "-o", str(tmp_path / "out"), "--base", str(tmp_path / "none"))
    assert ended.code == 3


def test_runs_of_two_machines_are_not_one(call: Call, run: Path, bent: Path, tmp_path: Path) -> None:
    ended = call("export", str(run), str(bent), "--to", "torch", "-o", str(tmp_path / "out"))
    assert ended.code == 3
    assert "the runs are of 2 machines" in ended.err


def _calculon(folder: Path) -> Callable[[float], float]:
    network = load(folder / "networks.json")[0]
    rate = network["bandwidth"] * 1e9 * network["efficiency"]
    return lambda size: network["latency"] + 2 * size * (1 - 1 / 8) / rate


def _galvatron(folder: Path) -> Callable[[float], float]:
    """The line through its first and last point, which a fit to all of them is, too."""
    times = load(folder / "sp_time_1nodes_8gpus_per_node.json")
    first, last = times["allreduce_size_8_1MB_time"], times["allreduce_size_8_1024MB_time"]
    return lambda size: (first + (last - first) * (size / MIB - 1) / 1023) / 1e3


def _torch(folder: Path) -> Callable[[float], float]:
    (tier,) = load(folder / "commbench-torch.json")["tiers"]
    bandwidth, latency = tier["bandwidth_gib_per_second"], tier["latency_us"]
    return lambda size: (6.6 + 14 * latency + 1e6 * (size / GIB) * 14 / 8 / bandwidth) / 1e6


def _simumax(folder: Path) -> Callable[[float], float]:
    network = load(folder / "networks.json")["networks"]["high_intra_node"]
    entry, gib = network["op"]["all_reduce"], network["bandwidth"]["gbps"]
    return lambda size: 14 * entry["latency_us"] / 1e6 + 2 * size * 7 / 8 / (gib * GIB * entry["efficient_factor"])


def _commbench_json(folder: Path) -> Callable[[float], float]:
    curves = load(folder / "commbench-coefficients.json")["curves"]
    (line,) = [c["line"] for c in curves if (c["collective"], c["layout"]) == ("all_reduce", "world")]
    alpha, beta = line["alpha_total_as_fitted"], line["seconds_per_bus_byte_as_fitted"]
    return lambda size: alpha + 1.75 * size * beta


def _vidur(folder: Path) -> Callable[[float], float]:
    rows = list(csv.DictReader(StringIO((folder / "all_reduce.csv").read_text())))
    times = {int(row["size"]): float(row["time_stats.all_reduce.median"]) for row in rows if row["num_workers"] == "8"}
    return lambda size: times[int(size)] / 1e3


@pytest.mark.parametrize(
    ("format_name", "formula"),
    [("calculon", _calculon), ("galvatron", _galvatron), ("torch", _torch), ("simumax", _simumax),
     ("commbench-json", _commbench_json), ("vidur", _vidur)],
)  # fmt: skip
def test_round_trip(
    format_name: str, formula: Callable[[Path], Callable[[float], float]], noisy: Path, call: Call, tmp_path: Path
) -> None:
    """Planted alpha and B, noise, sweep, fit, export: the consumer's own formula gives each measured time back within
    the largest error that the side file states, and the planted one within the noise.
    """
    assert call("export", str(noisy), "--to", format_name, "-o", str(tmp_path), "-q").code == 0
    seconds = formula(tmp_path)
    (fit,) = [f for f in load_record(noisy).fits if (f.key.collective, f.key.layout) == ("all_reduce", "world")]
    assert fit.line is not None
    stated = fit.line.errors.largest
    used = load(tmp_path / "commbench-export.json")["used"]
    lines = [u["line"] for u in used if u["for"] == "all_reduce of 8 ranks" and u["line"]]
    assert all(line["errors"]["largest"] == stated for line in lines)
    assert stated < 0.05
    measured = {row.size_bytes: row.seconds_median for row in load_run(noisy).rows
                if (row.collective, row.layout) == ("all_reduce", "world")}  # fmt: skip
    for size, median in measured.items():
        assert size
        assert median
        assert abs(seconds(size) / median - 1) <= stated + 1e-9
        assert seconds(size) == pytest.approx(14 * 2.5e-6 + 1.75 * size / 220e9, rel=0.05)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One node of eight ranks, 2 % of one-sided noise."""
    directory = tmp_path_factory.mktemp("noisy") / "run"
    layouts = ["--layout", "world", "--layout", "mesh:dp=2,tp=4", "--layout", "mesh:dp=4,tp=2"]
    commbench(
        *SWEEP, "--ranks", "8", "--fake", "nvlink=2.5us:220GB/s,noise=2%", "--collectives", "main,send_recv", "--sizes",
        "1M:1G:x4", *layouts, "--out", str(directory),
    )  # fmt: skip
    commbench("fit", str(directory))
    return directory


IMPORTED = {"all_reduce": (14, 1.75), "all_gather": (7, 7 / 8), "reduce_scatter": (7, 7 / 8), "alltoall": (7, 7 / 8)}


@pytest.fixture
def imported(call: Call, tmp_path: Path) -> Path:
    """A table in the form of the public ones: no layouts, no point-to-point, message sizes in elements, ms."""
    lines = ["framework,version,device,op_name,kernel_source,nccl_dtype,num_gpus,message_size,latency"]
    for name in IMPORTED:
        steps, factor = (2, 2) if name == "all_reduce" else (1, 1)
        for ranks in (2, 4, 8):
            for power in range(10, 30):
                seconds = steps * (ranks - 1) * 3e-6 + factor * (ranks - 1) / ranks * 2 * (1 << power) / 300e9
                lines.append(f"x,2.27.3,A GPU,{name},NCCL,half,{ranks},{1 << power},{seconds * 1e3!r}")
    (tmp_path / "nccl_perf.txt").write_text("\n".join(lines) + "\n")
    assert call("import", "--nodes", "1", "-q", "-o", str(tmp_path / "run"), str(tmp_path / "nccl_perf.txt")).code == 0
    return tmp_path / "run"


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "nccl-tuner"])
def test_an_imported_table_is_a_source_for_each_format(
    format_name: str, call: Call, imported: Path, tmp_path: Path
) -> None:
    options = ["--to", format_name, "-o", str(tmp_path / "out"), *base_of(format_name, tmp_path)]
    ended = call("export", str(imported), *options)
    assert ended.code == 0, ended.err
    side = load(tmp_path / "out" / "commbench-export.json")
    assert side["runs"][0]["imported_from"] == ["nccl_perf.txt"]
    if format_name == "galvatron":
        rates = load(tmp_path / "out" / "allreduce_bandwidth_1nodes_8gpus_per_node.json")
        assert rates == pytest.approx(dict.fromkeys(rates, 300e9 / MIB / 1e3))
        assert "all_reduce of 4 ranks, 2 apart was not measured: all_reduce of 4 ranks stands in" in side["assumptions"]
    if format_name in ("galvatron", "calculon", "simumax", "vidur"):
        assert any(text.endswith("all_gather of 8 ranks stands in") for text in side["assumptions"])
    if format_name == "simumax":
        entry = load(tmp_path / "out" / "networks.json")["networks"]["high_intra_node"]["op"]["p2p"]
        assert entry["latency_us"] == pytest.approx(3.0, rel=1e-3)  # of one step, not of all_gather's seven


def test_an_imported_run_that_does_not_say_its_nodes_is_asked_for_them(
    call: Call, imported: Path, tmp_path: Path
) -> None:
    table = imported.parent / "nccl_perf.txt"
    assert call("import", "-q", "-o", str(tmp_path / "unknown"), str(table)).code == 0
    ended = call("export", str(tmp_path / "unknown"), "--to", "torch", "-o", str(tmp_path / "out"))
    assert ended.code == 3
    assert "commbench import --nodes 1" in ended.err
    assert call("export", str(tmp_path / "unknown"), "--to", "commbench-json", "-o", str(tmp_path / "out")).code == 0


def test_a_latency_run_says_what_its_times_are(call: Call, tmp_path: Path) -> None:
    options = ["--ranks", "4", "--collectives", "all_reduce", "--sizes", "1M:64M:x4", "--mode", "latency"]
    run = sweep(call, tmp_path / "run", *options)
    ended = call("export", str(run), "--to", "astra-sim", "-o", str(tmp_path / "out"))
    assert "assumed: times are of single calls after a barrier (--mode latency)" in ended.err


def test_galvatron_takes_the_overlap_that_was_measured(call: Call, tmp_path: Path) -> None:
    options = ["--ranks", "2", "--collectives", "all_reduce,all_to_all,send_recv", "--sizes", "1M:64M:x4", "--overlap"]
    run = sweep(call, tmp_path / "run", *options, "--fake", "overlap=1.2:1.4")
    ended = call("export", str(run), "--to", "galvatron", "-o", str(tmp_path / "out"))
    assert ended.code == 0, ended.err
    assert load(tmp_path / "out" / "overlap_coefficient.json")["overlap_coe"] == pytest.approx(1.4, rel=1e-3)
    assert "assumed: overlap_coe is the largest of" in ended.err


def test_calculon_has_the_nominal_rate_and_an_efficiency(call: Call, tmp_path: Path) -> None:
    """The fake link has 200 GB/s, half of what it is said to have."""
    options = [
        "--ranks",
        "4",
        "--collectives",
        "main,send_recv",
        "--sizes",
        "16M:1G:x4",
        "--link-rate",
        "nvlink=400GB/s",
    ]
    run = sweep(call, tmp_path / "run", *options)
    (tmp_path / "base").write_text(json.dumps(CALCULON_SYSTEM))
    options = ["--base", str(tmp_path / "base"), "--name", "half"]
    assert call("export", str(run), "--to", "calculon", "-o", str(tmp_path / "out"), *options).code == 0
    (network,) = load(tmp_path / "out" / "half.json")["networks"]
    assert (network["bandwidth"], network["efficiency"]) == (pytest.approx(400), pytest.approx(0.5))
