"""Asks NCCL's RAS, a text service that the processes of a job share on every node (2.24 and newer), for its status."""

import socket
import time
from collections.abc import Mapping

_DEFAULT_ADDRESS = "localhost:28028"
PATIENCE_SECONDS = 2.0
# All processes of a node listen on one port, and the system chooses which one gets a connection. One that is stopped
# never greets; another connection may find another process.
_GREETING_SECONDS = 0.25
_MAX_NBYTES = 16 << 20  # about 450 a rank in JSON
# How long RAS waits for a process that looks unwell; and JSON, which older ones answer with ERROR and go on in text.
_QUESTION = b"TIMEOUT 1\nSET FORMAT json\nVERBOSE STATUS\n"


def ras_address(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Host and port where RAS listens, as `environment` says; None where it is off, or the address is none."""
    if environment.get("NCCL_RAS_ENABLE", "1").strip() != "1":
        return None
    host, _, port = environment.get("NCCL_RAS_ADDR", _DEFAULT_ADDRESS).strip().rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) >= 1 << 16:
        return None
    return host.strip("[]"), int(port)


def ask_ras(environment: Mapping[str, str], seconds: float = PATIENCE_SECONDS) -> str | None:
    """What RAS answers, as far as it came within `seconds`; empty if nobody greets, None if it is off or not there."""
    address = ras_address(environment)
    if address is None:
        return None
    ends_at = time.monotonic() + seconds
    while (left := ends_at - time.monotonic()) > 0:
        try:
            with socket.create_connection(address, timeout=min(left, _GREETING_SECONDS)) as connection:
                connection.sendall(b"CLIENT PROTOCOL 2\n")
                if not connection.recv(1024).startswith(b"SERVER PROTOCOL"):
                    return None  # another service
                connection.sendall(_QUESTION)
                return _receive(connection, ends_at)
        except TimeoutError:
            continue
        except (OSError, UnicodeError):  # nobody is there, or it is no name
            return None
    return ""


def _receive(connection: socket.socket, ends_at: float) -> str:
    """All that comes until the other side closes, as far as time and memory allow."""
    received = bytearray()
    while len(received) < _MAX_NBYTES and (left := ends_at - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            piece = connection.recv(1 << 16)
        except TimeoutError:
            break
        if not piece:
            break
        received += piece
    return received.decode(errors="replace")
