"""ENV: the RDMA devices that NCCL_IB_HCA selects, and the GID that they use."""

from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Setting, Settings, as_integer, env_rule
from commbench.checks.name_lists import NameList, fault_in_list, parse_names
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn
from commbench.machine.facts import GidFacts, RdmaPort

_NAME = "NCCL_IB_HCA"
_GUIDE = "NCCL's user guide, NCCL_IB_HCA"
_rule = partial(env_rule, subject=_NAME, severity="warn", fine="not set: NCCL uses every active port")


def _list(settings: Settings) -> tuple[Setting, NameList] | None:
    """The setting and its list, where it is set and can be read as one."""
    setting = settings.get(_NAME)
    if setting is None or not setting.is_plain or fault_in_list(setting.value, has_ports=True):
        return None
    return setting, parse_names(setting.value)


def _ports(scene: Scene) -> list[RdmaPort]:
    return [port for device in scene.facts.rdma or () for port in device.ports]


def _unseen(scene: Scene, setting: Setting) -> Seen:
    reason = scene.facts.why_unseen("rdma") if scene.facts.rdma is None else "no RDMA device is visible here"
    return skip(_NAME, f"{setting}: {reason}", setting.where)


@_rule(
    "ENV-HCA-SYNTAX",
    summary="NCCL_IB_HCA is a list as NCCL reads it",
    fix="write it as [^][=]device[:port],device[:port]…",
    source=_GUIDE,
)
def check_syntax(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """One ^ and one = stand in front and count for all: in `^=mlx5_8,^=mlx5_14` the second name is `^=mlx5_14`.

    No device has that name, so it stays in use. A blank after a comma is part of the next name.
    """
    setting = settings.get(_NAME)
    if setting and setting.is_plain:
        fault = fault_in_list(setting.value, has_ports=True)
        yield warn(_NAME, f"{setting}: {fault}", where=setting.where) if fault else ok(_NAME, str(setting))


@_rule(
    "ENV-HCA-PREFIX",
    summary="no name in NCCL_IB_HCA means further devices by accident",
    fix="begin the list with = so that its names are exact",
    source=_GUIDE,
)
def check_prefix(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Without = names are prefixes: mlx5_1 means mlx5_10 to mlx5_19 as well.

    Where the machine's devices are seen they are compared; else a name that ends in one digit, 1 to 3, is warned of,
    as a machine has at most 32 devices.
    """
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    exact = f"{_NAME}={'^' if names.is_exclude else ''}={setting.value.removeprefix('^')}"
    devices = [device.name for device in scene.facts.rdma or ()]
    listed = {entry.name for entry in names.entries}
    for entry in () if names.is_exact else names.entries:
        if (devices and entry.name not in devices) or not entry.name[-1].isdigit():
            continue  # the common beginning of several names, as it is meant
        further = [name for name in devices if name.startswith(entry.name) and name not in listed]
        is_open = not devices and entry.name[-1] in "123" and not entry.name[-2:-1].isdigit()
        if further or is_open:
            means = ", ".join(further) if further else f"{entry.name}0 to {entry.name}9, where they exist"
            observed = f"{setting}: {entry.name} means also {means}"
            yield warn(_NAME, observed, exact, setting.where, f"write {exact}")
            return
    yield ok(_NAME, f"{setting}: no name means more than it says", where=setting.where)


@_rule(
    "ENV-HCA-PORT",
    summary="NCCL_IB_HCA excludes whole devices, not a port of one",
    fix="leave :port out to exclude the device",
    source=_GUIDE,
)
def check_port(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """`^mlx5_0:1` excludes port 1 of mlx5_0 only: a second port stays in use. With one port it is the same."""
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    for entry in names.entries if names.is_exclude else ():
        others = [port for port in _ports(scene) if entry.matches(port.device, None, names.is_exact)]
        has_more = any(str(port.number) != entry.port for port in others) if others else True
        if entry.port and has_more:
            observed = f"{setting} excludes port {entry.port} of {entry.name}, not its other ports"
            yield warn(_NAME, observed, f"^={entry.name}", setting.where)
            return
    yield ok(_NAME, str(setting), where=setting.where)


@_rule(
    "ENV-HCA-MISSING",
    severity="fail",
    summary="every name in NCCL_IB_HCA is a device of this machine",
    fix="name devices as ibv_devices lists them, the same list on every node",
    source=f"{_GUIDE}; without a device NCCL goes on over sockets",
)
def check_missing(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Where no device fits, NCCL falls back to TCP without an error, ten times slower; where one is missing, a rail is.

    Names of devices change with drivers and slots: a list that is right on one node is wrong on another.
    """
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    ports = _ports(scene)
    if not ports:
        yield _unseen(scene, setting)
        return
    have = ", ".join(sorted({f"{port.device}:{port.number}" for port in ports}))
    missing = [
        entry.name
        for entry in (() if names.is_exclude else names.entries)
        if not any(entry.matches(port.device, port.number, names.is_exact) for port in ports)
    ]
    if not any(names.selects(port.device, port.number) for port in ports):
        yield fail(_NAME, f"{setting} selects none of {have}: NCCL will use sockets", where=setting.where)
    elif missing:
        yield warn(_NAME, f"{setting}: there is no {', '.join(missing)}", f"of {have}", setting.where)
    else:
        yield ok(_NAME, f"{setting}: all are here", where=setting.where)


@_rule(
    "ENV-HCA-DOWN",
    severity="fail",
    summary="the ports that NCCL_IB_HCA selects are active",
    fix="bring the port up (ibstat, ip link), or take it out of the list on every node",
    source=f"{_GUIDE}; NCCL passes over ports that are not active",
)
def check_down(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """NCCL leaves ports out that are not active: with one down a rail is lost, with all down it uses sockets."""
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    chosen = [port for port in _ports(scene) if port.state and names.selects(port.device, port.number)]
    if not chosen:
        yield _unseen(scene, setting) if not scene.facts.rdma else skip(_NAME, "no port with a known state is selected")
        return
    down = [f"{port.device}:{port.number} is {port.state}" for port in chosen if port.state != "active"]
    say = fail if len(down) == len(chosen) else warn
    if down:
        yield say(_NAME, f"{setting}: {', '.join(down)}", "active", setting.where)
    else:
        yield ok(_NAME, f"{setting}: {len(chosen)} active ports", where=setting.where)


@_rule(
    "ENV-HCA-MIXED",
    summary="the ports that NCCL_IB_HCA selects are of one kind and rate",
    fix="leave storage and management adapters and bonds out of the list",
    source="a guide of ML engineering on NCCL's network choice; NCCL cannot join InfiniBand and RoCE",
)
def check_mixed(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """InfiniBand and Ethernet ports do not reach each other, and the slowest rail is waited for by all."""
    found = _list(settings)
    if found is None:
        return
    setting, names = found
    chosen = [port for port in _ports(scene) if port.state == "active" and names.selects(port.device, port.number)]
    kinds = sorted({(port.link_layer, port.rate_text or str(port.bytes_per_second)) for port in chosen})
    if not chosen:
        yield _unseen(scene, setting) if not scene.facts.rdma else skip(_NAME, "no active port is selected")
    elif len(kinds) > 1:
        shown = "; ".join(f"{layer} {rate}" for layer, rate in kinds)
        yield warn(_NAME, f"{setting} mixes {shown}", "ports of one kind and rate", setting.where)
    else:
        yield ok(_NAME, f"{setting}: all of one kind", where=setting.where)


@env_rule(
    "ENV-GID-INDEX",
    "fail",
    subject="NCCL_IB_GID_INDEX",
    fine="not set: NCCL chooses by itself since 2.21",
    summary="NCCL_IB_GID_INDEX is needed, and names a routable RoCE v2 address on every port",
    fix="leave it unset since NCCL 2.21; before, the index that show_gids lists as v2 with the port's IPv4 address",
    source="NCCL's user guide, NCCL_IB_GID_INDEX and NCCL_IB_ROCE_VERSION_NUM",
)
def check_gid(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """On RoCE a port has several GIDs: v1 and v2, link-local and routable. NCCL before 2.21 needed to be told which.

    The index moves when an address comes or goes, so that a fixed one is empty after a flap of the link and connections
    fail. On InfiniBand it is not needed at all. An index past the table or of v1 reaches nobody behind a router.
    """
    setting = settings.by_name.get("NCCL_IB_GID_INDEX")
    if setting is None or not setting.is_plain:
        return
    if not setting.value:
        yield warn(setting.name, "set to nothing", "unset, or a number", setting.where, "unset it")
        return
    index, rest = as_integer(setting.value)
    if rest or index < 0:
        yield ok(setting.name, f"{setting}: no index, so NCCL chooses", where=setting.where)
        return
    yield from _judge_gid(scene, settings, setting, index)


def _judge_gid(scene: Scene, settings: Settings, setting: Setting, index: int) -> Iterator[Seen]:
    names = _list(settings)
    ports = [port for port in _ports(scene) if names is None or names[1].selects(port.device, port.number)]
    for port in ports:
        fault = _gid_fault(port, index)
        if fault:
            say = warn if "v1" in fault else fail
            yield say(setting.name, f"{setting}: on {port.device}:{port.number} {fault}", where=setting.where)
            return
    if ports and all(port.link_layer == "InfiniBand" for port in ports):
        yield warn(setting.name, f"{setting}: not needed on InfiniBand", "unset", setting.where, "unset it")
    elif settings.is_since(2, 21):
        yield warn(
            setting.name, f"{setting}: not needed since NCCL 2.21, and moves", "unset", setting.where, "unset it"
        )
    elif ports and all(port.gids is not None for port in ports):
        yield ok(setting.name, f"{setting}: RoCE v2 and routable on every port", where=setting.where)
    else:
        why = scene.facts.why_unseen("rdma")
        yield skip(setting.name, f"{setting}: neither GIDs nor NCCL's version are known: {why}", setting.where)


def _gid_fault(port: RdmaPort, index: int) -> str:
    """What is wrong with the GID of an Ethernet port; empty if nothing, or nothing is known."""
    if port.link_layer != "Ethernet" or port.gids is None:
        return ""
    gid = next((gid for gid in port.gids if gid.index == index), GidFacts(index, "", "zero"))
    if gid.kind == "zero":
        return "that GID is empty"
    if gid.version != "RoCE v2":
        return "that GID is RoCE v1, which no router passes on"
    return "that GID is link-local, and reaches nobody behind a router" if gid.kind == "link-local" else ""
