"""`ibv_devinfo`, also with -v: devices, their ports, and the GID table. A cut-out of one port may lack its head."""

import re

from commbench.results.importers.lines import shown
from commbench.topology.graph import Topology
from commbench.topology.matrix import plain_lines
from commbench.topology.numbers import read_whole
from commbench.topology.ports import Gid, Port, make_topology

FORMAT = "ibv_devinfo"
_DEVICE = re.compile(r"\s{0,16}hca_id:\s{0,64}(\S{1,64})\s{0,16}")
_PORT = re.compile(r"\s{0,64}port:\s{0,64}(\d{1,3})\s{0,16}")
_FIELD = re.compile(r"\s{0,64}(state|active_width|active_speed|sm_lid|link_layer):\s{0,64}(\S[^\n]{0,80})")
_GID = re.compile(r"\s{0,64}GID\[ {0,4}(\d{1,4})\]:\s{0,64}([0-9a-fA-F:.]{2,45})(?:, {0,4}(\S[^,]{0,30}))?\s{0,16}")


def recognises(text: str) -> bool:
    """Whether `text` names a device, or has a row of a GID table."""
    return any(_DEVICE.fullmatch(line) or _GID.fullmatch(line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """The NICs of the ports. Raises CommbenchError if there is none."""
    ports: list[Port] = []
    device = ""
    widths: dict[int, tuple[str, str]] = {}
    for line in plain_lines(text):
        if match := _DEVICE.fullmatch(line):
            device = shown(match[1])
        elif match := _PORT.fullmatch(line):
            ports.append(Port(device or "?", int(match[1])))
        elif match := _GID.fullmatch(line):
            if not ports:
                ports.append(Port("?", 1))
            ports[-1].gids.append(Gid(int(match[1]), match[2], (match[3] or "").strip()))
        elif ports and (match := _FIELD.fullmatch(line)):
            width, speed = widths.get(len(ports), ("", ""))
            if match[1] == "active_width":
                width = match[2]
            elif match[1] == "active_speed":
                speed = match[2]
            else:
                _set(ports[-1], match[1], shown(match[2]))
            widths[len(ports)] = width, speed
    for number, port in enumerate(ports, start=1):
        port.bytes_per_second = _rate(*widths.get(number, ("", "")))
        if port.link_layer != "InfiniBand":
            port.subnet_manager = ""
    return make_topology(FORMAT, source, ports)


def _set(port: Port, name: str, value: str) -> None:
    """One field; a state is like `PORT_ACTIVE (4)`."""
    if name == "state":
        port.state = value.partition(" ")[0].removeprefix("PORT_").lower()
    elif name == "sm_lid":
        port.subnet_manager = value
    else:
        port.link_layer = value


def _rate(width: str, speed: str) -> float | None:
    """Bytes per second of a width like `4X (2)` and a speed like `25.0 Gbps (32)`; None where either is not said."""
    lanes = read_whole(width.partition("X")[0])
    match = re.match(r"(\d{1,4}(?:\.\d{1,3})?) Gbps", speed)
    return lanes * float(match[1]) * 1e9 / 8 if lanes and match else None
