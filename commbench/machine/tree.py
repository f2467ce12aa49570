"""Files below a root, `/` or a captured tree, read within bounds: whatever is there, a value or a reason, no exception.

A captured tree is a foreign input: its links must not lead out of it, and a pipe in it must not hold us up.
"""

import os
import re
from collections.abc import Iterable
from io import FileIO
from pathlib import Path
from stat import S_ISREG

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
        self._links: dict[str, str] = {}

    def say_unseen(self, fact: str, reason: str) -> None:
        """Keep why `fact`, a path such as `pci.acs`, could not be seen; the first reason stands."""
        self.unseen.setdefault(fact, reason)

    def read_bytes(self, path: str, limit: int = _MAX_NBYTES, *, tail: bool = False, offset: int = 0) -> bytes | None:
        """At most `limit` bytes of a file, from `offset` on or its last ones; None if it cannot be read."""
        descriptor = self._open(path, os.O_NONBLOCK)  # a pipe has nothing, and must not be waited for
        if descriptor is None:
            return None
        try:
            with FileIO(descriptor) as file:
                status = os.fstat(descriptor)
                if not S_ISREG(status.st_mode):
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

    def names(self, path: str, beginning: str = "") -> list[str] | None:
        """What is in a folder and begins so, sorted with numbers in their order; None if it cannot be listed."""
        descriptor = self._open(path, os.O_DIRECTORY)
        if descriptor is None:
            return None
        try:
            names = os.listdir(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return sorted([name for name in names if name.startswith(beginning)][:_MAX_NAMES], key=in_order)

    def exists(self, path: str) -> bool:
        """Whether there is something at `path`."""
        descriptor = self._open(path, os.O_PATH)
        if descriptor is not None:
            os.close(descriptor)
        return descriptor is not None

    def link(self, path: str) -> str:
        """Where a link at `path` leads in the end, from the root on; empty if it is no link."""
        if path not in self._links:
            full = f"{self._base}/{path}"
            real = os.path.realpath(full) if os.path.islink(full) else ""
            self._links[path] = real[len(self._base) :].lstrip("/") if real and self._is_within(real) else ""
        return self._links[path]

    def pci_address(self, path: str) -> str:
        """The PCI device that a link at `path` leads to or below; empty if to none."""
        parts = self.link(path).split("/")
        return next((part for part in reversed(parts) if PCI_ADDRESS.fullmatch(part)), "")

    def _open(self, path: str, flags: int) -> int | None:
        """A descriptor of what is at `path`; None if it cannot be opened, or lies outside the tree."""
        try:
            descriptor = os.open(f"{self._base}/{path}", os.O_RDONLY | os.O_CLOEXEC | flags)
        except (OSError, ValueError):
            return None
        if self.is_live or self._is_within(os.readlink(f"/proc/self/fd/{descriptor}")):
            return descriptor
        os.close(descriptor)
        return None

    def _is_within(self, real: str) -> bool:
        return real == self._base or real.startswith(f"{self._base}/")


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
