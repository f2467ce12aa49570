"""ENV: how ranks find each other: MASTER_ADDR, MASTER_PORT, the host's own name, and the numbers of ranks."""

from collections.abc import Iterator
from functools import partial
from ipaddress import ip_address

from commbench.checks.env_settings import Settings, env_rule
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn

_TORCHRUN = "torch's documentation of torchrun and of init_process_group, env://"
_NO_ADDRESS = "does not resolve"  # how the facts put it that the resolver knows no such name
_rule = partial(env_rule, severity="fail")


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address.strip("[]"))
    except ValueError:
        return address in ("localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback")
    return found.is_loopback or found.is_unspecified


@_rule(
    "ENV-MASTER-ADDR",
    subject="MASTER_ADDR",
    fine="not set: the launcher says where ranks meet",
    summary="MASTER_ADDR is an address of rank 0's node that the other nodes reach",
    fix="set it to the name or address of rank 0's node, as the others reach it, on all ranks",
    source=f"{_TORCHRUN}; threads of several frameworks whose ranks wait for ever",
)
def check_master(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """On 127.0.0.1 every node waits for its own rank 0 until the timeout. 0.0.0.0 is no address to connect to either.

    The own host name counts as loopback where /etc/hosts gives it 127.0.1.1, as Debian does. Where a launcher has
    put all ranks on one node all is fine; without one, nobody knows how many nodes the job will have.
    """
    setting = settings.get("MASTER_ADDR")
    if setting is None or not setting.is_plain:
        return
    value, host = setting.value, scene.facts.host
    is_own_loop = value == host.name and bool(host.resolves_to) and all(map(_is_loopback, host.resolves_to or ()))
    is_loopback = _is_loopback(value)
    if "/" in value or (value.count(":") == 1 and value.rpartition(":")[2].isdigit()):
        yield fail(setting.name, f"{setting}", "a host alone; the port is MASTER_PORT", setting.where)
    elif not (is_loopback or is_own_loop):
        yield ok(setting.name, str(setting), where=setting.where)
    elif scene.nodes == 1 and scene.facts.process.launcher:
        yield ok(setting.name, f"{setting}: loopback, which reaches all ranks of one node", where=setting.where)
    elif scene.nodes == 1:
        observed = f"{setting}: loopback, which reaches the ranks of one node alone"
        yield warn(setting.name, observed, "an address that all nodes of the job reach", setting.where)
    else:
        through = f", which resolves to {', '.join(host.resolves_to or ())}" if is_own_loop and not is_loopback else ""
        observed = f"{setting}{through}: each of the {scene.nodes} nodes would wait for itself"
        action = f"give {value} its real address in /etc/hosts, or set MASTER_ADDR to it" if through else ""
        yield fail(setting.name, observed, "an address that the other nodes reach", setting.where, action)


@_rule(
    "ENV-MASTER-PORT",
    subject="MASTER_PORT",
    fine="not set: the launcher says where ranks meet",
    summary="MASTER_PORT is a port that a job may open, outside the range that the kernel gives away",
    fix="choose a port from 1024 to 65535 below the ephemeral range (sysctl net.ipv4.ip_local_port_range)",
    source=_TORCHRUN,
)
def check_port(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """In the ephemeral range any connection of any program may hold the port already, now and then."""
    setting = settings.get("MASTER_PORT")
    if setting is None or not setting.is_plain:
        return
    is_number = setting.value.isascii() and setting.value.isdigit() and len(setting.value) <= 5
    port, ephemeral = int(setting.value) if is_number else 0, scene.facts.kernel.port_range
    if not 0 < port < 65536:
        yield fail(setting.name, str(setting), "1024 to 65535", setting.where)
    elif port < 1024:
        yield warn(setting.name, f"{setting} needs the rights of root", "1024 to 65535", setting.where)
    elif ephemeral and ephemeral[0] <= port <= ephemeral[1]:
        observed = f"{setting} is in the ephemeral range, {ephemeral[0]} to {ephemeral[1]}"
        yield warn(setting.name, observed, f"below {ephemeral[0]}", setting.where)
    else:
        yield ok(setting.name, str(setting), where=setting.where)


@_rule(
    "ENV-OWN-NAME",
    subject="host name",
    fine="gloo does not need it",
    summary="the host's own name resolves to an address that other nodes reach, where gloo asks for it",
    fix="set GLOO_SOCKET_IFNAME, or give the name its real address in /etc/hosts",
    source="torch's ProcessGroupGloo takes the address of its own host name when GLOO_SOCKET_IFNAME is not set",
)
def check_own_name(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Debian gives the host's name 127.0.1.1 in /etc/hosts: gloo listens there, and no other node reaches it."""
    addresses, reason = scene.facts.host.resolves_to, scene.facts.why_unseen("host.resolves_to")
    if settings.get("GLOO_SOCKET_IFNAME"):
        yield ok("host name", "GLOO_SOCKET_IFNAME is set, so gloo does not ask for it")
    elif addresses is None and _NO_ADDRESS not in reason:
        yield skip("host name", reason)
    elif addresses and scene.nodes > 1 and any(map(_is_loopback, addresses)):
        if settings.value("MASTER_ADDR") == scene.facts.host.name:
            yield skip("host name", "ENV-MASTER-ADDR says it: MASTER_ADDR is that name")
            return
        observed = f"{scene.facts.host.name} resolves to {', '.join(addresses)}: gloo would listen there"
        yield fail("host name", observed, "an address that other nodes reach", "/etc/hosts")
    elif not addresses and scene.nodes > 1:
        yield warn("host name", f"{scene.facts.host.name} does not resolve: gloo would listen on loopback")
    else:
        yield ok("host name", f"resolves to {', '.join(addresses or ()) or 'nothing'}; nodes: {scene.nodes}")


@_rule(
    "ENV-RANKS",
    subject="ranks",
    fine="not set",
    summary="RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE fit together",
    fix="let torchrun or srun set them, or set all of them, or none",
    source=_TORCHRUN,
)
def check_ranks(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Ranks go from 0 to one below the size. With a value of an earlier job, or RANK without WORLD_SIZE, ranks wait for
    others that never come.
    """
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    given = {name: setting for name in names if (setting := settings.get(name)) and "$" not in setting.value}
    where = next((setting.where for setting in given.values()), "")
    bad = next((setting for setting in given.values() if not _is_number(setting.value)), None)
    if bad:
        yield fail("ranks", f"{bad} is no number", where=bad.where)
        return
    numbers = {name: int(setting.value) for name, setting in given.items()}
    fault = _rank_fault(numbers)
    if fault:
        yield fail("ranks", fault, where=where)
    elif "RANK" in numbers and "WORLD_SIZE" not in settings.by_name:
        yield fail("ranks", f"RANK={numbers['RANK']} without WORLD_SIZE", where=where)
    elif numbers:
        yield ok("ranks", " ".join(f"{name}={number}" for name, number in numbers.items()), where=where)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _rank_fault(numbers: dict[str, int]) -> str:
    for rank, size in (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE"), ("LOCAL_RANK", "WORLD_SIZE")):
        if rank in numbers and size in numbers and numbers[rank] >= numbers[size]:
            return f"{rank}={numbers[rank]} and {size}={numbers[size]}: ranks are 0 to {numbers[size] - 1}"
    if numbers.get("LOCAL_WORLD_SIZE", 0) > numbers.get("WORLD_SIZE", 1 << 30):
        return f"LOCAL_WORLD_SIZE={numbers['LOCAL_WORLD_SIZE']} is above WORLD_SIZE={numbers['WORLD_SIZE']}"
    return ""
