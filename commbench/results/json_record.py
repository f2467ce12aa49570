"""Reads a record that is kept as JSON with a `schema_version`: run.json and fit.json."""

from pathlib import Path
from typing import TypeVar

import msgspec

from commbench.errors import CommbenchError

Record = TypeVar("Record")


class _Version(msgspec.Struct):
    schema_version: int


def read_json_record(path: Path, kind: type[Record], *, newest: int, noun: str, hint: str) -> Record:
    """The record of `kind` in `path`; `noun` says what it is, `hint` what to do where there is none.

    Raises CommbenchError if it cannot be read, is of a schema after `newest`, or is no such record.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise CommbenchError(
            f"no {noun} in {path.parent}: cannot read {path.name} ({error.strerror}); {hint}."
        ) from error
    return decode_json_record(text, str(path), kind, newest=newest, noun=noun)


def decode_json_record(text: bytes, source: str, kind: type[Record], *, newest: int, noun: str) -> Record:
    """The record of `kind` in `text`, which was read from `source`.

    Raises CommbenchError if it is of a schema after `newest`, or is no such record.
    """
    try:
        found = msgspec.json.decode(text, type=_Version).schema_version
        if found > newest:
            raise CommbenchError(
                f"{source} has schema {found}, this commbench reads up to {newest}: update commbench to read it."
            )
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CommbenchError(f"{source} is not a {noun} of commbench: {error}.") from error
