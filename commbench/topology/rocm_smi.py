"""`rocm-smi --showtopo`, --showtopotype and their like: matrices under headings, and a list of NUMA nodes.

It says XGMI or PCIE. Which way PCIE takes is not said, but two NUMA nodes are joined by the sockets' link alone.
"""

import re
from itertools import combinations

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Link, Topology, enumerate_keys
from commbench.topology.matrix import plain_lines
from commbench.topology.numbers import read_whole

FORMAT = "rocm-smi"
_HEADING = re.compile(r"={3,200} {0,4}([A-Za-z ]{4,64}?) {0,4}={3,200}")
_NUMA = re.compile(r"GPU\[(\d{1,4})\]\s{0,16}: \(Topology\) Numa Node: (-?\d{1,4})\s{0,8}")
_GPU = re.compile(r"GPU\d{1,4}")
_LINK_TYPE, _HOPS = "link type between two gpus", "hops between two gpus"

Tables = dict[str, dict[tuple[str, str], str]]


def recognises(text: str) -> bool:
    """Whether `text` has a heading of rocm-smi's topology, or its list of NUMA nodes."""
    return "between two GPUs ==" in text or ": (Topology) Numa Node:" in text


def read(text: str, source: str) -> Topology:
    """The GPUs and their links. Raises CommbenchError where it has neither link types nor NUMA nodes."""
    lines = plain_lines(text)
    tables, findings = _read_tables(lines, source)
    numa = {f"GPU{match[1]}": read_whole(match[2]) for line in lines if (match := _NUMA.fullmatch(line))}
    names = dict.fromkeys([*(key for table in tables.values() for pair in table for key in pair), *numa])
    if not names:
        raise CommbenchError(f"{source} has no table of rocm-smi that can be read: give the whole of --showtopo.")
    if len(names) > MAX_DEVICES:
        raise CommbenchError(f"{source} tells of {len(names)} GPUs: one machine has {MAX_DEVICES} at most.")
    devices = [Device(name, "gpu", numa_node=numa.get(name)) for name in sorted(names, key=lambda key: int(key[3:]))]
    types, hops = tables.get(_LINK_TYPE, {}), tables.get(_HOPS, {})
    links = [
        _link(one, other, _both(types, one, other), _both(hops, one, other))
        for one, other in combinations(devices, 2)
        if (one.key, other.key) in types or (other.key, one.key) in types
    ]
    rows = {first for first, _ in types}
    missing = [device.key for device in devices if types and device.key not in rows]
    if missing:
        findings.append(
            Finding(
                "TOPO-INCOMPLETE",
                enumerate_keys(missing),
                "warn",
                f"{len(missing)} of {len(devices)} GPUs have no row",
                "a row for each column",
                source,
                "give the whole output of rocm-smi --showtopo",
            )
        )
    if any(link.link_class == "unknown" for link in links):
        findings.append(
            Finding(
                "TOPO-PCIE-WAY",
                "GPUs",
                "skip",
                "PCIE is said, and not over which bridges",
                where=source,
            )
        )
    return Topology(FORMAT, source, tuple(devices), tuple(links), (), tuple(findings), not missing)


def _read_tables(lines: list[str], source: str) -> tuple[Tables, list[Finding]]:
    """The cells of every table by heading, row and column; a row with another number of cells is told of and lost."""
    tables: Tables = {}
    findings: list[Finding] = []
    heading, columns = "", list[str]()
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if match := _HEADING.fullmatch(line.strip()):
            heading, columns = match[1].strip().lower(), []
        elif words and all(_GPU.fullmatch(word) for word in words):
            columns = words[: MAX_DEVICES + 1]
        elif columns and words and _GPU.fullmatch(words[0]):
            if len(words) == len(columns) + 1 and words[0] in columns:
                table = tables.setdefault(heading if heading in (_LINK_TYPE, _HOPS) else "others", {})
                table |= {(words[0], column): word for column, word in zip(columns, words[1:], strict=True)}
                continue
            if len(findings) >= MAX_DEVICES:
                break
            findings.append(
                Finding(
                    "TOPO-TORN",
                    words[0],
                    "warn",
                    f"row {shown(line)!r} has {len(words) - 1} cells of {len(columns)}",
                    "one cell a column",
                    f"{source}:{number}",
                    "print the tables again",
                )
            )
    return tables, findings


def _both(table: dict[tuple[str, str], str], one: Device, other: Device) -> str:
    """What a pair's two cells say; empty where they contradict each other or are not there."""
    words = {table[pair] for pair in ((one.key, other.key), (other.key, one.key)) if pair in table}
    return words.pop() if len(words) == 1 else ""


def _link(one: Device, other: Device, link_type: str, hops: str) -> Link:
    if link_type == "XGMI":
        # More hops than one are links of other GPUs on the way: not a link of these two.
        return Link(one.key, other.key, "xgmi" if hops in ("", "1") else "unknown")
    crosses = one.numa_node is not None and other.numa_node is not None and one.numa_node != other.numa_node
    return Link(one.key, other.key, "sys" if link_type == "PCIE" and crosses else "unknown")
