"""rocm-smi's tables, and nvidia-smi's matrix of peer access."""

import pytest

from commbench.errors import CommbenchError
from tests.unit.topology.make import MATRIX, finding, found, matrix, read
from tests.unit.topology.samples import P2P, ROCM


def test_rocm_says_xgmi_and_the_sockets_link():
    topology = read(ROCM)
    assert matrix(topology) == "x xgmi sys\nxgmi x unknown\nsys unknown x"
    assert [gpu.numa_node for gpu in topology.gpus] == [0, 1, 1]
    assert finding(topology, "TOPO-PCIE-WAY").verdict == "skip"  # one NUMA node: over which bridges is not said


def test_rocm_xgmi_over_other_gpus_is_no_link_of_the_pair():
    several = ROCM.replace("GPU0   0            1 ", "GPU0   0            2 ").replace("GPU1   1 ", "GPU1   2 ")
    assert read(several).link_class("GPU0", "GPU1") == "unknown"


def test_rocm_cells_that_contradict_each_other_are_unclear():
    assert read(ROCM.replace("XGMI         PCIE", "PCIE         PCIE")).link_class("GPU0", "GPU1") == "unknown"


def test_rocm_rows_that_are_torn_or_missing():
    torn = read(ROCM.replace("XGMI         0            PCIE", "XGMI0            PCIE"))
    assert found(torn)["TOPO-TORN"] == ["GPU1"]
    assert (torn.complete, found(torn)["TOPO-INCOMPLETE"]) == (False, ["GPU1"])
    assert torn.link_class("GPU0", "GPU1") == "xgmi"


def test_rocm_numa_alone_is_read():
    topology = read(ROCM[ROCM.index("==== Numa") :])
    assert (len(topology.gpus), topology.links) == (3, ())


def test_rocm_without_a_table_is_one_sentence():
    with pytest.raises(CommbenchError, match="has no table of rocm-smi"):
        read("======== Link Type between two GPUs ========\n")


def test_peer_access_is_no_link_class():
    topology = read(P2P)
    assert {link.link_class for link in topology.links} == {"unknown"}
    assert [link.peer_access for link in topology.links] == ["OK", "CNS", "CNS"]
    refused = finding(topology, "TOPO-PEER-ACCESS")
    assert refused.observed == "read: CNS (chipset not supported) in 2 of 3 pairs"


def test_peer_access_that_rows_contradict_is_unknown():
    topology = read(P2P.replace("GPU0\tX\tOK", "GPU0\tX\tNS"))
    assert topology.links[0].peer_access == "U"
    assert "skip" in {finding.verdict for finding in topology.findings}


def test_a_matrix_of_link_classes_is_not_one_of_peer_access():
    assert read(MATRIX).format == "nvidia-smi-topo"
