"""The one error tree. A message is one sentence: what was found, what was expected, what to do.

    CommbenchError          exit 3   could not measure or read
      UsageError            exit 2   what was asked for cannot be right
      RendezvousError       exit 3   the ranks did not come together
      TransportError        exit 3   a collective failed: a peer or its link is gone
      WrongDataError        exit 1   a collective returned a wrong element
      StalledError          exit 124 a watchdog ended a hang
      InterruptedRunError   exit 130 Ctrl-C

Only `commbench.cli` turns an error into an exit code.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class CommbenchError(Exception):
    """Something could not be measured or read. `is_quiet`: another rank says so, this one only ends.

    `ranks`, `hosts`: who is to blame for it, as far as it is known.
    """

    exit_code = 3

    def __init__(
        self, message: str = "", *, is_quiet: bool = False, ranks: tuple[int, ...] = (), hosts: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.is_quiet = is_quiet
        self.ranks = ranks
        self.hosts = hosts


class UsageError(CommbenchError):
    """What was asked for cannot be right."""

    exit_code = 2


class RendezvousError(CommbenchError):
    """The ranks did not come together."""


class TransportError(CommbenchError):
    """A collective failed: a peer is gone, or the way to it."""


class WrongDataError(CommbenchError):
    """A collective returned a wrong element."""

    exit_code = 1


class StalledError(CommbenchError):
    """A watchdog ended a hang."""

    exit_code = 124


class InterruptedRunError(CommbenchError):
    """The user ended the run; what was measured is kept."""

    exit_code = 130


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a `name` that is not in `known`, with the nearest known one."""
    names = list(known)
    by_lower = {known_name.lower(): known_name for known_name in names}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"did you mean {by_lower[near[0]]}? " if near else ""
    return UsageError(f"unknown {kind} {name!r}: {hint}known are {', '.join(names)}.")
