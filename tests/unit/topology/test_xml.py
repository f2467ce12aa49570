"""XML: NCCL's topology and graph, lstopo, and what makes XML dangerous."""

import pytest

from commbench.errors import CommbenchError
from commbench.topology.affinity import nearest_nics
from commbench.topology.link_rates import nvlink_rate, pcie_rate
from tests.unit.topology.make import finding, found, matrix, read
from tests.unit.topology.samples import LSTOPO, NCCL_GRAPH, NCCL_XML

GEN4_X16 = 16e9 / 8 * 16 * 128 / 130


def test_nccl_classes_lanes_and_devices():
    topology = read(NCCL_XML)
    assert matrix(topology).splitlines() == [
        "x nvlink6 sys pix pix sys",  # four links to each other, two through NVSwitches
        "nvlink6 x phb sys sys pxb",
        "sys phb x sys sys phb",
        "pix sys sys x pix sys",
        "pix sys sys pix x sys",
        "sys pxb phb sys sys x",
    ]
    assert [(one.key, one.name, one.bus_id, one.numa_node) for one in topology.devices] == [
        ("GPU0", "", "0000:11:00.0", 0),
        ("GPU1", "", "0000:21:00.0", 1),
        ("GPU2", "", "0000:30:00.0", 1),
        ("NIC0", "mlx5_0", "0000:12:00.0", 0),
        ("NIC1", "mlx5_1", "0000:12:00.0", 0),
        ("NIC2", "", "0000:24:00.0", 1),
    ]
    assert topology.gpus[1].cpus == "16-31,80-95"
    assert [nearest.nics for nearest in nearest_nics(topology)] == [("NIC0", "NIC1"), ("NIC2",), ("NIC2",)]


def test_nccl_rates_are_said_only_where_speed_and_width_are():
    topology = read(NCCL_XML)
    rates = {(link.first, link.second): link.bytes_per_second for link in topology.links}
    assert rates["GPU0", "GPU1"] == 6 * 25e9
    assert rates["GPU0", "NIC0"] == pytest.approx(GEN4_X16 / 2)  # the NIC has eight lanes
    assert rates["GPU1", "NIC2"] is None  # the NIC's own link has no speed
    assert rates["GPU0", "GPU2"] is None  # of the sockets' link nothing is said
    assert [nic.bytes_per_second for nic in topology.nics] == [25e9, 25e9, None]


def test_nccl_places_hold_the_devices():
    topology = read(NCCL_XML)
    parents = {place.key: place.parent for place in topology.places}
    assert parents == {
        "numa0": "", "pci 0000:10:00.0": "numa0", "numa1": "", "pci 0000:20:00.0": "numa1",
        "pci 0000:23:00.0": "pci 0000:20:00.0",
    }  # fmt: skip
    assert topology.gpus[2].place == "numa1"


@pytest.mark.parametrize(
    ("old", "new", "rule", "observed"),
    [
        ('0000:21:00.0" count="4"', '0000:11:00.0" count="4"', "TOPO-NVLINK-SELF", "4 links lead to its own bus id"),
        ('speed="200000" port="1"', 'speed="180000" port="1"', "TOPO-NIC-RATE",
         "180 Gbit/s is not a rate that NICs have"),
        ('class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16"',
         'class="0x060400" link_speed="2.5 GT/s" link_width="1"', "TOPO-SLOW-SWITCH", "2.5 GT/s x1: 0.25 GB/s for all"),
        ('numaid="0"', 'numaid="-1"', "TOPO-NUMA-UNKNOWN", "numaid is '-1'"),
        ('numaid="1"', 'numaid="3"', "TOPO-NUMA-ABSENT", "not in the file"),
        ("ffff0000,00000000,ffff0000", "fff0000,00000000,ffff0000", "TOPO-NUMA-CPUS", "28 CPUs (16-31,80-91)"),
    ],
)  # fmt: skip
def test_nccl_oddities_are_said(old, new, rule, observed):
    assert finding(read(NCCL_XML.replace(old, new, 1)), rule).observed == observed


def test_links_that_the_two_gpus_count_differently_have_no_number():
    topology = read(NCCL_XML.replace('0000:11:00.0" count="4"', '0000:11:00.0" count="3"'))
    assert finding(topology, "TOPO-LANES").observed == "4 links of nvlink one way, 3 the other"
    link = topology.link("GPU0", "GPU1")
    assert (link.link_class, link.lanes, link.bytes_per_second) == ("nvlink", None, None)


def test_a_value_that_is_too_long_is_not_said():
    assert {gpu.cpus for gpu in read(NCCL_XML.replace("0000ffff,", "0000ffff," * 600, 1)).gpus} == {"", "16-31,80-95"}


def test_more_devices_than_a_machine_has():
    pci = "".join(f'<pci busid="{n}" class="0x030200"/>' for n in range(513))
    with pytest.raises(CommbenchError, match="has more than 512 devices"):
        read(f'<system><cpu numaid="0">{pci}</cpu></system>')


def test_a_nic_without_gpudirect_says_so():
    assert [nic.state for nic in read(NCCL_XML).nics] == ["", "no GPUDirect", ""]


def test_an_unknown_numa_node_makes_no_class():
    topology = read(NCCL_XML.replace('numaid="0"', 'numaid="-1"'))
    assert topology.link_class("GPU0", "GPU2") == "unknown"
    assert topology.link_class("GPU0", "NIC0") == "pix"


def test_a_graph_file_is_refused_by_name():
    with pytest.raises(CommbenchError, match=r"is a graph file of NCCL \(1 graphs, 1 channels\): what NCCL chose"):
        read(NCCL_GRAPH)


def test_lstopo_counts_switches_not_ports():
    topology = read(LSTOPO)
    assert [(one.key, one.name, one.bus_id) for one in topology.devices] == [
        ("GPU0", "nvml0", "0000:12:00.0"),
        ("GPU1", "", "0000:15:00.0"),
        ("GPU2", "", "0000:16:00.0"),
        ("GPU3", "", "0000:41:00.0"),  # the board's own display is none
        ("NIC0", "mlx5_0", "0000:13:00.0"),
        ("NIC1", "eth0", "0000:81:00.0"),
    ]
    assert matrix(topology).splitlines() == [
        "x pxb phb node pix sys",
        "pxb x phb node pxb sys",
        "phb phb x node phb sys",
        "node node node x node sys",
        "pix pxb phb node x sys",
        "sys sys sys sys sys x",
    ]
    assert [gpu.cpus for gpu in topology.gpus] == ["0-3"] * 4
    assert finding(topology, "TOPO-FABRIC").verdict == "skip"


def test_lstopo_without_devices_says_what_to_do():
    bare = '<topology><object type="Machine"><object type="NUMANode" os_index="0"/></object></topology>'
    with pytest.raises(CommbenchError, match=r"tells of NUMA nodes \(1\), and of no GPU and no NIC"):
        read(bare)


def test_lstopo_devices_below_the_whole_machine_have_no_numa_node():
    text = LSTOPO.replace('nodeset="0x00000001">', 'nodeset="0x00000003">', 1)
    assert "TOPO-NUMA-UNKNOWN" in found(read(text))
    assert read(text).link_class("GPU0", "NIC1") == "unknown"


BOMB = '<!DOCTYPE system [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><system><cpu numaid="&b;"/></system>'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "declares entities of its own"),
        ("<system><cpu>", "does not read as XML"),
        ("<system>" + "<pci>" * 200, "more than 100 in one another"),
        ("<system>" + "<a/>" * 200_001 + "</system>", "more than 200000 elements"),
        ("<system><cpu/></system>", "tells of no GPU and no NIC"),
        (NCCL_XML.replace('numaid="1"', 'numaid="0"'), "has the NUMA node 0 twice"),
        (NCCL_XML.replace("0000:21:00.0\" class", "0000:11:00.0\" class"), "has the PCI bus id 0000:11:00.0 twice"),
        ('<?xml version="1.0" encoding="x-none"?><system/>', "tells of no GPU and no NIC"),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_xml_that_is_refused_is_one_sentence(text, reason):
    with pytest.raises(CommbenchError, match=reason) as caught:
        read(text)
    assert str(caught.value).endswith(".")


def test_as_a_format_of_another_root():
    with pytest.raises(CommbenchError, match="where NCCL's topology has <system>"):
        read(NCCL_GRAPH, "nccl-topology")


@pytest.mark.parametrize(
    ("speed", "width", "expected"),
    [
        ("2.5 GT/s", 1, 0.25e9),
        ("5.0 GT/s PCIe", 16, 8e9),
        ("8 GT/s", 16, 15.75e9),
        ("32.0 GT/s PCIe", 16, 63.0e9),
        ("64.0 GT/s PCIe", 16, 121.0e9),
        ("", 16, None),
        ("16.0 GT/s PCIe", 0, None),
        ("16.0 GT/s PCIe", None, None),
        ("3 GT/s", 16, None),
        ("Unknown", 16, None),
    ],
)
def test_pcie_rates(speed, width, expected):
    assert pcie_rate(speed, width) == (None if expected is None else pytest.approx(expected, rel=1e-3))


def test_nvlink_rates():
    assert nvlink_rate(90, 18) == 450e9
    assert nvlink_rate(75, 2) is None
    assert nvlink_rate(None, 4) is None
