"""`nvidia-smi topo -p2p`: whether GPUs may reach each other's memory. It names no link class."""

import re
from collections import Counter
from itertools import combinations

from commbench.results.schema import Finding
from commbench.topology.graph import Link, Topology, enumerate_keys
from commbench.topology.matrix import Matrix, find_header, plain_lines, read_matrix
from commbench.topology.nvidia_smi import missing_rows, name_devices

FORMAT = "nvidia-smi-p2p"
MEANINGS = {
    "OK": "peer access works",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a registry key",
    "U": "unknown",
}
_OPERATION = re.compile(r"topo\s{1,8}-p2p\s{1,8}([rwnap])\b")
_OPERATIONS = {"r": "read", "w": "write", "n": "NVLink", "a": "atomics", "p": "PCIe"}


def recognises(text: str) -> bool:
    """Whether `text` has the matrix; one with link classes is another's."""
    lines = plain_lines(text)
    header = find_header(lines, lambda word: word in MEANINGS)
    return header is not None


def read(text: str, source: str) -> Topology:
    """The GPUs of the matrix and which of them reach each other. Raises CommbenchError if none can be read."""
    matrix = read_matrix(text, source, lambda word: word == "X" or word in MEANINGS)
    devices = name_devices(matrix, source)
    missing, complete = missing_rows(matrix, devices, source)
    links = []
    for first, second in combinations(range(len(devices)), 2):
        words = {_word(matrix, first, second), _word(matrix, second, first)} - {""}
        if words:
            word = words.pop() if len(words) == 1 else "U"
            links.append(Link(devices[first].key, devices[second].key, "unknown", peer_access=word))
    operation = next((_OPERATIONS[match[1]] for match in [_OPERATION.search(text)] if match), "peer access")
    findings = (*matrix.findings, *missing, *_without_access(links, operation, source))
    return Topology(FORMAT, source, tuple(devices), tuple(links), (), findings, complete)


def _word(matrix: Matrix, index: int, other: int) -> str:
    row = matrix.rows.get(index)
    word = row.cells[other] if row else ""
    return word if word in MEANINGS else ""


def _without_access(links: list[Link], operation: str, source: str) -> list[Finding]:
    """A finding for each word that is not OK, with how many pairs and which GPUs."""
    findings = []
    for word, pairs in Counter(link.peer_access for link in links if link.peer_access != "OK").items():
        with_word = [link for link in links if link.peer_access == word]
        gpus = dict.fromkeys(key for link in with_word for key in (link.first, link.second))
        findings.append(
            Finding(
                "TOPO-PEER-ACCESS",
                enumerate_keys(sorted(gpus, key=lambda key: (len(key), key))),
                "skip" if word == "U" else "warn",
                f"{operation}: {word} ({MEANINGS[word]}) in {pairs} of {len(links)} pairs",
                "OK",
                source,
                "NCCL copies through host memory between these; look for ACS and IOMMU",
            )
        )
    return findings
