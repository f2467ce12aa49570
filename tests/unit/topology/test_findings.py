"""What is said of a machine, whatever it was read from."""

import pytest

from commbench.topology.affinity import nearest_nics
from commbench.topology.graph import enumerate_keys
from tests.unit.topology.make import MATRIX, finding, found, read


def nvidia_smi(*rows: str, nics: int = 0, cpus: str = "") -> str:
    names = [f"GPU{n}" for n in range(len(rows) - nics)] + [f"NIC{n}" for n in range(nics)]
    head = "\t" + "\t".join(names) + ("\tCPU Affinity" if cpus else "")
    lines = ["\t".join([name, *row.split(), *([cpus] if cpus else [])]) for name, row in zip(names, rows, strict=True)]
    return "\n".join([head, *lines]) + "\n"


def test_a_healthy_machine_has_no_finding_and_every_gpu_its_nics():
    topology = read(MATRIX)
    assert topology.findings == ()
    assert [(found.gpu, found.nics, found.link_class) for found in nearest_nics(topology)] == [
        ("GPU0", ("NIC0",), "pix"),
        ("GPU1", ("NIC0",), "pxb"),
        ("GPU2", ("NIC1",), "pix"),
        ("GPU3", ("NIC1",), "pix"),
    ]


@pytest.mark.parametrize(("word", "link_class"), [("PHB", "phb"), ("NODE", "node"), ("SYS", "sys")])
def test_a_gpu_without_a_nic_under_its_own_switch(word, link_class):
    topology = read(nvidia_smi(f"X NV1 {word}", "NV1 X PIX", f"{word} PIX X", nics=1))
    far = finding(topology, "TOPO-NIC-FAR")
    assert (far.subject, far.verdict) == ("GPU0", "warn")
    assert far.observed == f"no NIC under the same switch: the best is {link_class}"


def test_a_gpu_that_sees_its_siblings_over_another_way_is_named():
    topology = read(nvidia_smi("X PIX PIX SYS", "PIX X PIX SYS", "PIX PIX X SYS", "SYS SYS SYS X"))
    odd = finding(topology, "TOPO-ASYMMETRY")
    assert (odd.subject, odd.observed) == ("GPU3", "sees its siblings over sys")
    assert odd.expected == "pix (2 of them), sys (1 of them), as GPU0-2"


def test_fewer_lanes_are_an_asymmetry_too():
    topology = read(nvidia_smi("X NV2 NV1", "NV2 X NV1", "NV1 NV1 X"))
    assert finding(topology, "TOPO-ASYMMETRY").observed == "sees its siblings over nvlink x1"


def test_pairs_without_nvlink_where_others_have_it():
    topology = read(nvidia_smi("X NV1 SYS SYS", "NV1 X SYS SYS", "SYS SYS X NV1", "SYS SYS NV1 X"))
    assert finding(topology, "TOPO-MESH").observed == "4 of 6 pairs have no nvlink: 4 over sys"
    assert found(topology) == {"TOPO-MESH": ["GPUs"]}


def test_numa_that_is_hidden_is_a_skip():
    topology = read(nvidia_smi("X SYS", "SYS X", cpus="0-95"))
    assert finding(topology, "TOPO-NUMA-HIDDEN").verdict == "skip"
    assert found(read(nvidia_smi("X PHB", "PHB X", cpus="0-95"))) == {}


def test_a_numa_node_with_fewer_cpus_than_the_others():
    short = finding(read(MATRIX.replace("8-15", "8-14")), "TOPO-NUMA-CPUS")
    assert (short.subject, short.observed, short.expected) == ("NUMA node 1", "7 CPUs (8-14)", "8, as others have")


def test_a_nic_that_no_gpu_is_near_is_said_and_is_no_fault():
    topology = read(nvidia_smi("X NV1 PIX SYS", "NV1 X PIX SYS", "PIX PIX X SYS", "SYS SYS SYS X", nics=2))
    remote = finding(topology, "TOPO-NIC-REMOTE")
    assert (remote.subject, remote.verdict) == ("NIC1", "ok")


def test_an_accelerated_ethernet_function_is_no_nic_for_gpus():
    text = nvidia_smi("X NODE PIX", "NODE X NODE", "PIX NODE X", nics=2)
    topology = read(text.replace("NIC0", "mlx5_an").replace("NIC1", "mlx5_ib"))
    assert finding(topology, "TOPO-NIC-HOST").subject == "mlx5_an"
    assert nearest_nics(topology)[0].nics == ("mlx5_ib",)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["GPU0", "GPU1", "GPU3"], "GPU0-1, GPU3"),
        (["mlx5_0", "GPU1", "GPU2"], "mlx5_0, GPU1-2"),
        (["eth", "GPU" + "9" * 12], "eth, GPU" + "9" * 12),
        ([], ""),
    ],
)
def test_keys_are_drawn_together(keys, text):
    assert enumerate_keys(keys) == text
