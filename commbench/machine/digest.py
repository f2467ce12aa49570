"""Hashes of files that must be the same on every node."""

import hashlib
from collections.abc import Iterable


def hash_files(paths: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each file by its path, read in pieces; where one cannot be read, the reason in its place."""
    return {path: _hash(path) for path in paths}


def _hash(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"cannot be read: {reason}"
