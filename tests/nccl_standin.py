"""What NCCL writes with NCCL_DEBUG, where the library is played: one file a process, messages of its communicators.

Peers reach each other's memory unless NCCL_P2P_DISABLE is set. GPUs have the addresses of `tests/cuda_standin.py`.
"""

import os
import socket
import threading
from collections.abc import Sequence
from typing import TextIO
from zlib import crc32

HEAD = "NCCL version 2.30.7+cuda12.4"


class NcclDebug:
    """The log of one process, opened with its first message, as NCCL does."""

    def __init__(self) -> None:
        self._file: TextIO | None = None

    def connect(self, ranks: Sequence[int], me: int, gpus: int = 2) -> None:
        """Make a communicator of these ranks of the world, in which this process has the number `me`."""
        if os.environ.get("NCCL_DEBUG") != "INFO" or "NCCL_DEBUG_FILE" not in os.environ:
            return
        device, size = ranks[me] % gpus, len(ranks)
        who = f"comm 0x7f{crc32(str(ranks).encode()):x} rank {me} nranks {size} cudaDev {device} nvmlDev {device}"
        where = f"busId {0x1B + device:x}000 commId 0x{crc32(repr(tuple(ranks)).encode()):x}"
        self._say(device, f"ncclCommInitRankConfig {who} {where} - Init START")
        shared = os.environ.get("NCCL_P2P_DISABLE", "0") != "0"
        if shared:
            self._say(device, "NCCL_P2P_DISABLE set by environment to 1.")
        for peer in {(me + 1) % size, (me - 1) % size} - {me}:
            way = " : {} via SHM/direct/direct" if shared else "/0 : {} via P2P/CUMEM"
            self._say(device, "Channel 00" + way.format(f"{me}[{device}] -> {peer}[{ranks[peer] % gpus}]"))
        self._say(device, f"ncclCommInitRankConfig {who} {where} - Init COMPLETE")

    def _say(self, device: int, text: str) -> None:
        if self._file is None:
            path = os.environ["NCCL_DEBUG_FILE"].replace("%h", socket.gethostname()).replace("%p", str(os.getpid()))
            self._file = open(path, "w", buffering=1)  # noqa: SIM115  NCCL holds it open too, line by line
            self._file.write(f"{HEAD}\n")
        place = f"{socket.gethostname().partition('.')[0]}:{os.getpid()}:{threading.get_native_id()}"
        self._file.write(f"{place} [{device}] NCCL INFO {text}\n")
