"""What stands in a log beside NCCL's own messages: torch's watchdog, signals, nccl-tests' devices, RAS."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from commbench.results.importers.nccl_marks import read_config
from commbench.results.nccl_log.book import Book
from commbench.results.nccl_log.faults import explain
from commbench.results.nccl_log.records import FaultSeen, Process, RankSeen, RasSeen
from commbench.texts import shown

_DEVICE = re.compile(
    r"Rank\s{1,8}(\d{1,7}) .{0,30}?Pid\s{1,12}(\d{1,10}) on\s{1,80}([\w.-]{1,255}) device\s{1,4}(\d{1,4}) "
)
_WATCHDOG = re.compile(
    r"\[Rank (\d{1,7})\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(\d{1,12}), OpType=(\w{1,40})"
    r".{0,200}?Timeout\(ms\)=(\d{1,12})"
)
_POSITION = re.compile(
    r"Rank (\d{1,7})\].{0,200}?last enqueued(?: NCCL)? work: (-?\d{1,12}), last completed(?: NCCL)? work: (-?\d{1,12})"
)
_SIGNAL = re.compile(
    r"Signal: ([\w ]{1,40}\(\d{1,2}\))|exited on signal (\d{1,2})|died from signal (\d{1,2})|[sS]egmentation fault"
)
_WHOSE_SIGNAL = re.compile(r"rank (\d{1,7})")
_FRAME = re.compile(r"libnccl[\w.-]{0,32}\(p?(nccl[A-Z]\w{1,64})\+0x")
_KILLED = re.compile(r"oom-kill|Out of memory: Killed|\bOOM Killed\b|DUE TO TIME LIMIT|DUE TO PREEMPTION")
_ENDED = re.compile(
    r"Test NCCL failure (?:\S{1,40} )?'([a-z ]{4,60}?)(?: \(|'| /)"
    r"|(nccl(?:SystemError|InternalError|RemoteError|InvalidUsage|UnhandledCudaError))\b"
)
_MISMATCH = re.compile(r"[Dd]etected mismatch between collectives on ranks")
_RAS = re.compile(
    r"^\s{0,8}\d{1,6}\s{1,20}\d{1,9}\s{1,20}(\d{1,9})\s{1,20}\d{1,9}\s{1,20}(\d{1,9})\s{1,20}\d{1,9}\s{1,20}RUNNING\s{1,20}(\w{1,16})\s*$"
)
_RESULT_MEANS = {
    "unhandled system error": "a system call or a device failed: the first warning above says which",
    "unhandled cuda error": "a CUDA call failed: the first warning above says which",
    "internal error": "NCCL's own error, or memory that was overwritten: the first warning above says more",
    "invalid usage": "the call or the environment cannot be right: the first warning above says why",
    "invalid argument": "an argument or a setting cannot be right: the first warning above says which",
    "remote process exited or there was a network error": "another rank ended first: look at its log",
}


def read_outside(book: Book, lines: Iterable[tuple[int, str]], name: str) -> None:
    """Add what lines of other programs say to the book."""
    for number, text in lines:
        where = f"{name}:{number}"
        if " device " in text and (device := _DEVICE.search(text)) is not None:
            rank, pid, host, cuda = device.groups()
            _see_device(book, int(rank), host, int(pid), int(cuda))
        elif "minBytes" in text and read_config(text) is not None:
            book.tests += 1
        else:
            for marks, handler in _TABLE:
                if any(mark in text for mark in marks) and handler(book, text, where):
                    break


def _see_device(book: Book, rank: int, host: str, pid: int, cuda: int) -> None:
    comm = book.comm_of(Process(host, pid, None, cuda))
    book.see_rank(RankSeen(comm, rank, host, pid, cuda))


def _watchdog(book: Book, text: str, where: str) -> bool:
    if found := _WATCHDOG.search(text):
        rank, work, name, limit = int(found[1]), found[2], found[3], int(found[4]) / 1000
        book.see_fault(
            FaultSeen(
                "hang",
                "watchdog-timeout",
                f"{name} with sequence number {work} did not end within {limit:g} s",
                where,
                ranks=(rank,),
                cause="torch's watchdog gave up waiting: a rank never came to this call, or it hangs in it",
                cure="look at the rank that is not in this list, or whose last work is older; "
                "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 for the flight recorder",
                source="PyTorch, ProcessGroupNCCL",
            )
        )
        return True
    if found := _POSITION.search(text):
        book.progress[int(found[1])] = (int(found[2]), int(found[3]))
        return True
    return False


def _crash(book: Book, text: str, where: str) -> bool:
    found = _SIGNAL.search(text)
    if found is None:
        return False
    number = found[1] or found[2] or found[3] or "11"
    digits = re.findall(r"\d{1,2}", number)[-1]
    book.unplaced_crashes.add(f"signal-{digits}")
    rank = _WHOSE_SIGNAL.search(text)
    book.see_fault(
        FaultSeen(
            "crash",
            f"signal-{digits}",
            shown(text),
            where,
            ranks=(int(rank[1]),) if rank else (),
            cause=_SIGNALS.get(digits, f"a process ended by signal {digits}"),
            cure="a backtrace says where; below it may be messages of other threads; it is no verdict on the network",
            secondary=digits == "15",
        )
    )
    return True


def _frame(book: Book, text: str, _where: str) -> bool:
    """The first call of NCCL in a backtrace: where the crash before it was."""
    found = _FRAME.search(text)
    if found is None:
        return False
    for name in book.unplaced_crashes:
        fault = book.faults.get((name, ""))
        if fault is not None and ", in nccl" not in fault.text:
            book.faults[name, ""] = replace(fault, text=f"{fault.text}, in {found[1]}")
    book.unplaced_crashes.clear()
    return True


_SIGNALS = {
    "6": "a process ended itself (abort), as torch does after an error that it cannot handle",
    "7": "bus error: often /dev/shm is full",
    "9": "killed: by the launcher, the batch system, or for want of memory",
    "15": "a process was told to end (SIGTERM), as launchers do when another rank has failed",
    "11": "a process crashed (segmentation fault)",
}


def _killed(book: Book, text: str, where: str) -> bool:
    found = _KILLED.search(text)
    if found is None:
        return False
    cause = (
        "the batch system's time was over" if "DUE" in found[0] else "memory ran out and the kernel killed a process"
    )
    book.see_fault(
        FaultSeen("crash", "killed", shown(text), where, cause=cause, cure="what comes after it follows from it")
    )
    return True


def _ended(book: Book, text: str, where: str) -> bool:
    found = _ENDED.search(text)
    if found is None:
        return False
    result = (found[1] or found[2]).strip()
    book.see_fault(
        FaultSeen(
            "failure",
            "call-failed",
            shown(text),
            where,
            cause=f"NCCL returned {result!r}"[:120],
            cure=_RESULT_MEANS.get(result, "the first warning above says why"),
            source="NCCL, ncclResult_t",
            secondary=True,
        )
    )
    return True


def _mismatch(book: Book, text: str, where: str) -> bool:
    if not _MISMATCH.search(text):
        return False
    book.see_fault(
        FaultSeen(
            "failure",
            "collective-mismatch",
            shown(text),
            where,
            cause="ranks called different collectives, or other sizes",
            cure="the program's control flow differs over ranks",
            source="PyTorch, TORCH_DISTRIBUTED_DEBUG",
        )
    )
    return True


def _ras(book: Book, text: str, where: str) -> bool:
    found = _RAS.match(text)
    if found is None:
        return False
    book.ras.append(RasSeen(int(found[1]), int(found[2]), found[3], where))
    return True


def _bare_warning(book: Book, text: str, where: str) -> bool:
    row = explain(text)
    if row is None or row.kind == "warning":
        return False
    book.see_fault(
        FaultSeen(row.kind, row.name, shown(text), where, 1, (), (), row.cause, row.cure, row.source, row.secondary)
    )
    return True


# A word that a line of this kind has, and who reads it.
_TABLE: tuple[tuple[tuple[str, ...], Callable[[Book, str, str], bool]], ...] = (
    (("Watchdog caught", "last completed"), _watchdog),
    (("ignal", "egmentation fault"), _crash),
    (("libnccl",), _frame),
    (("oom", "OOM", "Out of memory", "DUE TO"), _killed),
    (("Test NCCL failure", "ncclSystemError", "ncclInternalError", "ncclRemoteError", "ncclInvalidUsage"), _ended),
    (("ncclUnhandledCudaError",), _ended),
    (("mismatch between collectives",), _mismatch),
    (("RUNNING",), _ras),
    (("posix_fallocate failed",), _bare_warning),
)
