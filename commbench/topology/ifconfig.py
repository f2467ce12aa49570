"""`ifconfig`, of net-tools old and new: which interfaces may carry traffic to other nodes."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Topology, enumerate_keys
from commbench.topology.matrix import plain_lines

FORMAT = "ifconfig"
_NEW = re.compile(r"([\w.:@-]{1,32}): flags=\d{1,6}<([A-Z_,]{0,200})>  mtu \d{1,6}\s{0,8}")
_OLD = re.compile(r"([\w.:@-]{1,32})\s{1,16}Link encap:[^\n]{1,200}")
_OLD_FLAGS = re.compile(r"\s{4,16}((?:[A-Z]{2,16} ){1,12}) ?MTU:\d{1,6}[^\n]{0,80}")
_ADDRESS = re.compile(r"\s{4,16}inet (?:addr:)?([\d.]{7,15})\b[^\n]{0,120}")
_OF_CONTAINERS = ("docker", "br-", "veth", "virbr", "cni", "flannel", "cali", "vnet", "tap", "tun")


@dataclass(slots=True)
class _Interface:
    name: str
    flags: tuple[str, ...] = ()
    address: str = ""


def recognises(text: str) -> bool:
    """Whether `text` has the head of an interface as ifconfig prints it."""
    return any(_NEW.fullmatch(line) or _OLD.fullmatch(line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """A NIC for each interface but loopback and those of containers. Raises CommbenchError if there is none at all."""
    interfaces = _read_interfaces(text)
    if not interfaces:
        raise CommbenchError(f"{source} tells of no interface: give the whole output of ifconfig -a.")
    if len(interfaces) > MAX_DEVICES or len({interface.name for interface in interfaces}) < len(interfaces):
        raise CommbenchError(f"{source} has an interface twice, or too many: give the output of one machine.")
    usable = [interface for interface in interfaces if not _is_beside(interface)]
    devices = tuple(
        Device(f"NIC{number}", "nic", interface.name, state="up" if "UP" in interface.flags else "down")
        for number, interface in enumerate(usable)
    )
    return Topology(FORMAT, source, devices, findings=tuple(_findings(interfaces, usable, source)))


def _read_interfaces(text: str) -> list[_Interface]:
    found: list[_Interface] = []
    for line in plain_lines(text):
        if match := _NEW.fullmatch(line):
            found.append(_Interface(shown(match[1]), tuple(match[2].split(","))))
        elif match := _OLD.fullmatch(line):
            found.append(_Interface(shown(match[1])))
        elif found and (match := _OLD_FLAGS.fullmatch(line)):
            found[-1].flags = tuple(match[1].split())
        elif found and not found[-1].address and (match := _ADDRESS.fullmatch(line)):
            found[-1].address = _whole(match[1])
    return found


def _whole(text: str) -> str:
    """An IPv4 address; empty for what is none."""
    try:
        return str(IPv4Address(text))
    except AddressValueError:
        return ""


def _is_beside(interface: _Interface) -> bool:
    return "LOOPBACK" in interface.flags or interface.name == "lo" or interface.name.startswith(_OF_CONTAINERS)


def _findings(interfaces: list[_Interface], usable: list[_Interface], source: str) -> list[Finding]:
    beside = [interface.name for interface in interfaces if _is_beside(interface)]
    ready = [interface for interface in usable if interface.address and {"UP", "RUNNING"} <= set(interface.flags)]
    idle = [interface.name for interface in usable if interface not in ready]
    findings = []
    if ready:
        findings.append(
            Finding(
                "TOPO-INTERFACE",
                enumerate_keys(interface.name for interface in ready),
                "ok",
                f"up, with {', '.join(interface.address for interface in ready[:8])}",
                "an interface that reaches the other nodes",
                source,
                f"exactly these are NCCL_SOCKET_IFNAME=={','.join(interface.name for interface in ready[:8])}",
            )
        )
    else:
        findings.append(
            Finding(
                "TOPO-INTERFACE",
                "interfaces",
                "warn",
                "none is up and has an IPv4 address, but for loopback and containers",
                "an interface that reaches the other nodes",
                source,
            )
        )
    if beside:
        findings.append(
            Finding(
                "TOPO-INTERFACE-BESIDE",
                enumerate_keys(beside),
                "ok",
                "loopback, or of containers and virtual machines: it reaches no other node",
                "",
                source,
                "leave it out of NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME",
            )
        )
    if idle:
        findings.append(
            Finding("TOPO-INTERFACE-DOWN", enumerate_keys(idle), "skip", "down, or without an IPv4 address", "", source)
        )
    return findings
