"""The environment variables that a libnccl (or librccl) reads, from the binary itself: no load, no symbol table.

NCCL's macro joins `NCCL_` and the parameter's name when it is compiled, so each name stands whole in the library's
read-only data and ends with a zero byte; so do the names of its newer registry of parameters. What stands before it can
be anything: a text of fixed length or a constant may end right there. A name that ends a sentence of a message is none.
"""

import re
import struct
from pathlib import Path
from typing import BinaryIO

_NAME = re.compile(rb"CCL_[A-Z0-9_]{1,80}(?=\0)")  # but for its first letter: a pattern that begins so is found faster
_MAX_SECTIONS = 4096
_MAX_NBYTES = 64 << 20  # of read-only data; 2.32 has 0.5 MB


def names_in_library(path: Path) -> frozenset[str] | None:
    """The names that the library at `path` reads; None if it is no 64-bit ELF library with a table of sections."""
    try:
        data = read_only_data(path)
    except (OSError, struct.error, ValueError):
        return None
    return names_in(data)


def names_in(data: bytes) -> frozenset[str]:
    """The names in a library's read-only data."""
    spans = (found.span() for found in _NAME.finditer(data))
    return frozenset(data[start - 1 : end].decode() for start, end in spans if _begins_a_name(data, start - 1))


def _begins_a_name(data: bytes, at: int) -> bool:
    """Whether an N or R at `at` begins a name: what stands before it is not a word and a blank, as in a sentence."""
    if at < 0 or data[at] not in b"NR":
        return False
    return at < 2 or data[at - 1] != ord(" ") or data[at - 2] in b" \0"


def read_only_data(path: Path) -> bytes:
    """The section .rodata. Raises OSError, ValueError or struct.error where there is none."""
    with path.open("rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        (table_offset,) = struct.unpack_from("<Q", head, 40)
        entry_nbytes, count, names_index = struct.unpack_from("<HHH", head, 58)
        if not 0 < count <= _MAX_SECTIONS or entry_nbytes < 64:
            raise ValueError(f"{path} has no table of sections")
        file.seek(table_offset)
        table = file.read(count * entry_nbytes)
        # Of each section: where its name is, its type, flags, address, offset and size.
        sections = [struct.unpack_from("<IIQQQQ", table, index * entry_nbytes) for index in range(count)]
        names = _part(file, *sections[names_index][4:6]) if names_index < count else b""
        for name_at, _, _, _, offset, size in sections:
            if names[name_at:].startswith(b".rodata\0"):
                return _part(file, offset, size)
    raise ValueError(f"{path} has no read-only data")


def _part(file: BinaryIO, offset: int, size: int) -> bytes:
    if size > _MAX_NBYTES:
        raise ValueError(f"a section of {size} bytes")
    file.seek(offset)
    return file.read(size)
