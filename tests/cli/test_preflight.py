"""`commbench preflight`, on paper."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Call

FAKE = ("preflight", "--engine", "fake", "--ranks", "16", "-q")
SLOW = (*FAKE, "--fake", "ranks-per-node=2,noise=1%,slow-rank=9:1.5")


def test_a_healthy_cluster(call: Call) -> None:
    ended = call(*FAKE, "--fake", "ranks-per-node=2,noise=1%")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("HEALTHY: 8 nodes, nobody stands out\n")
    assert "--exclude" not in ended.out


def test_a_slow_node_is_named_first_and_ready_to_paste(call: Call) -> None:
    ended = call(*SLOW)
    assert ended.code == 1
    assert ended.out.splitlines()[:2] == ["NOT HEALTHY: node4 to blame", "--exclude=node4"]
    assert re.search(
        r"node4 rail 1 is slow, sending and receiving: 1\.\d\d times the time \(\d\d% of the rate\)", ended.out
    )
    assert "to do: leave the node out" in ended.out


def test_progress_is_a_line_a_stage_on_stderr(call: Call) -> None:
    ended = call(*(word for word in FAKE if word != "-q"))
    assert "pairs: " in ended.err
    assert ended.out.startswith("HEALTHY")


def test_files_for_a_prolog(call: Call, tmp_path: Path) -> None:
    exclude, plot = tmp_path / "exclude", tmp_path / "pairs.png"
    assert call(*SLOW, "--exclude-file", str(exclude), "--plot", str(plot)).code == 1
    assert exclude.read_text() == "node4\n"
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert call(*FAKE, "--exclude-file", str(exclude)).code == 0
    assert exclude.read_text() == ""


def test_json(call: Call) -> None:
    found = json.loads(call(*SLOW, "--format", "json").out)
    assert (found["verdict"], found["exit_code"], found["exclude"]) == ("fail", 1, ["node4"])
    assert [stage["name"] for stage in found["stages"]] == [
        "first answer", "right data", "inside nodes", "pairs", "line rate", "references", "ladder",
    ]  # fmt: skip
    [suspect] = [one for one in found["pairs"][0]["suspects"] if one["state"] == "confirmed"]
    assert suspect["members"] == ["node4 rail 1"]
    assert suspect["time_ratio"] == pytest.approx(1.5, rel=0.05)
    assert {row["sender"] for row in found["pairs"][0]["results"]} >= {"node0 rail 0", "node7 rail 1"}


def test_junit_and_prometheus_and_markdown(call: Call) -> None:
    suites = ElementTree.fromstring(call(*SLOW, "--format", "junit").out.split("\n", 1)[1])
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed == ["inside nodes", "pairs", "node4"]
    metrics = call(*SLOW, "--format", "prometheus").out
    assert 'commbench_preflight_excluded{node="node4"} 1\n' in metrics
    assert 'commbench_preflight_excluded{node="node3"} 0\n' in metrics
    assert "commbench_preflight_verdict 2\n" in metrics
    assert call(*SLOW, "--format", "markdown").out.startswith("**NOT HEALTHY: node4 to blame**\n")


def test_what_was_measured_becomes_an_expectation(call: Call, tmp_path: Path) -> None:
    ours = tmp_path / "ours.toml"
    assert call(*FAKE, "--write-expectation", str(ours)).code == 0
    assert "measured here by commbench preflight" in ours.read_text()
    assert "expected at most" in call(*FAKE, "--expect", str(ours)).out
    slower = call(*FAKE, "--fake", "net=5us:10GB/s", "--expect", str(ours))
    assert slower.code == 1
    assert "all are slower than expected" in slower.out
    faster = call(*FAKE, "--fake", "net=5us:100GB/s", "--expect", str(ours))
    assert faster.code == 0


def test_platforms_are_listed(call: Call) -> None:
    ended = call("preflight", "--list-platforms")
    assert ended.code == 0
    assert any(line.startswith("ndr-400 ") for line in ended.out.splitlines())


def test_racks_from_a_file(call: Call, tmp_path: Path) -> None:
    racks = tmp_path / "racks"
    racks.write_text("r1: node[0-3]\nr2: node[4-7]\n")
    assert call(*FAKE, "--racks", str(racks)).code == 0
    racks.write_text("r1 node0\n")
    ended = call(*FAKE, "--racks", str(racks))
    assert (ended.code, ended.out) == (2, "")
    assert "write NAME: HOSTLIST" in ended.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--expect", "h9000"), "unknown platform 'h9000'"),
        (("--fake", "noise=1%", "--engine", "torch"), "add --engine fake"),
        (("--budget", "soon"), "soon"),
        (("--level", "slow"), "slow"),
        (("--fake", "slow-rank=99:2"), "slow, but the ranks are 0 to 15"),
        (("--exclude-file", "/no/such/folder/x"), "cannot write /no/such/folder/x"),
    ],
)
def test_what_cannot_be_is_one_sentence(call: Call, arguments: tuple[str, ...], said: str) -> None:
    ended = call(*FAKE, *arguments)
    assert ended.code in (2, 3)
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_the_example_of_the_help_runs(call: Call) -> None:
    shown = call("preflight", "--help").out
    [example] = re.findall(r"commbench (preflight --engine fake .*)", shown)
    ended = call(*example.split(), "-q")
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.splitlines()[1] == "--exclude=node1"
