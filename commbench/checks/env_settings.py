"""The environment as the rules of the family ENV look at it: what is in effect, where it comes from, how it is read."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps

from commbench.checks.registry import Check, Scene, Seen, Severity, ok, rule, skip
from commbench.machine.facts import Facts
from commbench.machine.nccl_conf import parse_line
from commbench.machine.nccl_table import nccl_variables, newest_release, version_key

_ON = frozenset(("true", "yes", "on", "y", "t", "enable", "enabled", "enabling"))
_OFF = frozenset(("false", "no", "off", "n", "f", "disable", "disabled", "none"))
# What C's strtoll takes with base 0; NCCL ignores the rest of the text.
_INTEGER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable, its value, and where it was set: a file, or `environment`."""

    name: str
    value: str
    where: str = "environment"

    def __str__(self) -> str:
        return f"{self.name}={self.value}"

    @property
    def is_plain(self) -> bool:
        """Whether the value can be judged: it has no reference that a shell has yet to replace, and is not torn."""
        return "$" not in self.value and "`" not in self.value and is_clean(self.value)


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in effect by name, and pairs of what wins and what is set elsewhere in vain."""

    by_name: dict[str, Setting]
    shadowed: tuple[tuple[Setting, Setting], ...]
    version: tuple[int, ...]  # of the NCCL that loads; () if not known

    def get(self, name: str) -> Setting | None:
        """The setting `name` if it is set to something."""
        found = self.by_name.get(name)
        return found if found and found.value else None

    def value(self, name: str) -> str:
        """The value of `name`; empty if it is not set."""
        return self.by_name[name].value if name in self.by_name else ""

    def nccl(self) -> Iterator[Setting]:
        """The settings that the installed NCCL reads, where they have a value that can be judged.

        The newest release stands for one whose version is not known.
        """
        known, version = nccl_variables(), self.version or version_key(newest_release())
        for setting in self.by_name.values():
            row = known.get(setting.name)
            is_read = row is not None and not row.is_gone(version) and not row.is_to_come(version)
            if is_read and setting.value and setting.is_plain:
                yield setting

    def is_before(self, *version: int) -> bool:
        """Whether the NCCL that loads is known and older."""
        return bool(self.version) and self.version < version

    def is_since(self, *version: int) -> bool:
        """Whether the NCCL that loads is known and not older."""
        return bool(self.version) and self.version >= version


def read_settings(facts: Facts) -> Settings:
    """The shell's variables, and under them the files of settings, the first of which wins."""
    in_effect = {
        name: Setting(name, value, facts.variable_sources.get(name, "environment"))
        for name, value in sorted(facts.variables.items())
    }
    shadowed = []
    for file in facts.conf_files or ():
        for line in file.lines:
            pair = parse_line(line)
            if pair is None or not pair[0].startswith(("NCCL_", "RCCL_")) or pair[0] != pair[0].strip():
                continue
            setting = Setting(*pair, file.path)
            winner = in_effect.setdefault(setting.name, setting)
            if winner is not setting:
                shadowed.append((winner, setting))
    return Settings(in_effect, tuple(shadowed), nccl_version(facts))


def nccl_version(facts: Facts) -> tuple[int, ...]:
    """The version of the NCCL that loads, else of the only one that is there; () if that is not known."""
    found = {version_key(facts.software.nccl_loadable)} - {()} or set(
        map(version_key, (facts.software.nccl or {}).values())
    )
    return found.pop() if len(found) == 1 else ()


def is_clean(value: str) -> bool:
    """Whether a value has neither blanks nor quotes around it."""
    return value == value.strip() and value[:1] not in ("'", '"')


def is_on(value: str) -> bool:
    """Whether a word for on, which NCCL reads as 0."""
    return value.lower() in _ON


def is_off(value: str) -> bool:
    """Whether a word for off, which NCCL reads as 0 all the same."""
    return value.lower() in _OFF


def as_integer(value: str) -> tuple[int, str]:
    """What strtoll(value, …, 0) gives, and the text that it leaves over: `4M` is (4, "M"), `010` is (8, "")."""
    found = _INTEGER.match(value)
    if not found:
        return 0, value
    sign, digits = found.groups()
    is_octal = digits[0] == "0" and digits[1:2] not in ("x", "X")
    number = int(digits, 8 if is_octal else 0) if len(digits) <= 20 else 1 << 63
    return (-number if sign == "-" else number), value[found.end() :]


def env_rule(
    id: str, severity: Severity, *, subject: str, fine: str, summary: str, fix: str, source: str
) -> Callable[[Callable[[Scene, Settings], Iterable[Seen]]], Check]:
    """A rule about settings: `fine` is what its `ok` of `subject` says when the check below has nothing to say.

    Where the environment could not be seen it is a skip with the reason.
    """

    def declare(check: Callable[[Scene, Settings], Iterable[Seen]]) -> Check:
        @rule(id, severity, summary=summary, fix=fix, source=source)
        @wraps(check)
        def whole(scene: Scene) -> Iterator[Seen]:
            if "variables" in scene.facts.unseen:
                yield skip(subject, scene.facts.why_unseen("variables"))
                return
            yield from tuple(check(scene, read_settings(scene.facts))) or (ok(subject, fine),)

        return whole

    return declare
