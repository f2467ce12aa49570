"""Files below a root, `/` or a captured tree, read within bounds: whatever is there, a value or a reason, no exception.

A captured tree is a foreign input: its links must not lead out of it, and a pipe in it must not hold us up.
"""

import os
import re
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

from commbench.machine.host import ROOT

_MAX_NBYTES = 64 << 10  # of a file in sysfs, where a page is the most
_MAX_NAMES = 8192  # of a folder
_MAX_CHARACTERS = 256  # of a value of one line
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_CPU_LIST = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?){0,255}")


class Tree:
    """A root, and `unseen`: why what was looked for could not be read, by the path of the fact."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.is_live = root == ROOT
        self.unseen: dict[str, str] = {}
        self._base = "" if self.is_live else os.path.realpath(root)
        self._folders: dict[str, str] = {}

    def say_unseen(self, fact: str, reason: str) -> None:
        """Keep why `fact`, a path such as `pci.acs`, could not be seen; the first reason stands."""
        self.unseen.setdefault(fact, reason)

    def read_bytes(self, path: str, limit: int = _MAX_NBYTES, *, tail: bool = False, offset: int = 0) -> bytes | None:
        """At most `limit` bytes of a file, from `offset` on or its last ones; None if it cannot be read."""
        try:
            descriptor = os.open(self._full(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            with FileIO(descriptor) as file:
                status = os.fstat(descriptor)
                if status.st_mode & 0o170000 != 0o100000:
                    return None
                if offset or (tail and status.st_size > limit):
                    file.seek(offset or status.st_size - limit)
                return _read_all(file, limit)
        except (OSError, OverflowError):
            return None

    def text(self, path: str, limit: int = _MAX_NBYTES) -> str | None:
        """The text of a file without blanks around it; None if it cannot be read."""
        data = self.read_bytes(path, limit)
        return None if data is None else data.decode(errors="replace").strip(" \t\r\n\0")

    def word(self, path: str) -> str:
        """A value of one line, in characters that print; empty if there is none."""
        text = (self.text(path) or "").replace("\t", " ")
        return text if len(text) <= _MAX_CHARACTERS and text.isprintable() else ""

    def number(self, path: str, lowest: int = 0, highest: int = 1 << 63) -> int | None:
        """A whole number in decimal, or hexadecimal after 0x; None for anything else or out of bounds."""
        return read_number(self.word(path), lowest, highest)

    def cpus(self, path: str) -> str:
        """A list of CPUs such as `0-3,8`; empty if there is none."""
        text = self.word(path)
        return text if _CPU_LIST.fullmatch(text) else ""

    def names(self, path: str) -> list[str] | None:
        """What is in a folder, sorted with numbers in their order; None if it cannot be listed."""
        try:
            names = os.listdir(self._full(path))
        except (OSError, ValueError):
            return None
        return sorted(names[:_MAX_NAMES], key=in_order)

    def exists(self, path: str) -> bool:
        """Whether there is something at `path`."""
        full = self._full(path)
        return "\0" not in full and os.path.exists(full)

    def link(self, path: str) -> str:
        """Where a link at `path` leads in the end, from the root on; empty if it is no link."""
        folder, _, name = path.rpartition("/")
        full = f"{self._full(folder)}/{name}"
        if "\0" in full or not os.path.islink(full):
            return ""
        real = os.path.realpath(full)
        return real[len(self._base) :].lstrip("/") if "\0" not in self._within(real) or self.is_live else ""

    def pci_address(self, path: str) -> str:
        """The PCI device that a link at `path` leads to or below; empty if to none."""
        parts = self.link(path).split("/")
        return next((part for part in reversed(parts) if PCI_ADDRESS.fullmatch(part)), "")

    def _full(self, path: str) -> str:
        """The path from the system's root on; one that cannot exist where it would leave the captured tree."""
        if self.is_live:
            return f"/{path}"
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._within(os.path.realpath(f"{self._base}/{folder}"))
        full = f"{self._folders[folder]}/{name}"
        return full if not os.path.islink(full) else self._within(os.path.realpath(full))

    def _within(self, real: str) -> str:
        return real if real == self._base or real.startswith(f"{self._base}/") else f"{self._base}/\0"


def _read_all(file: FileIO, limit: int) -> bytes:
    parts, left = [], limit
    while left > 0:
        part = file.read(min(left, 1 << 20))  # in pieces: a limit is not a reason to ask for that much memory
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_number(text: str, lowest: int = 0, highest: int = 1 << 63) -> int | None:
    """A whole number from `lowest` to `highest`, in decimal or hexadecimal after 0x; None for anything else."""
    if not re.fullmatch(r"-?\d{1,20}|0x[0-9a-fA-F]{1,16}", text, re.ASCII):
        return None
    value = int(text, 16) if text.startswith("0x") else int(text)
    return value if lowest <= value <= highest else None


def in_order(name: str) -> tuple[tuple[int, str], ...]:
    """A key that sorts mlx5_2 before mlx5_10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,9})", name))


def fields_of(text: str | None, separator: str = ":") -> dict[str, str]:
    """The lines `name: value` of a text; of a name that is there twice, the first."""
    found: dict[str, str] = {}
    for line in (text or "").splitlines():
        name, mark, value = line.partition(separator)
        if mark:
            found.setdefault(name.strip(), value.strip())
    return found


def cpu_list(cpus: Iterable[int]) -> str:
    """CPUs as the kernel writes them, `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
