"""What newer releases write otherwise, each by the format strings of its source or its library."""

import pytest

from tests.unit.results.nccl_log.samples import modern, read

HEAD = "n1:1:1 [0] NCCL INFO "


@pytest.mark.parametrize(
    ("way", "label"),
    [
        ("NET/IB/1/GDRDMA(PCI)/Shared/flush=Always", "NET/IB/1/GDRDMA"),  # 2.31: how a receiver flushes
        ("NET/IB/1/flush=None", "NET/IB/1"),
        ("SHM/direct", "SHM"),  # 2.29: one word for both ends
        ("P2P/MNNVL/read", "P2P/MNNVL"),
        ("P2P/indirect/3[3]", "P2P/indirect"),
    ],
)
def test_transports(way, label):
    (connection,) = read(f"{HEAD}Channel 00/0 : 0[0] -> 1[1] [receive] via {way}\n").connections
    assert connection.transport.label == label


@pytest.mark.parametrize("way", ["SHM/direct", "NET/IB/1/flush=None", "NET/IB/1/GDRDMA/flush=Always"])
def test_a_cut_transport_is_whole(way):
    """The log ends behind it: its own end shows that nothing of it is missing."""
    log = read(f"{HEAD}Channel 00/0 : 0[0] -> 1[1] [receive] via {way}")
    assert [one.transport.label for one in log.connections] == [way.partition("/flush")[0].replace("SHM/direct", "SHM")]
    assert log.counts.lost == 0


@pytest.mark.parametrize(
    "text",
    [
        "NET/IB: NCCL Dev 1 IbDev 0 Port 1 qpn 199 mtu 3 GID 3 (0/A01A)",  # to 2.28
        "NET/IB: ncclIbConnectImpl: NCCL Dev 1 IbDev 0 Port 1 qp_num 199 mtu 3 GID 3 (0/A01A) ctsFifoRkey=0x1",  # 2.29
        "NET/IB: ncclIbConnectImpl: NCCL MergedDev 1 IbDev 0 Port 1 qp_num 199 mtu 3 GID 3 (0/A01A) ctsFifoRkey=0x1",
    ],
)
def test_the_gid_of_a_nic(text):
    assert [(nic.index, nic.gid) for nic in read(f"{HEAD}{text}\n").nics] == [(1, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "Setting affinity for GPU 3 to ffff",
        "ncclTopoGetCpuAffinity: Affinity for GPU 3 is 0-23. (GPU affinity = 0-23 ; CPU affinity = 0-95).",  # 2.28
    ],
)
def test_the_gpu_by_its_affinity(text):
    log = read(f"{HEAD}{text}\n{HEAD}Trees [0] 1/-1/-1->0->-1\n")
    assert log.ranks[0].gpu == 3


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("NET/IB: NCCL_IB_RAIL_POLICY set by environment to auto", ("NCCL_IB_RAIL_POLICY", "auto")),  # 2.31
        (
            "NCCL_SYM_KERNEL set to LL. At largest grouped work size 64 Bytes, kernel will not exercise TMA paths.",
            ("NCCL_SYM_KERNEL", "LL"),  # 2.32
        ),
        ("TOPO/NET : Force-fusing NICs using NCCL_NET_FORCE_MERGE=a,b", ("NCCL_NET_FORCE_MERGE", "a,b")),
        ("NCCL_NTHREADS set by environment to 64.", ("NCCL_NTHREADS", "64")),
    ],
)
def test_settings(text, setting):
    assert [(seen.name, seen.value) for seen in read(f"{HEAD}{text}\n").settings] == [setting]


def test_gpudirect_of_a_plugin_is_told():
    text = "NET/AWS Libfabric : GPU Direct RDMA Disabled for HCA 0 'rdmap0'"
    assert read(f"{HEAD}{text}\n").remarks == (("n1", text),)


def split(rank: int, size: int, color: int, word: str, *, comm_id: str = "") -> str:
    return (
        f"{HEAD}ncclCommSplit comm 0x9{color}{rank} rank {rank} nranks {size} cudaDev 0 nvmlDev 0 busId 1b000{comm_id} "
        f"parent 0x10 splitCount 1 color {color} key 0 - Init {word}\n"
    )


WHOLE = f"{HEAD}ncclCommInitRank comm 0x10 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START\n"


def test_parts_of_a_communicator_have_no_id_to_2_30():
    """Two of two ranks: by size alone they were one. Both processes here are the same, which no job is."""
    log = read(WHOLE + "".join(split(0, 2, color, word) for color in (0, 1) for word in ("START", "COMPLETE")))
    assert [(comm.key, comm.size, comm.completed) for comm in log.comms] == [
        ("0xabc", 4, ()),
        ("0xabc/1.0", 2, (0,)),
        ("0xabc/1.1", 2, (0,)),
    ]


def test_the_end_of_a_part_is_no_other_communicator():
    """Only then does it say its hash."""
    end = f"{HEAD}comm 0x900 rank 0 nranks 2 cudaDev 0 busId 1b000 commId 0x777 - Destroy COMPLETE\n"
    log = read(WHOLE + split(0, 2, 0, "START") + split(0, 2, 0, "COMPLETE") + end)
    assert [comm.key for comm in log.comms] == ["0xabc", "0xabc/1.0"]


def test_parts_have_an_id_from_2_31():
    log = read(WHOLE + split(0, 2, 0, "START", comm_id=" commId 0x55"))
    assert [comm.key for comm in log.comms] == ["0xabc", "0x55"]


def test_an_init_that_says_its_rank_first():
    """2.30 and newer."""
    log = read(WHOLE.replace("ncclCommInitRank ", "[Rank 0] ncclCommInitRank "))
    assert [(comm.key, comm.started) for comm in log.comms] == [("0xabc", (0,))]


def test_a_column_of_the_tuning_table_that_is_new_shifts_none():
    rows = (
        "  Algorithm   |           NewOne                |                       Ring                    |",
        "  Protocol    |          LL |       LL128 |        Simple |          LL |       LL128 |        Simple |",
        "    AllReduce |   1.0/  1.0 |   1.0/  1.0 |     1.0/  1.0 |   9.6/  6.0 |  20.5/ 23.0 |    27.6/ 25.0 |",
    )
    cells = read("".join(f"{HEAD}{row}\n" for row in rows)).tuning
    assert [(cell.algorithm, cell.protocol) for cell in cells if cell.bytes_per_second == 25e9] == [("Ring", "Simple")]


def test_the_heads_of_2_30_name_the_function():
    log = read(modern() + "n1:100:105 [0] init.cc:2570 (ncclCommInitRank) NCCL WARN Something new\n")
    assert (log.faults[0].text, log.faults[0].hosts, log.faults[0].source) == (
        "Something new",
        ("n1",),
        "init.cc:2570",
    )
