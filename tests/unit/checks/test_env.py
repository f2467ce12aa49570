"""The family ENV: each fault is found by exactly the rule that names it, and sound environments by none."""

from dataclasses import replace

import pytest

from commbench.checks.registry import Scene, load_rules, run_rules
from commbench.machine.facts import (
    ConfFile,
    CpuFacts,
    Facts,
    GidFacts,
    GpuFacts,
    HostFacts,
    InterfaceFacts,
    KernelFacts,
    ProcessFacts,
    RdmaDevice,
    RdmaPort,
    SoftwareFacts,
)
from commbench.machine.nccl_table import nccl_variables, version_key
from commbench.results.schema import Finding

RULES = [row for row in load_rules() if row.family == "ENV"]
GIDS = (
    GidFacts(0, "IB/RoCE v1", "link-local", "eth1"),
    GidFacts(1, "RoCE v2", "link-local", "eth1"),
    GidFacts(2, "IB/RoCE v1", "ipv4", "eth1"),
    GidFacts(3, "RoCE v2", "ipv4", "eth1"),
    GidFacts(4, "RoCE v2", "zero", ""),
)


def rdma(
    name: str, *, layer: str = "InfiniBand", state: str = "active", rate: str = "400 Gb/s", ports: int = 1
) -> RdmaDevice:
    made = (RdmaPort(name, number + 1, state, rate_text=rate, link_layer=layer, gids=GIDS) for number in range(ports))
    return RdmaDevice(name, ports=tuple(made))


def interface(name: str, address: str = "10.0.0.7/24", *, is_up: bool = True) -> InterfaceFacts:
    return InterfaceFacts(
        name, "ethernet", "up", is_up, bytes_per_second=1.25e9, addresses=(address,) if address else ()
    )


def software(version: str) -> SoftwareFacts:
    """An installed NCCL, with the names that its release reads."""
    key = version_key(version)
    names = (row.name for row in nccl_variables().values() if not row.is_gone(key) and not row.is_to_come(key))
    return SoftwareFacts(nccl_loadable=version, nccl_plugins=(), nccl_names=tuple(names))


# Two nodes of a sound cluster: eight GPUs and eight HCAs each, InfiniBand, and an Ethernet for the rest.
SOUND = Facts(
    host=HostFacts("n1", resolves_to=("10.0.0.7",)),
    cpu=CpuFacts(online="0-95"),
    kernel=KernelFacts(port_range=(32768, 60999)),
    gpus=tuple(GpuFacts(index, f"0000:{index}b:00.0") for index in range(8)),
    rdma=tuple(rdma(f"mlx5_{index}") for index in range(8)),
    interfaces=(
        interface("lo", "127.0.0.1/8"),
        interface("docker0", "172.17.0.1/16"),
        interface("eth0"),
        interface("eth1"),
    ),
    software=software("2.27.7"),
    process=ProcessFacts(local_size=1),
    conf_files=(),
)
DEBIAN = replace(SOUND, host=HostFacts("n1", resolves_to=("127.0.1.1",)))
ROCE = replace(SOUND, rdma=tuple(rdma(f"mlx5_{index}", layer="Ethernet") for index in range(8)))


def with_nccl(version: str, facts: Facts = SOUND) -> Facts:
    return replace(facts, software=software(version))


def with_conf(*lines: str, path: str = "/etc/nccl.conf", facts: Facts = SOUND) -> Facts:
    return replace(facts, conf_files=(*(facts.conf_files or ()), ConfFile(path, lines)))


def findings(text: str | dict[str, str], facts: Facts = SOUND, nodes: int = 2) -> list[Finding]:
    variables = dict(part.split("=", 1) for part in text.split()) if isinstance(text, str) else text
    return list(run_rules(RULES, Scene(replace(facts, variables=variables), nodes=nodes)))


def faults(text: str | dict[str, str], facts: Facts = SOUND, nodes: int = 2) -> list[str]:
    """What is warned of, as `verdict RULE`."""
    return sorted(f"{it.verdict} {it.rule}" for it in findings(text, facts, nodes) if it.verdict in ("warn", "fail"))


# Of each fault the variables, and the one rule that has to name it.
FAULTS = [
    ("NCCL_SOCKET_TIMEOUT=1", "warn ENV-NAME-INVENTED"),
    ("NCCL_NET_GDR_ENABLE=1", "warn ENV-NAME-INVENTED"),
    ("NCCL_ASYNC_ERROR_HANDLING=1", "warn ENV-NAME-ELSEWHERE"),
    ("NCCL_HEARTBEAT_TIMEOUT_SEC=600", "warn ENV-NAME-ELSEWHERE"),
    ("NCCL_TEST_SPLIT_MASK=0x7", "warn ENV-NAME-ELSEWHERE"),
    ("NCCL_EXCLUDE_IB_HCA=mlx5_7", "warn ENV-NAME-ELSEWHERE"),
    ("NCCL_IB_CUDA_SUPPORT=1", "warn ENV-NAME-REMOVED"),
    ("NCCL_TREE_THRESHOLD=0", "warn ENV-NAME-REMOVED"),
    ("NCCL_MNNVL=1", "warn ENV-NAME-REMOVED"),
    ("NCCL_CHECK_MODE=DEFAULT", "warn ENV-NAME-NEWER"),
    ("NCCL_MAX_NCHANNELS=16", "warn ENV-NAME-DEPRECATED"),
    ("NCCL_MIN_NRINGS=4", "warn ENV-NAME-DEPRECATED"),
    ("NCCL_SOCKET_IFNAMES=eth0", "warn ENV-NAME-UNKNOWN"),
    ("TORCH_NCCL_ASYNC_ERRORS_HANDLING=1", "warn ENV-NAME-UNKNOWN"),
    ("GLOO_SOCKET_IFNAMES=eth0", "warn ENV-NAME-UNKNOWN"),
    ("CCL_NET_GDR_LEVEL=PHB", "warn ENV-NAME-PREFIX"),
    ("nccl_debug=WARN", "warn ENV-NAME-PREFIX"),
    ("NCCL_P2P_DISABLE=true", "warn ENV-VALUE-SWITCH"),
    ("NCCL_SHM_DISABLE=yes", "warn ENV-VALUE-SWITCH"),
    ("NCCL_SET_THREAD_NAME=TRUE", "warn ENV-VALUE-SWITCH"),
    ("NCCL_BUFFSIZE=4M", "warn ENV-VALUE-NUMBER"),
    ("NCCL_IB_QPS_PER_CONNECTION=010", "warn ENV-VALUE-NUMBER"),
    ("NCCL_IB_TIMEOUT=never", "warn ENV-VALUE-NUMBER"),
    ("NCCL_IB_TIMEOUT=1800", "warn ENV-VALUE-RANGE"),
    ("NCCL_IB_TIMEOUT=0", "warn ENV-VALUE-RANGE"),
    ("NCCL_IB_RETRY_CNT=16", "warn ENV-VALUE-RANGE"),
    ("NCCL_IB_QPS_PER_CONNECTION=256", "warn ENV-VALUE-RANGE"),
    ("NCCL_NTHREADS=100", "warn ENV-VALUE-RANGE"),
    ("NCCL_P2P_DISABLE=2", "warn ENV-VALUE-RANGE"),
    ("NCCL_CROSS_NIC=3", "warn ENV-VALUE-RANGE"),
    ("NCCL_MAX_CTAS=128", "warn ENV-VALUE-RANGE"),
    ("NCCL_P2P_LEVEL=nvl", "warn ENV-VALUE-WORD"),
    ("NCCL_NET_GDR_LEVEL=phb", "warn ENV-VALUE-WORD"),
    ("NCCL_DEBUG=VERBOSE", "warn ENV-VALUE-WORD"),
    ("NCCL_DEBUG_SUBSYS=INIT,NETWORK", "warn ENV-VALUE-WORD"),
    ("NCCL_SOCKET_FAMILY=af_inet", "warn ENV-VALUE-WORD"),
    ("NCCL_NET_GDR_LEVEL=5", "warn ENV-VALUE-LEVEL"),
    ({"NCCL_IB_TIMEOUT": "'22'"}, "warn ENV-VALUE-SPACE"),
    ({"MASTER_ADDR": "n1 "}, "warn ENV-VALUE-SPACE"),
    ("NCCL_MIN_CTAS=32 NCCL_MAX_CTAS=16", "warn ENV-CHANNELS"),
    ("NCCL_ALGO=Rng", "fail ENV-ALGO"),
    ("NCCL_ALGO=Collnet", "fail ENV-ALGO"),
    ("NCCL_ALGO=Ring", "warn ENV-FORCED"),
    ("NCCL_PROTO=LL128", "warn ENV-FORCED"),
    ("NCCL_NTHREADS=256", "warn ENV-FORCED"),
    ("NCCL_SOCKET_NTHREADS=4", "warn ENV-SOCKET-UNUSED"),
    ("NCCL_DEBUG_FILE=/tmp/nccl.log NCCL_DEBUG=WARN", "warn ENV-DEBUG-FILE"),
    ("NCCL_DEBUG_FILE=~/nccl.%h.%p NCCL_DEBUG=WARN", "warn ENV-DEBUG-FILE"),
    ("NCCL_DEBUG_FILE=/tmp/nccl.%h.%p", "warn ENV-DEBUG-FILE"),
    ("NCCL_CONF_FILE=~/my.conf", "warn ENV-CONF-FILE"),
    ("NCCL_DEBUG=INFO", "warn ENV-DEBUG-LEFT"),
    ("CUDA_LAUNCH_BLOCKING=1", "warn ENV-DEBUG-LEFT"),
    ("TORCH_DISTRIBUTED_DEBUG=DETAIL", "warn ENV-DEBUG-LEFT"),
    ("UCX_LOG_LEVEL=debug", "warn ENV-DEBUG-LEFT"),
    ("NCCL_P2P_DISABLE=1", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_IB_DISABLE=1", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_NVLS_ENABLE=0", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_NET_GDR_LEVEL=LOC", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_P2P_LEVEL=0", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_NET=Socket", "warn ENV-TRANSPORT-OFF"),
    ("NCCL_NET=OFI", "fail ENV-NET"),
    ("NCCL_COLLNET_ENABLE=1", "warn ENV-COLLNET"),
    ("NCCL_SOCKET_IFNAME=^docker0,^lo", "warn ENV-IFNAME-SYNTAX"),
    ("NCCL_SOCKET_IFNAME=lo", "fail ENV-IFNAME-LOCAL"),
    ("NCCL_SOCKET_IFNAME=docker0", "fail ENV-IFNAME-LOCAL"),
    ("NCCL_SOCKET_IFNAME=^lo", "warn ENV-IFNAME-LOCAL"),
    ("NCCL_SOCKET_IFNAME=ens3", "fail ENV-IFNAME-MISSING"),
    ("GLOO_SOCKET_IFNAME=^lo", "fail ENV-GLOO-IFNAME"),
    ("GLOO_SOCKET_IFNAME==eth0", "fail ENV-GLOO-IFNAME"),
    ("GLOO_SOCKET_IFNAME=eth", "fail ENV-GLOO-IFNAME"),
    ("GLOO_SOCKET_IFNAME=ens3", "fail ENV-GLOO-MISSING"),
    ("GLOO_SOCKET_IFNAME=lo", "fail ENV-GLOO-MISSING"),
    ("UCX_NET_DEVICES=mlx5_0", "fail ENV-UCX-DEVICES"),
    ("NCCL_IB_HCA=^=mlx5_6,^=mlx5_7", "warn ENV-HCA-SYNTAX"),
    ({"NCCL_IB_HCA": "=mlx5_0, mlx5_1"}, "warn ENV-HCA-SYNTAX"),
    ("NCCL_IB_HCA==mlx5_9", "fail ENV-HCA-MISSING"),
    ("NCCL_IB_HCA==mlx5_0,mlx5_9", "warn ENV-HCA-MISSING"),
    ("NCCL_IB_HCA=^mlx5", "fail ENV-HCA-MISSING"),
    ("NCCL_IB_GID_INDEX=3", "warn ENV-GID-INDEX"),
    ("NCCL_IB_GID_INDEX=", "warn ENV-GID-INDEX"),
    ("MASTER_ADDR=127.0.0.1", "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=localhost", "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=[::1]", "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=0.0.0.0", "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=tcp://n1", "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=n1:29500", "fail ENV-MASTER-ADDR"),
    ("MASTER_PORT=70000", "fail ENV-MASTER-PORT"),
    ("MASTER_PORT=80", "warn ENV-MASTER-PORT"),
    ("MASTER_PORT=40000", "warn ENV-MASTER-PORT"),
    ("RANK=4 WORLD_SIZE=4", "fail ENV-RANKS"),
    ("RANK=0", "fail ENV-RANKS"),
    ("LOCAL_RANK=2 LOCAL_WORLD_SIZE=2", "fail ENV-RANKS"),
    ("WORLD_SIZE=two", "fail ENV-RANKS"),
    ("LOCAL_WORLD_SIZE=8 WORLD_SIZE=4", "fail ENV-RANKS"),
    ("CUDA_VISIBLE_DEVICES=0,1,9", "fail ENV-VISIBLE-DEVICES"),
    ("CUDA_VISIBLE_DEVICES=0,0", "fail ENV-VISIBLE-DEVICES"),
    ("CUDA_VISIBLE_DEVICES=all", "fail ENV-VISIBLE-DEVICES"),
    ("CUDA_VISIBLE_DEVICES=", "warn ENV-VISIBLE-DEVICES"),
    ("OMP_NUM_THREADS=128", "warn ENV-OMP"),
    ("OMP_NUM_THREADS=²", "warn ENV-OMP"),
    ("TORCH_NCCL_ASYNC_ERROR_HANDLING=0", "warn ENV-TORCH-ERRORS"),
    ("TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_TRACE_BUFFER_SIZE=0", "warn ENV-TORCH-DUMP"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "expected"), FAULTS, ids=str)
def test_a_fault_is_found_by_its_rule_alone(variables, expected):
    assert faults(variables) == [expected]


# Faults that another machine makes of the same variables.
ON_OTHERS = [
    ("NCCL_SOCKET_NTHREADS=8 NCCL_NSOCKS_PERTHREAD=16", replace(SOUND, rdma=()), "warn ENV-SOCKET-THREADS"),
    ("NCCL_ALGO=NVLSTree", with_nccl("2.17.1"), "warn ENV-ALGO"),
    ("NCCL_MAX_CTAS=64", with_nccl("2.24.3"), "warn ENV-VALUE-RANGE"),
    ("NCCL_SET_THREAD_NAME=TRUE", with_nccl("2.30.7"), ""),
    ("NCCL_SET_THREAD_NAME=yes", with_nccl("2.30.7"), "warn ENV-VALUE-SWITCH"),
    ("NCCL_MAX_NCHANNELS=16", with_nccl("2.16.5"), ""),
    ("NCCL_MNNVL=1", with_nccl("2.20.5"), ""),
    ("NCCL_IB_GDR_LEVEL=phb", SOUND, "warn ENV-NAME-REMOVED"),
    ("NCCL_IB_RETRY_CNT=16", with_nccl("2.99.1"), "warn ENV-VALUE-RANGE"),  # newer than the table
    ("NCCL_IB_RETRY_CNT=7", with_nccl("2.8.3"), ""),  # older than its binaries
    ("NCCL_CONF_FILE=~/my.conf", with_nccl("2.21.5"), "warn ENV-NAME-NEWER"),
    ("NCCL_IB_HCA=mlx5_1", replace(SOUND, rdma=(rdma("mlx5_1"), rdma("mlx5_10"))), "warn ENV-HCA-PREFIX"),
    ("NCCL_IB_HCA=mlx5_1", replace(SOUND, rdma=()), "warn ENV-HCA-PREFIX"),
    ("NCCL_IB_HCA=mlx5_1", SOUND, ""),
    ("NCCL_IB_HCA=^mlx5_0:1", replace(SOUND, rdma=None), "warn ENV-HCA-PORT"),
    ("NCCL_IB_HCA=^mlx5_0:1", replace(SOUND, rdma=(rdma("mlx5_0", ports=2), rdma("mlx5_1"))), "warn ENV-HCA-PORT"),
    ("NCCL_IB_HCA=^mlx5_0:1", SOUND, ""),
    ("NCCL_IB_HCA==mlx5_0", replace(SOUND, rdma=(rdma("mlx5_0", state="down"),)), "fail ENV-HCA-DOWN"),
    (
        "NCCL_IB_HCA==mlx5_0,mlx5_1",
        replace(SOUND, rdma=(rdma("mlx5_0"), rdma("mlx5_1", state="down"))),
        "warn ENV-HCA-DOWN",
    ),
    (
        "NCCL_IB_HCA=mlx5",
        replace(SOUND, rdma=(rdma("mlx5_0"), rdma("mlx5_bond_0", layer="Ethernet", rate="100 Gb/s"))),
        "warn ENV-HCA-MIXED",
    ),
    ("NCCL_IB_GID_INDEX=3", with_nccl("2.20.5", ROCE), ""),
    ("NCCL_IB_GID_INDEX=3", with_nccl("2.21.5", ROCE), "warn ENV-GID-INDEX"),
    ("NCCL_IB_GID_INDEX=2", with_nccl("2.20.5", ROCE), "warn ENV-GID-INDEX"),
    ("NCCL_IB_GID_INDEX=1", with_nccl("2.20.5", ROCE), "fail ENV-GID-INDEX"),
    ("NCCL_IB_GID_INDEX=4", with_nccl("2.20.5", ROCE), "fail ENV-GID-INDEX"),
    ("NCCL_IB_GID_INDEX=9", with_nccl("2.20.5", ROCE), "fail ENV-GID-INDEX"),
    ("NCCL_IB_DISABLE=1", replace(SOUND, rdma=()), ""),
    ("NCCL_CROSS_NIC=1", replace(SOUND, rdma=(rdma("mlx5_0"),)), "warn ENV-CROSS-NIC"),
    ("NCCL_CROSS_NIC=1", SOUND, ""),
    (
        "NCCL_SOCKET_IFNAME=eth1",
        replace(SOUND, interfaces=(interface("eth1", is_up=False),)),
        "fail ENV-IFNAME-MISSING",
    ),
    ("GLOO_SOCKET_IFNAME=eth1", replace(SOUND, interfaces=(interface("eth1", ""),)), "fail ENV-GLOO-MISSING"),
    (
        "NCCL_SOCKET_IFNAME=eth",
        replace(SOUND, interfaces=(interface("eth0"), interface("eth1", "10.0.1.7/24"))),
        "warn ENV-IFNAME-PREFIX",
    ),
    ("NCCL_TOPO_FILE=/etc/topo.xml", replace(SOUND, readable_files={"/etc/topo.xml": False}), "fail ENV-TOPO-FILE"),
    ("NCCL_CONF_FILE=/etc/my.conf", replace(SOUND, readable_files={"/etc/my.conf": False}), "warn ENV-CONF-FILE"),
    ("MASTER_ADDR=n1", DEBIAN, "fail ENV-MASTER-ADDR"),
    ("MASTER_ADDR=n1 GLOO_SOCKET_IFNAME=eth0", DEBIAN, "fail ENV-MASTER-ADDR"),
    ("", DEBIAN, "fail ENV-OWN-NAME"),
    ("GLOO_SOCKET_IFNAME=eth0", DEBIAN, ""),
    ("", replace(SOUND, process=ProcessFacts(local_size=8)), "warn ENV-OMP"),
    ("OMP_NUM_THREADS=12", replace(SOUND, process=ProcessFacts(local_size=8)), ""),
    ("OMP_NUM_THREADS=13", replace(SOUND, process=ProcessFacts(local_size=8)), "warn ENV-OMP"),
    (
        "CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=1",
        replace(SOUND, process=ProcessFacts(local_size=4)),
        "fail ENV-VISIBLE-DEVICES",
    ),
    ("", with_conf("NCCL_DEBUG = WARN"), "warn ENV-CONF-SYNTAX"),
    ("", with_conf("export NCCL_DEBUG=WARN"), "warn ENV-CONF-SYNTAX"),
    ("", with_conf("NCCL_SOCKET_IFNAME==eth0 # of the site"), "warn ENV-CONF-SYNTAX fail ENV-IFNAME-MISSING"),
    ("", with_conf('NCCL_IB_TIMEOUT="22"'), "warn ENV-VALUE-SPACE"),
    ("", with_conf("NCCL_IB_TIMEOUT=1800"), "warn ENV-VALUE-RANGE"),
    ("NCCL_IB_TIMEOUT=22", with_conf("NCCL_IB_TIMEOUT=23"), "warn ENV-CONF-SHADOWED"),
    ("NCCL_IB_TIMEOUT=", with_conf("NCCL_IB_TIMEOUT=23"), "warn ENV-CONF-SHADOWED"),
    ("NCCL_IB_TIMEOUT=23", with_conf("NCCL_IB_TIMEOUT=23"), ""),
    (
        "",
        with_conf("NCCL_IB_TIMEOUT=23", facts=with_conf("NCCL_IB_TIMEOUT=22", path="/home/u/.nccl.conf")),
        "warn ENV-CONF-SHADOWED",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "facts", "expected"), ON_OTHERS, ids=lambda value: str(value)[:40])
def test_what_a_machine_makes_of_variables(variables, facts, expected):
    found = " ".join(faults(variables, facts))
    assert sorted(found.split(" ")) == sorted(expected.split(" "))


# As sites, clouds and launchers set them.
SOUND_ENVIRONMENTS = {
    "nothing": ("", SOUND),
    "InfiniBand": (
        "NCCL_DEBUG=WARN NCCL_SOCKET_IFNAME==eth0 NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_4,mlx5_5,mlx5_6,mlx5_7 "
        "NCCL_IB_TIMEOUT=22 NCCL_IB_RETRY_CNT=7 UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1 UCX_TLS=rc GLOO_SOCKET_IFNAME=eth0 "
        "MASTER_ADDR=10.0.0.7 MASTER_PORT=29500 OMP_NUM_THREADS=12 CUDA_DEVICE_MAX_CONNECTIONS=1",
        SOUND,
    ),
    "RoCE": (
        "NCCL_IB_TC=106 NCCL_IB_SL=3 NCCL_IB_QPS_PER_CONNECTION=4 NCCL_IB_SPLIT_DATA_ON_QPS=0 NCCL_CROSS_NIC=2 "
        "NCCL_IB_PCI_RELAXED_ORDERING=1 NCCL_SOCKET_IFNAME=eth NCCL_IB_HCA=mlx5 NCCL_IB_ADDR_FAMILY=AF_INET",
        ROCE,
    ),
    "EFA": (
        {
            "FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1", "NCCL_NET": "AWS Libfabric",
            "OFI_NCCL_PROTOCOL": "RDMA", "NCCL_SOCKET_IFNAME": "^docker,lo,veth", "NCCL_TUNER_PLUGIN": "/opt/tuner.so",
        },
        replace(SOUND, rdma=(), software=replace(SOUND.software, nccl_plugins=("/opt/libnccl-net.so",))),
    ),
    "a virtual machine with a topology": (
        "NCCL_TOPO_FILE=/opt/topo.xml NCCL_IB_PCI_RELAXED_ORDERING=1 CUDA_DEVICE_ORDER=PCI_BUS_ID "
        "NCCL_SOCKET_IFNAME=eth0",
        replace(SOUND, readable_files={"/opt/topo.xml": True}),
    ),
    "torchrun": (
        "RANK=3 WORLD_SIZE=16 LOCAL_RANK=3 LOCAL_WORLD_SIZE=8 MASTER_ADDR=n1 MASTER_PORT=29500 OMP_NUM_THREADS=1 "
        "TORCH_NCCL_ASYNC_ERROR_HANDLING=1 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=600",
        replace(SOUND, process=ProcessFacts(local_size=8)),
    ),
    "an image": ("NCCL_VERSION=2.27.7-1 NCCL_HOME=/usr NCCL_TESTS_DEVICE=0 NVIDIA_VISIBLE_DEVICES=all", SOUND),
    "a file of settings": ("", with_conf("NCCL_DEBUG=WARN", "NCCL_SOCKET_IFNAME==eth0", "NCCL_IB_TIMEOUT=23")),
    "logs to files": ("NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/tmp/nccl.%h.%p NCCL_DEBUG_SUBSYS=INIT,NET", SOUND),
    "a script before its shell": (
        {"MASTER_ADDR": "$(hostname)", "RANK": "$SLURM_PROCID", "NCCL_IB_HCA": "${HCAS}"},
        SOUND,
    ),
    "TCP only": ("NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=8 NCCL_SOCKET_IFNAME=eth0", replace(SOUND, rdma=())),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND_ENVIRONMENTS)
def test_a_sound_environment_has_no_finding(name):
    variables, facts = SOUND_ENVIRONMENTS[name]
    assert faults(variables, facts) == []


def test_one_node_may_use_loopback_and_says_so():
    loopback = "MASTER_ADDR=127.0.0.1 NCCL_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo"
    started = replace(SOUND, process=ProcessFacts("torchrun", 0, 1, 0, 1))
    assert faults(loopback, nodes=1) == ["warn ENV-MASTER-ADDR"]  # who knows where the job will run
    found = findings(loopback, started, nodes=1)
    assert not [it for it in found if it.verdict in ("warn", "fail")]
    (master,) = [it for it in found if it.rule == "ENV-MASTER-ADDR"]
    assert (master.verdict, "one node" in master.observed) == ("ok", True)


def test_each_of_five_faults_has_its_own_finding_with_its_fix():
    found = findings(
        "NCCL_SOCKET_TIMEOUT=1 NCCL_P2P_DISABLE=true NCCL_IB_HCA=mlx5_1 GLOO_SOCKET_IFNAME=^lo MASTER_ADDR=127.0.0.1",
        replace(SOUND, rdma=()),
        nodes=4,
    )
    bad = {it.subject: it for it in found if it.verdict in ("warn", "fail")}
    assert {name: (it.rule, it.verdict) for name, it in bad.items()} == {
        "NCCL_SOCKET_TIMEOUT": ("ENV-NAME-INVENTED", "warn"),
        "NCCL_P2P_DISABLE": ("ENV-VALUE-SWITCH", "warn"),
        "NCCL_IB_HCA": ("ENV-HCA-PREFIX", "warn"),
        "GLOO_SOCKET_IFNAME": ("ENV-GLOO-IFNAME", "fail"),
        "MASTER_ADDR": ("ENV-MASTER-ADDR", "fail"),
    }
    assert "NCCL_SOCKET_RETRY_CNT" in bad["NCCL_SOCKET_TIMEOUT"].action
    assert bad["NCCL_P2P_DISABLE"].action == "write NCCL_P2P_DISABLE=1"
    assert bad["NCCL_IB_HCA"].action == "write NCCL_IB_HCA==mlx5_1"
    assert bad["GLOO_SOCKET_IFNAME"].expected == "GLOO_SOCKET_IFNAME=eth0"
    assert "rank 0's node" in bad["MASTER_ADDR"].action


def test_an_environment_that_was_not_seen_is_skipped_by_every_rule():
    unseen = replace(SOUND, unseen={"variables": "a picture of the wiring alone"})
    found = findings("NCCL_DEBUG=INFO", unseen)
    assert {(it.verdict, it.observed) for it in found} == {("skip", "a picture of the wiring alone")}
    assert {it.rule for it in found} == {row.id for row in RULES}


def test_devices_and_interfaces_that_were_not_seen_are_not_ok():
    unseen = replace(SOUND, rdma=None, interfaces=None, unseen={"rdma": "no /sys", "interfaces": "no /sys"})
    found = findings(
        "NCCL_IB_HCA==mlx5_0 NCCL_SOCKET_IFNAME=eth0 GLOO_SOCKET_IFNAME=eth0 UCX_NET_DEVICES=mlx5_0:1", unseen
    )
    rules = (
        "HCA-MISSING",
        "HCA-DOWN",
        "HCA-MIXED",
        "IFNAME-LOCAL",
        "IFNAME-MISSING",
        "IFNAME-PREFIX",
        "GLOO-MISSING",
        "UCX-DEVICES",
    )
    verdicts = {it.rule.removeprefix("ENV-"): (it.verdict, "no /sys" in it.observed) for it in found}
    assert {name: verdicts[name] for name in rules} == dict.fromkeys(rules, ("skip", True))


def test_every_rule_says_something_on_every_machine():
    for facts in (SOUND, Facts()):
        assert {it.rule for it in findings("", facts)} == {row.id for row in RULES}


def test_a_finding_names_the_line_of_its_file():
    facts = replace(SOUND, variable_sources={"NCCL_P2P_DISABLE": "job.sh:17"})
    (found,) = [it for it in findings("NCCL_P2P_DISABLE=1", facts) if it.verdict == "warn"]
    assert found.where == "job.sh:17"


def test_the_installed_library_has_the_last_word_on_names():
    library = replace(SOUND.software, nccl_names=("NCCL_DEBUG", "NCCL_OF_A_BUILD", "NCCL_CHECK_MODE", "NCCL_MNNVL"))
    own_build = replace(SOUND, software=library)
    assert faults("NCCL_OF_A_BUILD=1 NCCL_CHECK_MODE=DEFAULT NCCL_MNNVL=1", own_build) == []
    assert faults("NCCL_IB_TIMEOUT=22", own_build) == ["warn ENV-NAME-REMOVED"]
    unreadable = replace(SOUND, software=replace(SOUND.software, nccl_names=()))
    assert faults("NCCL_IB_TIMEOUT=22", unreadable) == []


def test_the_nearest_name_is_said_and_the_search_is_bounded():
    found = findings({f"NCCL_DEBUGG{index}": "1" for index in range(40)})
    actions = [it.action for it in found if it.rule == "ENV-NAME-UNKNOWN"]
    assert len(actions) == 40
    assert sum("NCCL_DEBUG" in action for action in actions) == 20


def test_removed_names_say_what_took_their_place_and_the_installed_version():
    (found,) = [it for it in findings("NCCL_WORK_FIFO_DEPTH=64") if it.verdict == "warn"]
    assert "last read by NCCL 2.21.5; this is 2.27.7" in found.observed
    assert "NCCL_WORK_FIFO_BYTES" in found.action


def test_a_file_that_wins_is_named_with_what_loses():
    (found,) = [it for it in findings("NCCL_DEBUG=WARN", with_conf("NCCL_DEBUG=INFO")) if it.verdict == "warn"]
    assert found.observed == "NCCL_DEBUG=INFO in /etc/nccl.conf has no effect: NCCL_DEBUG=WARN from environment wins"
