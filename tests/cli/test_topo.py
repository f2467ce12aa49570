"""`commbench topo`."""

import json
import socket
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from commbench.machine.facts import Facts
from commbench.machine.snapshot import format_snapshot
from tests.cli.conftest import Call
from tests.trees import dgx_facts
from tests.unit.topology.make import MATRIX
from tests.unit.topology.samples import P2P


@pytest.fixture
def topo_file(tmp_path: Path) -> str:
    path = tmp_path / "topo.txt"
    path.write_text(MATRIX)
    return str(path)


def test_the_table(call: Call, topo_file: str) -> None:
    ended = call("topo", "--from", topo_file)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("topo.txt: 4 GPUs, 2 NICs (nvidia-smi-topo)\n")
    assert " GPU1    NV4      X    NV4    NV4    PXB    SYS\n" in ended.out
    assert "PXB   several PCIe switches, not the CPU\n" in ended.out
    assert "NODE" not in ended.out  # the legend has what is in the matrix
    assert " GPU1              0      0-7    NIC0 (pxb)\n" in ended.out


def test_the_json_has_every_pair_once(call: Call, topo_file: str) -> None:
    document = json.loads(call("topo", "--from", topo_file, "--format", "json").out)
    assert len(document["links"]) == 15
    assert document["links"][0] == {
        "first": "GPU0", "second": "GPU1", "link_class": "nvlink", "lanes": 4, "bytes_per_second": None,
        "peer_access": "",
    }  # fmt: skip
    assert document["nearest_nics"][3] == {"gpu": "GPU3", "nics": ["NIC1"], "link_class": "pix"}
    assert document["complete"]


def test_markdown_shows_names_as_they_are(call: Call, topo_file: str) -> None:
    out = call("topo", "--from", topo_file, "--format", "markdown").out
    assert "| GPU1 | NV4 | X | NV4 | NV4 | PXB | SYS |\n" in out
    assert "| NIC0 | mlx5\\_0 |" in out


def test_standard_input_and_an_output_file(
    call: Call, topo_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(MATRIX.encode())))
    ended = call("topo", "--from", "-", "-o", str(tmp_path / "out.txt"))
    assert (ended.code, ended.out) == (0, "")
    assert (tmp_path / "out.txt").read_text().startswith("standard input: 4 GPUs")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--as", "ibstat"], 2, "--as says what a file is: give the file too"),
        (["--snapshot", "--from", "{file}"], 2, "this machine as JSON: leave --from out"),
        (["--snapshot", "-o", "/nowhere/host.json"], 3, "cannot write /nowhere/host.json"),
        (["--from", "/nowhere/topo.txt"], 3, "cannot read /nowhere/topo.txt: No such file or directory."),
        (["--from", "{file}", "--as", "graph"], 2, "unknown format 'graph'"),
        (["--from", "{file}", "-o", "/nowhere/out"], 3, "cannot write /nowhere/out"),
    ],
)
def test_an_error_is_one_sentence(call: Call, topo_file: str, arguments: list[str], code: int, sentence: str) -> None:
    ended = call("topo", *(word.format(file=topo_file) for word in arguments))
    assert (ended.code, ended.out) == (code, "")
    assert sentence in ended.err
    assert ended.err.count("\n") == 1


def test_the_list_names_every_format(call: Call) -> None:
    from commbench.topology import FORMATS

    assert [line.split()[0] for line in call("topo", "--list").out.splitlines()] == list(FORMATS)


def test_words_of_peer_access_are_explained(call: Call, tmp_path: Path) -> None:
    (tmp_path / "p2p.txt").write_text(P2P)
    out = call("topo", "--from", str(tmp_path / "p2p.txt")).out
    assert " GPU0      X     OK    CNS\n" in out
    assert "CNS   chipset not supported\n" in out


def test_the_plot_is_written_beside_the_table(call: Call, topo_file: str, tmp_path: Path) -> None:
    ended = call("topo", "--from", topo_file, "--plot", str(tmp_path / "machine.png"))
    assert ended.out.startswith("topo.txt: 4 GPUs, 2 NICs")
    assert (tmp_path / "machine.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_that_cannot_be_written_is_one_sentence(call: Call, topo_file: str) -> None:
    ended = call("topo", "--from", topo_file, "--plot", "/nowhere/machine.png")
    assert (ended.code, ended.err) == (3, "commbench: cannot write /nowhere/machine.png: No such file or directory.\n")


def test_this_machine(call: Call) -> None:
    ended = call("topo")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"{socket.gethostname()}: ")
    assert "(machine)" in ended.out


def test_a_snapshot_reads_as_this_machine_does(call: Call, tmp_path: Path) -> None:
    ended = call("topo", "--snapshot", "-o", str(tmp_path / "host.json"))
    assert (ended.code, ended.out) == (0, "")
    assert "no other variable, serial number, hardware address or GUID" in ended.err
    live, there = (json.loads(call("topo", "--format", "json", *more).out)
                   for more in ([], ["--from", str(tmp_path / "host.json")]))  # fmt: skip
    assert (live["format"], there["format"]) == ("machine", "snapshot")
    assert live["devices"] == there["devices"]


def test_a_snapshot_of_tomorrow_is_refused(call: Call, tmp_path: Path) -> None:
    text = format_snapshot(Facts()).replace('"schema_version": 1', '"schema_version": 9')
    (tmp_path / "host.json").write_text(text)
    ended = call("topo", "--from", str(tmp_path / "host.json"))
    assert (ended.code, ended.out) == (3, "")
    assert "host.json has schema 9, this commbench reads up to 1" in ended.err


def test_another_machine_from_its_snapshot(call: Call, tmp_path: Path) -> None:
    (tmp_path / "dgx.json").write_text(format_snapshot(dgx_facts()))
    out = call("topo", "--from", str(tmp_path / "dgx.json"), "--plot", str(tmp_path / "dgx.png")).out
    assert out.startswith("dgx.json: 8 GPUs, 8 NICs (snapshot)\n")
    assert " GPU7   NV18   NV18   NV18   NV18   NV18   NV18   NV18      X    SYS    SYS    SYS    SYS   NODE" in out
    assert (tmp_path / "dgx.png").read_bytes().startswith(b"\x89PNG")
