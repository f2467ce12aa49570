"""JSON of other tools: read with bounds, also where the writer died in the middle of it."""

import json
from dataclasses import dataclass
from typing import Any

from commbench.errors import CommbenchError
from commbench.results.importers.numbers import read_printed
from commbench.results.importers.records import Printed

_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Document:
    """The value of a JSON text. `torn`: its end is missing, and what was open there was closed."""

    value: Any
    torn: bool = False


def read_document(text: str, name: str) -> Document:
    """The JSON in `text`. Raises CommbenchError if it is none, also with its end repaired."""
    try:
        return Document(_load(text))
    except (ValueError, RecursionError) as error:
        repaired = _closed(text)
        if repaired is not None:
            try:
                return Document(_load(repaired), torn=True)
            except (ValueError, RecursionError):
                pass
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply or too large"
        line = f" line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise CommbenchError(f"{name}{line} does not read as JSON: {reason}.") from error


def _load(text: str) -> Any:
    return json.loads(text, parse_constant=lambda _: None)


def _closed(text: str) -> str | None:
    """`text` up to its last whole value, with what is open there closed; None if that is not possible."""
    closers: list[str] = []
    quoted = escaped = False
    whole: tuple[int, str] | None = None
    for place, letter in enumerate(text):
        if quoted:
            quoted, escaped = escaped or letter != '"', letter == "\\" and not escaped
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            closers.append("}" if letter == "{" else "]")
            if len(closers) > _MAX_DEPTH:
                return None
        elif letter in "}]":
            if not closers or closers.pop() != letter:
                return None
            whole = (place + 1, "".join(reversed(closers)))
    return text[: whole[0]] + whole[1] if whole is not None and closers else None


def items(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def section(value: Any, key: str) -> dict[str, Any]:
    """The object at `key`; empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def number(value: Any, scale: float = 1.0) -> Printed | None:
    """A number of a document, or one in a string, times `scale`; None for anything else, and for NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        return read_printed(value.strip(), scale)
    return read_printed(repr(value), scale)


def whole(value: Any) -> int | None:
    """A whole number from 0 on, as a number or in a string; None for anything else."""
    found = number(value)
    return int(found.value) if found is not None and found.value >= 0 and found.value == int(found.value) else None


def text_of(value: Any, default: str) -> str:
    """A short text at most; `default` for anything else."""
    return value.strip()[:200] if isinstance(value, str) and value.strip() else default
