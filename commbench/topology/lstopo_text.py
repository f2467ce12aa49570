"""lstopo's text (`lstopo --of console`, also verbose): the same objects as its XML, in one another by indentation."""

import re

from commbench.errors import CommbenchError
from commbench.topology.graph import Topology
from commbench.topology.lstopo import read_objects
from commbench.topology.matrix import plain_lines
from commbench.topology.xml_tree import Element

FORMAT = "lstopo-text"
_MACHINE = re.compile(r"Machine (?:L#0 )?\([^\n]{0,400}\)")
_LINE = re.compile(r"( {0,200})([A-Za-z][\w-]{0,30})(?: L#\d{1,6})?(?: P#(\d{1,4}))?((?: [^\n]{0,1000})?)")
_BUS_ID = re.compile(r"(?:busid=|^ )((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")
_ID = re.compile(r"\bid=([0-9a-f]{4}:[0-9a-f]{4})")
_CLASS = re.compile(r"class=([0-9a-f]{4})|\(([\w /-]{1,40})\)")
_NUMBER = re.compile(r"P#(\d{1,4})")
_NAME = re.compile(r'"([^"\n]{1,64})"')
_CLASSES = {"VGA": "0300", "3D": "0302", "Display": "0380", "ProcessingAccelerator": "1200", "Ethernet": "0200",
            "InfiniBand": "0207", "Fabric": "0208", "Network": "0280"}  # fmt: skip
_OS_DEVICES = ("Net", "OpenFabrics", "GPU", "CoProc", "OSDev", "DMA")
_MAX_DEPTH = 100


def recognises(text: str) -> bool:
    """Whether `text` begins, but for blank lines, with the machine of lstopo."""
    first = next((line for line in plain_lines(text) if line.strip()), "")
    return _MACHINE.fullmatch(first) is not None


def read(text: str, source: str) -> Topology:
    """The machine of the text. Raises CommbenchError if it tells of no GPU and no NIC."""
    root = Element("topology", {})
    open_objects = [(-1, root)]
    for line in plain_lines(text):
        match = _LINE.fullmatch(line.rstrip())
        if match is None or (element := _element(match)) is None:
            continue
        indentation = len(match[1])
        while open_objects[-1][0] >= indentation:
            open_objects.pop()
        if len(open_objects) > _MAX_DEPTH:
            raise CommbenchError(f"{source} has more than {_MAX_DEPTH} objects in one another: no machine has.")
        parent = open_objects[-1][1]
        parent.children.append(element)
        if element.get("type") == "NUMANode" and parent is not root:
            parent.attributes["nodeset"] = element.get("nodeset")  # hwloc 2: a node is beside what is near it
        open_objects.append((indentation, element))
    return read_objects(root, source, FORMAT, "lstopo --of console --whole-io")


def _element(match: re.Match[str]) -> Element | None:
    """The object of a line as lstopo's XML has it; None for a line of another kind."""
    kind, rest = match[2], match[4]
    if kind == "NUMANode":
        number = match[3] or next(iter(_NUMBER.findall(rest)), "")
        return Element("object", {"type": kind, "os_index": number, "nodeset": _mask(int(number or 0))})
    if kind in ("HostBridge", "PCIBridge", "Bridge"):
        bus = _BUS_ID.search(rest)
        above = "0" if kind == "HostBridge" else "1"
        return Element("object", {"type": "Bridge", "bridge_type": f"{above}-1", "pci_busid": bus[1] if bus else ""})
    if kind == "PCI":
        bus, found = _BUS_ID.search(rest), _CLASS.search(rest)
        number = "" if found is None else found[1] or _CLASSES.get(found[2], "")
        identity = next(iter(_ID.findall(rest)), "")
        bus_id = "" if bus is None else bus[1] if len(bus[1]) > 7 else f"0000:{bus[1]}"
        return Element("object", {"type": "PCIDev", "pci_busid": bus_id, "pci_type": f"{number} [{identity}]"})
    if kind in _OS_DEVICES:
        return Element("object", {"type": "OSDev", "name": next(iter(_NAME.findall(rest)), "")})
    if kind in ("Machine", "Package", "Socket", "Group", "Group0", "Die"):
        return Element("object", {"type": kind})
    return None


def _mask(node: int) -> str:
    """The mask of a NUMA node in words of 32 bits, as in the XML."""
    return ",".join([f"0x{1 << node % 32:08x}", *["0x00000000"] * (node // 32)])
