"""The table of NCCL's messages: how each begins, and who reads it."""

from collections.abc import Callable

from commbench.results.nccl_log import channels, setup
from commbench.results.nccl_log.book import Book
from commbench.results.nccl_log.records import Message

Handler = Callable[[Book, Message], bool]


def _remark(book: Book, message: Message) -> bool:
    """Kept as it is, once a host: what explains why something is not used."""
    book.see_remark(message)
    return True


def _known(_book: Book, _message: Message) -> bool:
    return True


# The first whose beginning and pattern fit takes the message.
TABLE: tuple[tuple[tuple[str, ...], Handler], ...] = (
    (("Channel ", "Ring "), channels.read_connection),
    (("Channel ", "Ring "), channels.read_ring),
    (("Trees ",), channels.read_trees),
    (("NCCL version", "RCCL version"), setup.read_version),
    (("NCCL_", "RCCL_", "NET/IB: NCCL_"), setup.read_setting),
    (("TOPO/NET : Force-fusing NICs using NCCL_NET_FORCE_MERGE=",), setup.read_forced_merge),
    (("Using network", "Using internal", "Using external"), setup.read_network),
    (("NET/",), setup.read_virtual),
    (("NET/",), setup.read_gpudirect),
    (
        (
            *("NET/IB : No device", "GPU Direct RDMA", "NET/Plugin"),
            *("Could not enable P2P", "P2P is disabled", "Check P2P", "NVLS multicast", "DMA-BUF", "NET/OFI Selected"),
            *("NVLS comm", "Connected NVLS", "MNNVL", "Failed to open libibverbs"),
        ),
        _remark,
    ),
    (("NET/IB: ",), setup.read_gid),
    (("NET/",), setup.read_nics),
    (("Bootstrap : Using", "Bootstrap: Using"), setup.read_bootstrap),
    (("Setting affinity", "ncclTopoGetCpuAffinity: Affinity"), setup.read_affinity),
    (("Pattern ",), channels.read_pattern),
    (("Connected all", "Launch mode", "Init timings", "TOPO/NET", "cudaDriverVersion", "threadThresholds"), _known),
)
_STARTS = tuple(dict.fromkeys(start for starts, _ in TABLE for start in starts))
_INITIALS = frozenset(start[0] for start in _STARTS)


def may_begin(text: str) -> bool:
    """Whether a text, or what is there of it, begins like a message of the table."""
    return text.startswith(_STARTS) or (bool(text) and any(start.startswith(text) for start in _STARTS))


def read_message(book: Book, message: Message) -> bool:
    """Whether the message is one of NCCL's that is known; what it says is in the book then."""
    text = message.text
    if text[:1] in _INITIALS:
        for starts, handler in TABLE:
            if text.startswith(starts) and handler(book, message):
                return True
    if "comm 0x" in text and setup.read_comm(book, message):
        return True
    if " coll channels" in text:
        return channels.read_channels(book, message)
    return "|" in text and channels.read_tuning(book, message)
