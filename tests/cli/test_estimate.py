"""`commbench estimate` in this process: what it prints, with rates given and with those of a run, and how it fails."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call
from tests.cli.test_golden import DATA

WORKED = ["--layers", "100", "--hidden", "4096", "--batch", "4", "--sequence", "2048", "--tp", "8"]
LLAMA = ["--model", "llama-70b", "--tp", "8", "--sp", "--pp", "4", "--interleave", "2", "--dp", "2",
         "--micro-batches", "16", "--shard", "zero1"]  # fmt: skip
CLUSTER = ["--link", "nvlink=150GB/s,3us", "--link", "net=25GB/s,5us"]
GOLDEN = {
    "estimate": [*LLAMA, *CLUSTER, "--flops", "400T"],
    "estimate_search": ["--model", "llama-70b", "--search", "GPUs=64", "--memory", "80G", "--global-batch", "512",
                        "--sp", "--shard", "zero1", "--flops", "400T", *CLUSTER],
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("form", ["table", "markdown"])
def test_golden(name: str, form: str, call: Call) -> None:
    ended = call("estimate", *GOLDEN[name], "--format", form)
    assert (ended.code, ended.err) == (0, "")
    golden = DATA / f"{name}.{form}.txt"
    got = golden.with_suffix(".got")
    got.write_text(ended.out)
    assert ended.out == golden.read_text()
    got.unlink()


@pytest.mark.parametrize(("rate", "shown"), [("150GB/s", "313 ms"), ("25GB/s", "1.88 s")])
def test_the_worked_numbers_are_shown(rate: str, shown: str, call: Call) -> None:
    out = call("estimate", *WORKED, "--link", f"nvlink={rate}").out
    (line,) = [line for line in out.splitlines() if "outputs of layers" in line]
    assert "64 MiB" in line
    assert "43.75 GiB" in line
    assert shown in line
    assert f"communication: {shown} a step" in out


def test_json_has_every_message_of_every_layout(call: Call) -> None:
    document = json.loads(call("estimate", *WORKED, "--format", "json").out)
    (message,) = document["messages"]
    assert (message["nbytes"], message["count"], message["bus_nbytes"]) == (64 << 20, 400, 43.75 * (1 << 30))
    assert message["cost"] is None
    assert document["communication_seconds"] is None
    found = json.loads(call("estimate", *GOLDEN["estimate_search"], "--format", "json").out)
    assert len(found["layouts"]) + sum(found["left_out"].values()) == 28
    assert all(layout["layout"]["world_size"] == 64 for layout in found["layouts"])


def test_without_rates_there_are_bytes_and_no_seconds(call: Call) -> None:
    out = call("estimate", *LLAMA).out
    assert "between nodes" in out
    assert "communication:" not in out
    assert "skip: no-rate" not in out  # nobody asked for seconds


def test_it_says_that_it_is_no_planner_and_where_those_are_fed(call: Call) -> None:
    for arguments in (WORKED, GOLDEN["estimate_search"]):
        assert "not a planner: commbench export" in call("estimate", *arguments).out


# -- rates of a run ----------------------------------------------------------------------------------------------------


@pytest.fixture
def run(call: Call, tmp_path: Path) -> Path:
    """Two nodes of 8 fake ranks on the cluster of CLUSTER."""
    directory = tmp_path / "run"
    machine = ["--fake", "nvlink=3us:150GB/s,net=5us:25GB/s", "--ranks", "16", "--layout", "node", "--layout", "world"]
    sizes = ["--sizes", "1K:1G:x4", "--collectives", "main,send_recv"]
    assert call("sweep", "--engine", "fake", *machine, *sizes, "--no-plots", "-q", "--out", str(directory)).code == 0
    return directory


def seconds(call: Call, *arguments: str) -> dict[str, float]:
    totals = json.loads(call("estimate", *arguments, "--format", "json").out)["totals"]
    return {total["axis"]: total["seconds"] for total in totals}


def test_a_planted_machine_gives_the_seconds_of_its_planted_lines(run: Path, call: Call) -> None:
    """Fake engine → sweep → fit → estimate is the closed form, also where N was not measured (2 over net)."""
    asked = [*LLAMA, "--batch", "4"]
    given, measured = seconds(call, *asked, *CLUSTER), seconds(call, *asked, "--using", str(run))
    assert measured.keys() == {"tp", "pp", "dp"}
    assert measured == pytest.approx(given, rel=1e-3)


def test_a_stored_fit_and_one_made_on_the_way_are_alike(run: Path, call: Call) -> None:
    before = {path.name for path in run.iterdir()}
    first = call("estimate", *LLAMA, "--using", str(run)).out
    assert {path.name for path in run.iterdir()} == before
    assert call("fit", str(run)).code == 0
    assert call("estimate", *LLAMA, "--using", str(run)).out == first
    assert "regimes, between measured sizes" in first


def test_the_size_with_half_the_bandwidth_comes_from_the_fit(run: Path, call: Call) -> None:
    layout = ["--model", "llama-3-8b", "--dp", "16", "--bucket", "1M"]
    found = [call("estimate", *layout, *rates).out for rates in (CLUSTER, ["--using", str(run)])]
    lines = [[line for line in out.splitlines() if "small-messages" in line] for out in found]
    assert len(lines[0]) == 1
    assert "at least 1.907 MiB, the size with half the bandwidth" in lines[0][0]  # N alpha B = 16 × 5 us × 25 GB/s
    assert lines[0] == lines[1]


def test_groups_that_ran_together_go_before_those_that_ran_alone(call: Call, tmp_path: Path) -> None:
    """As in training; on this machine the network then takes twice as long."""
    both = tmp_path / "both"
    fake = ["--fake", "nvlink=3us:150GB/s,net=5us:25GB/s,contention=2", "--ranks", "16", "--layout", "rail"]
    ways = ["--concurrency", "alone", "--concurrency", "together", "--collectives", "all_reduce", "--sizes", "1M:1G:x4"]
    call("sweep", "--engine", "fake", *fake, *ways, "--no-plots", "-q", "--out", str(both))
    asked = ["--model", "llama-3-8b", "--tp", "8", "--dp", "2"]
    measured = seconds(call, *asked, "--using", str(both))["dp"]
    assert measured == pytest.approx(2 * seconds(call, *asked, *CLUSTER)["dp"], rel=1e-3)


def test_a_line_goes_before_a_run(run: Path, call: Call) -> None:
    slow = seconds(call, *WORKED, "--using", str(run), "--link", "nvlink=25GB/s")
    assert slow["tp"] == pytest.approx(43.75 * (1 << 30) / 25e9)


def test_a_run_on_one_node_says_what_it_lacks(call: Call, tmp_path: Path) -> None:
    one_node = tmp_path / "one"
    call("sweep", "--engine", "fake", "--sizes", "1M:1G:x4", "--no-plots", "-q", "--out", str(one_node))
    ended = call("estimate", *LLAMA, "--using", str(one_node))
    assert ended.code == 0
    assert (
        "skip: no-rate: reduce_scatter: no rate between nodes for 2 ranks; measure it, or give --link net=" in ended.out
    )
    assert "communication:" not in ended.out


# -- what cannot be right ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "Give --model NAME"),
        (["--model", "llama"], 2, "did you mean"),
        (["--model", "llama-70b", "--tp", "7"], 2, "64 heads do not divide by tp = 7"),
        (["--model", "llama-70b", "--tp", "0"], 2, "0 is not in the range"),
        (["--model", "llama-70b", "--link", "net"], 2, "write CLASS=RATE"),
        (["--model", "llama-70b", "--link", "net=1GB/s,fast"], 2, "cannot read the duration 'fast'"),
        (["--model", "llama-70b", "--link", "nvlinc=1GB/s"], 2, "did you mean nvlink"),
        (["--model", "llama-70b", "--link", "net=1GB/s", "--link", "net=2GB/s"], 2, "--link gives net two lines"),
        (["--model", "llama-70b", "--meant", "tp"], 2, "write AXIS=CLASS"),
        (["--model", "llama-70b", "--meant", "tb=net"], 2, "did you mean tp"),
        (["--model", "llama-70b", "--flops", "fast"], 2, "write it like 400T"),
        (["--model", "llama-70b", "--flops", "1T", "--step-time", "1s"], 2, "give one of them"),
        (["--model", "llama-70b", "--micro-batches", "2", "--global-batch", "8"], 2, "give one of them"),
        (["--model", "llama-70b", "--dp", "3", "--global-batch", "8"], 2, "no multiple of --batch × --dp = 3"),
        (["--model", "llama-70b", "--search", "64"], 2, "write GPUs=N"),
        (["--model", "llama-70b", "--search", "GPUs=64"], 2, "give rates, with --using RUN or --link"),
        (["--model", "llama-70b", "--search", "GPUs=64", "--tp", "8", *CLUSTER], 2, "leave --tp, --pp and --dp away"),
        (
            ["--model", "llama-70b", "--search", "GPUs=64", "--step-time", "1s", *CLUSTER],
            2,
            "with --search give --flops",
        ),
        (["--model", "llama-70b", "--using", "nowhere"], 3, "nowhere: cannot read run.json"),
    ],
)
def test_what_cannot_be_right_is_one_sentence(options: list[str], code: int, said: str, call: Call) -> None:
    ended = call("estimate", *options)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_a_run_without_a_fit_says_so(call: Call, tmp_path: Path) -> None:
    short = tmp_path / "short"
    call("sweep", "--engine", "fake", "--sizes", "1M", "--no-plots", "-q", "--out", str(short))
    ended = call("estimate", *WORKED, "--using", str(short))
    assert ended.code == 2
    assert "the run has no fit: measure three sizes or more" in ended.err


def test_output_goes_to_a_file(call: Call, tmp_path: Path) -> None:
    file = tmp_path / "estimate.md"
    ended = call("estimate", *WORKED, "--format", "markdown", "-o", str(file))
    assert (ended.code, ended.out) == (0, "")
    assert "| tensor | outputs of layers | all_reduce |" in file.read_text()
