"""`nvidia-smi topo -m`: dialects, and what damage does to them."""

import pytest

from commbench.errors import CommbenchError
from commbench.topology.affinity import nearest_nics
from tests.unit.topology.make import MATRIX, finding, found, matrix, read

EXPECTED = """\
x nvlink4 nvlink4 nvlink4 pix sys
nvlink4 x nvlink4 nvlink4 pxb sys
nvlink4 nvlink4 x nvlink4 sys pix
nvlink4 nvlink4 nvlink4 x sys pix
pix pxb sys sys x sys
sys sys pix pix sys x"""
BLANKS = MATRIX.expandtabs(8)
MARKDOWN = "\n".join(
    "|" + line.replace("\t\tN/A", "\tN/A").replace("\t", "|") + "|" for line in MATRIX.splitlines()[:7]
)
COLOURED = MATRIX.replace("\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1", 1).replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m")


@pytest.mark.parametrize(
    "text",
    [MATRIX, BLANKS, MARKDOWN, COLOURED, MATRIX.replace("\n", "\r\n"), f"$ nvidia-smi topo -m\n{MATRIX}$ exit\n"],
    ids=["tabs", "blanks", "markdown", "colours", "windows", "prompt"],
)
def test_every_dialect_is_the_same_machine(text):
    topology = read(text)
    assert matrix(topology) == EXPECTED
    assert [(gpu.cpus, gpu.numa_node) for gpu in topology.gpus] == [("0-7", 0)] * 2 + [("8-15", 1)] * 2
    assert topology.complete
    assert found(topology) == {}


def test_the_legend_names_the_nics():
    assert [nic.name for nic in read(MATRIX).nics] == ["mlx5_0", "mlx5_2"]


def test_old_drivers_name_nics_above_their_columns_and_say_soc():
    text = (
        "     GPU0 GPU1 mlx5_0 CPU Affinity\nGPU0  X   SOC  PHB    0-3\nGPU1 SOC   X   SOC    4-7\nmlx5_0 PHB SOC X\n"
    )
    topology = read(text)
    assert matrix(topology) == "x sys phb\nsys x sys\nphb sys x"
    assert [(nic.key, nic.name) for nic in topology.nics] == [("mlx5_0", "mlx5_0")]


def test_affinity_may_stand_to_the_left():
    text = """\
| CPU Affinity | NUMA Affinity |      | GPU0 | GPU1 | mlx5_0 |
|--------------|---------------|------|------|------|--------|
| 4-7          | 1             | GPU0 | X    | NV2  | SYS    |
| 0-3          | 0             | GPU1 | NV2  | X    | PHB    |
|              |               |mlx5_0| SYS  | PHB  | X      |
"""
    topology = read(text)
    assert matrix(topology) == "x nvlink2 sys\nnvlink2 x phb\nsys phb x"
    assert [(gpu.cpus, gpu.numa_node) for gpu in topology.gpus] == [("4-7", 1), ("0-3", 0)]


@pytest.mark.parametrize("name", ["mlx5_ib", ""], ids=["cut off", "blank"])
def test_names_that_are_alike_are_counted(name):
    topology = read(MATRIX.replace("NIC0\t", f"{name}\t").replace("NIC1\t", f"{name}\t").partition("NIC Legend")[0])
    assert matrix(topology) == EXPECTED
    assert [(nic.key, nic.name) for nic in topology.nics] == [("NIC0", name), ("NIC1", name)]
    assert found(topology) == {"TOPO-NAMES": ["NICs"]}


def test_numa_that_is_not_applicable_is_not_node_0():
    assert {gpu.numa_node for gpu in read(MATRIX.replace("\t0\t\tN/A", "\tN/A\t\tN/A")).gpus} == {None, 1}


def test_a_merged_cell_loses_the_row_and_the_other_rows_tell_of_its_pairs():
    topology = read(BLANKS.replace("GPU1    NV4      X      NV4     NV4", "GPU1    NV4      X      NV4NV4"))
    assert matrix(topology) == EXPECTED
    assert found(topology) == {"TOPO-TORN": ["GPU1"], "TOPO-INCOMPLETE": ["GPU1"]}
    assert finding(topology, "TOPO-TORN").where == "topo.txt:3"
    assert "has 4 cells that read, of 6" in finding(topology, "TOPO-TORN").observed


def test_a_cell_that_cannot_be_read_is_taken_from_the_other_row():
    assert matrix(read(MATRIX.replace("GPU0\t X \tNV4", "GPU0\t X \tN?4"))) == EXPECTED


def test_rows_that_contradict_each_other_are_unclear():
    topology = read(MATRIX.replace("GPU0\t X \tNV4", "GPU0\t X \tPHB"))
    assert topology.link_class("GPU0", "GPU1") == "unknown"
    assert finding(topology, "TOPO-UNCLEAR").observed == "row GPU0 says 'PHB', row GPU1 says 'NV4'"


def test_a_row_whose_x_is_elsewhere_is_torn():
    topology = read(MATRIX.replace("GPU2\tNV4\tNV4\t X \tNV4", "GPU2\tNV4\tNV4\tNV4\t X "))
    assert found(topology)["TOPO-TORN"] == ["GPU2"]


def test_a_row_that_ends_before_its_name_is_torn():
    text = "| NUMA Affinity | CPU Affinity | | GPU0 | GPU1 |\n| 0 | X |\n| 0 | 0-3 | GPU0 | X | PHB |\n"
    topology = read(text)
    assert found(topology)["TOPO-TORN"] == ["row"]
    assert matrix(topology) == "x phb\nphb x"


def test_a_text_that_ends_early_is_incomplete():
    topology = read("\n".join(MATRIX.splitlines()[:3])[:-9])
    assert not topology.complete
    assert finding(topology, "TOPO-INCOMPLETE").subject == "GPU2-3"
    assert finding(topology, "TOPO-INCOMPLETE").observed == "2 of 4 GPUs have no row"
    assert [gpu.cpus for gpu in topology.gpus] == ["0-7", "", "", ""]  # the second one's may be cut
    assert topology.link("GPU2", "GPU3") is None


def test_rows_of_nics_may_be_missing():
    topology = read("\n".join(MARKDOWN.splitlines()[:5]))
    assert topology.complete
    assert finding(topology, "TOPO-NIC-ROWS").verdict == "skip"
    assert topology.link("NIC0", "NIC1") is None
    assert nearest_nics(topology)[1].nics == ("NIC0",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello\n", "of no format that is known here"),
        (" \n", "is empty"),
        ("\tGPU0\tGPU1\nGPU0\tNV1\tNV1\nGPU1\tNV1\tNV1\n", "has no X in its own column"),
        ("\tGPU0\tGPU0\nGPU0\tX\tNV1\nGPU0\tNV1\tX\n", "names a column twice"),
        ("\t" + "\t".join(f"GPU{n}" for n in range(513)) + "\nGPU0\tX\n", "513 columns"),
        ("\n" * 200_001 + "x", "more than 200000 lines"),
        (b"\x00" * ((8 << 20) + 1), "larger than 8 MiB"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text, reason):
    with pytest.raises(CommbenchError, match=reason) as caught:
        read(text)
    assert str(caught.value).endswith(".")


def test_as_overrides_what_it_is_taken_for():
    with pytest.raises(CommbenchError, match="has no line that names GPU0"):
        read("hello\n", "nvidia-smi-topo")
    with pytest.raises(CommbenchError, match="did you mean nvidia-smi-topo"):
        read(MATRIX, "nvidia-smi-top")
