"""Snapshots: the facts of a machine in a file, for whoever cannot log in there.

A snapshot holds no secret that is known as one: of the environment only the names in `software.py`, and no serial
number, hardware address or GUID; where identity is needed, a hash. It does hold the host's name, the IP addresses of
its interfaces, and the values of those variables, such as paths.
"""

from pathlib import Path

from commbench.errors import CommbenchError
from commbench.machine.facts import FACTS_SCHEMA_VERSION, Facts

WHAT_IT_HOLDS = (
    "it holds the host's name, the IP addresses of its interfaces and the variables of NCCL and its like; no other "
    "variable, serial number, hardware address or GUID"
)


def format_snapshot(facts: Facts) -> str:
    """The facts as JSON, one fact a line."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(facts), indent=1).decode() + "\n"


def load_snapshot(path: Path) -> Facts:
    """The facts in the file at `path`. Raises CommbenchError if it cannot be read, or `read_snapshot` refuses it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommbenchError(f"cannot read {path}: {error.strerror}.") from error
    return read_snapshot(data, str(path))


def read_snapshot(data: bytes, source: str) -> Facts:
    """The facts in `data`; what an older schema lacks is unseen.

    Raises CommbenchError if they are of a newer schema, or if it is no snapshot.
    """
    from commbench.results.json_record import decode_json_record

    return decode_json_record(data, source, Facts, newest=FACTS_SCHEMA_VERSION, noun="snapshot")


def is_snapshot(text: str) -> bool:
    """Whether `text` begins as a snapshot does."""
    head = text[:400].lstrip()
    return head.startswith("{") and '"schema_version"' in head and '"taken_utc"' in head
