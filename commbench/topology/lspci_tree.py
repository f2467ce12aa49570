r"""`lspci -tv`: the tree of PCI buses, drawn in characters, with the name of each device.

    -+-[0000:3a]-+-00.0-[3b-41]----00.0-[3c-41]--+-10.0-[40]----00.0  NVIDIA Corporation GV100GL
     |           |                               \-14.0-[41]----00.0  NVIDIA Corporation GV100GL
     \-[0000:00]-+-00.0  Intel Corporation Device 2034

A `+` opens a column of branches: a line that begins with `+-` or `\-` below it goes on with devices of the same bus.
"""

import re
from dataclasses import dataclass

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Place, Topology, enumerate_keys
from commbench.topology.matrix import plain_lines
from commbench.topology.tree import Way, link_devices

FORMAT = "lspci-tree"
_ROOT = re.compile(r"\[([0-9a-f]{4,8}):([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_BUS = re.compile(r"-\[(?:[0-9a-f]{4,8}:)?([0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_DEVICE = re.compile(r"([0-9a-f]{2}\.[0-7])")
_BRANCH = re.compile(r"[ |]{0,400}([+\\])-")
_NOT_GPU = re.compile(r"Audio|USB|UCSI|Switch|Bridge|Serial|DMA|BlueField|Tegra", re.IGNORECASE)
_GPU = re.compile(r"NVIDIA Corporation|\[AMD/ATI\][^\n]{0,80}(?:Instinct|Radeon|Vega|Arcturus|Aldebaran|Vanjaram|MI\d)")
_NIC = re.compile(
    r"Ethernet|InfiniBand|Infiniband|ConnectX|BlueField|Omni-Path|Elastic Fabric|NetXtreme|Network Adapter"
)
_MAX_DEPTH = 40


@dataclass(frozen=True, slots=True, order=True)
class _Bus:
    """A bus: its domain and number, its host bridge, and the addresses of the bridges above it, from the top."""

    domain: str
    number: str
    host: str
    above: tuple[str, ...] = ()


def recognises(text: str) -> bool:
    """Whether `text` has a root of the tree: a line that begins with its trunk."""
    return any(re.match(r"-(?:\+-)?\[[0-9a-f]{4,8}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]", line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """GPUs and NICs with their links. Raises CommbenchError for a tree without names, or with neither of them in it."""
    leaves = _leaves(text)
    if leaves and not any(name for _, _, name in leaves):
        raise CommbenchError(f"{source} is a tree of addresses without names: give lspci -tv.")
    found = sorted((kind, address, bus, name) for bus, address, name in leaves if (kind := _kind(name)))
    if not found or len(found) > MAX_DEVICES:
        raise CommbenchError(f"{source} has no GPU and no NIC in its tree, or too many: give lspci -tv of one machine.")
    if len({address for _, address, _, _ in found}) < len(found):
        raise CommbenchError(f"{source} has a device twice: give the output of lspci -tv, printed once.")
    devices: list[Device] = []
    ways: dict[str, Way] = {}
    places: dict[str, Place] = {}
    for kind, address, bus, name in found:
        # From the top: the root port, then of each switch its port upwards and one of its ports downwards.
        switches = bus.above[1::2]
        for depth, switch in enumerate(switches):
            parent = f"switch {switches[depth - 1]}" if depth else ""
            places.setdefault(f"switch {switch}", Place(f"switch {switch}", "switch", switch, parent))
        key = f"{kind.upper()}{sum(device.kind == kind for device in devices)}"
        place = f"switch {switches[-1]}" if switches else ""
        devices.append(Device(key, "gpu" if kind == "gpu" else "nic", shown(name)[:60], address, place=place))
        ways[key] = Way(address.rpartition(".")[0], switches[::-1], "", (None,) * (len(switches) + 1), bus.host)
    links = link_devices(devices, ways)
    return Topology(FORMAT, source, tuple(devices), tuple(links), tuple(places.values()), _not_said(devices, source))


def _kind(name: str) -> str:
    if _GPU.search(name) and not _NOT_GPU.search(name):
        return "gpu"
    return "nic" if _NIC.search(name) else ""


def _leaves(text: str) -> list[tuple[_Bus, str, str]]:
    """(bus, address, name) of every device that is no bridge; a line whose place is unclear is passed over."""
    columns: dict[int, _Bus | None] = {}
    leaves = []
    for line in plain_lines(text):
        if line.startswith(("-+-", "-[")):
            start, bus = (3 if line[1] == "+" else 1), None
            columns = {1: None} if line[1] == "+" else {}
        elif match := _BRANCH.match(line):
            if match.start(1) not in columns:
                continue
            columns = {column: known for column, known in columns.items() if column <= match.start(1)}
            start, bus = match.end(), columns[match.start(1)]
        else:
            continue
        leaf = _follow(line, start, bus, columns)
        if leaf is not None:
            leaves.append(leaf)
    return leaves


def _follow(line: str, at: int, bus: _Bus | None, columns: dict[int, _Bus | None]) -> tuple[_Bus, str, str] | None:
    """Walk one line from `at` on, noting the columns that it opens, to the device at its end."""
    for _ in range(_MAX_DEPTH):
        if match := _ROOT.match(line, at):
            bus = _Bus(match[1], match[2], f"{match[1]}:{match[2]}")
            at = match.end()
        elif bus is not None and (match := _DEVICE.match(line, at)):
            address = f"{bus.domain}:{bus.number}:{match[1]}"
            below = _BUS.match(line, match.end())
            if below is None:
                return bus, address, line[match.end() :].strip()
            bus = _Bus(bus.domain, below[1], bus.host, (*bus.above, address))
            at = below.end()
        else:
            return None
        dashes = re.compile(r"-{1,8}").match(line, at)
        at = dashes.end() if dashes else at
        if line[at : at + 2] == "+-":
            columns[at] = bus
            at += 2
    return None


def _not_said(devices: list[Device], source: str) -> tuple[Finding, ...]:
    keys = enumerate_keys(device.key for device in devices)
    return (
        Finding(
            "TOPO-NUMA-UNKNOWN",
            keys,
            "skip",
            "lspci's tree does not say which host bridge is on which socket, and knows no NVLink",
            "",
            source,
            "nvidia-smi topo -m tells of both",
        ),
    )
