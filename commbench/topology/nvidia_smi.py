"""`nvidia-smi topo -m`, of every version: a matrix of link classes, affinity columns, and a legend of NIC names."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import Device, Link, Topology, enumerate_keys
from commbench.topology.matrix import Matrix, find_header, plain_lines, read_matrix
from commbench.topology.numbers import is_cpu_list, read_whole

_MOST_UNCLEAR = 10  # pairs that are told of one by one
FORMAT = "nvidia-smi-topo"
_CLASS = re.compile(r"X|NV(\d{1,3})|PIX|PXB|PHB|NODE|SYS|SOC")
_LEGEND = re.compile(r"\s{0,8}(NIC\d{1,4}): {0,4}(\S{1,64})\s{0,8}")
_COUNTED = re.compile(r"NIC\d{1,4}")
_GPU = re.compile(r"GPU\d{1,4}")


@dataclass(frozen=True, slots=True)
class _Cell:
    link_class: str
    lanes: int | None = None


def recognises(text: str) -> bool:
    """Whether `text` has the matrix."""
    return find_header(plain_lines(text), _is_cell) is not None


def read(text: str, source: str) -> Topology:
    """The machine of the matrix in `text`. Raises CommbenchError if none can be read."""
    matrix = read_matrix(text, source, _is_cell)
    named = {match[1]: match[2] for line in plain_lines(text) if (match := _LEGEND.fullmatch(line))}
    devices = [
        device if device.name else replace(device, name=named.get(device.key, ""))
        for device in name_devices(matrix, source)
    ]
    links, findings = _read_links(matrix, devices, source)
    missing, complete = missing_rows(matrix, devices, source)
    return Topology(FORMAT, source, tuple(devices), tuple(links), (), (*matrix.findings, *findings, *missing), complete)


def name_devices(matrix: Matrix, source: str) -> list[Device]:
    """The devices of the columns. NICs with names that nvidia-smi cut off, doubled or left out are counted instead."""
    names = [shown(name) for name in matrix.header.names]
    gpus = [index for index, name in enumerate(names) if _GPU.fullmatch(name)]
    nics = [index for index in range(len(names)) if index not in set(gpus)]
    times = Counter(names[index] for index in nics)
    doubled = [name for name in times if times[name] > 1 or not name]
    if doubled:
        matrix.findings.append(
            Finding(
                "TOPO-NAMES",
                "NICs",
                "skip",
                f"names that do not tell the NICs apart: {', '.join(map(repr, doubled))}",
                "a name for each",
                f"{source}:{matrix.header.number}",
                "they are counted from NIC0 in the order of the columns; `ibv_devices` has the names",
            )
        )
    keys = {index: f"NIC{number}" if doubled else names[index] for number, index in enumerate(nics)}
    keys |= {index: names[index] for index in gpus}
    if len(set(keys.values())) < len(keys):
        raise CommbenchError(
            f"{source}:{matrix.header.number} names a column twice: give the output as it was printed."
        )
    return [
        _device(keys[index], names[index], index in set(gpus), _affinity(matrix, index, len(gpus)))
        for index in range(len(names))
    ]


def _affinity(matrix: Matrix, index: int, gpus: int) -> dict[str, str]:
    """The affinity cells of a row; none where the text ends there too early, for its last cell may be cut."""
    row = matrix.rows.get(index)
    if row is None or (row.number == matrix.last_line and len(matrix.rows) < gpus):
        return {}
    return row.affinity


def _device(key: str, name: str, is_gpu: bool, affinity: dict[str, str]) -> Device:
    cpus = affinity.get("CPU Affinity", "")
    return Device(
        key,
        "gpu" if is_gpu else "nic",
        "" if is_gpu or _COUNTED.fullmatch(name) else name,
        numa_node=read_whole(affinity.get("NUMA Affinity", "")),
        cpus=cpus if is_cpu_list(cpus) else "",
    )


def missing_rows(matrix: Matrix, devices: list[Device], source: str) -> tuple[list[Finding], bool]:
    """What is said of rows that are not there, and whether every GPU has its row."""
    absent = [device for index, device in enumerate(devices) if index not in matrix.rows]
    gpus = [device.key for device in absent if device.kind == "gpu"]
    nics = [device.key for device in absent if device.kind == "nic"]
    where = f"{source}:{matrix.last_line}"
    findings = []
    if gpus:
        there = sum(device.kind == "gpu" for device in devices)
        findings.append(
            Finding(
                "TOPO-INCOMPLETE",
                enumerate_keys(gpus),
                "warn",
                f"{len(gpus)} of {there} GPUs have no row",
                "a row for each column",
                where,
                "give the whole output of nvidia-smi topo -m",
            )
        )
    if nics:
        findings.append(
            Finding(
                "TOPO-NIC-ROWS",
                enumerate_keys(nics),
                "skip",
                "no row: how NICs reach each other is not said",
                "a row for each column",
                where,
            )
        )
    return findings, not gpus


def _read_links(matrix: Matrix, devices: list[Device], source: str) -> tuple[list[Link], list[Finding]]:
    """The link of every pair that one of its two rows tells of; both must tell the same."""
    links, unclear = [], []
    for first, second in combinations(range(len(devices)), 2):
        here, there = _cell(matrix, first, second), _cell(matrix, second, first)
        keys = devices[first].key, devices[second].key
        cells = {cell for cell in (here, there) if cell and cell.link_class != "unknown"}
        if len(cells) == 1:
            cell = cells.pop()
            links.append(Link(*keys, cell.link_class, cell.lanes))
            continue
        if here or there:
            links.append(Link(*keys, "unknown"))
            unclear.append((first, second))
    findings = [_unclear(matrix, pair, devices, source) for pair in unclear[:_MOST_UNCLEAR]]
    if len(unclear) > _MOST_UNCLEAR:
        more = len(unclear) - _MOST_UNCLEAR
        findings.append(Finding("TOPO-UNCLEAR", "pairs", "warn", f"{more} more pairs are unclear", where=source))
    return links, findings


def _unclear(matrix: Matrix, pair: tuple[int, int], devices: list[Device], source: str) -> Finding:
    first, second = pair
    keys = devices[first].key, devices[second].key
    said = [
        f"row {keys[side]} says {shown(matrix.rows[index].cells[other])!r}"
        for side, (index, other) in enumerate(((first, second), (second, first)))
        if index in matrix.rows
    ]
    number = next(matrix.rows[index].number for index in pair if index in matrix.rows)
    return Finding(
        "TOPO-UNCLEAR",
        f"{keys[0]} - {keys[1]}",
        "warn",
        ", ".join(said),
        "one link class, the same in both rows",
        f"{source}:{number}",
        "print the matrix again",
    )


def _cell(matrix: Matrix, index: int, other: int) -> _Cell | None:
    """What row `index` says of column `other`; None where the row is not there."""
    row = matrix.rows.get(index)
    if row is None:
        return None
    match = _CLASS.fullmatch(row.cells[other])
    if match is None or match[0] == "X" or match[1] == "0":
        return _Cell("unknown")
    if match[1]:
        return _Cell("nvlink", int(match[1]))
    return _Cell("sys" if match[0] == "SOC" else match[0].lower())  # SOC: the word of old drivers


def _is_cell(text: str) -> bool:
    return _CLASS.fullmatch(text) is not None
