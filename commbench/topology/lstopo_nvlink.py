"""NVLink in lstopo's XML: hwloc's matrix NVLinkBandwidth, in MB/s between GPUs, NVSwitches and processors."""

from dataclasses import replace

from commbench.topology.graph import Link, Topology
from commbench.topology.numbers import read_whole
from commbench.topology.xml_tree import Element

_MATRIX = "NVLinkBandwidth"
_MAX_OBJECTS = 1024
_RULE = "TOPO-FABRIC"  # which says that NVLink was not seen


def add_nvlinks(topology: Topology, root: Element) -> Topology:
    """`topology` with the NVLinks of the matrix, where there is one; lanes are not said there, the rate is."""
    matrix = next((element for element in root.named("distances2hetero") if element.get("name") == _MATRIX), None)
    rates = _rates(matrix) if matrix is not None else None
    if rates is None:
        return topology
    buses = _buses(root)
    gpus = {device.bus_id: device.key for device in topology.gpus}
    keys = [gpus.get(buses.get(name, ("", ""))[1], "") for name in rates]
    switches = {name for name, key in zip(rates, keys, strict=True) if not key and name.startswith("PCIDev:")}
    by_key = {key: row for row, key in zip(rates.values(), keys, strict=True) if key}
    position = {key: place for place, key in enumerate(keys) if key}
    to_switches = {
        key: sum(rate for rate, name in zip(row, rates, strict=True) if name in switches) for key, row in by_key.items()
    }
    links = []
    for link in topology.links:
        one, other = by_key.get(link.first), by_key.get(link.second)
        if one is None or other is None:
            links.append(link)
            continue
        direct = min(one[position[link.second]], other[position[link.first]])
        rate = direct + min(to_switches[link.first], to_switches[link.second])
        links.append(_with_rate(link, rate) if rate else link)
    findings = tuple(finding for finding in topology.findings if finding.rule != _RULE)
    return replace(topology, links=tuple(links), findings=findings)


def _with_rate(link: Link, megabytes: int) -> Link:
    return replace(link, link_class="nvlink", bytes_per_second=megabytes * 1e6)


def _rates(matrix: Element) -> dict[str, list[int]] | None:
    """The row of each object, by its name such as `OSDev:802`; None where the matrix is not whole."""
    names = [name for element in matrix.named("indexes") for name in element.text.split()]
    values = [read_whole(text) for element in matrix.named("u64values") for text in element.text.split()]
    count = len(names)
    known = [value for value in values if value is not None]
    if not 0 < count <= _MAX_OBJECTS or len(set(names)) < count or len(known) != count**2 or len(known) < len(values):
        return None
    return {name: known[place * count : (place + 1) * count] for place, name in enumerate(names)}


def _buses(root: Element) -> dict[str, tuple[str, str]]:
    """By `OSDev:802` and `PCIDev:449`: the object's type, and the PCI address that it is or hangs on."""
    found: dict[str, tuple[str, str]] = {}
    waiting = [(child, "") for child in root.named("object")]
    while waiting:
        element, bus = waiting.pop()
        kind = element.get("type")
        bus = element.get("pci_busid") if kind == "PCIDev" else bus
        found[f"{kind}:{element.get('gp_index')}"] = kind, bus
        waiting += [(child, bus) for child in element.named("object")]
    return found
