"""`commbench check`, on facts that the tests make."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from commbench.checks.registry import load_rules
from commbench.cli.check import check
from commbench.machine.facts import Facts, HostFacts, LimitFacts, RdmaDevice
from commbench.machine.snapshot import format_snapshot
from tests.cli.conftest import Call
from tests.trees import dgx_facts, dgx_files, write_tree

Machine = Callable[..., None]


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("SLURM_", "OMPI_", "PMI_"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """This process runs on the given facts: on a node with InfiniBand, and with as much memory to lock."""

    def be(memlock_nbytes: int | None = -1, **changes: Any) -> None:
        limits = LimitFacts(memlock_nbytes=memlock_nbytes, nofile=1 << 20)
        facts = Facts(
            taken_utc="2026-03-04T05:06:07+00:00",
            host=HostFacts(name="n1"),
            limits=limits,
            rdma=(RdmaDevice("mlx5_0"),),
        )
        read: Callable[..., Facts] = lambda **given: replace(facts, process=given["process"], **changes)  # noqa: E731
        monkeypatch.setattr("commbench.machine.read_facts.read_facts", read)

    be()
    return be


HEALTHY, WARNING, FAILED, UNSEEN = -1, 1 << 30, 64 << 10, None
MEMLOCK = ("--select", "HOST-MEMLOCK")


@pytest.mark.parametrize(("memlock", "code"), [(HEALTHY, 0), (WARNING, 0), (FAILED, 1), (UNSEEN, 3)])
def test_exit_codes(call: Call, machine: Machine, memlock: int | None, code: int) -> None:
    machine(memlock)
    ended = call("check", *MEMLOCK)
    assert ended.code == code
    said = "commbench: nothing could be seen: every check was skipped.\n"
    assert ended.err == (said if memlock is UNSEEN else "")


@pytest.mark.parametrize(
    ("memlock", "code", "word"),
    [(HEALTHY, 0, "OK"), (WARNING, 1, "WARNING"), (FAILED, 2, "CRITICAL"), (UNSEEN, 3, "UNKNOWN")],
)
def test_the_codes_of_a_nagios_plugin(call: Call, machine: Machine, memlock: int | None, code: int, word: str) -> None:
    machine(memlock)
    ended = call("check", *MEMLOCK, "--nagios")
    assert (ended.code, ended.err) == (code, "")
    assert ended.out.startswith(f"COMMBENCH {word} - ")
    assert ended.out.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", [["--select", "HOTS"], ["--no-such-option"], ["--from", "/nowhere/at/all"], ["--format", "yaml"]]
)
def test_a_nagios_plugin_that_fails_is_unknown_and_never_critical(
    call: Call, machine: Machine, wrong: list[str]
) -> None:
    ended = call("check", "--nagios", *wrong)
    assert (ended.code, ended.err) == (3, "")
    assert ended.out.startswith("COMMBENCH UNKNOWN - ")


def test_a_line_has_subject_found_expected_and_what_to_do(call: Call, machine: Machine) -> None:
    machine(FAILED)
    line, last = call("check", *MEMLOCK).out.splitlines()
    assert line.startswith("fail  HOST-MEMLOCK  memlock: 64 KiB, expected unlimited → ulimit -l unlimited before")
    assert last == "1 check: 1 fail, 0 warn, 0 ok, 0 skipped"


def test_quiet_is_silent_when_healthy_and_verbose_shows_all(call: Call, machine: Machine) -> None:
    assert call("check", *MEMLOCK, "-q").out == ""
    assert call("check", *MEMLOCK, "-v").out.splitlines()[0].startswith("ok    HOST-MEMLOCK  memlock: unlimited (read ")
    machine(FAILED)
    assert call("check", *MEMLOCK, "-q").out.count("\n") == 1


def test_every_rule_gives_a_verdict(call: Call, machine: Machine) -> None:
    document = json.loads(call("check", "--format", "json").out)
    assert {found["rule"] for found in document["findings"]} == {rule.id for rule in load_rules()}
    assert all(found["observed"] for found in document["findings"])


def test_select_and_ignore_take_lists_of_prefixes(call: Call, machine: Machine) -> None:
    def rules(*options: str) -> set[str]:
        return {found["rule"] for found in json.loads(call("check", "--format", "json", *options).out)["findings"]}

    assert rules("--select", "host-memlock,HOST-NOFILE") == {"HOST-MEMLOCK", "HOST-NOFILE"}
    assert rules("--select", "HOST-MEMLOCK", "--select", "HOST-NOFILE", "--ignore", "HOST-N") == {"HOST-MEMLOCK"}


def test_rules_in_the_examples_exist(call: Call) -> None:
    (id,) = re.findall(r"--explain ([A-Z]+-[A-Z-]+)", call("check", "--help").out)
    assert call("check", "--explain", id).code == 0


def test_the_options_are_a_contract() -> None:
    promised = (
        "--select --ignore --list --explain --env-file --from --same --nodes --format -o --nagios --timeout -q -v"
    )
    offered = {name for option in check.params for name in (*option.opts, *option.secondary_opts)}
    assert set(promised.split()) <= offered


# -- forms and files ---------------------------------------------------------------------------------------------------


def test_every_form(call: Call, machine: Machine) -> None:
    machine(FAILED)
    out = {name: call("check", *MEMLOCK, "--format", name).out for name in ("json", "junit", "prometheus", "markdown")}
    assert json.loads(out["json"])["worst"] == "fail"
    assert ElementTree.fromstring(out["junit"].encode()).get("failures") == "1"
    assert 'commbench_check_state{node="n1",rule="HOST-MEMLOCK",subject="memlock"} 2\n' in out["prometheus"]
    assert "| fail | HOST-MEMLOCK | memlock |" in out["markdown"]


def test_a_file_is_replaced_at_once_and_others_may_read_it(call: Call, machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "commbench.prom"
    path.write_text("old")
    inode = path.stat().st_ino
    ended = call("check", *MEMLOCK, "--format", "prometheus", "-o", str(path))
    assert (ended.code, ended.out) == (0, "")
    assert path.read_text().startswith("# HELP commbench_check_info")
    assert path.stat().st_ino != inode
    assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
    assert [found.name for found in tmp_path.iterdir()] == ["commbench.prom"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_stays_one_and_a_device_is_written_to(call: Call, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert call("check", *MEMLOCK, "-o", str(tmp_path / "link")).code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text()
    assert call("check", *MEMLOCK, "-o", os.devnull).code == 0
    assert Path(os.devnull).is_char_device()


def test_a_folder_that_is_not_there_is_one_sentence(call: Call, machine: Machine, tmp_path: Path) -> None:
    ended = call("check", "-o", str(tmp_path / "no" / "out.prom"))
    assert ended.code == 3
    assert ended.err == f"commbench: cannot write {tmp_path}/no/out.prom: No such file or directory.\n"


# -- rules -----------------------------------------------------------------------------------------------------------


def test_the_list_has_a_line_for_each_rule(call: Call) -> None:
    lines = call("check", "--list").out.splitlines()
    assert [line.split()[0] for line in lines] == [rule.id for rule in load_rules()]
    assert call("check", "--list", *MEMLOCK).out.startswith("HOST-MEMLOCK")
    assert call("check", "--list", *MEMLOCK).out.count("\n") == 1


@pytest.mark.parametrize("id", ["HOST-MEMLOCK", "host-memlock"])
def test_explain_says_why_and_what_to_do(call: Call, id: str) -> None:
    text = call("check", "--explain", id).out
    assert text.startswith("HOST-MEMLOCK (fail): memory that a rank may lock is unlimited, or at least 16 GiB\n\nRDMA")
    assert "\nWhat to do: ulimit -l unlimited" in text
    assert "\nSource: NCCL" in text


def test_an_unknown_rule_is_refused_with_the_nearest(call: Call) -> None:
    ended = call("check", "--explain", "HOST-MEMLOK")
    assert ended.code == 2
    assert "unknown rule 'HOST-MEMLOK': did you mean HOST-MEMLOCK?" in ended.err


# -- other machines and environments -----------------------------------------------------------------------------------


def test_a_snapshot_of_another_machine(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "n7.json"
    there = replace(dgx_facts(), host=HostFacts("n7"), limits=LimitFacts(memlock_nbytes=FAILED))
    path.write_text(format_snapshot(there))
    document = json.loads(call("check", *MEMLOCK, "--from", str(path), "--format", "json").out)
    assert (document["worst"], document["nodes"]) == ("fail", [{"name": "n7", "ranks": ""}])


def test_a_tree_has_no_process_and_no_environment(call: Call, tmp_path: Path) -> None:
    write_tree(tmp_path, dgx_files())
    ended = call("check", "--from", str(tmp_path), "--format", "json")
    document = json.loads(ended.out)
    assert document["counts"]["fail"] == 0
    found = [found for found in document["findings"] if found["rule"].startswith("ENV-")]
    assert {found["verdict"] for found in found} == {"skip"}
    assert {found["observed"] for found in found} == {"a captured tree has no environment"}


def test_the_environment_of_a_job_script_is_held_against_another_machine(call: Call, tmp_path: Path) -> None:
    script = tmp_path / "job.sbatch"
    script.write_text("#!/bin/bash\n#SBATCH -N4\nexport NCCL_IB_HCA=mlx5_99\nexport MASTER_ADDR=127.0.0.1\n")
    write_tree(tmp_path / "tree", dgx_files())
    options = ("--select", "ENV", "--from", str(tmp_path / "tree"), "--env-file", str(script), "--nodes", "4")
    out = call("check", *options, "-v").out
    assert "fail  ENV-MASTER-ADDR" in out
    assert "each of the 4 nodes would wait for itself" in out
    assert "(read in job.sbatch:4)" in out
    assert "mlx5_99" in out


def test_an_env_file_takes_the_place_of_this_environment(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "true")
    path = tmp_path / "env"
    path.write_text("NCCL_SOCKET_TIMEOUT=1\nHOME=/root\nSHELL=/bin/sh\n")
    out = call("check", "--select", "ENV", "--env-file", str(path)).out
    assert "ENV-NAME-INVENTED" in out
    assert "NCCL_P2P_DISABLE" not in out
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(b"NCCL_P2P_DISABLE=yes\nSHELL=/bin/sh\n")))
    assert "NCCL_P2P_DISABLE=yes is read as 0" in call("check", "--select", "ENV", "--env-file", "-").out


def test_a_file_that_is_no_environment_is_said(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)) * 10)
    ended = call("check", "--select", "ENV", "--env-file", str(path))
    assert ended.err == "commbench: noise sets none of the variables that are checked: is it an environment?\n"


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (["--from", "/nowhere"], 3, "cannot read /nowhere: No such file or directory."),
        (["--from", "{folder}"], 3, "has neither proc nor sys in it: expected a copy of a machine's files."),
        (["--from", "{folder}/text"], 3, "text"),
        (["--from", "{folder}/text", "--same", "a"], 2, "--same is for files of nodes that this command runs on"),
        (["--env-file", "/nowhere"], 3, "cannot read /nowhere: No such file or directory."),
        (["--env-file", "{folder}"], 3, "Is a directory."),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    call: Call, tmp_path: Path, options: list[str], code: int, sentence: str
) -> None:
    (tmp_path / "text").write_text("no snapshot")
    ended = call("check", *(option.format(folder=tmp_path) for option in options))
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err
    assert ended.err.count("\n") == 1


def test_the_faults_of_the_environment_have_a_finding_each_with_what_to_do(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {
        "NCCL_SOCKET_TIMEOUT": "1",
        "NCCL_P2P_DISABLE": "true",
        "NCCL_IB_HCA": "mlx5_1",
        "GLOO_SOCKET_IFNAME": "^lo",
        "MASTER_ADDR": "127.0.0.1",
    }
    for name, value in faults.items():
        monkeypatch.setenv(name, value)
    document = json.loads(call("check", "--select", "ENV", "--format", "json").out)
    bad = [found for found in document["findings"] if found["verdict"] in ("warn", "fail")]
    assert sorted(found["subject"] for found in bad) == sorted(faults)
    assert all(found["action"] for found in bad)
    assert len({found["rule"] for found in bad}) == len(faults)


# -- the environment of a launcher -------------------------------------------------------------------------------------


def test_a_world_of_one_needs_nobody(call: Call, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    assert call("check", *MEMLOCK).code == 0


def test_a_broken_environment_of_a_launcher_is_said_and_the_rest_is_checked(
    call: Call, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "4")
    ended = call("check", *MEMLOCK)
    assert ended.err.startswith("commbench: RANK=5 and WORLD_SIZE=4 contradict each other")
    assert ended.err.endswith("Only this process is checked.\n")
    assert ended.out.startswith("1 check:")


def test_colour_is_for_terminals_without_a_launcher(
    call: Call, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_module("commbench.cli.check")
    monkeypatch.setattr(module, "sys", SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert module._is_coloured()
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")  # Open MPI gives its ranks a terminal, whatever reads it
    assert not module._is_coloured()
