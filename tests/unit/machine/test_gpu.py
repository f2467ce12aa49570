"""GPUs through NVML, played by an object of the tests, and without it."""

import pytest

from commbench.machine.gpu import read_gpus
from commbench.machine.pci import read_pci
from commbench.machine.tree import Tree
from tests import trees
from tests.trees import FakeNvml, NvmlError, dgx_facts


def gpus(edits, **more):
    return dgx_facts(nvml=FakeNvml(edits, **more))


def test_a_healthy_gpu():
    gpu = gpus({}).gpus[2]
    assert (gpu.index, gpu.address, gpu.name) == (2, trees.GPU_ADDRESS[2], "NVIDIA H100 80GB HBM3")
    assert (gpu.memory_nbytes, gpu.memory_used_nbytes) == (80 << 30, 0)
    assert (gpu.driver, gpu.vbios, gpu.gsp) == ("550.127.08", "96.00.99.00.01", "550.127.08")
    assert (gpu.persistence, gpu.mig, gpu.ecc_enabled, gpu.compute_mode) == (True, False, True, "default")
    assert (gpu.ecc_uncorrected, gpu.remapped_pending, gpu.remapped_failed) == (0, False, False)
    assert (gpu.sm_clock_hertz, gpu.throttle_reasons) == (1.98e9, ("gpu_idle",))
    assert (gpu.fabric_state, gpu.fabric_status, gpu.recovery_action) == ("completed", "success", "none")
    assert len(gpu.nvlinks) == 18
    link = gpu.nvlinks[1]
    assert (link.is_active, link.version, link.peer_kind, link.peer, link.errors) == (
        True, 6, "switch", "0000:91:00.0", 0,
    )  # fmt: skip
    assert link.bytes_per_second == 26562e6
    assert "00000000" not in gpu.uuid_hash  # a hash, not the serial's neighbour


@pytest.mark.parametrize(
    ("edit", "fact", "value"),
    [
        ({"ecc_uncorrected": 2}, "ecc_uncorrected", 2),
        ({"remapped": (0, 4, 1, 0)}, "remapped_pending", True),
        ({"remapped": (0, 4, 0, 1)}, "remapped_failed", True),
        ({"retired_pending": 1}, "retired_pages_pending", True),
        ({"throttled": 0x48}, "throttle_reasons", ("hw_slowdown", "hw_thermal_slowdown")),
        ({"mig": 1}, "mig", True),
        ({"persistence": 0}, "persistence", False),
        ({"compute_mode": 3}, "compute_mode", "exclusive process"),
        ({"fabric": (2, 0)}, "fabric_state", "in progress"),
        ({"fabric": (3, 999)}, "fabric_status", "error 999"),
        ({"fabric": (0, 0)}, "fabric_status", ""),
        ({"pids": (1, 2)}, "processes", 2),
        ({"recovery": 2}, "recovery_action", "node reboot"),
        ({"nvlinks": ()}, "nvlinks", ()),
        ({"temperature": 91}, "temperature_celsius", 91),
    ],
)
def test_what_nvml_says(edit, fact, value):
    assert getattr(gpus({5: edit}).gpus[5], fact) == value


def test_links_that_are_down_have_no_peer():
    links = gpus({1: {"nvlinks": (1, 0), "nvlink_errors": 7}}).gpus[1].nvlinks
    assert [(link.is_active, link.peer, link.bytes_per_second) for link in links] == [
        (True, "0000:90:00.0", 26562e6), (False, "", None),
    ]  # fmt: skip
    assert links[0].errors == 7


@pytest.mark.parametrize(
    ("function", "fact"),
    [
        ("nvmlDeviceGetEccMode", "ecc_enabled"),
        ("nvmlDeviceGetMemoryInfo", "memory_nbytes"),
        ("nvmlDeviceGetCurrentClocksEventReasons", "throttle_reasons"),
        ("nvmlDeviceGetGpuFabricInfoV", "fabric_state"),
        ("nvmlDeviceGetComputeRunningProcesses", "processes"),
        ("nvmlDeviceGetName", "name"),
        ("nvmlDeviceGetPciInfo", "address"),
    ],
)
def test_what_nvml_refuses_is_unseen_with_its_reason(function, fact):
    facts = gpus({0: {"refused": (function,)}})
    assert getattr(facts.gpus[0], fact) in (None, "")
    assert facts.why_unseen(f"gpus.{fact}") == "NVML: Not Supported"
    assert getattr(facts.gpus[1], fact) not in (None, "")


def test_a_gpu_that_is_lost_keeps_its_place():
    facts = gpus({3: {"lost": True}})
    assert [gpu.address for gpu in facts.gpus] == [*trees.GPU_ADDRESS[:3], "", *trees.GPU_ADDRESS[4:]]
    assert facts.why_unseen("gpus.3") == "NVML: GPU is lost"


def test_an_older_pynvml_lacks_functions(monkeypatch):
    monkeypatch.delitem(trees._ANSWERS, "nvmlDeviceGetRemappedRows")
    monkeypatch.delattr(FakeNvml, "c_nvmlGpuFabricInfo_v2_t")
    monkeypatch.delattr(FakeNvml, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION")
    facts = gpus({})
    assert facts.gpus[0].remapped_pending is None
    assert facts.why_unseen("gpus.remapped_pending") == "this nvidia-ml-py has no nvmlDeviceGetRemappedRows"
    assert "older" in facts.why_unseen("gpus.fabric_state")
    assert facts.gpus[0].recovery_action == ""


def test_nvml_that_does_not_start_leaves_what_the_kernel_says():
    class Broken(FakeNvml):
        def nvmlInit(self) -> None:
            raise NvmlError("Driver Not Loaded")

    facts = dgx_facts(nvml=Broken())
    assert [(gpu.address, gpu.name) for gpu in facts.gpus] == [
        (address, "NVIDIA H100 80GB HBM3") for address in trees.GPU_ADDRESS
    ]
    assert facts.gpus[0].nvlinks is None
    assert facts.why_unseen("gpus.nvlinks") == "NVML: Driver Not Loaded"


def test_a_captured_tree_has_no_nvml():
    root, _ = trees._written(False)
    tree = Tree(root)
    found = read_gpus(tree, read_pci(tree))
    assert (found[7].address, found[7].gsp, found[7].ecc_enabled) == (trees.GPU_ADDRESS[7], "550.127.08", None)
    assert tree.unseen["gpus"].startswith("a captured tree has no NVML")
    same = gpus({}).gpus[7]
    assert found[7].uuid_hash == same.uuid_hash


def test_gpus_of_amd(tmp_path):
    folder = "sys/devices/pci0000:c0/0000:c1:00.0"
    files = trees._pci(folder, "1200", "1002", "74a1", 1) | {
        f"{folder}/driver": trees.Link("sys/bus/pci/drivers/amdgpu"),
        f"{folder}/mem_info_vram_total": str(192 << 30),
        "sys/module/amdgpu/version": "6.8.5",
    }
    trees.write_tree(tmp_path, files)
    tree = Tree(tmp_path)
    (gpu,) = read_gpus(tree, read_pci(tree))
    assert (gpu.address, gpu.memory_nbytes, gpu.driver, gpu.nvlinks) == ("0000:c1:00.0", 192 << 30, "6.8.5", None)
