"""What NCCL says of its channels: the transport of each, rings, trees, how many there are, and the tuning table.

In brackets behind a rank stands its CUDA device (to 2.5), its PCI address without its signs (2.6 to 2.17), or its index
as nvidia-smi counts (from 2.18): src/transport/*.cc of these releases.
"""

import re
from typing import Literal

from commbench.results.nccl_log.book import MAX_RECORDS, Book
from commbench.results.nccl_log.records import (
    Channels,
    Connection,
    Message,
    RankSeen,
    Ring,
    Transport,
    TreeNode,
    TuningCell,
)
from commbench.units import GB

_CONNECTION = re.compile(
    r"(?:Channel|Ring) (\d{1,4})(?:/(\d{1,4}))? : "
    r"(\d{1,7})(?:\[([0-9a-f]{1,16})\])? -> (\d{1,7})(?:\[([0-9a-f]{1,16})\])?"
    r"(?: \[(send|receive)\])? via (.{1,200})$"
)
_NET = re.compile(r"NET/([^/]{1,64})/(\d{1,4})(?:\((\d{1,7})\))?((?:/[\w()-]{1,32}){0,4})")
_PEER = re.compile(r"P2P/(direct pointer|common device|IPC|CUMEM|MNNVL|indirect/\d{1,7})")
_SHARED = re.compile(r"SHM(?:/\w{1,16}){0,2}|direct shared memory")
_RCCL_TAIL = re.compile(r" comm 0x[0-9a-f]{1,16} nRanks \d{1,7}\s*$")
_CLOSED = re.compile(
    r"(?:GDRDMA(?:\(\w{1,8}\))?|/Shared|/read|direct pointer|shared memory|SHM/(?:direct|CE)/(?:direct|CE)"
    r"|P2P/(?:IPC|CUMEM)"
    r"|nRanks \d\d+|Init COMPLETE|Connected all (?:rings|trees)|set by environment to .{0,400}\.)$"
)
_RING = re.compile(r"(?:Channel|Ring) (\d{1,4})(?:/\d{1,4})? :((?:\s{1,12}\d{1,7}){1,20000})\s*$")
_TREE = re.compile(r"\[(\d{1,4})\] (-?\d{1,7}(?:/-?\d{1,7}){0,2})->(-?\d{1,7})->(-?\d{1,7}(?:/-?\d{1,7}){0,2})")
_CHANNELS = re.compile(
    r"(\d{1,4}) coll channels, (?:(\d{1,4}) collnet channels, )?(?:(\d{1,4}) nvls channels, )?"
    r"(\d{1,4}) p2p channels, (\d{1,4}) p2p channels per peer"
)
_PATTERN = re.compile(r"Pattern \d{1,4}, .{0,120}type (\w{2,4})/\w{2,4},")
_CELL = re.compile(r"(\d{1,9}\.\d)/\s{0,8}(\d{1,9}\.\d)")
_ALGORITHMS = {"Tree", "Ring", "CollNetDirect", "CollNetChain", "CollNet", "NVLS", "NVLSTree", "PAT"}
_PROTOCOLS = ("LL", "LL128", "Simple")


def is_closed(text: str) -> bool:
    """Whether the end of a message shows that nothing of what is read from it is missing."""
    return _CLOSED.search(text) is not None


def read_transport(text: str) -> Transport | None:
    """A transport as NCCL writes it behind `via`."""
    if found := _NET.match(text):
        network, device, proxy, flags = found.groups()
        return Transport("NET", "", network, int(device), "GDRDMA" in flags, int(proxy) if proxy else None)
    if found := _PEER.match(text):
        word = found[1].partition("/")[0]
        return Transport("P2P", {"direct pointer": "direct", "common device": "same GPU"}.get(word, word))
    return Transport("SHM") if _SHARED.match(text) else None


def read_connection(book: Book, message: Message) -> bool:
    """`Channel 00/0 : 0[0] -> 1[1] [send] via NET/IB/0/GDRDMA`."""
    text = _RCCL_TAIL.sub("", message.text)
    found = _CONNECTION.match(text)
    transport = read_transport(found[8]) if found else None
    if found is None or transport is None or len(book.connections) >= MAX_RECORDS:
        return False
    channel, _, source, source_at, target, target_at, said, _ = found.groups()
    end: Literal["send", "receive"] = "receive" if said == "receive" else "send"
    if said is None and transport.kind == "NET":
        end = "receive"  # to 2.3, which has no word for it
    comm = book.comm_of(message.process)
    who, gpus = message.process, (source_at or "", target_at or "")
    connection = Connection(
        comm, int(channel), int(source), int(target), transport, end, message.where, who.host, who.pid, gpus
    )
    ends = (comm, connection.channel, connection.source, connection.target, end, transport.label)
    book.connections.setdefault((*ends, who.host, who.pid, gpus), connection)
    here = int(source) if end == "send" else int(target)
    for rank, bracket in ((int(source), source_at), (int(target), target_at)):
        process = message.process if rank == here else None
        book.see_rank(
            RankSeen(
                comm,
                rank,
                process.host if process else "",
                process.pid if process else None,
                process.device if process else None,
                *_bracket(bracket, book),
            )
        )
    return True


def _bracket(text: str | None, book: Book) -> tuple[int | None, str]:
    """The index of a GPU on its node, or its PCI address, from the number in brackets; the release says which."""
    release = _release(book)
    is_index = text is not None and text.isdigit() and len(text) <= 2
    if text is None or (release is not None and release < (2, 6)) or (release is None and is_index):
        return None, ""  # CUDA's own index, which the head of the line has too; or not known which
    if is_index and release is not None and release >= (2, 18):
        return int(text), ""
    return None, bus_id(text)


def _release(book: Book) -> tuple[int, int] | None:
    """The first release that is named."""
    for version in book.versions:
        parts = version.split(".")
        if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal():
            return int(parts[0]), int(parts[1])
    return None


def bus_id(text: str) -> str:
    """`c2000` is 0000:c2:00.0."""
    digits = text.rjust(9, "0")
    return f"{digits[:-5].rjust(4, '0')}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}"


def read_ring(book: Book, message: Message) -> bool:
    """`Channel 00/02 :    0   1   2   3`."""
    found = _RING.match(message.text)
    if found is None:
        return False
    comm = book.comm_of(message.process)
    book.rings.setdefault((comm, int(found[1])), Ring(comm, int(found[1]), tuple(map(int, found[2].split()))))
    return True


def read_trees(book: Book, message: Message) -> bool:
    """`Trees [0] 1/-1/-1->0->-1`: below, self, above; to 2.5 above, self, below."""
    turned = [
        (channel, middle, *((right, left) if "/" in right else (left, right)))
        for channel, left, middle, right in _TREE.findall(message.text)
    ]
    nodes = [node for node in turned if "/" not in node[3]]  # one with two ways down is of two torn lines
    comm = book.comm_of(message.process)
    for channel, middle, below, above in nodes:
        parent = int(above)
        children = tuple(child for child in map(int, below.split("/")) if child >= 0)
        node = TreeNode(comm, int(channel), int(middle), parent if parent >= 0 else None, children)
        if len(book.trees) < MAX_RECORDS:
            book.trees.setdefault((comm, int(channel), int(middle)), node)
    if nodes:
        process = message.process
        book.see_rank(RankSeen(comm, int(nodes[0][1]), process.host, process.pid, process.device))
    return bool(nodes)


def read_channels(book: Book, message: Message) -> bool:
    """`4 coll channels, 0 collnet channels, 0 nvls channels, 4 p2p channels, 2 p2p channels per peer`."""
    found = _CHANNELS.match(message.text)
    if found is None:
        return False
    comm = book.comm_of(message.process)
    collective, collnet, nvls, p2p, per_peer = (None if part is None else int(part) for part in found.groups())
    book.channels.setdefault(comm, Channels(comm, collective or 0, collnet, nvls, p2p or 0, per_peer or 0))
    return True


def read_pattern(book: Book, message: Message) -> bool:
    """`Pattern 4, crossNic 0, …, type NVL/PIX, …`: the slowest path within a node that the search took."""
    found = _PATTERN.match(message.text)
    if found is None:
        return False
    book.intra_types.setdefault(found[1])
    return True


def read_tuning(book: Book, message: Message) -> bool:
    """The rows of the tuning table: one heading of pairs (to 2.22), or a line of algorithms and one of protocols."""
    cells = [cell.strip() for cell in message.text.split("|")]
    head, rest = cells[0], [cell for cell in cells[1:] if cell]
    if head == "Latency/AlgBw":
        book.tuning_columns = [(one.strip(), two.strip()) for one, _, two in (cell.partition("/") for cell in rest)]
        return True
    if head == "Algorithm":
        book.tuning_columns = [(name, protocol) for name in rest if name in _ALGORITHMS for protocol in _PROTOCOLS]
        return True
    if head in ("Protocol", "Max NThreads"):
        return True
    values = [_CELL.fullmatch(cell) for cell in rest]
    if not head.isalpha() or not values or len(values) > len(book.tuning_columns):
        return False
    for (algorithm, protocol), value in zip(book.tuning_columns, values, strict=False):
        if value is not None:
            cell = TuningCell(head, algorithm, protocol, float(value[1]) * 1e-6, float(value[2]) * GB)
            book.tuning[head, algorithm, protocol] = cell
    return True
