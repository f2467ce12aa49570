"""Lists of interfaces and devices in NCCL's grammar: `mlx5_0:1,mlx5_1`, `=eth0`, `^docker,lo`, `^=mlx5_bond_0`."""

from dataclasses import dataclass

MAX_DEVICES = 32


@dataclass(frozen=True, slots=True)
class Entry:
    """A name, or the beginning of one, and the port of a device; `tail` is what stands after the port."""

    name: str
    port: str = ""
    tail: str = ""

    def matches(self, name: str, port: int | None, is_exact: bool) -> bool:
        """Whether it means `name` and its `port`."""
        is_name = name == self.name if is_exact else name.startswith(self.name)
        return is_name and (port is None or not self.port or self.port == str(port))


@dataclass(frozen=True, slots=True)
class NameList:
    """A list as NCCL reads it: one ^ and one = in front count for the whole list."""

    is_exclude: bool
    is_exact: bool
    entries: tuple[Entry, ...]

    def selects(self, name: str, port: int | None = None) -> bool:
        """Whether NCCL uses `name` with this list; an empty list selects all."""
        is_listed = any(entry.matches(name, port, self.is_exact) for entry in self.entries)
        return (is_listed or not self.entries) != self.is_exclude


def parse_names(value: str) -> NameList:
    """The list in `value`."""
    rest = value.removeprefix("^")
    names = rest.removeprefix("=")
    entries = []
    for text in names.split(","):
        name, _, tail = text.partition(":")
        port, _, tail = tail.partition(":")
        if name:
            entries.append(Entry(name, port, tail))
    return NameList(rest != value, names != rest, tuple(entries))


def fault_in_list(value: str, *, has_ports: bool) -> str:
    """What in `value` NCCL does not read as a list; empty if nothing."""
    names = parse_names(value)
    for entry in names.entries:
        if entry.name[0] in "^=":
            return f"{entry.name}: ^ and = count once, in front of the whole list, and ^ before ="
        if entry.name != entry.name.strip():
            return f"{entry.name!r}: a blank is part of the name"
        if not has_ports and entry.port:
            return f"{entry.name}:{entry.port}: interfaces have no ports"
        if entry.port and not (entry.port.isascii() and entry.port.isdigit() and int(entry.port[:9]) > 0):
            return f"{entry.name}:{entry.port}: ports are numbers from 1"
    if len(names.entries) > MAX_DEVICES:
        return f"{len(names.entries)} names: NCCL takes {MAX_DEVICES}"
    return "" if names.entries else "no name"
