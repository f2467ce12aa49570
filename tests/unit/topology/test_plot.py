"""The picture: where things are, and that it is one whatever the machine."""

from itertools import pairwise

import pytest

from commbench.report.topology_plot import COLOURS, draw_topology, lay_out, top_switches
from commbench.topology.graph import NEARNESS
from tests.unit.topology.make import MATRIX, read
from tests.unit.topology.samples import LSTOPO, NCCL_XML, P2P, ROCM

PNG = b"\x89PNG\r\n"


@pytest.mark.parametrize("text", [MATRIX, NCCL_XML, LSTOPO, ROCM, P2P], ids=["matrix", "nccl", "lstopo", "rocm", "p2p"])
def test_every_format_can_be_drawn(text):
    assert draw_topology(read(text)).startswith(PNG)


def test_a_name_with_dollars_is_no_mathematics():
    assert draw_topology(read(MATRIX.replace("NIC0: mlx5_0", "NIC0: $x_{$"))).startswith(PNG)


def test_a_name_that_the_font_has_not_is_no_warning():
    assert draw_topology(read(MATRIX.replace("NIC0: mlx5_0", "NIC0: 網卡"))).startswith(PNG)


def test_every_class_but_unknown_has_a_colour():
    assert [*COLOURS, "unknown"] == list(NEARNESS)


def test_nics_stand_in_the_numa_node_of_the_gpus_that_are_near():
    layout = lay_out(read(MATRIX))
    boxes = {name: (left, right) for name, left, right in layout.boxes}
    for key, node in {"GPU0": 0, "GPU3": 1, "NIC0": 0, "NIC1": 1}.items():
        left, right = boxes[f"NUMA node {node}"]
        assert left < layout.devices[key][0] < right


def test_a_nic_that_is_near_no_gpu_stands_apart():
    layout = lay_out(read(MATRIX.replace("PIX", "SYS").replace("PXB", "SYS")))
    assert [name for name, _, _ in layout.boxes] == ["NUMA node 0", "NUMA node 1", "NUMA node ?"]


@pytest.mark.parametrize("text", [MATRIX, NCCL_XML, LSTOPO, ROCM])
def test_no_two_devices_stand_on_each_other(text):
    topology = read(text)
    places = sorted(lay_out(topology).devices.values())
    assert len(places) == len(topology.devices)
    rows = {y: [x for x, height in places if height == y] for _, y in places}
    assert all(right - left >= 0.99 for row in rows.values() for left, right in pairwise(row))


def test_a_switch_is_drawn_once_for_all_its_ports():
    topology = read(LSTOPO)
    assert top_switches(topology) == {
        "GPU0": "bridge 0000:10:01.0",
        "GPU1": "bridge 0000:10:01.0",
        "GPU2": "bridge 0000:10:02.0",
        "NIC0": "bridge 0000:10:01.0",
    }
    assert set(lay_out(topology).switches) == {"bridge 0000:10:01.0", "bridge 0000:10:02.0"}
