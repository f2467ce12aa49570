"""Warnings, crashes and hangs."""

import re

import pytest

from commbench.results.nccl_log.faults import explain, known_faults
from tests.unit.results.nccl_log.samples import FAULTS, read

TEXTS = {
    "ib-gid-empty": "Call to ibv_modify_qp failed with 61 No data available, on dev roce0:1",
    "ib-unreachable": "Call to ibv_modify_qp failed with error Network is unreachable",
    "ib-connect-timeout": "Call to ibv_modify_qp failed with error Connection timed out",
    "ib-qp-invalid": "Call to ibv_modify_qp failed with 22 Invalid argument",
    "ib-open": "NET/IB : Unable to open device mlx5_bond_0",
    "ib-memlock": "Call to ibv_create_qp failed with error Cannot allocate memory",
    "ib-register-gpu": "Call to ibv_reg_mr_iova2 failed with error Bad address",
    "ib-flushed": "NET/IB : Got completion from peer 10.0.0.1<5> with error 5, opcode 0, len 0, vendor err 249",
    "ib-retry-exceeded": "NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=x",
    "ib-receiver-not-ready": "NET/IB : Got completion with error 13, opcode 0",
    "ib-access": "NET/IB : Got completion with error 10, opcode 0",
    "ib-port-event": "NET/IB : mlx5_0:1 Got non-fatal async event: GID table change(18)",
    "nic-fused-across-numa": "Fusing NET devices from different NUMA domains is not supported.",
    "nic-no-pci-path": "Could not find real path of veth0 (/sys/class/net/veth0/device)",
    "net-not-found": "Error: network AWS Libfabric not found.",
    "net-none": "Bootstrap : no socket interface found",
    "socket-refused": "socketStartConnect: Connect to 10.0.0.1<4> failed : Connection refused",
    "socket-closed": "socketProgress: Connection closed by remote peer n2<41109>",
    "proxy-operation": "[Proxy Service 1] Failed to execute operation Connect from rank 1, retcode 2",
    "bootstrap-mismatch": "Bootstrap Root : mismatch in rank count from procs 16 : 8",
    "message-truncated": "Message truncated : received 1024 bytes instead of 256",
    "shm-full": "Call to posix_fallocate failed : No space left on device",
    "gpu-duplicate": "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000",
    "nvswitch-not-ready": "Cuda failure 802 'system not yet initialized'",
    "imex": "MNNVL (cliqueSize 4) is available but not working on this system. Check the IMEX channel configuration",
    "nvls-bind": "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'.",
    "p2p-nvlink-disabled": "P2P is disabled between NVLINK connected GPUs 1 and 0.",
    "cuda-memory": "Cuda failure 2 'out of memory'",
    "cuda-peer-resources": "Cuda failure 'peer mapping resources exhausted'",
    "cuda-driver": "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
    "cuda-failure": "Cuda failure 'an illegal memory access was encountered'",
    "files-or-threads": "Call to socket failed : Too many open files",
    "no-transport": "No transport found for rank 0[1b000] -> rank 1[1c000]",
    "no-algorithm": "No algorithm/protocol available for function AllReduce with datatype ncclFloat.",
    "rccl-iommu": 'Missing "iommu=pt" from kernel command line which can lead to system instablity or hang!',
    "rccl-numa-balancing": "NUMA auto balancing enabled which can lead to variability",
    "rccl-fine-grain": 'Missing "HSA_FORCE_FINE_GRAIN_PCIE=1" from environment',
}


def test_every_row_of_the_table_is_complete_and_has_a_text():
    assert [row.name for row in known_faults()] == list(TEXTS)
    assert all(row.cause and row.cure and row.source for row in known_faults())
    assert not any(re.search(r"(?<!\\)[*+](?!\?)", row.pattern) for row in known_faults())  # bounded repetitions only


@pytest.mark.parametrize("name", TEXTS)
def test_a_warning_is_explained(name):
    row = explain(TEXTS[name])
    assert row is not None
    assert row.name == name


def test_an_unknown_warning_is_kept_as_it_is():
    (fault,) = read("n1:1:1 [0] init.cc:7 NCCL WARN Something new\n").faults
    assert (fault.kind, fault.name, fault.text, fault.hosts, fault.cause) == (
        "warning",
        "unknown",
        "Something new",
        ("n1",),
        "",
    )


def test_a_log_full_of_faults():
    log = read(FAULTS)
    found = {fault.name: fault for fault in log.faults}
    assert list(found) == ["ib-gid-empty", "socket-closed", "call-failed", "watchdog-timeout", "signal-11"]
    assert "local GID" not in found["ib-gid-empty"].text  # shown in 80 signs
    assert found["ib-gid-empty"].where == "a.log:1"  # the second half of the message is on line 2
    assert found["socket-closed"].secondary
    assert found["watchdog-timeout"].ranks == (2,)
    assert log.progress == ((2, 6, 4),)
    assert [(seen.nodes, seen.ranks, seen.errors) for seen in log.ras] == [(32, 256, "OK")]


def test_the_same_fault_is_counted():
    log = read("n1:1:1 [0] x.cc:1 NCCL WARN Call to ibv_open_device failed\n" * 3)
    assert [(fault.name, fault.times) for fault in log.faults] == [("ib-open", 3)]
