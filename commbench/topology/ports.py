"""Ports of RDMA devices, as ibstat, ibv_devinfo and show_gids tell of them: no links, but state, rate and GIDs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv6Address

from commbench.errors import CommbenchError
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Topology, enumerate_keys
from commbench.units import GB

ROCE_V2 = "RoCE v2"


@dataclass(frozen=True, slots=True)
class Gid:
    """One row of a port's GID table; `version` is `RoCE v1`, `RoCE v2`, or what else the tool writes."""

    index: int
    address: str
    version: str


@dataclass(slots=True)
class Port:
    """A port of an RDMA device. Empty and None: not said. `state` is in small letters, such as `active` or `down`.

    `subnet_manager`: the LID of the subnet manager, which tells subnets of InfiniBand apart; empty for Ethernet.
    """

    device: str
    number: int
    state: str = ""
    bytes_per_second: float | None = None
    link_layer: str = ""
    subnet_manager: str = ""
    gids: list[Gid] = field(default_factory=list)


def make_topology(format_name: str, source: str, ports: Sequence[Port]) -> Topology:
    """A machine of NICs only, one for each port, with what is said of their state. Raises CommbenchError for none."""
    if not ports:
        raise CommbenchError(f"{source} tells of no port of an RDMA device: give the whole output.")
    if len(ports) > MAX_DEVICES:
        raise CommbenchError(f"{source} has {len(ports)} ports: one machine has {MAX_DEVICES} at most.")
    several = Counter(port.device for port in ports)
    keys = [port.device if several[port.device] == 1 else f"{port.device}:{port.number}" for port in ports]
    if len(set(keys)) < len(keys):
        raise CommbenchError(f"{source} tells of a port twice: give the output of one machine, printed once.")
    devices = tuple(
        Device(
            key,
            "nic",
            port.device,
            bytes_per_second=port.bytes_per_second,
            state=", ".join(word for word in (port.state, port.link_layer) if word),
        )
        for key, port in zip(keys, ports, strict=True)
    )
    by_key = dict(zip(keys, ports, strict=True))
    findings = (*_down(by_key, source), *_mixed(by_key, source), *_gids(by_key, source))
    return Topology(format_name, source, devices, (), (), findings)


def _down(ports: dict[str, Port], source: str) -> list[Finding]:
    """Ports that carry nothing, and ports whose state or link layer the text does not say."""
    findings = []
    down = [key for key, port in ports.items() if port.state not in ("", "active")]
    if down:
        findings.append(
            Finding(
                "TOPO-PORT-DOWN",
                enumerate_keys(down),
                "warn",
                f"{len(down)} of {len(ports)} ports: {', '.join(sorted({ports[key].state for key in down}))}",
                "active",
                source,
                "look at cable, switch port and subnet manager; leave it out of NCCL_IB_HCA",
            )
        )
    for what, unsaid in (
        ("state", [key for key, port in ports.items() if not port.state]),
        ("link layer", [key for key, port in ports.items() if not port.link_layer]),
    ):
        if unsaid:
            observed = f"the {what} is not said"
            findings.append(Finding("TOPO-PORT-UNSAID", enumerate_keys(unsaid), "skip", observed, "", source))
    return findings


def _mixed(ports: dict[str, Port], source: str) -> list[Finding]:
    """Active ports that differ in rate, link layer or subnet: they are not one fabric."""
    alike: dict[str, list[str]] = defaultdict(list)
    for key, port in ports.items():
        if port.state == "active":
            alike[_describe(port)].append(key)
    if len(alike) < 2:
        return []
    (usual, most), *others = sorted(alike.items(), key=lambda item: -len(item[1]))
    return [
        Finding(
            "TOPO-NIC-MIXED",
            enumerate_keys(keys),
            "warn",
            text,
            f"{usual}, as {enumerate_keys(most)}",
            source,
            "name those of one fabric in NCCL_IB_HCA",
        )
        for text, keys in others
    ]


def _describe(port: Port) -> str:
    rate = "" if port.bytes_per_second is None else f"{port.bytes_per_second * 8 / GB:g} Gbit/s"
    subnet = f"subnet manager at LID {port.subnet_manager}" if port.subnet_manager else ""
    return ", ".join(text for text in (port.link_layer, rate, subnet) if text)


def _gids(ports: dict[str, Port], source: str) -> list[Finding]:
    """Which GID index reaches other nodes, for ports with a table of RoCE; one finding for those that are alike."""
    alike: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for key, port in ports.items():
        if any(gid.version.startswith("RoCE") for gid in port.gids):
            alike[tuple(gid.index for gid in port.gids if _is_routed(gid))].append(key)
    findings = []
    for routed, keys in alike.items():
        indexes = ", ".join(str(index) for index in routed[:8])
        findings.append(
            Finding(
                "TOPO-GID",
                enumerate_keys(keys),
                "ok" if routed else "warn",
                f"GID index {indexes} is RoCE v2 with an address that is routed" if routed else "no GID that is routed",
                "RoCE v2 with an IPv4 address, or a global IPv6 address",
                source,
                "NCCL finds it by itself; an NCCL_IB_GID_INDEX that is set must be one of these" if routed else "",
            )
        )
    return findings


def _is_routed(gid: Gid) -> bool:
    """Whether a GID reaches beyond its own link: RoCE v2, and not an address of that link alone."""
    try:
        address = IPv6Address(gid.address)
    except AddressValueError:
        return False
    return gid.version == ROCE_V2 and not (address.is_link_local or address.is_unspecified)
