"""A plain TCP stream, timed where it arrives:  stream.py receive ADDRESS MIB   and   stream.py send ADDRESS MIB."""

import socket
import sys
import time

PORT = 7000
_MIB = 1 << 20


def receive(address: str, mib: int) -> None:
    """Prints bits per second, from the first byte to the last."""
    with socket.create_server((address, PORT)) as server:
        connection, _ = server.accept()
    buffer = bytearray(_MIB)
    left = mib * _MIB - connection.recv_into(buffer)
    started, counted = time.perf_counter(), left
    while left:
        count = connection.recv_into(buffer)
        if not count:
            sys.exit(f"the stream ended {left} bytes early")
        left -= count
    print(counted * 8 / (time.perf_counter() - started))


def send(address: str, mib: int) -> None:
    with _connect(address) as connection:
        for _ in range(mib):
            connection.sendall(bytes(_MIB))


def _connect(address: str) -> socket.socket:
    for _ in range(200):
        try:
            return socket.create_connection((address, PORT))
        except ConnectionRefusedError:  # the receiver is not there yet
            time.sleep(0.05)
    sys.exit(f"nobody receives at {address}:{PORT}")


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
