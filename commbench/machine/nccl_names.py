"""The environment variables that a libnccl (or librccl) reads, from the binary itself: no load, no symbol table.

NCCL's macro joins `NCCL_` and the parameter's name when it is compiled, so each name stands whole in the library's
read-only data and ends with a zero byte; so do the names of its newer registry of parameters. What stands before it can
be anything: a text of fixed length or a constant may end right there. A name that ends a sentence of a message is none.
"""

import re
import struct

from commbench.machine.tree import Tree

_NAME = re.compile(rb"CCL_[A-Z0-9_]{1,80}(?=\0)")  # but for its first letter: a pattern that begins so is found faster
_MAX_NBYTES = 64 << 20  # of read-only data; 2.32 has 0.5 MB


def names_in(data: bytes) -> frozenset[str]:
    """The names in a library's read-only data."""
    spans = (found.span() for found in _NAME.finditer(data))
    return frozenset(data[start - 1 : end].decode() for start, end in spans if _begins_a_name(data, start - 1))


def _begins_a_name(data: bytes, at: int) -> bool:
    """Whether an N or R at `at` begins a name: what stands before it is not a word and a blank, as in a sentence."""
    if at < 0 or data[at] not in b"NR":
        return False
    return at < 2 or data[at - 1] != ord(" ") or data[at - 2] in b" \0"


def read_only_data(tree: Tree, path: str) -> bytes:
    """The sections .rodata… of the 64-bit ELF file at `path`; empty if it is none.

    The library is some hundred megabytes of code for GPUs; its texts are less than one.
    """
    parts = (tree.read_bytes(path, min(size, _MAX_NBYTES), offset=offset) for offset, size in _sections(tree, path))
    return b"".join(part or b"" for part in parts)


def _sections(tree: Tree, path: str) -> list[tuple[int, int]]:
    """Where the sections of read-only data are: offset and bytes."""
    head = tree.read_bytes(path, 64) or b""
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        return []
    (table,) = struct.unpack_from("<Q", head, 40)
    size, count, names_at = struct.unpack_from("<HHH", head, 58)
    rows = tree.read_bytes(path, size * count, offset=table) or b""
    if size < 64 or len(rows) < size * count or names_at >= count:
        return []
    # Of a row: where its name is, then (8 bytes each) type and flags, address, offset, size.
    sections = [struct.unpack_from("<I4x8x8xQQ", rows, place * size) for place in range(count)]
    names = tree.read_bytes(path, min(sections[names_at][2], 1 << 20), offset=sections[names_at][1]) or b""
    return [(offset, nbytes) for name, offset, nbytes in sections if names[name:].startswith(b".rodata")]
