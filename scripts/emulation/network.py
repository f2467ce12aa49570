"""Namespaces, bridges and links held to a rate. Nothing of it shows up in the machine's own network."""

import re
import shutil
import subprocess
from pathlib import Path

from emulation.cluster import HEAD, STATE, Cluster, Refused, rate_bits, saved_in
from emulation.processes import call, entering, kill_all_in

# The same on every machine: reno is the one that every kernel allows in a namespace, and a route that remembers the
# losses of an earlier run makes runs differ.
_SYSCTLS = {"tcp_congestion_control": "reno", "tcp_no_metrics_save": "1"}
# Deeper than what some senders have under way to one receiver, so that nothing is dropped, as in a fabric with flow
# control: drops make times differ from run to run.
_QUEUE_BYTES = 32_000_000
_FEATURES = {
    "veth links": "ip link add probe0 type veth peer name probe1",
    "bridges": "ip link add probe2 type bridge",
    "the tbf queue": "tc qdisc add dev probe0 root tbf rate 1mbit burst 10kb limit 10kb",
    "the netem queue (for --delay and --loss)": "tc qdisc add dev probe1 root netem delay 1ms",
}


def check_kernel(cluster: Cluster) -> None:
    """Tries what will be needed in a namespace that vanishes with the shell that tries."""
    needed = list(_FEATURES.items())[: None if cluster.delay or cluster.loss else -1]
    tries = "\n".join(f"{command} || {{ echo '{feature}'; exit 1; }}" for feature, command in needed)
    ended = subprocess.run(["unshare", "--net", "sh", "-c", tries], capture_output=True, text=True)
    if ended.returncode:
        missing = ended.stdout.strip() or "network namespaces"
        said = " ".join(ended.stderr.split())
        raise Refused(f"this kernel does not give us {missing} ({said}); use another kernel, or do without")


def build(cluster: Cluster) -> None:
    if foreign := namespaces_of(cluster.name):
        raise Refused(
            f"{foreign[0]} is there and not from here; give another --name, or remove it with `ip netns delete`"
        )
    cluster.folder.mkdir(parents=True)
    cluster.hosts_file.write_text(cluster.hosts_text())
    for host in cluster.hosts:
        call(["ip", "netns", "add", cluster.namespace(host).name])
    _batch(cluster, "ip", HEAD, _switch_lines(cluster))
    _batch(cluster, "tc", HEAD, [line for node in cluster.node_names for line in _port_queues(cluster, node)])
    for node in cluster.node_names:
        _batch(cluster, "ip", node, _node_lines(cluster, node))
        _batch(cluster, "tc", node, _node_queues(cluster, node))
    for host in cluster.hosts:
        sysctls = " && ".join(f"echo {value} >/proc/sys/net/ipv4/{key}" for key, value in _SYSCTLS.items())
        call(entering(cluster, host, ["sh", "-c", sysctls]))


def remove(name: str) -> None:
    """Ends what runs in a cluster and removes it, whole or in pieces. Its folder comes first and goes last: without it,
    namespaces of such names are somebody else's."""
    if not (STATE / name).exists():
        return
    saved_in(name).unlink(missing_ok=True)  # from here on it is not whole
    namespaces = namespaces_of(name)
    kill_all_in(namespaces)
    for namespace in namespaces:
        call(["ip", "netns", "delete", namespace.name])
    shutil.rmtree(STATE / name, ignore_errors=True)


def change_rate(cluster: Cluster, node: str, rate: str, only: str | None) -> None:
    """Hold a node's links to another rate from now on, both ways or `only` one: egress or ingress."""
    place = "parent 1:1" if cluster.delay or cluster.loss else "root"
    rails, queue = range(cluster.rails), _tbf(cluster, rate)
    if only != "ingress":
        _batch(cluster, "tc", node, [f"qdisc change dev eth{rail} {place} {queue}" for rail in rails])
    if only != "egress":
        _batch(cluster, "tc", HEAD, [f"qdisc change dev {_port(node, rail)} root {queue}" for rail in rails])


def namespaces_of(name: str) -> list[Path]:
    pattern = re.compile(rf"{re.escape(name)}-(head|n\d+)")
    return sorted(path for path in Path("/run/netns").glob("*") if pattern.fullmatch(path.name))


def _batch(cluster: Cluster, tool: str, host: str, lines: list[str]) -> None:
    call([tool, "-n", cluster.namespace(host).name, "-batch", "-"], "\n".join(lines) + "\n")


def _switch_lines(cluster: Cluster) -> list[str]:
    """Bridges with an address, so that one can work from the head; links are made with both ends where they belong."""
    lines = ["link set lo up"]
    for rail in range(cluster.rails):
        lines += [
            f"link add rail{rail} type bridge",
            f"link set rail{rail} addrgenmode none {_packets(cluster, cluster.rate)} up",
            f"addr add {cluster.address(HEAD, rail)}/24 dev rail{rail}",
        ]
        for node in cluster.node_names:
            port = _port(node, rail)
            lines += [
                f"link add {port} type veth peer name eth{rail} netns {cluster.namespace(node).name}",
                f"link set {port} addrgenmode none master rail{rail} up",
            ]
    return lines


def _node_lines(cluster: Cluster, node: str) -> list[str]:
    lines = ["link set lo up"]
    for rail in range(cluster.rails):
        lines += [
            f"link set eth{rail} addrgenmode none {_packets(cluster, cluster.rate_of(node))} up",
            f"addr add {cluster.address(node, rail)}/24 dev eth{rail}",
        ]
    return lines


def _port(node: str, rail: int) -> str:
    return f"{node}-eth{rail}"


def _burst_bytes(cluster: Cluster, rate: str) -> int:
    """What may pass at once: little beside a message, and yet enough for a timer that is late.

    One that is later than this loses what could have passed meanwhile: 2 % of 400 Mbit/s with 32 kB, on two cores.
    """
    return max(int(rate_bits(rate) / 8 * cluster.burst_us * 1e-6), 32_000)


def _tbf(cluster: Cluster, rate: str) -> str:
    return f"tbf rate {rate} burst {_burst_bytes(cluster, rate)} limit {_QUEUE_BYTES}"


def _packets(cluster: Cluster, rate: str) -> str:
    """The largest packet that TCP hands to a link: well below the burst, or tbf cuts it up, which costs CPU time."""
    return f"gso_max_size {min(_burst_bytes(cluster, rate) // 2, 65_536)}"


def _port_queues(cluster: Cluster, node: str) -> list[str]:
    queue = _tbf(cluster, cluster.rate_of(node))
    return [f"qdisc add dev {_port(node, rail)} root {queue}" for rail in range(cluster.rails)]


def _node_queues(cluster: Cluster, node: str) -> list[str]:
    """Delay and loss are on a node's own end only, so that a packet meets them once on its way."""
    wishes = {"delay": cluster.delay, "loss": cluster.loss}
    netem = " ".join(f"{key} {value}" for key, value in wishes.items() if value)
    queue = _tbf(cluster, cluster.rate_of(node))
    lines = []
    for rail in range(cluster.rails):
        device = f"qdisc add dev eth{rail}"
        if netem:
            lines += [f"{device} root handle 1: netem limit 10000 {netem}", f"{device} parent 1:1 {queue}"]
        else:
            lines += [f"{device} root {queue}"]
    return lines
