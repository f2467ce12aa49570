"""The graph from facts: switches, host bridges, sockets, NVLink, and what was not seen."""

from dataclasses import replace

import pytest

from commbench.errors import CommbenchError
from commbench.machine.facts import Facts
from commbench.topology import with_judgement
from commbench.topology.from_facts import make_topology
from tests import trees
from tests.trees import FakeNvml, dgx_facts
from tests.unit.topology.make import finding, found, read
from tests.unit.topology.samples import SNAPSHOT


@pytest.fixture(scope="module")
def healthy() -> Facts:
    return dgx_facts()


def test_the_classes_of_a_healthy_machine(healthy):
    topology = with_judgement(make_topology(healthy))
    assert [topology.link_class("GPU0", f"NIC{number}") for number in range(8)] == [
        "pix", "phb", "node", "node", "sys", "sys", "sys", "sys",
    ]  # fmt: skip
    link = topology.link("GPU0", "GPU7")
    assert (link.link_class, link.lanes, link.bytes_per_second) == ("nvlink", 18, 450e9)
    assert topology.link("GPU0", "NIC0").bytes_per_second == pytest.approx(63.0e9, rel=1e-3)
    assert topology.findings == ()
    assert [nic.name for nic in topology.nics] == [f"mlx5_{number}" for number in range(8)]
    assert topology.nics[0].bytes_per_second == 50e9


def test_places_hang_below_each_other(healthy):
    places = {place.key: place for place in make_topology(healthy).places}
    assert places[f"switch {trees.SWITCH_ADDRESS[5]}"].parent == "numa1"
    assert places["numa1"].cpus == "8-15"


def test_a_narrow_link_lowers_the_rate_and_a_resting_one_does_not():
    facts = dgx_facts(
        {f"{trees.GPU[1]}/current_link_width": "8", f"{trees.GPU[2]}/current_link_speed": "2.5 GT/s PCIe"}
    )
    topology = make_topology(facts)
    rates = [topology.link(f"GPU{number}", f"NIC{number}").bytes_per_second for number in (1, 2)]
    assert rates[0] * 2 == pytest.approx(rates[1]) == pytest.approx(63.0e9, rel=1e-3)


def test_a_card_in_a_slot_of_the_other_socket(healthy):
    far = trees.NIC_ADDRESS[7]
    rdma = (replace(healthy.rdma[0], address=far), *healthy.rdma[1:])
    topology = with_judgement(make_topology(replace(healthy, rdma=rdma)))
    assert finding(topology, "TOPO-NIC-FAR").subject == "GPU0"
    assert topology.link_class("GPU0", "NIC0") == "sys"


def test_a_gpu_with_fewer_links_stands_out():
    topology = with_judgement(make_topology(dgx_facts(nvml=FakeNvml({3: {"nvlinks": (1,) * 16 + (0, 0)}}))))
    assert topology.link("GPU0", "GPU3").lanes == 16
    assert finding(topology, "TOPO-ASYMMETRY").subject == "GPU3"


def test_links_between_gpus_without_a_switch():
    """Two pairs, each joined by two links; the other pairs go over PCIe."""
    edits = {gpu: {"nvlinks": (1, 1), "peers": (gpu ^ 1, gpu ^ 1), "nvlink_version": 4} for gpu in range(8)}
    topology = make_topology(dgx_facts(nvml=FakeNvml(edits)))
    assert (topology.link("GPU0", "GPU1").lanes, topology.link("GPU0", "GPU1").bytes_per_second) == (2, 50e9)
    assert [topology.link_class("GPU0", f"GPU{other}") for other in (2, 4)] == ["node", "sys"]


def test_without_nvml_nvlink_is_unseen_and_said(healthy):
    facts = replace(
        healthy,
        gpus=tuple(replace(gpu, nvlinks=None) for gpu in healthy.gpus),
        unseen={"gpus": "nvidia-ml-py is not installed: pip install nvidia-ml-py"},
    )
    said = finding(make_topology(facts), "TOPO-FABRIC")
    assert (said.subject, said.verdict) == ("GPU0-7", "skip")
    assert said.observed.endswith("pip install nvidia-ml-py")


def test_a_gpu_that_is_lost_is_said():
    topology = make_topology(dgx_facts(nvml=FakeNvml({3: {"lost": True}})))
    assert finding(topology, "TOPO-GPU-LOST").subject == "GPU3"
    assert topology.link_class("GPU3", "NIC3") == "unknown"


def test_without_parents_no_class_is_guessed(healthy):
    bare = tuple(replace(device, parent="", root="") for device in healthy.pci)
    topology = make_topology(replace(healthy, pci=bare, unseen={"pci.parent": "the links were not kept"}))
    assert topology.link_class("GPU0", "NIC0") == "unknown"
    assert finding(topology, "TOPO-NUMA-UNKNOWN").observed == "the links were not kept"


def test_one_numa_node_is_everybodys():
    edits = {"sys/devices/system/node/node1/cpulist": None, "sys/devices/system/node/node1/distance": None,
             "sys/devices/system/node/node1/meminfo": None}  # fmt: skip
    edits |= {f"{place}/numa_node": "-1" for place in (*trees.GPU, *trees.NIC)}
    facts = dgx_facts(edits)
    only = replace(facts.cpu, numa_nodes=facts.cpu.numa_nodes[:1])
    assert make_topology(replace(facts, cpu=only)).link_class("GPU0", "NIC7") == "node"


def test_interfaces_stand_in_where_there_is_no_rdma(healthy):
    topology = make_topology(replace(healthy, rdma=()))
    assert [nic.name for nic in topology.nics] == ["eth0", *trees.INTERFACE]


def test_what_was_not_seen_at_all_is_said():
    topology = make_topology(Facts())
    assert found(topology) == {"TOPO-UNSEEN": ["GPUs", "RDMA devices"]}


def test_a_machine_without_gpus_says_so(healthy):
    assert finding(make_topology(replace(healthy, gpus=())), "TOPO-NO-GPU").verdict == "skip"


@pytest.mark.parametrize("times", [2, 100])
def test_gpus_that_no_machine_has_are_one_sentence(healthy, times):
    with pytest.raises(CommbenchError, match=r"two GPUs of one number|512 at most"):
        make_topology(replace(healthy, gpus=healthy.gpus * times))


def test_a_snapshot_is_the_same_machine():
    topology = read(SNAPSHOT)
    assert topology.link("GPU0", "GPU1").lanes == 2
    assert [nic.state for nic in topology.nics] == ["active, InfiniBand", "down, InfiniBand"]
    assert topology.link("GPU0", "NIC0").bytes_per_second == pytest.approx(8 * 1.969e9, rel=1e-3)
