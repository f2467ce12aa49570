"""A check for programs: JSON, JUnit XML and Prometheus' text."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

from commbench.checks.result import Placed
from commbench.report.check_json import format_json
from commbench.report.check_junit import format_check_junit
from commbench.report.prometheus import format_prometheus
from tests.unit.report.make_check import DEBUG, FOUR_NODES, MEMLOCK, NO_GPU, SWAP, make_result


def test_the_json_is_a_contract() -> None:
    document = json.loads(format_json(make_result(Placed(MEMLOCK, (4, 5)), Placed(SWAP, (0, 1)), nodes=FOUR_NODES)))
    assert list(document) == [
        "schema_version", "commbench", "source", "taken_utc", "worst", "counts", "nodes", "findings",
    ]  # fmt: skip
    assert (document["schema_version"], document["worst"]) == (1, "fail")
    assert document["counts"] == {"fail": 1, "warn": 0, "ok": 1, "skip": 0}
    assert document["nodes"][2] == {"name": "n3", "ranks": "4-5"}
    assert document["findings"][0] == {
        "rule": "HOST-MEMLOCK",
        "verdict": "fail",
        "subject": "memlock",
        "observed": "64 KiB",
        "expected": "unlimited",
        "where": "getrlimit(RLIMIT_MEMLOCK)",
        "action": "ulimit -l unlimited",
        "ranks": "4-5",
        "nodes": ["n3"],
    }


def test_junit_has_a_suite_for_each_family_and_a_warning_passes() -> None:
    document = ElementTree.fromstring(format_check_junit(make_result(MEMLOCK, DEBUG, SWAP, NO_GPU)).encode())
    assert {name: document.get(name) for name in ("tests", "failures", "skipped", "errors")} == {
        "tests": "4", "failures": "1", "skipped": "1", "errors": "0",
    }  # fmt: skip
    assert [suite.get("name") for suite in document] == ["ENV", "GPU", "HOST"]
    (failure,) = document.iter("failure")
    assert failure.get("message") == "memlock: 64 KiB, expected unlimited; ulimit -l unlimited"
    (warning,) = document.iter("system-out")
    assert warning.text == "warning: NCCL_DEBUG: TRACE, expected WARN; unset NCCL_DEBUG"
    (skipped,) = document.iter("skipped")
    assert skipped.get("message") == "there is no GPU"


def test_metrics() -> None:
    lines = format_prometheus(make_result(MEMLOCK, DEBUG, SWAP, NO_GPU)).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values["commbench_check_timestamp_seconds"] == "1772600767.0"
    assert values['commbench_check_findings{verdict="fail"}'] == "1"
    assert values['commbench_check_state{node="n1",rule="HOST-MEMLOCK",subject="memlock"}'] == "2"
    assert values['commbench_check_state{node="n1",rule="ENV-DEBUG",subject="NCCL_DEBUG"}'] == "1"
    assert values['commbench_check_state{node="n1",rule="HOST-SWAP",subject="swap"}'] == "0"
    assert not any("GPU-ECC" in line for line in lines)  # not seen is not a state
    typed = [line.split()[2].removeprefix("commbench_check_") for line in lines if line.startswith("# TYPE")]
    assert typed == ["info", "timestamp_seconds", "findings", "state"]


def test_a_series_is_there_once_with_the_worst_of_its_ranks() -> None:
    fine = replace(MEMLOCK, verdict="ok", observed="unlimited")
    text = format_prometheus(make_result(Placed(fine, (0,)), Placed(MEMLOCK, (1,)), nodes=FOUR_NODES))
    assert re.findall(r"commbench_check_state\{.*\} \d", text) == [
        'commbench_check_state{node="n1",rule="HOST-MEMLOCK",subject="memlock"} 2'
    ]


def test_labels_are_escaped_and_a_finding_of_all_together_has_no_node() -> None:
    odd = replace(DEBUG, subject='a"b\\c\nd')
    text = format_prometheus(make_result(Placed(odd), nodes=FOUR_NODES))
    assert 'commbench_check_state{rule="ENV-DEBUG",subject="a\\"b\\\\c\\nd"} 1\n' in text


def test_metrics_of_a_tree_without_a_time() -> None:
    untimed = replace(make_result(SWAP), taken_utc="")
    assert "\ncommbench_check_timestamp_seconds" not in format_prometheus(untimed)
