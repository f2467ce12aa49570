"""Small logs of our own making, each with traps of real ones."""

from commbench.results.nccl_log import NcclLog, read_logs


def read(*texts: str) -> NcclLog:
    """The record of texts, as files a.log, b.log, …"""
    return read_logs([(f"{'abcdefgh'[number]}.log", text.encode()) for number, text in enumerate(texts)])


def _init(host: str, pid: int, device: int, rank: int, word: str) -> str:
    return (
        f"{host}:{pid}:{pid + 5} [{device}] NCCL INFO ncclCommInitRank comm 0x7f0{rank} rank {rank} nranks 4 "
        f"cudaDev {device} nvmlDev {device + 2} busId {device + 1}b000 commId 0xabc - Init {word}\n"
    )


def modern() -> str:
    """Four ranks on two nodes, 2.20: peers within, GPUDirect RDMA between, one of two NICs used; a tuning table."""
    lines = ["NCCL version 2.20.5+cuda12.4\n"]
    for rank in range(4):
        host, device, pid = ("n1", "n2")[rank // 2], rank % 2, 100 + rank
        head = f"{host}:{pid}:{pid + 5} [{device}] NCCL INFO"
        peer = rank ^ 1
        lines += [
            f"{host}:{pid}:{pid} [{device}] NCCL INFO Bootstrap : Using eth0:10.0.0.{rank // 2 + 1}<0>\n",
            f"{head} NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.{rank // 2 + 1}<0>\n",
            f"{head} Using network IB\n",
            _init(host, pid, device, rank, "START"),
            f"{head} NCCL_NET_GDR_LEVEL set by environment to PHB\n",
            f"{head} NCCL_CROSS_NIC set by environment to 1.\n",
            f"{head} comm 0x7f0{rank} rank {rank} nRanks 4 nNodes 2 localRanks 2 localRank {device} MNNVL 0\n",
            f"{head} Channel 00/02 :    0   1   3   2\n" if rank == 0 else "",
            f"{head} Trees [0] {peer}/-1/-1->{rank}->-1 [1] -1/-1/-1->{rank}->{peer}\n",
            f"{head} Channel 00/0 : {rank}[{device + 2}] -> {peer}[{peer % 2 + 2}] via P2P/CUMEM/read\n",
            f"{head} Channel 01/0 : {rank}[{device + 2}] -> {peer}[{peer % 2 + 2}] via P2P/CUMEM/read\n",
        ]
        if device == 0:
            other = rank ^ 2
            lines += [
                f"{head} Channel 00/0 : {other}[2] -> {rank}[2] [receive] via NET/IB/1/GDRDMA\n",
                f"{head} Channel 00/0 : {rank}[2] -> {other}[2] [send] via NET/IB/1(3)/GDRDMA/Shared\n",
            ]
        lines += [
            f"{head} Connected all rings\n",
            f"{head} 2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer\n",
            _init(host, pid, device, rank, "COMPLETE"),
        ]
    head = "n1:100:105 [0] NCCL INFO "
    return "".join(lines) + "".join(f"{head}{row}\n" for row in TUNING.splitlines())


TUNING = """\
  Algorithm   |                       Tree                    |                       Ring                    |
  Protocol    |          LL |       LL128 |        Simple |          LL |       LL128 |        Simple |
 Max NThreads |         512 |         640 |           512 |         512 |         640 |           256 |
    AllReduce |   9.6/  3.0 |  19.3/ 13.1 |    113.2/ 0.0 |   9.6/  6.0 |  20.5/ 23.0 |    27.6/ 25.0 |
"""


OLD = """\
NCCL version 2.4.8+cuda10.1
a1:7:17 [0] NCCL INFO NCCL_IB_DISABLE set by environment to 1.
a1:7:17 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
a1:7:17 [0] NCCL INFO Trees [0] -1->0->1/-1/-1 [1] 1->0->-1/-1/-1
a1:8:18 [1] NCCL INFO Ring 00 :    0   1
a1:8:18 [1] NCCL INFO Ring 00 : 1[1] -> 2[0] via direct shared memory
a1:7:17 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/IPC
a1:8:18 [1] NCCL INFO Ring 01 : 1 -> 3 [send] via NET/Socket/0
a2:9:19 [1] NCCL INFO Ring 01 : 1 -> 3 [receive] via NET/Socket/0
a1:7:17 [0] NCCL INFO comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 4 - Init COMPLETE
a1:8:18 [1] NCCL INFO comm 0x11 rank 1 nranks 4 cudaDev 1 nvmlDev 5 - Init COMPLETE
a2:9:19 [1] NCCL INFO comm 0x12 rank 3 nranks 4 cudaDev 1 nvmlDev 5 - Init COMPLETE
"""

SHARED_MEMORY = """\
NCCL version 2.10.3+cuda11.4
n1:1:11 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.
n1:1:11 [0] NCCL INFO Channel 00 : 0[1b000] -> 1[3d000] via SHM/direct/direct
n1:2:12 [1] NCCL INFO Channel 00 : 1[3d000] -> 0[1b000] via SHM/direct/direct
n1:1:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE
n1:2:12 [1] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 1 busId 3d000 - Init COMPLETE
"""

RCCL = """\
RCCL version : 2.22.3-develop:1a2b3c
HIP version  : 6.3.42131
m1:5:15 [0] NCCL INFO ncclCommInitRank comm 0x5500 rank 0 nranks 2 cudaDev 0 busId c1000 commId 0x77 - Init START
m1:6:16 [1] NCCL INFO ncclCommInitRank comm 0x5600 rank 1 nranks 2 cudaDev 1 busId c6000 commId 0x77 - Init START
m1:5:15 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 1[c6000] via P2P/IPC comm 0x5500 nRanks 02
m1:6:16 [1] NCCL INFO Channel 00/0 : 1[c6000] -> 0[c1000] via P2P/direct pointer comm 0x5600 nRanks 02

m1:5:15 [0] rccl/src/init.cc:120 NCCL WARN NUMA auto balancing enabled which can lead to variability in performance!
"""

TORN = """\
n1:100:105 [0] NCCL INFO Using network IB
n2:200:205 [1] NCCL INFO Using network IB
n1:100:105 [0] NCCL INFO Connected all rings
n1:100:105 [0] NCCL INFO Connected all n2:200:205 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read
something else
rings
n2:200:[rank1]: a traceback
n1:100:105 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/1
205 [1] NCCL INFO Channel 01/0 : 1[1] -> 0[0] via P2P/CUMEM/read
n1:100:105 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] [send] via NET/IB/1"""

FAULTS = """\
[2025-11-04 02:12:19] n1:1:11 [0] misc/ibvwrap.cc:380 (wrap_modify_qp) NCCL WARN Call to ibv_modify_qp failed with 61
No data available, on dev roce0:1, curr state INIT, next state RTR, local GID index 3, local GID ::

n1:1:11 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n2<41109>
n1: Test NCCL failure common.cu:908 'remote process exited or there was a network error / '
[rank2]:[E ProcessGroupNCCL.cpp:563] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, \
OpType=BROADCAST, NumelIn=800, NumelOut=800, Timeout(ms)=300000) ran for 300013 milliseconds before timing out.
[PG 0 Rank 2] Timeout at NCCL work: 5, last enqueued NCCL work: 6, last completed \
NCCL work: 4.
    0         1        32         8       256       256   RUNNING      OK
[n1:1] Signal: Segmentation fault (11)
"""

NEWEST = """\
n1:1:11 [0] NCCL INFO NCCL version 2.32.3+cuda12.9
n1:1:11 [0] NCCL INFO NET/IB: NCCL_IB_RAIL_POLICY set by environment to auto
n1:1:11 [0] NCCL INFO [Rank 0] ncclCommInitRank comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 2 busId 1b000 commId 0xab \
- Init START
n1:1:11 [0] NCCL INFO ncclCommSplit comm 0x20 rank 0 nranks 2 cudaDev 0 nvmlDev 2 busId 1b000 parent 0x10 splitCount 1 \
color 0 key 0- Init START
n1:1:11 [0] NCCL INFO ncclTopoGetCpuAffinity: Affinity for GPU 2 is 0-23. (GPU affinity = 0-23 ; CPU affinity = 0-95).
n1:1:11 [0] NCCL INFO NET/IB: ncclIbConnectImpl: NCCL Dev 1 IbDev 0 Port 1 qp_num 199 mtu 3 GID 3 (0/A01A) ctsFifo=0x1
n1:1:11 [0] NCCL INFO Channel 00/0 : 1[3] -> 0[2] [receive] via NET/IB/1/GDRDMA(PCI)/flush=Always

n1:1:11 [0] param.cc:9 (ncclLoadParam) NCCL ATTN Invalid value yes for NCCL_IB_DISABLE, using default 0.
n1:1 NCCL DIAG [INFO] p2p: only 54/56 GPU-to-GPU peer accesses passed verification
"""

SAMPLES = {
    "newest": NEWEST,
    "modern": modern(),
    "old": OLD,
    "shared-memory": SHARED_MEMORY,
    "rccl": RCCL,
    "torn": TORN,
    "faults": FAULTS,
}
