"""A machine's wiring as a matrix with a legend: for people, for programs, for a page."""

import json
from collections.abc import Callable
from dataclasses import asdict

from commbench.report.markdown import escape_markdown, format_markdown_table
from commbench.report.text_table import format_text_table
from commbench.results.schema import Finding
from commbench.topology.affinity import nearest_nics
from commbench.topology.graph import Device, Topology
from commbench.topology.nvidia_p2p import MEANINGS
from commbench.units import GB

LEGEND = {
    "X": "itself",
    "NV#": "# NVLinks",
    "XGMI": "AMD's link between GPUs, with the number of links where it is said",
    "PIX": "one PCIe switch at most",
    "PXB": "several PCIe switches, not the CPU",
    "PHB": "a PCIe host bridge: the CPU",
    "NODE": "several host bridges of one NUMA node",
    "SYS": "the link between NUMA nodes or sockets",
    "?": "not said, or not clear",
} | MEANINGS


def format_table(topology: Topology) -> str:
    """The matrix, a legend of what is in it, a row for each device, and the findings."""
    cells = _matrix(topology)
    devices = _device_rows(topology)
    parts = [
        describe(topology),
        format_text_table(["", *(device.key for device in topology.devices)], cells, left=1),
        "\n".join(f"{word:<5} {meaning}" for word, meaning in _legend(cells)),
        format_text_table(_DEVICE_HEADINGS, devices, left=len(_DEVICE_HEADINGS)),
        "\n".join(_line(finding) for finding in topology.findings),
    ]
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def format_markdown(topology: Topology) -> str:
    """The same as tables of markdown."""
    cells = _matrix(topology)
    devices = _device_rows(topology)
    shown = [place for place in range(len(_DEVICE_HEADINGS)) if any(row[place] for row in devices)]
    parts = [
        escape_markdown(describe(topology)),
        format_markdown_table(["", *(device.key for device in topology.devices)], cells),
        "\n".join(f"- {word}: {meaning}" for word, meaning in _legend(cells)),
        format_markdown_table(_pick(_DEVICE_HEADINGS, shown), [_pick(row, shown) for row in devices]),
        "\n".join(f"- {escape_markdown(_line(finding))}" for finding in topology.findings),
    ]
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def format_json(topology: Topology) -> str:
    """One object: devices, places, links (every pair once), nearest NICs, findings. Rates in bytes per second."""
    document = {
        "format": topology.format,
        "source": topology.source,
        "complete": topology.complete,
        "devices": [asdict(device) for device in topology.devices],
        "places": [asdict(place) for place in topology.places],
        "links": [asdict(link) for link in topology.links],
        "nearest_nics": [asdict(nearest) for nearest in nearest_nics(topology)],
        "findings": [asdict(finding) for finding in topology.findings],
    }
    return json.dumps(document, indent=2) + "\n"


TOPOLOGY_FORMATS: dict[str, Callable[[Topology], str]] = {
    "table": format_table,
    "json": format_json,
    "markdown": format_markdown,
}
_DEVICE_HEADINGS = ["device", "name", "PCI", "NUMA", "CPUs", "GB/s", "state", "nearest NICs"]


def describe(topology: Topology) -> str:
    """One line: where it was read, how many devices, and whether it is all."""
    incomplete = "" if topology.complete else ", INCOMPLETE"
    gpus, nics = len(topology.gpus), len(topology.nics)
    return (
        f"{topology.source}: {gpus} GPU{'s' if gpus != 1 else ''}, {nics} NIC{'s' if nics != 1 else ''} "
        f"({topology.format}{incomplete})"
    )


def _matrix(topology: Topology) -> list[list[str]]:
    if not topology.links:
        return []
    return [
        [one.key, *("X" if one is other else _cell(topology, one, other) for other in topology.devices)]
        for one in topology.devices
    ]


def _cell(topology: Topology, one: Device, other: Device) -> str:
    link = topology.link(one.key, other.key)
    if link is None or link.link_class == "unknown":
        return link.peer_access if link and link.peer_access else "?"
    if link.link_class == "nvlink":
        return f"NV{link.lanes or ''}"
    return link.link_class.upper() + (str(link.lanes) if link.lanes else "")


def _legend(cells: list[list[str]]) -> list[tuple[str, str]]:
    words = {cell.rstrip("0123456789") for row in cells for cell in row[1:]}
    return [(word, meaning) for word, meaning in LEGEND.items() if word.rstrip("#") in words]


def _device_rows(topology: Topology) -> list[list[str]]:
    nearest = {found.gpu: found for found in nearest_nics(topology)}
    rows = []
    for device in topology.devices:
        found = nearest.get(device.key)
        nics = f"{', '.join(found.nics)} ({found.link_class})" if found and found.nics else ""
        numa = "" if device.numa_node is None else str(device.numa_node)
        rate = "" if device.bytes_per_second is None else f"{device.bytes_per_second / GB:.4g}"
        name = device.name if device.name != device.key else ""
        rows.append([device.key, name, device.bus_id, numa, device.cpus, rate, device.state, nics])
    return rows


def _line(finding: Finding) -> str:
    expected = f", expected {finding.expected}" if finding.expected else ""
    action = f" ({finding.action})" if finding.action else ""
    return f"{finding.verdict}: {finding.rule}: {finding.subject}: {finding.observed}{expected}{action}"


def _pick(cells: list[str], places: list[int]) -> list[str]:
    return [cells[place] for place in places]
