"""NIC: interfaces: up, with an address, fast enough, of one MTU, in subnets of their own."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from ipaddress import ip_interface

from commbench.checks.devices import draw_together, judge_each, ports_of, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts, InterfaceFacts
from commbench.topology.graph import enumerate_keys
from commbench.units import GB

_SLOW_ETHERNET = 1 * GB / 8  # what a damaged cable leaves of a gigabit link is 100 Mbit/s; ours
_INTERFACES = "/sys/class/net/*"
_NO_INTERFACE = "no Ethernet or InfiniBand interface here"


def _interfaces(facts: Facts, *kinds: str) -> dict[str, InterfaceFacts] | None:
    if facts.interfaces is None:
        return None
    return {interface.name: interface for interface in facts.interfaces if interface.kind in kinds}


def _has_address(interface: InterfaceFacts) -> bool:
    """Whether it has an address that is not of its own link alone."""
    return any(not ip_interface(address).is_link_local for address in interface.addresses or ())


def _works(interface: InterfaceFacts) -> bool:
    """Whether it is up and has a carrier; interfaces without one, such as tunnels, say `unknown`."""
    return interface.is_up is True and interface.state in ("up", "unknown", "")


@rule(
    "NIC-INTERFACE",
    "fail",
    summary="an interface that reaches other nodes is up, and so is every one with an address",
    fix="ip link set INTERFACE up; look at cable and switch port (ethtool INTERFACE)",
    source="GCM's check-ethlink",
)
def check_interface(scene: Scene) -> Iterator[Seen]:
    """Rendezvous, bootstrap of NCCL and gloo go over an ordinary interface, also where the data goes over RDMA.

    An interface that has an address and is down is chosen by programs that look at addresses alone.
    """
    where, ports = f"{_INTERFACES}/operstate", {port.interface for port in (ports_of(scene.facts) or {}).values()}
    found = _interfaces(scene.facts, "ethernet", "infiniband", "bond", "bridge", "virtual", "wireless")
    if found is None:
        yield unseen(scene, "interfaces", where=where)
        return
    reaching = [name for name, interface in found.items() if _works(interface) and _has_address(interface)]
    down = [
        name
        for name, interface in found.items()
        if interface.is_up is not None and not _works(interface) and _has_address(interface) and name not in ports
        if interface.kind != "bridge"
    ]
    if down:
        yield warn(enumerate_keys(down), "has an address, and is down", "up", where)
    if reaching:
        yield ok(enumerate_keys(reaching), "up, with an address", where=where)
    elif scene.nodes > 1:
        yield fail("interfaces", "none but loopback is up with an address", "one that reaches the other nodes", where)
    elif not down:
        yield skip("interfaces", "none but loopback is up with an address; one node needs no other", where)


@rule(
    "NIC-SPEED",
    "warn",
    summary="Ethernet runs at 1 Gbit/s or more, and ports of one card alike",
    fix="ethtool INTERFACE shows what was negotiated; replace the cable or the module; look at the switch port",
    source="GCM's check-ethlink (the speed that is expected)",
)
def check_ethernet_speed(scene: Scene) -> Iterator[Seen]:
    """A cable with a damaged pair leaves 100 Mbit/s of a gigabit, and everything still seems to work.

    Ports of RDMA devices are NIC-RATE's. Virtual interfaces have no speed.
    """
    ports = {port.interface for port in (ports_of(scene.facts) or {}).values()}
    found = _interfaces(scene.facts, "ethernet")
    if found is not None:
        found = {name: one for name, one in found.items() if _works(one) and name not in ports}
    best: dict[str, float] = {}
    for interface in (found or {}).values():
        card = interface.pci_address.rpartition(".")[0]
        best[card] = max(best.get(card, 0.0), interface.bytes_per_second or 0.0)

    def judge(name: str, interface: InterfaceFacts) -> Seen | None:
        rate, card = interface.bytes_per_second, interface.pci_address.rpartition(".")[0]
        if not rate:
            return None
        least = max(_SLOW_ETHERNET, best[card] if card else 0.0)
        observed = f"{rate * 8 / GB:g} Gbit/s"
        if rate < least:
            return warn(name, observed, f"{least * 8 / GB:g} Gbit/s", f"{_INTERFACES}/speed")
        return ok(name, observed, where=f"{_INTERFACES}/speed")

    yield from judge_each(scene, "interfaces.bytes_per_second", found, _NO_INTERFACE, judge)


@rule(
    "NIC-MTU",
    "warn",
    summary="interfaces of one kind of link have the same MTU",
    fix="ip link set INTERFACE mtu 9000 on those that differ, and in the network's configuration",
    source="GCM's check-ethlink (9000)",
)
def check_mtu(scene: Scene) -> Iterator[Seen]:
    """Rails must be alike: packets of the larger MTU are dropped where the smaller one is, and connections hang.

    Interfaces of one kind and rate are compared; loopback and bridges have their own. CON-MTU compares nodes.
    """
    found = _interfaces(scene.facts, "ethernet", "infiniband")
    if found is not None:
        found = {name: one for name, one in found.items() if _works(one) and one.bytes_per_second}
    counts: dict[tuple[str, float | None], Counter[int]] = defaultdict(Counter)
    for one in (found or {}).values():
        if one.mtu_nbytes is not None:
            counts[_kind(one)][one.mtu_nbytes] += 1

    def judge(name: str, interface: InterfaceFacts) -> Seen | None:
        if interface.mtu_nbytes is None:
            return None
        expected = counts[_kind(interface)].most_common(1)[0][0]
        if interface.mtu_nbytes == expected:
            return ok(name, str(expected), where=f"{_INTERFACES}/mtu")
        return warn(name, str(interface.mtu_nbytes), f"{expected}, as most of its kind", f"{_INTERFACES}/mtu")

    yield from judge_each(scene, "interfaces.mtu_nbytes", found, "no interface with a rate is up", judge)


def _kind(interface: InterfaceFacts) -> tuple[str, float | None]:
    return interface.kind, interface.bytes_per_second


@rule(
    "NIC-SUBNET",
    "warn",
    summary="no two interfaces are in one subnet",
    fix="give each rail its own subnet, or set arp_ignore=1, arp_announce=2 and a routing table for each interface",
    source="NCCL issue 1581",
)
def check_subnet(scene: Scene) -> Iterator[Seen]:
    """Of two interfaces in one subnet the kernel sends everything by the first, whatever a program chose.

    Rails then share one wire, and answers come by another interface than the question went.
    """
    if scene.facts.interfaces is None:
        yield unseen(scene, "interfaces", "subnets", "the kernel's addresses")
        return
    subnets: dict[str, list[str]] = defaultdict(list)
    said = False
    for interface in scene.facts.interfaces:
        for address in interface.addresses or () if _works(interface) and interface.kind != "loopback" else ():
            said = said or "/" in address
            subnet = ip_interface(address).network
            if subnet.num_addresses > 1 and not subnet.is_link_local:
                subnets[str(subnet)].append(interface.name)
    shared = {subnet: sorted(set(names)) for subnet, names in subnets.items() if len(set(names)) > 1}
    yield from draw_together(
        warn(enumerate_keys(names), f"share {subnet}", "a subnet each", "the kernel's addresses")
        for subnet, names in shared.items()
    )
    if not shared:
        yield ok("subnets", f"{len(subnets)}, each on one interface") if said else skip("subnets", "not said")
