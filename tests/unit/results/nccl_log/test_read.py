"""What is read out of a log, release by release."""

import pytest

from commbench.errors import CommbenchError
from commbench.results.nccl_log.channels import bus_id, read_transport
from commbench.results.nccl_log.link_class import link_class, pair_classes
from commbench.results.nccl_log.records import Transport
from tests.unit.results.nccl_log.samples import OLD, RCCL, SHARED_MEMORY, modern, read


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("P2P/IPC", "P2P/IPC"),
        ("P2P/IPC/read", "P2P/IPC"),
        ("P2P/direct pointer", "P2P/direct"),
        ("P2P/common device", "P2P/same GPU"),
        ("P2P/CUMEM/read", "P2P/CUMEM"),
        ("P2P/MNNVL", "P2P/MNNVL"),
        ("P2P/indirect/3[3]", "P2P/indirect"),
        ("direct shared memory", "SHM"),
        ("SHM/direct/direct", "SHM"),
        ("SHM/direct", "SHM"),
        ("NET/Socket/0", "NET/Socket/0"),
        ("NET/IB/2/GDRDMA", "NET/IB/2/GDRDMA"),
        ("NET/IB/2/GDRDMA(PCI)", "NET/IB/2/GDRDMA"),
        ("NET/IB/2(5)/GDRDMA/Shared", "NET/IB/2(5)/GDRDMA"),
        ("NET/AWS Libfabric/1/GDRDMA", "NET/AWS Libfabric/1/GDRDMA"),
        ("NET/IBext_v8/0/Shared", "NET/IBext_v8/0"),
    ],
)
def test_every_spelling_of_a_transport(text, label):
    transport = read_transport(text)
    assert transport is not None
    assert transport.label == label


def test_what_is_no_transport():
    assert read_transport("the post") is None


@pytest.mark.parametrize(
    ("text", "address"), [("c2000", "0000:c2:00.0"), ("1b0", "0000:00:1b.0"), ("147000", "0001:47:00.0")]
)
def test_a_pci_address_without_its_signs(text, address):
    assert bus_id(text) == address


def test_a_modern_log():
    log = read(modern())
    assert (log.library, log.versions[0][0]) == ("NCCL", "2.20.5+cuda12.4")
    (comm,) = log.comms
    assert (comm.key, comm.size, comm.nodes) == ("0xabc", 4, 2)
    assert comm.started == comm.completed == (0, 1, 2, 3)
    assert [(seen.rank, seen.host, seen.pid, seen.cuda, seen.gpu, seen.bus_id) for seen in log.ranks][1] == (
        1, "n1", 101, 1, 3, "0000:2b:00.0",
    )  # fmt: skip
    found = {(one.source, one.target, one.channel, one.transport.label, one.end) for one in log.connections}
    assert len(found) == 12
    assert (0, 1, 1, "P2P/CUMEM", "send") in found
    assert (0, 2, 0, "NET/IB/1(3)/GDRDMA", "send") in found
    assert (0, 2, 0, "NET/IB/1/GDRDMA", "receive") in found
    assert [nic.name for nic in log.nics if nic.host == "n2"] == ["mlx5_0", "mlx5_1"]
    assert log.rings[0].ranks == (0, 1, 3, 2)
    assert [(tree.rank, tree.parent, tree.children) for tree in log.trees if tree.channel == 1][:2] == [
        (0, 1, ()),
        (1, 0, ()),
    ]
    assert (log.channels[0].collective, log.channels[0].nvls, log.channels[0].p2p_per_peer) == (2, 0, 2)
    assert {(seen.name, seen.value, seen.hosts) for seen in log.settings} == {
        ("NCCL_NET_GDR_LEVEL", "PHB", ("n1", "n2")),
        ("NCCL_CROSS_NIC", "1", ("n1", "n2")),
    }
    assert log.counts.lost == 0


def test_the_tuning_table_in_both_forms():
    new = {(cell.algorithm, cell.protocol): cell for cell in read(modern()).tuning}
    assert new["Ring", "Simple"].seconds == pytest.approx(27.6e-6)
    assert new["Ring", "Simple"].bytes_per_second == pytest.approx(25e9)
    assert new["Tree", "Simple"].bytes_per_second == 0
    old = read(
        "n1:1:1 [0] NCCL INFO Latency/AlgBw |    Tree/    LL |    Ring/Simple |\n"
        "n1:1:1 [0] NCCL INFO  Max NThreads |            512 |            256 |\n"
        "n1:1:1 [0] NCCL INFO     AllReduce |    9.6/  3.0|   27.6/ 25.0|\n"
    ).tuning
    assert [(cell.algorithm, cell.protocol, cell.bytes_per_second) for cell in old] == [
        ("Tree", "LL", 3e9),
        ("Ring", "Simple", 25e9),
    ]


def test_an_old_log_names_its_communicator_after_its_channels():
    log = read(OLD)
    assert [(comm.key, comm.size, comm.completed) for comm in log.comms] == [("4 ranks", 4, (0, 1, 3))]
    assert {one.comm for one in log.connections} == {"4 ranks"}
    assert [one.transport.label for one in log.connections] == ["SHM", "P2P/IPC", "NET/Socket/0", "NET/Socket/0"]
    assert (log.trees[0].parent, log.trees[0].children) == (None, (1,))
    assert log.rank("4 ranks", 0).gpu == 4  # by nvmlDev; the brackets are CUDA's own index
    assert log.rank("4 ranks", 2).host == ""


def test_a_tree_of_two_torn_lines_is_left_out():
    log = read("n1:1:1 [0] NCCL INFO Trees [0] 2/-1/-1->3->2/-1/-1 [1] 1/-1/-1->3->-1\n")
    assert [(tree.channel, tree.rank, tree.parent, tree.children) for tree in log.trees] == [(1, 3, None, (1,))]


def test_a_version_in_digits_that_are_no_numbers():
    log = read("NCCL version 2.²\nn1:1:1 [0] NCCL INFO Channel 00/0 : 0[1] -> 1[2] via P2P/IPC\n")
    assert [version for version, _ in log.versions] == ["2.²"]
    assert log.connections[0].transport.label == "P2P/IPC"


def test_brackets_are_pci_addresses_from_2_6_to_2_17():
    log = read(SHARED_MEMORY)
    assert [seen.bus_id for seen in log.ranks] == ["0000:1b:00.0", "0000:3d:00.0"]
    assert [seen.gpu for seen in log.ranks] == [None, None]


def test_rccl():
    log = read(RCCL)
    assert (log.library, log.versions[0][0]) == ("RCCL", "2.22.3-develop")
    assert [one.transport.label for one in log.connections] == ["P2P/IPC", "P2P/direct"]
    assert log.faults[0].name == "rccl-numa-balancing"
    assert log.rank("0x77", 1).bus_id == "0000:c6:00.0"


def test_two_communicators_of_one_process_are_told_apart():
    text = modern() + modern().replace("0xabc", "0xdef").replace("P2P/CUMEM/read", "SHM/direct/direct").replace(
        "0x7f0", "0x8f0"
    )
    log = read(text)
    kinds = {comm: {one.transport.kind for one in log.connections if one.comm == comm} for comm in ("0xabc", "0xdef")}
    assert kinds == {"0xabc": {"P2P", "NET"}, "0xdef": {"SHM", "NET"}}


def test_two_old_communicators_of_one_process_are_told_apart():
    second = OLD.replace("P2P/IPC", "direct shared memory").replace("0x1", "0x2")
    log = read(OLD + second)
    assert [comm.key for comm in log.comms] == ["4 ranks", "4 ranks, no. 2"]
    labels = {one.comm: one.transport.label for one in log.connections if (one.source, one.target) == (0, 1)}
    assert labels == {"4 ranks": "P2P/IPC", "4 ranks, no. 2": "SHM"}


def test_one_file_for_each_process():
    lines = modern().splitlines(keepends=True)
    files = ["".join(line for line in lines if line.startswith(host)) for host in ("n1", "n2")]
    log = read(*files)
    assert log.sources == ("a.log", "b.log")
    assert len(log.connections) == 12
    assert {one.where.partition(":")[0] for one in log.connections} == {"a.log", "b.log"}


def test_merged_and_virtual_nics():
    log = read(
        "n1:1:1 [0] NCCL INFO NET/IB : Using [0]={[0] rocep1:1/RoCE, [1] rocep1:2/RoCE} [1]mlx5_2:1/IB; "
        "OOB eth0:10.0.0.1<0>\n"
        "n1:1:1 [0] NCCL INFO NET/IB : Made virtual device [2] name=mlx5_1+mlx5_3 speed=200000 ndevs=2\n"
        "n1:1:1 [0] NCCL INFO NET/IB: NCCL Dev 1 IbDev 0 Port 1 qpn 199 mtu 3 query_ece={supported=1} GID 3 (0/A01A)\n"
    )
    assert [(nic.index, nic.name, nic.layer, nic.members) for nic in log.nics] == [
        (0, "rocep1:1+rocep1:2", "RoCE", ("rocep1:1", "rocep1:2")),
        (1, "mlx5_2", "IB", ()),
        (2, "mlx5_1+mlx5_3", "", ("mlx5_1", "mlx5_3")),
    ]
    assert log.nics[1].gid == 3
    assert log.nics[2].bytes_per_second == 25e9


def test_the_gpu_behind_visible_devices_is_in_the_line_about_affinity():
    log = read(
        "NCCL version 2.8.2+cuda11.1\n"
        "n1:1:2 [0] NCCL INFO Setting affinity for GPU 2 to ff\n"
        "n1:1:3 [1] NCCL INFO Setting affinity for GPU 3 to ff\n"
        "n1:1:3 [1] NCCL INFO Channel 00 : 1[c2000] -> 0[c1000] via P2P/direct pointer\n"
    )
    assert log.ranks[1].gpu == 3


@pytest.mark.parametrize("text", ["", "hello\n", "INFO Channel 00 is on\n", "2024-01-01 [0] INFO app: started\n"])
def test_what_is_no_log_is_refused(text):
    with pytest.raises(CommbenchError, match="not one message of NCCL"):
        read(text)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ((0, 1), "pix"),
        ((0, 1, 2, 3), "net"),
        ((0, 2), "net"),
        ((1, 3), "unknown"),
        ((0, 1, 9), "unknown"),
        ((0,), "unknown"),
    ],
)
def test_the_link_class_of_a_group(ranks, expected):
    assert link_class(pair_classes(read(modern()), "0xabc", lambda one, other: "pix"), ranks) == expected


def test_a_link_class_without_the_wiring():
    log = read(modern())
    assert link_class(pair_classes(log, "0xabc"), (0, 1)) == "unknown"
    graph = "n1:100:105 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 2, bw 20.0/20.0, type NVL/PIX, sameChannels 1\n"
    assert link_class(pair_classes(read(modern() + graph), "0xabc"), (0, 1)) == "nvlink"


def test_shared_memory_crosses_the_host_whatever_joins_the_gpus():
    log = read(SHARED_MEMORY)
    assert link_class(pair_classes(log, "2 ranks", lambda one, other: "nvlink"), (0, 1)) == "phb"
    assert link_class(pair_classes(log, "2 ranks", lambda one, other: "sys"), (0, 1)) == "sys"
    assert Transport("SHM").label == "SHM"
