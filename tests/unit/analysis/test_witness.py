"""What a debug log says went wrong."""

from dataclasses import replace

import pytest

from commbench.analysis.witness import judge, name_ranks
from commbench.analysis.witness_topology import gpu_of, judge_against, judge_nodes
from commbench.results.finding import Finding
from commbench.topology import read_topology
from tests.unit.results.nccl_log.samples import FAULTS, OLD, SHARED_MEMORY, TORN, modern, read
from tests.unit.topology.make import MATRIX

TOPOLOGY = read_topology(MATRIX.encode(), "topo.txt")
HEAD = "n1:1:11 [0] NCCL INFO "


def found(*texts: str) -> dict[str, Finding]:
    return {finding.rule: finding for finding in judge(read(*texts))}


def test_a_healthy_log_has_no_complaint():
    assert [finding for finding in judge(read(modern())) if finding.verdict not in ("ok", "skip")] == []
    assert "NIC 1; 0 (mlx5_0) found and not used" in found(modern())["LOG-NICS-IDLE"].observed


def test_faults_with_a_cause_come_before_those_that_follow():
    findings = judge(read(FAULTS))
    assert [finding.rule for finding in findings[:3]] == ["LOG-IB-GID-EMPTY", "LOG-WATCHDOG-TIMEOUT", "LOG-SIGNAL-11"]
    rules = {finding.rule: finding for finding in findings}
    assert rules["LOG-SOCKET-CLOSED"].verdict == "warn"
    assert rules["LOG-IB-GID-EMPTY"].verdict == "fail"
    assert "NCCL_IB_GID_INDEX" in rules["LOG-IB-GID-EMPTY"].action


def test_a_failure_without_its_cause_fails_all_the_same():
    rules = found("n1:1:1 [0] ib.c:7 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<5> with error 5, opcode 0\n")
    assert rules["LOG-IB-FLUSHED"].verdict == "fail"
    assert rules["LOG-FIRST-FAILURE"].verdict == "skip"


def test_ras_that_is_content_is_no_sign_of_health():
    finding = found(FAULTS)["LOG-RAS"]
    assert finding.verdict == "skip"
    assert "not a sign of health" in finding.action


def test_who_is_late_where_others_wait():
    waits = "[rank{0}]: [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, \
NumelIn=8, NumelOut=8, Timeout(ms)=1000) ran\n"
    text = modern() + "".join(waits.format(rank) for rank in (0, 1, 3))
    assert found(text)["LOG-WHO-IS-LATE"].subject == "rank 2"


def test_who_is_behind():
    done = "[PG 0 Rank {0}] Timeout at NCCL work: 5, last enqueued NCCL work: 6, last completed NCCL work: {1}.\n"
    text = FAULTS + done.format(1, 4) + done.format(7, 3)
    assert (found(text)["LOG-WHO-IS-BEHIND"].subject, found(text)["LOG-WHO-IS-BEHIND"].verdict) == ("rank 7", "warn")


def test_an_init_that_never_ends():
    text = "".join(
        line for line in modern().splitlines(keepends=True) if "rank 2 nranks" not in line or "START" in line
    )
    assert found(text)["LOG-INIT-OPEN"].subject == "rank 2"


def test_old_ranks_that_connect_and_are_not_ready():
    """To 2.16 nothing says that an init begins."""
    text = (
        f"{HEAD}Ring 00 : 1[0] -> 2[0] via direct shared memory\n"
        "n1:2:2 [0] NCCL INFO Ring 00 : 0[0] -> 1[0] via direct shared memory\n"
        "n1:2:2 [0] NCCL INFO comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 5 - Init COMPLETE\n"
    )
    finding = found(text)["LOG-INIT-OPEN"]
    assert (finding.subject, finding.verdict) == ("rank 1", "warn")
    assert finding.observed == "connect, and do not say that they are ready, as 1 of 4 do"


def test_a_log_that_ends_after_peers_were_chosen():
    text = f"{HEAD}Channel 00/02 :    0   1\n{HEAD}Channel 00 : 1[c2000] -> 0[c1000] via P2P/direct pointer\n"
    finding = found(text)["LOG-ENDS-CONNECTING"]
    assert "P2P/direct" in finding.observed
    assert "NCCL_P2P_DISABLE=1" in finding.action


def test_ranks_of_one_node_over_the_network():
    text = (
        "#  Rank  0 Group  0 Pid  1 on n1 device  0 [0x00] Tesla T4\n"
        "#  Rank  1 Group  0 Pid  1 on n1 device  1 [0x00] Tesla T4\n"
        f"{HEAD}NCCL_SHM_DISABLE set by environment to 1.\n"
        f"{HEAD}Channel 00 : 0[1b0] -> 1[1c0] [send] via NET/Socket/0\n"
    )
    finding = found(text)["LOG-INTRA-NET"]
    assert finding.subject == "ranks 0 → 1"
    assert finding.observed == "on one node, and yet over NET/Socket/0: NCCL_SHM_DISABLE=1 is set"


def test_shared_memory_because_peers_are_switched_off():
    assert "NCCL_P2P_DISABLE=1" in found(SHARED_MEMORY)["LOG-INTRA-SHM"].observed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_DISABLE=1 is set"),
        ("NET/IB : No device found.", "no RDMA device was found"),
        ("nothing", "the log does not say why"),
    ],
)
def test_sockets_and_why(text, reason):
    assert reason in found(f"{HEAD}{text}\n{HEAD}Using network Socket\n")["LOG-SOCKET"].observed


def test_sockets_after_a_device_that_could_not_be_opened():
    text = f"x.cc:1 NCCL WARN Call to ibv_open_device failed\n{HEAD}NET/IB : No device found.\n"
    text += f"{HEAD}Using network Socket\n"
    assert "could not be opened" in found(text)["LOG-SOCKET"].observed


def test_sockets_carry_nothing_on_one_node():
    text = SHARED_MEMORY + f"{HEAD}Using network Socket\n"
    assert found(text)["LOG-SOCKET"].verdict == "ok"


def test_no_gpudirect_and_what_nccl_says_of_it():
    text = modern().replace("/GDRDMA", "") + f"{HEAD}NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
    finding = found(text)["LOG-NO-GDR"]
    assert "Disabled for HCA 0" in finding.observed
    assert finding.verdict == "warn"


def test_interfaces_that_do_not_reach_others():
    text = f"{HEAD}NET/Socket : Using [0]e0:10.0.0.1<0> [1]e1:10.0.0.1<0> [2]virbr0:192.168.122.1<0>\n"
    rules = found(text)
    assert rules["LOG-INTERFACE-INNER"].subject == "virbr0"
    assert rules["LOG-ADDRESS-TWICE"].subject == "e0, e1"


def test_an_address_that_is_none_is_said_and_not_tripped_over():
    text = "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eno1:101.262.0.9<0>\n"
    assert found(text)["LOG-ADDRESS"].verdict == "skip"


def test_versions_and_settings_that_differ():
    other = (
        modern()
        .replace("2.20.5", "2.21.5")
        .replace("CROSS_NIC set by environment to 1.", "CROSS_NIC set by environment to 0.")
    )
    rules = found(modern(), other.replace("n1:", "n3:").replace("n2:", "n4:").replace("0xabc", "0xdef"))
    assert rules["LOG-VERSIONS"].verdict == "fail"
    assert rules["LOG-SETTING-DIFFERS"].subject == "NCCL_CROSS_NIC"


def test_processes_that_do_not_communicate():
    line = "n{0}:{0}:1{0} [0] NCCL INFO comm 0x{0} rank 0 nranks 1 cudaDev 0 busId 1000 commId 0x{0} - Init COMPLETE\n"
    assert found(line.format(1) + line.format(2))["LOG-NOT-TOGETHER"].verdict == "fail"


def test_several_runs_in_one_log():
    line = "n1:{0}:1{0} [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
    assert found(line.format(1) + line.format(2))["LOG-SEVERAL-JOBS"].verdict == "skip"


def test_several_runs_of_nccl_tests():
    line = "# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20\n"
    assert found(modern() + line * 2)["LOG-SEVERAL-RUNS"].observed.startswith("2 runs")
    assert "LOG-SEVERAL-RUNS" not in found(modern() + line)


def test_what_is_lost_is_counted_with_its_lines():
    assert "lines 10" in found(TORN)["LOG-LOST"].observed


def test_ranks_in_words():
    assert name_ranks([3]) == "rank 3"
    assert name_ranks(range(12)) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 4 more"


ON_GPUS = """\
NCCL version 2.20.5+cuda12.4
{extra}n1:1:11 [0] NCCL INFO comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 2 busId 1b000 commId 0x9 - Init START
n1:2:12 [1] NCCL INFO comm 0x2 rank 1 nranks 2 cudaDev 1 nvmlDev 3 busId 1c000 commId 0x9 - Init START
n1:1:11 [0] NCCL INFO Channel 00 : 0[2] -> 1[3] via {way}
"""


def test_shared_memory_although_nvlink_connects():
    text = ON_GPUS.format(extra=f"{HEAD}NCCL_P2P_DISABLE set by environment to 1.\n", way="SHM/direct/direct")
    (finding,) = judge_against(read(text), TOPOLOGY)
    assert (finding.rule, finding.subject, finding.verdict) == ("LOG-UNEXPECTED-PATH", "GPU 2 → GPU 3", "warn")
    assert finding.observed == "went over SHM although NVLink connects them: NCCL_P2P_DISABLE=1 is set"
    assert finding.action == "unset NCCL_P2P_DISABLE"


@pytest.mark.parametrize(
    ("remark", "why"),
    [
        ("P2P is disabled between connected GPUs 1 and 0.", "NCCL says: P2P is disabled"),
        ("NCCL_P2P_LEVEL set by environment to LOC", "NCCL_P2P_LEVEL=LOC is set"),
        ("nothing", "the log does not say why"),
    ],
)
def test_other_reasons(remark, why):
    (finding,) = judge_against(read(ON_GPUS.format(extra=f"{HEAD}{remark}\n", way="SHM/direct/direct")), TOPOLOGY)
    assert why in finding.observed


def test_what_was_expected_is_no_finding():
    assert judge_against(read(ON_GPUS.format(extra="", way="P2P/CUMEM/read")), TOPOLOGY) == ()


def test_a_far_nic_and_one_that_is_not_listed():
    near, far = (nic.name for nic in TOPOLOGY.nics)
    nics = f"{HEAD}NET/IB : Using [0]{near}:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
    text = (
        ON_GPUS.format(extra=nics, way="P2P/CUMEM/read")
        + f"{HEAD}Channel 00/0 : 0[2] -> 2[0] [send] via NET/IB/0/GDRDMA\n"
    )
    rules = {finding.rule: finding for finding in judge_against(read(text.replace("nranks 2", "nranks 4")), TOPOLOGY)}
    assert rules["LOG-FAR-NIC"].observed == f"used {near}, which is sys away"
    assert rules["LOG-NIC-NOT-LISTED"].subject == far


def test_a_near_nic_without_gpudirect():
    _, near = (nic.name for nic in TOPOLOGY.nics)
    nics = f"{HEAD}NET/IB : Using [0]{near}:1/IB [RO]; OOB eth0:10.0.0.1<0>\n"
    text = ON_GPUS.format(extra=nics, way="P2P/CUMEM/read") + f"{HEAD}Channel 00/0 : 0[2] -> 2[0] [send] via NET/IB/0\n"
    rules = {finding.rule for finding in judge_against(read(text), TOPOLOGY)}
    assert "LOG-NEAR-NO-GDR" in rules
    assert "LOG-FAR-NIC" not in rules


def test_a_log_that_does_not_say_which_gpu():
    (finding,) = judge_against(read(OLD.replace(" nvmlDev 4", "").replace(" nvmlDev 5", "")), TOPOLOGY)
    assert finding.verdict == "skip"


def test_each_topology_is_held_against_its_own_hosts_alone():
    shared = ON_GPUS.format(extra="", way="SHM/direct/direct")
    other = shared.replace("n1:", "n2:").replace("0x9", "0x8")
    log = read(shared, other)
    bare = replace(TOPOLOGY, links=())
    found = judge_nodes(log, [(TOPOLOGY, {"n1"}), (bare, {"n2"})])
    assert {finding.where.partition(":")[0] for finding in found if finding.rule == "LOG-UNEXPECTED-PATH"} == {"a.log"}
    assert judge_nodes(log, [(bare, {"n1", "n2"})]) == judge_nodes(log, [])


def test_the_gpu_of_a_rank():
    log = read(ON_GPUS.format(extra="", way="P2P/CUMEM/read"))
    assert gpu_of(TOPOLOGY, log.rank("0x9", 1)) == "GPU3"
