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
    "ib-link-types": "NET/IB : Attempted to connect incompatible devices: [0]a:1/IB and [0]b:1/RoCE. Try selecting",
    "ib-open": "NET/IB : Unable to open device mlx5_bond_0",
    "ib-memlock": "Call to ibv_create_qp failed with error Cannot allocate memory",
    "ib-register-gpu": "Call to ibv_reg_mr_iova2 failed with error Bad address",
    "ib-flushed": "NET/IB : Got completion from peer 10.0.0.1<5> with error 5, opcode 0, len 0, vendor err 249",
    "ib-retry-exceeded": "NET/IB: Got completion from peer 10.0.0.1<5> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=x",
    "ib-receiver-not-ready": "NET/IB : Got completion with error 13, opcode 0",
    "ib-access": "NET/IB : Got completion with error 10, opcode 0",
    "ib-device-failed": "NET/IB: Device 1 marked as failed. Initiating recovery? yes (send comm=0x1)",
    "ib-port-event": "NET/IB : mlx5_0:1 Got non-fatal async event: GID table change(18)",
    "nic-fused-across-numa": "Fusing NET devices from different NUMA domains is not supported.",
    "nic-no-pci-path": "Could not find real path of veth0 (/sys/class/net/veth0/device)",
    "net-not-found": "Error: network AWS Libfabric not found.",
    "net-no-plugin": "Failed to initialize any NET plugin",
    "nic-counts-differ": "Detected mixed local Net device counts across ranks (min 7, max 8). Set NCCL_IGNORE",
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
    "nvlink-degraded": "MNNVL busId 0x1b000 NVLink fabric health reports DEGRADED_BANDWIDTH (healthMask 0x1)",
    "nvls-bind-retried": "NVLS Multicast bind of size 4096 at MC group 1 offset 0 dev 0 failed transiently: CUDA",
    "nvls-bind": "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 2 'out of memory'.",
    "p2p-nvlink-disabled": "P2P is disabled between NVLINK connected GPUs 1 and 0.",
    "cuda-memory": "Cuda failure 2 'out of memory'",
    "cuda-peer-resources": "Cuda failure 'peer mapping resources exhausted'",
    "cuda-driver": "Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'",
    "cuda-failure": "Cuda failure 'an illegal memory access was encountered'",
    "files-or-threads": "Call to socket failed : Too many open files",
    "library-too-old": "NCCL library is too old. This application was compiled with NCCL version 2.32.3, but",
    "diagnosis-p2p": "[INFO] p2p: only 54/56 GPU-to-GPU peer accesses passed verification",
    "setting-invalid": "Invalid value yes for NCCL_IB_DISABLE, using default 0.",
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
    assert "local GID index 3" in found["ib-gid-empty"].text  # of the second half of the message, on line 2
    assert found["ib-gid-empty"].where == "a.log:1"
    assert found["socket-closed"].secondary
    assert found["watchdog-timeout"].ranks == (2,)
    assert log.progress == ((2, 6, 4),)
    assert [(seen.nodes, seen.ranks, seen.errors) for seen in log.ras] == [(32, 256, "OK")]


def test_the_same_fault_is_counted():
    log = read("n1:1:1 [0] x.cc:1 NCCL WARN Call to ibv_open_device failed\n" * 3)
    assert [(fault.name, fault.times) for fault in log.faults] == [("ib-open", 3)]


def test_the_end_of_a_long_warning_is_kept():
    text = "NET/IB: Got completion from peer 10.0.0.1<4567> with status=IBV_WC_WR_FLUSH_ERR(5) opcode=X vendor_err=249"
    (fault,) = read(f"n1:1:1 [0] transport/net_ib/p2p.cc:7 (ncclIbTest) NCCL WARN {text}\n").faults
    assert (fault.name, fault.text[-14:]) == ("ib-flushed", "vendor_err=249")


def test_notices_of_2_32_are_warnings():
    """A level of its own between WARN and INFO, with a head like that of WARN."""
    log = read(
        "n1:1:1 [0] NCCL INFO Using network IB\n"
        "\n"
        "[2026-01-02 03:04:05] n1:1:1 [0] init.cc:9 (fillInfo) NCCL ATTN MNNVL busId 0x1b000 NVLink fabric health "
        "reports DEGRADED_BANDWIDTH (healthMask 0x1)\n"
        "n1:1:1 [0] param.cc:9 (ncclLoadParam) NCCL ATTN Invalid value yes for NCCL_IB_DISABLE, using default 0.\n"
        "n1:1:1 [0] NCCL INFO Channel 00/0 : n1:1:1 [0] x.cc:9 (f) NCCL ATTN Peer e0:1<2> closed before hello\n"
        "n1:1:1 [0] init.cc:9 (f) NCCL ATTN Mismatched NCCL git versions detected: rank 0 fingerprint 0x1, rank 1 0x2\n"
    )
    assert [(fault.name, fault.kind, fault.where) for fault in log.faults] == [
        ("nvlink-degraded", "warning", "a.log:3"),
        ("setting-invalid", "warning", "a.log:4"),
        ("unknown", "warning", "a.log:5"),
        ("bootstrap-mismatch", "warning", "a.log:6"),
    ]
    assert log.counts.lost == 1  # what the last notice has cut


def test_what_nccl_diagnoses_itself():
    """Its lines have no device, and most tell that all is well: none is a torn head of another message."""
    log = read(
        "n1:1:1 [0] NCCL INFO Using network IB\n"
        "n1:1 NCCL DIAG === NCCL Diagnostics ===\n"
        "n1:1 NCCL DIAG [OK] net bw: skipped (single host or no network transport)\n"
        "n1:1 NCCL DIAG [INFO] p2p: only 54/56 GPU-to-GPU peer accesses passed verification\n"
    )
    assert [(fault.name, fault.kind, fault.hosts) for fault in log.faults] == [("diagnosis-p2p", "failure", ("n1",))]
    assert log.counts.lost == 0


def test_a_crash_names_the_call_of_nccl():
    log = read(
        "n1:1:1 [0] NCCL INFO Using network IB\n"
        "[n1:1] Signal: Segmentation fault (11)\n"
        "[n1:1] [ 0] /lib/libc.so.6(+0x45330)[0x7f]\n"
        "[n1:1] [ 1] /lib/libnccl.so.2(+0x14e63f)[0x7f]\n"
        "[n1:1] [ 2] /lib/libnccl.so.2(pncclCommInitRank+0x1e2)[0x7f]\n"
        "[n1:1] [ 3] /lib/libnccl.so.2(ncclGroupEnd+0x2)[0x7f]\n"
        "n1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
    )
    assert [fault.text for fault in log.faults] == ["[n1:1] Signal: Segmentation fault (11), in ncclCommInitRank"]
    assert log.nics[0].name == "mlx5_0"
