"""An environment that somebody wrote down: what `env` prints, a job script, a container's file, JSON, a manifest.

A text in which nearly every line is NAME=value is what env prints, or a file of settings: a value is the rest of its
line. A text that is JSON is an object, a list of {"name", "value"} or of NAME=value, or anything that holds such. In
all others each line is searched: export, declare -x, setenv, ENV, Environment=; assignments before a command; mpirun
-x, mpiexec -genv, docker -e; #SBATCH --export=…; `name:` and `value:`, or `NAME: value`, of a manifest.

Only variables that the checks may see are kept, with the line that set them: a file is not echoed. What sets a name
last counts, as in a shell; branches are not followed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from commbench.errors import CommbenchError
from commbench.machine.software import is_kept

MAX_NBYTES = 1 << 20
_MAX_LINE, _MAX_DEPTH = 20_000, 40
_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
# A value ends at a blank unless it is quoted.
_VALUE = r"""(?:"(?P<double>(?:[^"\\]|\\.){0,4000})"|'(?P<single>[^']{0,4000})'|(?P<bare>[^\s;"']{0,4000}))"""
_ASSIGNMENT = re.compile(rf"(?<![\w./-])(?P<name>{_NAME})={_VALUE}")
_PAIR = re.compile(rf"(?:^\s*setenv|^\s*ENV|(?<!\S)-g?env)\s+(?P<name>{_NAME})\s+{_VALUE}")
_YAML_NAME = re.compile(rf"^[\s-]*name:\s*[\"']?(?P<name>{_NAME})[\"']?\s*$")
_YAML_VALUE = re.compile(r"^[\s-]*value:(?P<value>.*)$")
_YAML_BOTH = re.compile(rf"\bname:\s*[\"']?(?P<name>{_NAME})[\"']?\s*,\s*value:\s*(?P<value>[^}}]{{0,4000}})")
_YAML_MAP = re.compile(rf"^[\s-]*(?P<name>{_NAME}):\s(?P<value>.*)$")
_WHOLE = re.compile(rf"\s*(?P<name>{_NAME})=(?P<value>.*)")
_QUOTED = re.compile(rf"""(?P<quote>["'])(?P<name>{_NAME})=(?P<value>[^"']{{0,4000}})(?P=quote)""")
_IN_JSON = re.compile(rf'"(?P<name>{_NAME})["=]')
_DUMP_SHARE = 0.8  # of the lines that say something
_SBATCH = re.compile(r"^\s*#\s*SBATCH\b.{0,400}?--export[=\s]\s*(?P<list>.{0,8000})$")


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The variables of a file, and where each was set, such as `job.sh:17`."""

    variables: dict[str, str]
    sources: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Found:
    line: int
    name: str
    value: str


def parse_env(data: bytes, source: str) -> EnvFile:
    """The variables in `data`, of the file `source`. Raises CommbenchError if it is no text, or too long."""
    if len(data) > MAX_NBYTES:
        raise CommbenchError(f"{source} has more than {MAX_NBYTES >> 20} MiB: an environment has a few kB.")
    text = data.decode("utf-8-sig", errors="replace")
    # /proc/PID/environ has a zero byte where others have an end of line.
    if "\0" in text:
        text = text.replace("\0", "\n")
    found = _from_json(text)
    pairs = _from_lines(text) if found is None else found
    sets = {pair.name: pair for pair in pairs if is_kept(pair.name)}
    return EnvFile(
        {name: pair.value for name, pair in sets.items()},
        {name: f"{source}:{pair.line}" if pair.line else source for name, pair in sets.items()},
    )


def _from_lines(text: str) -> Iterator[_Found]:
    lines = [line.removesuffix("\r")[:_MAX_LINE] for line in text.split("\n")]
    if _is_dump(lines):
        for number, line in enumerate(lines, start=1):
            whole = _WHOLE.fullmatch(line)
            if whole:
                yield _Found(number, whole["name"], _unquote(whole["value"]))
        return
    pending = ""  # the name of an entry of a manifest whose value stands on the next line
    for number, line in enumerate(lines, start=1):
        names, values = _YAML_NAME.match(line), _YAML_VALUE.match(line)
        if pending and values:
            yield _Found(number, pending, _unquote(values["value"].strip()))
        pending = names["name"] if names else ""
        if not names and not values:
            yield from (_Found(number, name, value) for name, value in _in_line(line))


def _is_dump(lines: list[str]) -> bool:
    """Whether nearly every line is NAME=value, and none says that it is a script."""
    says = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    is_script = any(line.startswith(("#!", "#SBATCH")) for line in lines)
    return not is_script and sum(1 for line in says if _WHOLE.match(line)) >= _DUMP_SHARE * len(says)


def _in_line(line: str) -> Iterator[tuple[str, str]]:
    """What one line of a script or manifest sets."""
    batch = _SBATCH.match(line)
    if batch:
        parts = (part.partition("=") for part in _slurm_list(batch["list"].strip("\"' ")))
        yield from ((name.strip(), _unquote(value)) for name, equals, value in parts if equals)
        return
    if line.lstrip().startswith(("#", "//")):
        return
    both = _YAML_BOTH.search(line)
    if both:
        yield both["name"], _unquote(both["value"].strip())
        return
    yield from ((found["name"], _value(found)) for found in (*_PAIR.finditer(line), *_ASSIGNMENT.finditer(line)))
    yield from ((found["name"], found["value"]) for found in _QUOTED.finditer(line))
    mapped = _YAML_MAP.match(line)
    if mapped:
        yield mapped["name"], _unquote(mapped["value"].strip())


def _value(found: re.Match[str]) -> str:
    if found["double"] is not None:
        return re.sub(r'\\(["\\$`])', r"\1", found["double"])
    return found["single"] if found["single"] is not None else found["bare"].rstrip("\\")


def _slurm_list(text: str) -> list[str]:
    """Slurm's list at its commas. A part that is neither NAME=value nor ALL goes on with the value before it."""
    parts: list[str] = []
    for part in text.split(","):
        goes_on = parts and "=" in parts[-1] and "=" not in part and part.strip() not in ("ALL", "NONE", "NIL")
        if goes_on:
            parts[-1] += f",{part}"
        else:
            parts.append(part)
    return parts


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _from_json(text: str) -> list[_Found] | None:
    """The variables of a JSON document, in whatever it is wrapped; None if the text is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    lines = dict(_names_with_lines(text))
    return [_Found(lines.get(name, 0), name, value) for name, value in _in_document(document, 0)]


def _in_document(node: object, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(node, dict):
        name, value = node.get("name"), node.get("value")
        if isinstance(name, str) and isinstance(value, str | int | float):
            yield name, _as_text(value)
        for key, child in node.items():
            if isinstance(child, str | int | float):
                yield key, _as_text(child)
            else:
                yield from _in_document(child, depth + 1)
    elif isinstance(node, list):
        for child in node:
            if isinstance(child, str):
                name, equals, value = child.partition("=")
                yield from ((name, value),) if equals else ()
            else:
                yield from _in_document(child, depth + 1)


def _as_text(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names_with_lines(text: str) -> Iterator[tuple[str, int]]:
    """What could be a name in a JSON text, and the line where it stands."""
    for number, line in enumerate(text.split("\n"), start=1):
        yield from ((found["name"], number) for found in _IN_JSON.finditer(line))
