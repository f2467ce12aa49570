"""NIC: counters of errors of ports, and carriers that were lost."""

import re
from collections.abc import Iterator

from commbench.checks.devices import NO_RDMA, judge_each, ports_of, unseen
from commbench.checks.registry import Scene, Seen, ok, rule, warn
from commbench.machine.facts import RdmaPort

_PORTS = "/sys/class/infiniband/*/ports/*"
_MANY_FLAPS = 5  # Azure's node health checks: lost carrier in 24 hours
_MANY_CARRIER_CHANGES = 20  # ours: a start or a reload makes two to four
_CARRIER = re.compile(r"lost carrier|link (?:is )?down", re.IGNORECASE)
# The counts, since the driver was loaded, from which a port is warned of. Azure's runbooks have symbol errors 0,
# receive errors 100, discards 1000 within a test; here the time is unknown, so nccl-doctor's higher marks are taken.
_LINK_ERRORS = {
    "symbol_error": 100,
    "port_rcv_errors": 100,
    "link_error_recovery": 10,
    "local_link_integrity_errors": 10,
}
_LINK_DOWNED = {"link_downed": _MANY_FLAPS}
_DISCARDS = {"port_xmit_discards": 1000, "excessive_buffer_overrun_errors": 1000}
_RETRANSMITS = {"local_ack_timeout_err": 1000, "packet_seq_err": 1000, "rnr_nak_retry_err": 1000}


def _judge_counters(scene: Scene, limits: dict[str, int]) -> Iterator[Seen]:
    where = f"{_PORTS}/counters, hw_counters"

    def judge(name: str, port: RdmaPort) -> Seen | None:
        counters = port.counters or {}
        counts = {counter: counters[counter] for counter in limits if counter in counters}
        if not counts:
            return None
        many = {counter: count for counter, count in counts.items() if count >= limits[counter]}
        if many:
            expected = ", ".join(f"{counter} below {limits[counter]}" for counter in many)
            return warn(name, ", ".join(f"{counter} {count}" for counter, count in many.items()), expected, where)
        return ok(name, f"{', '.join(counts)}: few or none", where=where)

    yield from judge_each(scene, "rdma.ports.counters", ports_of(scene.facts), NO_RDMA, judge)


@rule(
    "NIC-LINK-ERRORS",
    "warn",
    summary="ports have few errors on their link",
    fix="clean or replace cable and transceiver (mlxlink -d DEVICE -m -c); watch whether the count grows",
    source="ai-infrastructure-on-azure; nccl-doctor; GCM's check-ib-counters",
)
def check_link_errors(scene: Scene) -> Iterator[Seen]:
    """Symbol and receive errors since the driver was loaded: a dirty connector, a bent cable, an ageing transceiver."""
    yield from _judge_counters(scene, _LINK_ERRORS)


@rule(
    "NIC-LINK-DOWNED",
    "warn",
    summary="ports have not lost their link five times",
    fix="look at cable, transceiver and switch port; take the port out of use until it is stable",
    source="Azure's node health checks (flapping); nvidia-resiliency-ext (link_downed)",
)
def check_link_downed(scene: Scene) -> Iterator[Seen]:
    """A link that comes and goes ends jobs: NCCL's connections time out and are not made again.

    Some counts come from starts of the node or of its switch.
    """
    yield from _judge_counters(scene, _LINK_DOWNED)


@rule(
    "NIC-DISCARDS",
    "warn",
    summary="ports have discarded few packets",
    fix="look at flow control (mlnx_qos -i INTERFACE) and at congestion on the switch",
    source="ai-infrastructure-on-azure (1000)",
)
def check_discards(scene: Scene) -> Iterator[Seen]:
    """Packets that waited too long, or did not fit into buffers: the fabric was congested, or not lossless."""
    yield from _judge_counters(scene, _DISCARDS)


@rule(
    "NIC-RETRANSMITS",
    "warn",
    summary="RDMA connections have seldom sent again",
    fix="look for loss: flow control and ECN must agree on NICs and switches; then at the link's errors",
    source="the mlx5 driver's documentation of hw_counters; the numbers are ours",
)
def check_retransmits(scene: Scene) -> Iterator[Seen]:
    """Each timeout stalls a connection for a while; when retries are used up NCCL reports an error and the job ends."""
    yield from _judge_counters(scene, _RETRANSMITS)


@rule(
    "NIC-FLAPS",
    "warn",
    summary="no interface or port lost its carrier again and again",
    fix="look at cable, transceiver and switch port, and at dmesg for the time",
    source="Azure's node health checks (five a day); GCM's check-ethlink (carrier_changes)",
)
def check_flaps(scene: Scene) -> Iterator[Seen]:
    """Lost carriers since the start, as the kernel counts them, else as its log tells of them."""
    where = "/sys/class/net/*/carrier_changes, the kernel's log"
    facts = scene.facts
    if facts.interfaces is None and facts.kernel.messages is None:
        yield unseen(scene, "interfaces", "lost carriers", where)
        return
    changes = {one.name: one.carrier_changes for one in facts.interfaces or () if one.carrier_changes is not None}
    lines = [line for line in facts.kernel.messages or () if _CARRIER.search(line)]
    flapping = {name: count for name, count in changes.items() if count >= _MANY_CARRIER_CHANGES}
    for name, count in flapping.items():
        yield warn(name, f"{count} carrier changes", f"fewer than {_MANY_CARRIER_CHANGES}", where)
    if flapping:
        return
    if len(lines) >= _MANY_FLAPS:
        yield warn("kernel's log", f"{len(lines)} lines, the last: {lines[-1]}", f"fewer than {_MANY_FLAPS}", where)
    elif changes or facts.kernel.messages is not None:
        yield ok("lost carriers", "few or none", where=where)
    else:
        yield unseen(scene, "interfaces.carrier_changes", "lost carriers", where)
