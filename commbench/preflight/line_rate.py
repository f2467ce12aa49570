"""What a node's link can carry at most, as its hardware says, and what the usual pair reached of it."""

from dataclasses import dataclass

from commbench.machine.facts import Facts
from commbench.report.preflight import PairSearch, Stage
from commbench.units import GB

# Below a fifth of the line rate traffic most likely went another way than meant, such as sockets beside InfiniBand.
_FALLBACK_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class LineRate:
    """The nominal rate of one link of a node in bytes per second, and whose it is."""

    device: str
    bytes_per_second: float


def read_line_rate(facts: Facts, interface: str) -> LineRate | None:
    """Of the slowest active RDMA port, else of `interface`; None where it is no hardware: a veth's rate is made up."""
    ports = [
        LineRate(f"{port.device}:{port.number}", port.bytes_per_second)
        for device in facts.rdma or ()
        for port in device.ports
        if port.state == "active" and port.bytes_per_second
    ]
    if ports:
        return min(ports, key=lambda port: port.bytes_per_second)
    for found in facts.interfaces or ():
        if found.name == interface and found.pci_address and found.bytes_per_second:
            return LineRate(found.name, found.bytes_per_second)
    return None


def judge_line_rate(line: LineRate | None, search: PairSearch | None) -> Stage:
    """The usual pair's share of the line rate: a warning where it is so small that the traffic took another way."""
    name = "line rate"
    if line is None:
        return Stage(name, "skip", 0.0, "no hardware link whose rate can be read")
    usual = search.diagnosis.usual_seconds if search else None
    if search is None or usual is None:
        return Stage(name, "skip", 0.0, "no pair was measured")
    reached = search.diagnosis.nbytes / usual
    share = reached / line.bytes_per_second
    rate = f"{line.bytes_per_second / GB:.3g} GB/s"
    said = f"the usual pair reaches {reached / GB:.3g} GB/s, {share:.0%} of {line.device}'s {rate}"
    if share < _FALLBACK_SHARE:
        return Stage(name, "warn", 0.0, f"{said}: look which transport is used, sockets or RDMA")
    return Stage(name, "ok", 0.0, said)
