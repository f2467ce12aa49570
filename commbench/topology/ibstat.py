"""`ibstat`: channel adapters and their ports, in any indentation."""

import re

from commbench.results.importers.lines import shown
from commbench.topology.graph import Topology
from commbench.topology.matrix import plain_lines
from commbench.topology.numbers import read_whole
from commbench.topology.ports import Port, make_topology

FORMAT = "ibstat"
_ADAPTER = re.compile(r"\s{0,16}CA '([^']{1,64})'\s{0,16}")
_PORT = re.compile(r"\s{0,64}Port (\d{1,3}):\s{0,16}")
_FIELD = re.compile(r"\s{0,64}(State|Rate|SM lid|Link layer):([^\n]{0,80})")


def recognises(text: str) -> bool:
    """Whether `text` names a channel adapter as ibstat does."""
    return any(_ADAPTER.fullmatch(line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """The NICs of the adapters. Raises CommbenchError if there is no port."""
    ports: list[Port] = []
    adapter = ""
    port: Port | None = None
    for line in plain_lines(text):
        if match := _ADAPTER.fullmatch(line):
            adapter, port = shown(match[1]), None
        elif adapter and (match := _PORT.fullmatch(line)):
            port = Port(adapter, int(match[1]))
            ports.append(port)
        elif port is not None and (match := _FIELD.fullmatch(line)):
            _set(port, match[1], shown(match[2]))
    for port in ports:
        if port.link_layer != "InfiniBand":
            port.subnet_manager = ""
    return make_topology(FORMAT, source, ports)


def _set(port: Port, name: str, value: str) -> None:
    if name == "State":
        port.state = value.lower()
    elif name == "Rate":
        gigabits = read_whole(value, limit=10_000)
        port.bytes_per_second = gigabits * 1e9 / 8 if gigabits else None
    elif name == "SM lid":
        port.subnet_manager = value
    else:
        port.link_layer = value
