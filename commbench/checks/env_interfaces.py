"""ENV: which interfaces NCCL and gloo use, and which network NCCL is told to take."""

from collections.abc import Iterator
from functools import partial
from ipaddress import ip_interface

from commbench.checks.env_settings import Setting, Settings, env_rule
from commbench.checks.name_lists import NameList, fault_in_list, parse_names
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn
from commbench.machine.facts import InterfaceFacts

_NCCL, _GLOO = "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"
# Bridges and tunnels that only reach this node's containers and virtual machines.
_LOCAL_ONLY = ("lo", "docker", "veth", "virbr", "cni", "flannel", "cali", "podman", "br-", "dummy", "tun", "tap")
_GUIDE = "NCCL's user guide, NCCL_SOCKET_IFNAME"
_ELSEWHERE = "name the interface that reaches the other nodes, as in NCCL_SOCKET_IFNAME==eth0"
_nccl_rule = partial(env_rule, subject=_NCCL, fine="not set: NCCL chooses by itself")
_gloo_rule = partial(env_rule, subject=_GLOO, fine="not set")


def is_local_only(name: str) -> bool:
    """Whether an interface of that name reaches only this node."""
    return name == "lo" or name.startswith(_LOCAL_ONLY[1:])


def _list(settings: Settings) -> tuple[Setting, NameList] | None:
    setting = settings.get(_NCCL)
    if setting is None or not setting.is_plain or fault_in_list(setting.value, has_ports=False):
        return None
    return setting, parse_names(setting.value)


def _usable(interface: InterfaceFacts) -> bool:
    """Whether it is up, and has an address; what is not known counts as being so."""
    return interface.is_up is not False and interface.addresses != ()


@_nccl_rule(
    "ENV-IFNAME-SYNTAX",
    "warn",
    summary="NCCL_SOCKET_IFNAME is a list as NCCL reads it",
    fix="write it as [^][=]name,name…",
    source=_GUIDE,
)
def check_syntax(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """One ^ and one = in front count for all: in `^docker0,^lo` the second name is `^lo`, which nothing has."""
    setting = settings.get(_NCCL)
    if setting and setting.is_plain:
        fault = fault_in_list(setting.value, has_ports=False)
        yield warn(_NCCL, f"{setting}: {fault}", where=setting.where) if fault else ok(_NCCL, str(setting))


@_nccl_rule(
    "ENV-IFNAME-LOCAL",
    "fail",
    summary="NCCL_SOCKET_IFNAME does not lead over loopback or a container's bridge to other nodes",
    fix=_ELSEWHERE,
    source=f"{_GUIDE}: setting it switches off the choice that avoids lo and docker",
)
def check_local(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL avoids lo and docker by itself, but not once this is set: `lo` then reaches no other node, and `^lo` lets
    docker0 in, whose address is the same on every node.
    """
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    if scene.nodes == 1:
        yield ok(_NCCL, f"{setting}: one node, so every interface reaches all ranks", where=setting.where)
    elif not names.is_exclude and all(is_local_only(entry.name) for entry in names.entries):
        yield fail(_NCCL, f"{setting} reaches none of the other {scene.nodes - 1} nodes", where=setting.where)
    elif scene.facts.interfaces is None:
        yield skip(_NCCL, f"{setting}: {scene.facts.why_unseen('interfaces')}", setting.where)
    else:
        let_in = [
            it.name
            for it in scene.facts.interfaces
            if names.selects(it.name) and _usable(it) and is_local_only(it.name)
        ]
        if let_in:
            yield warn(_NCCL, f"{setting} lets {', '.join(let_in)} in", "only what reaches other nodes", setting.where)
        else:
            yield ok(_NCCL, str(setting), where=setting.where)


@_nccl_rule(
    "ENV-IFNAME-MISSING",
    "fail",
    summary="NCCL_SOCKET_IFNAME selects an interface of this machine that is up",
    fix="name an interface as ip -br address lists it; names can differ from node to node",
    source=f"{_GUIDE}; NCCL ends with: no socket interface found",
)
def check_missing(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL ends at its start when no interface fits. An interface can have another name on another node."""
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    if scene.facts.interfaces is None:
        yield skip(_NCCL, f"{setting}: {scene.facts.why_unseen('interfaces')}", setting.where)
        return
    chosen = [interface for interface in scene.facts.interfaces if names.selects(interface.name)]
    have = "one of " + ", ".join(interface.name for interface in scene.facts.interfaces)
    if not chosen:
        yield fail(_NCCL, f"{setting}: there is no such interface", have, setting.where)
    elif not any(map(_usable, chosen)):
        shown = ", ".join(interface.name for interface in chosen)
        yield fail(_NCCL, f"{setting}: {shown} is down or has no address", have, setting.where)
    else:
        yield ok(_NCCL, f"{setting}: {', '.join(it.name for it in chosen if _usable(it))}", where=setting.where)


@_nccl_rule(
    "ENV-IFNAME-PREFIX",
    "warn",
    summary="NCCL_SOCKET_IFNAME means one interface, or ones that are alike",
    fix="begin the list with = so that its names are exact",
    source=_GUIDE,
)
def check_prefix(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Names are prefixes unless the list begins with =: `ens` means every ens…, and bootstrap takes the first of them.

    Interfaces that are alike, of one rate and in one subnet, are fine.
    """
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    if scene.facts.interfaces is None:
        is_prefix = not names.is_exact and any(not entry.name[-1].isdigit() for entry in names.entries)
        note = " is a prefix of names" if is_prefix else ""
        yield skip(_NCCL, f"{setting}{note}: {scene.facts.why_unseen('interfaces')}", setting.where)
        return
    chosen = [
        it for it in scene.facts.interfaces if names.selects(it.name) and _usable(it) and not is_local_only(it.name)
    ]
    if len({_network(interface) for interface in chosen}) > 1 and not names.is_exclude and not names.is_exact:
        shown = ", ".join(interface.name for interface in chosen)
        observed = f"{setting} means {shown}, which differ: bootstrap takes the first"
        yield warn(_NCCL, observed, f"{_NCCL}=={chosen[0].name}", setting.where)
    else:
        yield ok(_NCCL, str(setting), where=setting.where)


def _network(interface: InterfaceFacts) -> tuple[float | None, str]:
    """Its rate, and the subnet of its first IPv4 address: of 16 bits where the subnet is not known."""
    ipv4 = next((address for address in interface.addresses or () if "." in address), "")
    try:
        network = str(ip_interface(ipv4 if "/" in ipv4 else f"{ipv4}/16").network) if ipv4 else ""
    except ValueError:
        network = ipv4
    return interface.bytes_per_second, network


@_gloo_rule(
    "ENV-GLOO-IFNAME",
    "fail",
    summary="GLOO_SOCKET_IFNAME is a name, or names with commas, without NCCL's ^, = and prefixes",
    fix="write the interface's whole name, as in GLOO_SOCKET_IFNAME=eth0",
    source="torch's ProcessGroupGloo: each name is looked up as it is",
)
def check_gloo_grammar(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """gloo does not know NCCL's grammar: `^lo` and `=eth0` are looked up as names of interfaces, and there are none.

    init_process_group then fails with: unable to find address for ^lo. A prefix is no name either.
    """
    setting = settings.get(_GLOO)
    if setting is None or not setting.is_plain:
        return
    for name in setting.value.split(","):
        fits = [it.name for it in scene.facts.interfaces or () if it.name.startswith(name.strip("^=*"))]
        is_prefix = bool(fits) and name not in fits
        if not name or name[0] in "^=" or name != name.strip() or "*" in name or is_prefix:
            usable = [it.name for it in scene.facts.interfaces or () if _usable(it) and not is_local_only(it.name)]
            real = [it for it in usable if it in fits] if name[:1] != "^" else usable
            expected = f"{_GLOO}={real[0]}" if real else "a whole name, such as eth0"
            yield fail(_GLOO, f"{setting}: {name!r} is looked up as it is", expected, setting.where)
            return
    yield ok(_GLOO, str(setting), where=setting.where)


@_gloo_rule(
    "ENV-GLOO-MISSING",
    "fail",
    summary="GLOO_SOCKET_IFNAME names an interface of this machine that is up and reaches the other nodes",
    fix="name the interface that reaches the other nodes, as ip -br address lists it",
    source="torch's ProcessGroupGloo",
)
def check_gloo_missing(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """With an interface that is absent, down, or loopback among several nodes, init_process_group fails or hangs."""
    setting = settings.get(_GLOO)
    if setting is None or not setting.is_plain or any(mark in setting.value for mark in "^=*"):
        return
    names = [name.strip() for name in setting.value.split(",")]
    by_name = {interface.name: interface for interface in scene.facts.interfaces or ()}
    for name in names:
        if scene.nodes > 1 and is_local_only(name):
            yield fail(_GLOO, f"{setting} reaches none of the other {scene.nodes - 1} nodes", where=setting.where)
            return
        if name in by_name and not _usable(by_name[name]):
            yield fail(_GLOO, f"{setting}: {name} is down or has no address", where=setting.where)
            return
        if by_name and not any(have.startswith(name) for have in by_name):
            yield fail(_GLOO, f"{setting}: there is no {name}", f"one of {', '.join(by_name)}", setting.where)
            return
    if scene.facts.interfaces is None:
        yield skip(_GLOO, f"{setting}: {scene.facts.why_unseen('interfaces')}", setting.where)
    else:
        yield ok(_GLOO, str(setting), where=setting.where)


@env_rule(
    "ENV-UCX-DEVICES",
    "fail",
    subject="UCX_NET_DEVICES",
    fine="not set: UCX uses every device",
    summary="UCX_NET_DEVICES names devices with their port, or interfaces, of this machine",
    fix="write device:port, as in UCX_NET_DEVICES=mlx5_0:1; ucx_info -d lists them",
    source="UCX's documentation, UCX_NET_DEVICES",
)
def check_ucx(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """UCX wants the port of a device, mlx5_0:1, and takes whole names: mlx5_0 alone is no device to it."""
    setting = settings.get("UCX_NET_DEVICES")
    if setting is None or not setting.is_plain or setting.value == "all":
        return
    if scene.facts.rdma is None or scene.facts.interfaces is None or not scene.facts.rdma:
        reason = "no RDMA device is visible here" if scene.facts.rdma == () else scene.facts.why_unseen("rdma")
        yield skip(setting.name, f"{setting}: {reason}", setting.where)
        return
    have = {f"{port.device}:{port.number}" for device in scene.facts.rdma for port in device.ports}
    have |= {interface.name for interface in scene.facts.interfaces}
    missing = [name for name in setting.value.removeprefix("^").split(",") if name not in have]
    if missing:
        yield fail(setting.name, f"{setting}: there is no {', '.join(missing)}", ", ".join(sorted(have)), setting.where)
    else:
        yield ok(setting.name, str(setting), where=setting.where)
