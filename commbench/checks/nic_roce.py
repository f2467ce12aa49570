"""NIC: RoCE and InfiniBand settings of ports: GIDs, addresses, MTU, traffic class, partitions."""

import re
from collections import Counter
from collections.abc import Iterator

from commbench.checks.devices import NO_RDMA, judge_each, ports_of
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import RdmaPort

_PORTS = "/sys/class/infiniband/*/ports/*"
_ROCE_V2 = "RoCE v2"
_RDMA_MTUS = (256, 512, 1024, 2048, 4096)
_ROCE_HEADERS = 58  # IP, UDP, the transport's headers and check sums, in Ethernet's payload beside the data
_FULL_MEMBER = 0x8000  # the top bit of a partition key


def _is_ethernet(port: RdmaPort) -> bool:
    return port.link_layer.lower() == "ethernet"


def _not_judged(name: str, port: RdmaPort, ethernet: bool, where: str) -> Seen | None:
    """The skip for a port that is down, or of the other link layer."""
    if port.state and port.state != "active":
        return skip(name, f"{port.state}: NIC-STATE tells of it", where)
    if port.link_layer and _is_ethernet(port) != ethernet:
        return skip(name, f"{port.link_layer}, not {'Ethernet' if ethernet else 'InfiniBand'}", where)
    return None


@rule(
    "NIC-ROCE-VERSION",
    "fail",
    summary="RoCE ports have a GID of RoCE v2",
    fix="modprobe configfs rdma_cm, and set default_roce_mode to `RoCE v2` (cma_roce_mode -d DEVICE -p 1 -m 2)",
    source="TensorWave's RoCE guide; ml-engineering; NCCL's NCCL_IB_GID_INDEX",
)
def check_roce_version(scene: Scene) -> Iterator[Seen]:
    """RoCE v1 does not pass a router, and switches of routed fabrics drop it: connections between racks time out."""
    where = f"{_PORTS}/gid_attrs/types/*"

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if other := _not_judged(name, port, True, where):
            return other
        if port.gids is None or not port.link_layer:
            return None
        versions = {gid.version for gid in port.gids if gid.kind != "zero"}
        if _ROCE_V2 in versions:
            return ok(name, _ROCE_V2, where=where)
        return fail(name, ", ".join(sorted(versions)) or "no GID", _ROCE_V2, where)

    yield from judge_each(scene, "rdma.ports.gids", ports_of(scene.facts), NO_RDMA, judge)


@rule(
    "NIC-ROCE-ADDRESS",
    "fail",
    summary="RoCE ports have an address, so that a GID can be routed",
    fix="give the interface an IPv4 address (ip addr add …), and write it into the network's configuration",
    source="oci-hpc's check of the RDMA interfaces' addresses; TensorWave's RoCE guide",
)
def check_roce_address(scene: Scene) -> Iterator[Seen]:
    """GIDs follow from the interface's addresses. Without one there is only a link-local GID, which reaches no router.

    With IPv6 alone NCCL must be told: NCCL_IB_ADDR_FAMILY=AF_INET6.
    """
    where = f"{_PORTS}/gids/*"

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if other := _not_judged(name, port, True, where):
            return other
        if port.gids is None or not port.link_layer:
            return None
        kinds = {gid.kind for gid in port.gids}
        on = f" on {port.interface}" if port.interface else ""
        if "ipv4" in kinds:
            return ok(name, "a GID of an IPv4 address", where=where)
        if "global" in kinds:
            chosen = scene.facts.variables.get("NCCL_IB_ADDR_FAMILY") == "AF_INET6"
            return (ok if chosen else warn)(name, f"IPv6 alone{on}", "IPv4, or NCCL_IB_ADDR_FAMILY=AF_INET6", where)
        return fail(name, f"no address{on}: its GIDs are link-local or zero", "a GID of an IPv4 address", where)

    yield from judge_each(scene, "rdma.ports.gids", ports_of(scene.facts), NO_RDMA, judge)


@rule(
    "NIC-ROCE-MTU",
    "warn",
    summary="RoCE packets hold 4096 bytes",
    fix="ip link set INTERFACE mtu 9000, and in the network's configuration and on the switches",
    source="deepops' and ROCm's guides (active_mtu 4096)",
)
def check_roce_mtu(scene: Scene) -> Iterator[Seen]:
    """With Ethernet's usual 1500 bytes RDMA packets hold 1024, and the NIC handles four times as many.

    The payload is the largest power of two that the MTU holds beside the headers, as ibv_devinfo's active_mtu.
    """
    where = "/sys/class/net/*/mtu"
    interfaces = {interface.name: interface.mtu_nbytes for interface in scene.facts.interfaces or ()}

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if other := _not_judged(name, port, True, where):
            return other
        mtu = port.mtu_nbytes or interfaces.get(port.interface)
        if mtu is None:
            return None
        payload = max((size for size in _RDMA_MTUS if size + _ROCE_HEADERS <= mtu), default=0)
        observed = f"{payload} bytes, with an MTU of {mtu}"
        return (warn if payload < _RDMA_MTUS[-1] else ok)(name, observed, f"{_RDMA_MTUS[-1]} bytes", where)

    yield from judge_each(scene, "rdma.ports.mtu_nbytes", ports_of(scene.facts), NO_RDMA, judge)


@rule(
    "NIC-TRAFFIC-CLASS",
    "warn",
    summary="RoCE ports have the same traffic class",
    fix="write the same value into /sys/class/infiniband/DEVICE/tc/1/traffic_class on all; NCCL_IB_TC overrides it",
    source="nccl-doctor; oci-hpc",
)
def check_traffic_class(scene: Scene) -> Iterator[Seen]:
    """The traffic class puts packets into the switch's lossless queue.

    A port with another class is dropped under load, or pauses the wrong queue.
    """
    where, ports = "/sys/class/infiniband/*/tc/*/traffic_class", ports_of(scene.facts)
    known = Counter(_shown_class(port) for port in (ports or {}).values() if _is_ethernet(port))

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if other := _not_judged(name, port, True, where):
            return other
        usual, shown = known.most_common(1)[0][0], _shown_class(port)
        return (ok if shown == usual else warn)(name, shown, f"{usual}, as most", where)

    yield from judge_each(scene, "rdma.ports.traffic_class", ports, NO_RDMA, judge)


def _shown_class(port: RdmaPort) -> str:
    return "not set" if port.traffic_class is None else str(port.traffic_class)


@rule(
    "NIC-PKEY",
    "fail",
    summary="InfiniBand ports are full members of a partition",
    fix="add the port's GUID to the partition as a full member (partitions.conf of the subnet manager, UFM)",
    source="ai-infrastructure-on-azure: InfiniBand link validation",
)
def check_pkey(scene: Scene) -> Iterator[Seen]:
    """Two limited members of a partition may not talk to each other. 0x7fff alone, or nothing, means: not joined."""
    where = f"{_PORTS}/pkeys/*"

    def judge(name: str, port: RdmaPort) -> Seen | None:
        if other := _not_judged(name, port, False, where):
            return other
        if port.pkeys is None:
            return None
        keys = [int(key, 16) for key in port.pkeys if re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,4}", key)]
        shown = ", ".join(f"0x{key:04x}" for key in keys if key) or "none"
        if any(key & _FULL_MEMBER for key in keys):
            return ok(name, shown, where=where)
        return fail(name, shown, "a key from 0x8001 on", where)

    yield from judge_each(scene, "rdma.ports.pkeys", ports_of(scene.facts), NO_RDMA, judge)
