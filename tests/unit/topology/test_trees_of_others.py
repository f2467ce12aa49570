"""lspci's tree, lstopo's text and its matrix of NVLink, ifconfig, nvidia-smi -L."""

import pytest

from commbench.errors import CommbenchError
from tests.unit.topology.make import finding, found, matrix, read
from tests.unit.topology.samples import IFCONFIG, IFCONFIG_OLD, LSPCI_TREE, LSTOPO, LSTOPO_TEXT, SMI_LIST


def test_lspci_names_gpus_and_nics_by_their_texts():
    topology = read(LSPCI_TREE)
    assert [(device.key, device.bus_id) for device in topology.devices] == [
        ("GPU0", "0000:3e:00.0"),  # and not its sound card
        ("GPU1", "0000:3f:00.0"),
        ("GPU2", "0000:50:00.0"),
        ("NIC0", "0000:42:00.0"),
        ("NIC1", "0000:86:00.0"),
        ("NIC2", "0000:86:00.1"),
    ]


def test_lspci_tells_switches_apart_and_not_sockets():
    assert matrix(read(LSPCI_TREE)) == (
        "x pix phb pxb unknown unknown\n"
        "pix x phb pxb unknown unknown\n"
        "phb phb x phb unknown unknown\n"
        "pxb pxb phb x unknown unknown\n"
        "unknown unknown unknown unknown x pix\n"
        "unknown unknown unknown unknown pix x"
    )
    assert finding(read(LSPCI_TREE), "TOPO-NUMA-UNKNOWN").verdict == "skip"


def test_lspci_of_one_root_has_its_trunk_in_the_first_line():
    text = "-[0000:00]-+-01.0-[01]----00.0  NVIDIA Corporation GA100\n           \\-02.0-[02]----00.0  Ethernet X\n"
    assert matrix(read(text)) == "x phb\nphb x"


def test_lspci_without_names_says_what_to_give():
    with pytest.raises(CommbenchError, match="a tree of addresses without names: give lspci -tv"):
        read("-[0000:00]-+-00.0\n           \\-02.0-[02]----00.0\n")


def test_lspci_printed_twice_is_refused():
    with pytest.raises(CommbenchError, match="a device twice"):
        read(LSPCI_TREE * 2)


def test_lstopo_as_text():
    topology = read(LSTOPO_TEXT)
    assert [(device.key, device.name, device.numa_node) for device in topology.devices] == [
        ("GPU0", "nvml0", 0),
        ("GPU1", "", 1),  # VGA of NVIDIA; that of the board is none
        ("NIC0", "mlx5_0", 0),
    ]
    assert matrix(topology) == "x sys pix\nsys x sys\npix sys x"


def test_lstopo_as_text_without_detail():
    text = (
        "Machine (16GB)\n  Package L#0\n    NUMANode L#0 (P#0 8GB)\n    HostBridge\n      PCIBridge\n"
        '        PCI 13:00.0 (3D)\n          GPU "nvml0"\n'
        '      PCI 14:00.0 (InfiniBand)\n        OpenFabrics "mlx5_0"\n'
    )
    topology = read(text)
    assert [(device.name, device.bus_id, device.numa_node) for device in topology.devices] == [
        ("nvml0", "0000:13:00.0", 0),
        ("mlx5_0", "0000:14:00.0", 0),
    ]
    assert matrix(topology) == "x phb\nphb x"


def test_lstopo_as_text_with_nodes_around_what_is_near_them():
    """hwloc 1: sockets lie in their NUMA node."""
    text = "Machine (16GB)\n" + "".join(
        f"  NUMANode L#{node} (P#{node} 8GB)\n    Socket L#{node}\n"
        f"    HostBridge L#{node}\n      PCI {node}3:00.0 (3D)\n"
        for node in (0, 1)
    )
    assert [device.numa_node for device in read(text).devices] == [0, 1]
    assert matrix(read(text)) == "x sys\nsys x"


def _with_nvlink(values: str, names: str = "OSDev:1 PCIDev:2") -> str:
    text = LSTOPO.replace('name="nvml0"', 'gp_index="1" name="nvml0"')
    text = text.replace('pci_busid="0000:15:00.0"', 'gp_index="2" pci_busid="0000:15:00.0"')
    element = (
        f'<distances2hetero nbobjs="2" name="NVLinkBandwidth"><indexes length="9">{names}</indexes>'
        f'<u64values length="9">{values}</u64values></distances2hetero>'
    )
    return text.replace("</topology>", element + "</topology>")


def _gpu_link(text):
    topology = read(text)
    return topology.link("GPU0", "GPU1"), found(topology)


def test_lstopo_nvlink_between_gpus():
    link, rules = _gpu_link(_with_nvlink("1000000 50000 50000 1000000"))
    assert (link.link_class, link.lanes, link.bytes_per_second) == ("nvlink", None, 50e9)
    assert "TOPO-FABRIC" not in rules


def test_lstopo_nvlink_through_switches():
    """Two NVSwitches; one GPU reaches both, the other only one."""
    rows = "0 0 25000 25000  0 0 25000 0  25000 25000 0 0  25000 0 0 0"
    link, _ = _gpu_link(_with_nvlink(rows, "OSDev:1 PCIDev:2 PCIDev:8 PCIDev:9"))
    assert (link.link_class, link.bytes_per_second) == ("nvlink", 25e9)


@pytest.mark.parametrize(
    ("values", "names"),
    [("1 2 3", "OSDev:1 PCIDev:2"), ("1 x 3 4", "OSDev:1 PCIDev:2"), ("1 2 3 4", "OSDev:1 OSDev:1"), ("", "")],
)
def test_a_matrix_that_is_not_whole_says_nothing(values, names):
    link, rules = _gpu_link(_with_nvlink(values, names))
    assert link.link_class != "nvlink"
    assert "TOPO-FABRIC" in rules


def test_ifconfig_says_which_interfaces_reach_others():
    topology = read(IFCONFIG)
    assert [(nic.name, nic.state) for nic in topology.nics] == [("eth0", "up"), ("eth1", "up")]
    assert found(topology) == {
        "TOPO-INTERFACE": ["eth0"],
        "TOPO-INTERFACE-BESIDE": ["docker0, lo"],
        "TOPO-INTERFACE-DOWN": ["eth1"],
    }
    assert finding(topology, "TOPO-INTERFACE").action.endswith("NCCL_SOCKET_IFNAME==eth0")


def test_ifconfig_of_old():
    topology = read(IFCONFIG_OLD)
    assert [(nic.name, nic.state) for nic in topology.nics] == [("ib0", "up")]
    assert finding(topology, "TOPO-INTERFACE").observed == "up, with 192.0.2.7"


@pytest.mark.parametrize("change", [("RUNNING,", ""), ("inet 192.0.2.23", "inet 392.0.2.23"), ("UP,", "")])
def test_ifconfig_without_an_interface_that_works(change):
    text = IFCONFIG[IFCONFIG.index("eth0") :].replace(*change)
    assert finding(read(text), "TOPO-INTERFACE").verdict == "warn"


def test_nvidia_smi_list_says_which_gpus_are_cut():
    topology = read(SMI_LIST)
    assert [device.name for device in topology.devices] == ["NVIDIA A100-SXM4-80GB"] * 2
    cut = finding(topology, "TOPO-MIG")
    assert (cut.subject, cut.observed) == ("GPU1", "cut into MIG devices: 2 of 2g.20gb, 1 of 1g.10gb")
    assert "GPU-0000" not in str(topology)


@pytest.mark.parametrize("text", [SMI_LIST * 2, IFCONFIG * 2])
def test_what_is_printed_twice_is_refused(text):
    with pytest.raises(CommbenchError, match="twice, or too many"):
        read(text)
