"""From the bytes of one or several files to one record."""

from collections.abc import Sequence
from dataclasses import replace

from commbench.errors import CommbenchError
from commbench.results.importers.lines import MAX_LINES, decode
from commbench.results.importers.records import LostLine
from commbench.results.nccl_log.book import Book
from commbench.results.nccl_log.channels import is_closed
from commbench.results.nccl_log.faults import WARNING_LENGTH, explain
from commbench.results.nccl_log.lines import Grammar, find_messages
from commbench.results.nccl_log.messages import may_begin, read_message
from commbench.results.nccl_log.outside import read_outside
from commbench.results.nccl_log.records import Counts, FaultSeen, Message, NcclLog, Process, RankSeen
from commbench.texts import shown
from commbench.units import format_nbytes

MAX_NBYTES = 64 << 20  # of all files together


def read_logs(files: Sequence[tuple[str, bytes]]) -> NcclLog:
    """The record of `files`, names and bytes: those of one job.

    Raises CommbenchError where they are too large, or hold not one message of NCCL and no fault that is known.
    """
    if sum(len(data) for _, data in files) > MAX_NBYTES:
        raise CommbenchError(f"the logs are larger than {format_nbytes(MAX_NBYTES)}: give those of fewer ranks.")
    book, lost, counts = Book(), [], Counts()
    for name, data in files:
        text = decode(data)
        if text.count("\n") + text.count("\r") > MAX_LINES:
            raise CommbenchError(f"{name} has more than {MAX_LINES:,} lines: give the part in which NCCL starts.")
        one, torn = _read_file(book, text, name)
        lost += torn
        counts = Counts(*(a + b for a, b in zip(_parts(counts), _parts(one), strict=True)))
    if not counts.messages and not book.faults and not book.ras:
        names = ", ".join(name for name, _ in files[:3])
        raise CommbenchError(
            f"{names}: not one message of NCCL or RCCL was found: run with NCCL_DEBUG=INFO, and give what ranks wrote."
        )
    return _close(book, tuple(name for name, _ in files), tuple(lost), counts)


def _parts(counts: Counts) -> tuple[int, int, int, int]:
    return counts.lines, counts.messages, counts.joined, counts.lost


def _read_file(book: Book, text: str, name: str) -> tuple[Counts, list[LostLine]]:
    found = find_messages(text, name, Grammar(_knows, may_begin, is_closed))
    for message in found.messages:
        if message.level in ("WARN", "ATTN", "DIAG"):
            _read_warning(book, message)
        elif read_message(book, message):
            book.last = message.text
    read_outside(book, found.foreign, name)
    lost = [replace(line, text=f"{name}: {line.text}") for line in found.lost]
    return Counts(found.lines, len(found.messages), found.joined, found.lost_count), lost


def _knows(body: str) -> bool:
    return read_message(Book(), Message(Process(), "INFO", body, ""))


def _read_warning(book: Book, message: Message) -> None:
    row = explain(message.text)
    if row is None and message.level == "DIAG":
        return  # most of NCCL's own diagnostics (from 2.31) say that all is well, or what was not tried
    process = message.process
    rank = book.rank_of.get((process.host, process.pid, process.device))
    ranks = () if rank is None else (rank,)
    hosts = (process.host,) if process.host else ()
    if row is not None:
        seen = row.seen(message.text, message.where, hosts, ranks)
        book.see_fault(replace(seen, kind="warning") if message.level == "ATTN" else seen)
        return
    text = shown(message.text, WARNING_LENGTH)
    book.see_fault(FaultSeen("warning", "unknown", text, message.where, 1, hosts, ranks, source=message.place))


def _close(book: Book, sources: tuple[str, ...], lost: tuple[LostLine, ...], counts: Counts) -> NcclLog:
    book.rename()
    return NcclLog(
        sources=sources,
        library=book.library or "NCCL",
        versions=tuple((version, tuple(sorted(hosts - {""}))) for version, hosts in book.versions.items()),
        comms=book.closed_comms(),
        ranks=tuple(_with_gpu(book, seen) for _, seen in sorted(book.ranks.items())),
        connections=tuple(book.connections.values()),
        rings=tuple(book.rings.values()),
        trees=tuple(book.trees.values()),
        channels=tuple(book.channels.values()),
        networks=tuple(book.networks),
        nics=tuple(nic for _, nic in sorted(book.nics.items())),
        interfaces=tuple(book.interfaces),
        settings=book.closed_settings(),
        remarks=tuple(book.remarks),
        tuning=tuple(book.tuning.values()),
        intra_types=tuple(book.intra_types),
        faults=tuple(book.faults.values()),
        progress=tuple((rank, *works) for rank, works in sorted(book.progress.items())),
        ras=tuple(book.ras),
        tests=book.tests,
        processes=tuple((rank, tuple(sorted(who))) for rank, who in sorted(book.clashes.items()) if len(who) > 1),
        lost=lost,
        counts=counts,
        last=book.last,
    )


def _with_gpu(book: Book, seen: RankSeen) -> RankSeen:
    """The rank with its GPU as nvidia-smi counts; where only the line about CPU affinity has it, from there."""
    if seen.gpu is not None:
        return seen
    return replace(seen, gpu=book.gpus.get((seen.host, seen.pid, seen.cuda)))
