"""A machine as a picture: NUMA nodes, switches, GPUs and NICs, each link in the colour of its class.

GPUs stand in a row above, NICs below, both within the box of their NUMA node, in the order of the file. Drawn are the
links between GPUs, as arcs, and from every GPU the links to its nearest NICs.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

from commbench.report.topology import describe
from commbench.topology.affinity import nearest_nics
from commbench.topology.graph import NEARNESS, Device, Topology
from commbench.units import GB

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers too; the far classes are dashed as well.
COLOURS = {
    "nvlink": "#009E73",
    "xgmi": "#D55E00",
    "pix": "#0072B2",
    "pxb": "#56B4E9",
    "phb": "#E69F00",
    "node": "#CC79A7",
    "sys": "#8A8A8A",
}
_DASHED = ("node", "sys")
_GPU_Y, _SWITCH_Y, _NIC_Y = 2.0, 1.0, 0.0
_HALF_BOX, _GAP = 0.44, 0.5
_STYLE: Any = {"font.size": 9, "axes.titlelocation": "left", "axes.titlesize": 13, "axes.titleweight": "bold"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each device and each switch is drawn, and the boxes of the NUMA nodes as (name, left, right)."""

    devices: dict[str, tuple[float, float]]
    switches: dict[str, tuple[float, float]]
    boxes: tuple[tuple[str, float, float], ...]
    width: float


def lay_out(topology: Topology) -> Layout:
    """Places for all devices: NUMA node beside NUMA node, and in each the GPUs above the NICs."""
    where: dict[str, tuple[float, float]] = {}
    boxes = []
    left = 0.0
    nodes = {device.key: _node(topology, device) for device in topology.devices}
    for node in dict.fromkeys(nodes.values()):
        members = [device for device in topology.devices if nodes[device.key] == node]
        rows = [[one for one in members if one.kind == "gpu"], [one for one in members if one.kind == "nic"]]
        width = float(max(len(row) for row in rows))
        for row, height in zip(rows, (_GPU_Y, _NIC_Y), strict=True):
            step = width / len(row) if row else 0.0
            where |= {one.key: (left + step * (index + 0.5), height) for index, one in enumerate(row)}
        boxes.append(("NUMA node ?" if node is None else f"NUMA node {node}", left, left + width))
        left += width + _GAP
    return Layout(where, _lay_out_switches(topology, where), tuple(boxes), left - _GAP)


def _node(topology: Topology, device: Device) -> int | None:
    """The NUMA node of a device; where it is not said, that of the GPUs which are nearer to it than over `sys`."""
    if device.numa_node is not None:
        return device.numa_node
    near = {
        gpu.numa_node
        for gpu in topology.gpus
        if topology.link_class(gpu.key, device.key) in ("pix", "pxb", "phb", "node")
    }
    return near.pop() if len(near) == 1 else None


def _lay_out_switches(topology: Topology, where: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The topmost switches, each at the middle of the devices below it: ports and switches below them are not drawn."""
    below: dict[str, list[float]] = {}
    tops = top_switches(topology)
    for device in topology.devices:
        if key := tops.get(device.key):
            below.setdefault(key, []).append(where[device.key][0])
    return {key: (sum(places) / len(places), _SWITCH_Y) for key, places in below.items()}


def top_switches(topology: Topology) -> dict[str, str]:
    """The topmost switch above each device that hangs on one."""
    places = {place.key: place for place in topology.places}
    tops = {}
    for device in topology.devices:
        key = device.place
        while key in places and places[key].kind == "switch":
            tops[device.key] = key
            key = places[key].parent
    return tops


def draw_topology(topology: Topology) -> bytes:
    """PNG bytes of the picture."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    layout = lay_out(topology)
    with mpl.rc_context(_STYLE):
        rise = _arc_height(topology, layout)
        figure = Figure(figsize=(min(max(6.5, 1.1 * layout.width + 1.0), 60.0), 5.6 + rise), dpi=110)
        axes = figure.add_subplot()
        _draw_boxes(axes, topology, layout)
        drawn = _draw_gpu_links(axes, topology, layout)
        drawn |= _draw_nic_links(axes, topology, layout)
        _draw_switches(axes, topology, layout)
        _draw_devices(axes, topology, layout)
        _draw_legend(axes, topology, drawn)
        axes.set_title(_plain(describe(topology)))
        axes.set_xlim(-0.3, layout.width + 0.3)
        axes.set_ylim(_NIC_Y - 0.75, _GPU_Y + 0.5 + rise)
        axes.set_axis_off()
        png = BytesIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a name in a script that the font has not is drawn as boxes
            figure.savefig(png, format="png", bbox_inches="tight")
    return png.getvalue()


def _arc_height(topology: Topology, layout: Layout) -> float:
    """How high the widest arc between two GPUs rises."""
    return min(0.35 * _gpu_span(topology, layout), 3.0)


def _gpu_span(topology: Topology, layout: Layout) -> float:
    places = [layout.devices[gpu.key][0] for gpu in topology.gpus]
    return max(places, default=0.0) - min(places, default=0.0)


def _draw_boxes(axes: "Axes", topology: Topology, layout: Layout) -> None:
    from matplotlib.patches import FancyBboxPatch

    for name, left, right in layout.boxes:
        box = FancyBboxPatch(
            (left + 0.02, _NIC_Y - 0.55), right - left - 0.04, _GPU_Y - _NIC_Y + 0.95,
            boxstyle="round,pad=0.02,rounding_size=0.08", facecolor="#F6F6F4", edgecolor="#BBBBBB", zorder=0,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(left + 0.08, _NIC_Y - 0.5, name, color="#555555", fontsize=8.5, zorder=1)


def _draw_gpu_links(axes: "Axes", topology: Topology, layout: Layout) -> set[str]:
    """Arcs above the GPUs, wider with more lanes; the classes that were drawn. The nearest are drawn last, on top."""
    from matplotlib.patches import Arc

    keys = {gpu.key for gpu in topology.gpus}
    links = [link for link in topology.links if {link.first, link.second} <= keys and link.link_class in COLOURS]
    rise = _arc_height(topology, layout) / max(_gpu_span(topology, layout), 1.0)
    for link in sorted(links, key=lambda link: -NEARNESS.index(link.link_class)):
        (one, height), (other, _) = layout.devices[link.first], layout.devices[link.second]
        span = abs(other - one)
        line = _line(link.link_class) | {"linewidth": 1.0 + 0.12 * min(link.lanes or 1, 18)}
        top = height + 0.2
        axes.add_patch(Arc(((one + other) / 2, top), span, 2 * rise * span, theta1=0, theta2=180, zorder=2, **line))
    return {link.link_class for link in links}


def _draw_nic_links(axes: "Axes", topology: Topology, layout: Layout) -> set[str]:
    """From every GPU to its nearest NICs, through the switch that both hang on where there is one."""
    drawn = set()
    tops = top_switches(topology)
    for nearest in nearest_nics(topology):
        for nic in nearest.nics:
            one, other = layout.devices[nearest.gpu], layout.devices[nic]
            ends = dict.fromkeys((tops.get(nearest.gpu), tops.get(nic)))
            through = [layout.switches[key] for key in ends if key is not None]
            way = [(one[0], one[1] - 0.2), *through, (other[0], other[1] + 0.2)]
            axes.plot(*zip(*way, strict=True), zorder=2, alpha=0.9, linewidth=1.5, **_line(nearest.link_class))
            drawn.add(nearest.link_class)
    return drawn


def _draw_switches(axes: "Axes", topology: Topology, layout: Layout) -> None:
    for device, switch in top_switches(topology).items():
        x, y = layout.devices[device]
        end = y - 0.2 if y > _SWITCH_Y else y + 0.2
        axes.plot([x, layout.switches[switch][0]], [end, _SWITCH_Y], color="#CCCCCC", linewidth=1.0, zorder=1)
    for key, (x, y) in layout.switches.items():
        axes.plot([x], [y], marker="D", markersize=9, color="#444444", zorder=3)
        label = _plain(key.split()[-1])
        axes.annotate(label, (x, y), (7, 5), textcoords="offset points", fontsize=6.5, color="#444444", zorder=3)


def _line(link_class: str) -> dict[str, Any]:
    return {"color": COLOURS[link_class], "linestyle": "--" if link_class in _DASHED else "-"}


def _draw_devices(axes: "Axes", topology: Topology, layout: Layout) -> None:
    from matplotlib.patches import Rectangle

    for device in topology.devices:
        x, y = layout.devices[device.key]
        face = "#DCEFD9" if device.kind == "gpu" else "#DDE7F4"
        corner, size = (x - _HALF_BOX, y - 0.2), (2 * _HALF_BOX, 0.4)
        axes.add_patch(Rectangle(corner, *size, facecolor=face, edgecolor="#444444", linewidth=0.9, zorder=4))
        axes.text(x, y, _plain(_label(device)), ha="center", va="center", fontsize=6.8, zorder=5)


def _label(device: Device) -> str:
    name = device.name if device.name != device.key else ""
    rate = "" if device.bytes_per_second is None else f"{device.bytes_per_second * 8 / GB:g} Gbit/s"
    return "\n".join(text[:14] for text in (device.key, name, rate) if text)


def _draw_legend(axes: "Axes", topology: Topology, drawn: set[str]) -> None:
    from matplotlib.lines import Line2D

    lanes: dict[str, Counter[int]] = {}
    for link in topology.links:
        if link.lanes:
            lanes.setdefault(link.link_class, Counter())[link.lanes] += 1
    classes: Sequence[str] = [link_class for link_class in NEARNESS if link_class in drawn]
    handles = [
        Line2D([], [], linewidth=2, label=_legend_text(name, lanes.get(name)), **_line(name)) for name in classes
    ]
    if handles:
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, -0.12), ncols=len(handles), frameon=False)


def _legend_text(link_class: str, lanes: Counter[int] | None) -> str:
    return f"{link_class} x{', x'.join(str(count) for count in sorted(lanes))}" if lanes else link_class


def _plain(text: str) -> str:
    """Text in which matplotlib sees no mathematics."""
    return text.replace("$", r"\$")
