"""`show_gids`: the GID table of every port, one row each."""

import re

from commbench.results.importers.lines import shown
from commbench.topology.graph import Topology
from commbench.topology.matrix import plain_lines
from commbench.topology.ports import Gid, Port, make_topology

FORMAT = "show_gids"
_HEAD = re.compile(r"\s{0,8}DEV\s{1,16}PORT\s{1,16}INDEX\s{1,16}GID\b[^\n]{0,200}")
_ROW = re.compile(
    r"\s{0,8}(\S{1,64})\s{1,16}(\d{1,3})\s{1,16}(\d{1,4})\s{1,16}([0-9a-fA-F:]{2,39})\s{1,40}"
    r"(?:\d{1,3}(?:\.\d{1,3}){3}\s{1,40})?(v[12])\b[^\n]{0,80}"
)


def recognises(text: str) -> bool:
    """Whether `text` has the head of the table."""
    return any(_HEAD.fullmatch(line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """The ports with their GIDs; their state is not said. Raises CommbenchError if there is no row."""
    ports: dict[tuple[str, int], Port] = {}
    for line in plain_lines(text):
        if match := _ROW.fullmatch(line):
            name, number = shown(match[1]), int(match[2])
            port = ports.setdefault((name, number), Port(name, number))
            port.gids.append(Gid(int(match[3]), match[4], f"RoCE {match[5]}"))
    return make_topology(FORMAT, source, list(ports.values()))
