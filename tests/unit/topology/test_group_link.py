"""The link class and rate of a group of GPUs of one machine."""

from dataclasses import replace

import pytest

from commbench.topology.from_facts import make_topology
from commbench.topology.graph import Topology
from commbench.topology.group_link import gpu_at, link_of_gpus
from tests import trees
from tests.trees import FakeNvml, dgx_facts
from tests.unit.topology.make import MATRIX, read


@pytest.fixture(scope="module")
def nvlinked() -> Topology:
    return make_topology(dgx_facts())


@pytest.fixture(scope="module")
def on_pcie() -> Topology:
    """GPU0 and GPU1 with what joins them on PCIe, as where NVML sees no NVLink."""
    return make_topology(dgx_facts(nvml=FakeNvml({number: {"nvlinks": ()} for number in range(8)})))


def test_a_node_with_nvlink_has_its_class_and_rate(nvlinked):
    assert link_of_gpus(nvlinked, trees.GPU_ADDRESS) == ("nvlink", 450e9)


def test_addresses_are_those_of_torch_nvml_or_cuda(nvlinked):
    first = trees.GPU_ADDRESS[0]
    assert gpu_at(nvlinked, first.upper()) == gpu_at(nvlinked, f"0000{first}") == "GPU0"
    assert gpu_at(nvlinked, "") is None


def test_a_group_is_as_far_as_its_farthest_pair(on_pcie):
    near, far = trees.GPU_ADDRESS[:2], trees.GPU_ADDRESS[::7]
    classes = [link_of_gpus(on_pcie, group)[0] for group in (near, far, (*near, far[1]))]
    assert classes == ["phb", "sys", "sys"]


def test_a_group_is_as_fast_as_its_slowest_pair():
    topology = make_topology(dgx_facts(nvml=FakeNvml({3: {"nvlinks": (1,) * 16 + (0, 0)}})))
    assert link_of_gpus(topology, trees.GPU_ADDRESS[:3]) == ("nvlink", 450e9)
    assert link_of_gpus(topology, trees.GPU_ADDRESS[:4]) == ("nvlink", 400e9)


def test_a_pair_without_a_rate_leaves_the_group_without_one(nvlinked):
    links = tuple(
        replace(link, bytes_per_second=None) if (link.first, link.second) == ("GPU0", "GPU1") else link
        for link in nvlinked.links
    )
    topology = replace(nvlinked, links=links)
    assert link_of_gpus(topology, trees.GPU_ADDRESS[:3]) == ("nvlink", None)
    assert link_of_gpus(topology, trees.GPU_ADDRESS[1:3]) == ("nvlink", 450e9)


def test_ranks_that_share_a_gpu_share_its_link(nvlinked):
    one, other = trees.GPU_ADDRESS[:2]
    assert link_of_gpus(nvlinked, (one, one.upper(), other)) == ("nvlink", None)
    assert link_of_gpus(nvlinked, (one, one)) == ("unknown", None)


@pytest.mark.parametrize("addresses", [(), trees.GPU_ADDRESS[:1], (trees.GPU_ADDRESS[0], ""), ("0000:ff:00.0",)])
def test_what_is_not_told_of_is_unknown(nvlinked, addresses):
    assert link_of_gpus(nvlinked, addresses) == ("unknown", None)


def test_a_pair_of_which_the_input_says_nothing_is_unknown(nvlinked):
    assert link_of_gpus(replace(nvlinked, links=()), trees.GPU_ADDRESS) == ("unknown", None)
    assert link_of_gpus(read(MATRIX), trees.GPU_ADDRESS[:2]) == ("unknown", None)  # it has no addresses
