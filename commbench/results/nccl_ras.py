"""What NCCL's RAS answers: how many collectives the ranks of each communicator have launched, and which do not answer.

Its forms (NCCL's src/ras/client_support.cc): text from 2.24 on, which tells only of communicators whose ranks differ
(from 2.26 on of each operation apart); JSON from 2.28.7 on, with every rank of every communicator.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from commbench.texts import shown


@dataclass(frozen=True, slots=True)
class Launched:
    """Ranks of one communicator that have launched as many `calls` of an operation as each other.

    `operation`: NCCL's name; empty: of all together. `members`: their numbers in the communicator, as far as told.
    """

    operation: str
    calls: int
    ranks: int
    members: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Communicator:
    """One communicator. `name`: its hash, as in NCCL's log; `missing`: how many of its ranks gave no answer."""

    name: str
    size: int | None
    launched: tuple[Launched, ...] = ()
    missing: int = 0
    missing_members: tuple[int, ...] = ()

    @property
    def is_even(self) -> bool:
        """Whether all ranks have answered, and have launched the same."""
        counts = Counter(found.operation for found in self.launched)
        return not self.missing and max(counts.values(), default=0) <= 1


@dataclass(frozen=True, slots=True)
class RasStatus:
    """An answer: `total` communicators, and those of them that it tells of; the `pids` that answered, in JSON alone."""

    communicators: tuple[Communicator, ...]
    total: int
    pids: frozenset[int] = frozenset()


def parse_ras(reply: str) -> RasStatus | None:
    """The status in what RAS sent; None where it is none, or was cut off before there was one."""
    body = re.sub(r"\A(?:(?:OK|ERROR)\b[^\n]{0,1000}\n)+", "", reply)
    return _read_json(body) if body.startswith("{") else _read_text(body)


# -- JSON --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _JsonRank:
    rank: int
    pid: int
    collective_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _JsonMissingStatus:
    unresponsive: bool  # if not, it has answered, and is not in the communicator (any more)


@dataclass(frozen=True, slots=True)
class _JsonMissing:
    rank: int
    status: _JsonMissingStatus


@dataclass(frozen=True, slots=True)
class _JsonCommunicator:
    hash: str
    size: int
    ranks: list[_JsonRank]
    missing_ranks: list[_JsonMissing]


@dataclass(frozen=True, slots=True)
class _JsonStatus:
    communicators: list[_JsonCommunicator]


def _read_json(body: str) -> RasStatus | None:
    import msgspec

    try:
        status = msgspec.json.decode(body, type=_JsonStatus)
    except (msgspec.MsgspecError, RecursionError):
        return None
    found = tuple(_communicator(one) for one in status.communicators)
    pids = {rank.pid for one in status.communicators for rank in one.ranks}
    return RasStatus(found, len(found), frozenset(pids))


def _communicator(told: _JsonCommunicator) -> Communicator:
    members: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank in told.ranks:
        for operation, calls in rank.collective_counts.items():
            members[shown(operation)][calls].append(rank.rank)
    launched = tuple(
        Launched(operation, calls, len(ranks), tuple(sorted(ranks)))
        for operation, by_calls in members.items()
        for calls, ranks in sorted(by_calls.items(), key=lambda item: (-len(item[1]), -item[0]))  # as its text does
        if calls or len(by_calls) > 1
    )
    missing = tuple(sorted(rank.rank for rank in told.missing_ranks if rank.status.unresponsive))
    return Communicator(shown(told.hash), told.size, launched, len(missing), missing)


# -- text --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """What the lines so far say of one communicator."""

    name: str
    size: int | None
    launched: list[tuple[str, int, int, list[int]]] = field(default_factory=list)
    missing: int = 0
    missing_members: list[int] = field(default_factory=list)

    def done(self) -> Communicator:
        launched = tuple(
            Launched(operation, calls, ranks, tuple(members)) for operation, calls, ranks, members in self.launched
        )
        return Communicator(self.name, self.size, launched, self.missing, tuple(self.missing_members))


class _TextReader:
    """Reads a status line by line. A line that names a rank belongs to the one that counted it, before."""

    def __init__(self) -> None:
        self.is_status = False
        self.total = 0
        self.drafts: dict[str, _Draft] = {}
        self._sizes: dict[str, int] = {}
        self._draft = _Draft("", None)
        self._operation = ""
        self._members: list[int] = []

    def begin(self, _found: re.Match[str]) -> None:
        self.is_status = True

    def row(self, found: re.Match[str]) -> None:
        self._sizes[found[1]] = int(found[3])
        self.total += int(found[2])

    def head(self, found: re.Match[str]) -> None:
        fresh = _Draft(f"0x{found[3]}", self._sizes.get(found[2]))
        self._draft = self.drafts.setdefault(found[1], fresh)
        self._members = []

    def different(self, found: re.Match[str]) -> None:
        self._operation = "" if found[1] == "collective" else found[1]

    def counted(self, found: re.Match[str]) -> None:
        self._launch(int(found[2] or 0), int(found[1]), [])

    def one(self, found: re.Match[str]) -> None:
        self._launch(int(found[2] or 0), 1, [int(found[1])])

    def member(self, found: re.Match[str]) -> None:
        self._members.append(int(found[1]))

    def missing(self, found: re.Match[str]) -> None:
        self._draft.missing = int(found[1])
        self._members = self._draft.missing_members

    def missing_list(self, found: re.Match[str]) -> None:
        self._members += [int(number) for number in re.findall(r"\d{1,7}", found[1])]

    def other(self, _found: re.Match[str]) -> None:
        self._members = []

    def _launch(self, calls: int, ranks: int, members: list[int]) -> None:
        self._draft.launched.append((self._operation, calls, ranks, members))
        self._members = members


_GAP = r" {1,20}"
_LAUNCHED = r"(?:launched up to operation (\d{1,18})|not launched any operations)"
# What a line looks like, without the blanks round it, and what it says.
_LINES: tuple[tuple[re.Pattern[str], Callable[[_TextReader, re.Match[str]], None]], ...] = tuple(
    (re.compile(pattern, re.ASCII), says)
    for pattern, says in (
        (r"Rank (\d{1,7}) -- ", _TextReader.member),
        (rf"Rank (\d{{1,7}}) has {_LAUNCHED}", _TextReader.one),
        (rf"(\d{{1,7}}) ranks have {_LAUNCHED}", _TextReader.counted),
        (r"Communicator ranks have different (\w{1,40}) operation counts$", _TextReader.different),
        (r"(#(\d{1,6})-\d{1,6}) \(([0-9a-f]{1,16})\) \w", _TextReader.head),
        (r"Missing communicator data from (\d{1,7}) ranks?$", _TextReader.missing),
        (r"The missing ranks?: ([\d,]{1,1024})$", _TextReader.missing_list),
        (r"\d{1,7} ranks (?:have status|reported) ", _TextReader.other),
        (r"Communicators\.{3} \(\d{1,9}\.\d{1,9}s\)$", _TextReader.begin),
        (
            rf"(\d{{1,6}}){_GAP}(\d{{1,9}}){_GAP}\d{{1,9}}{_GAP}[\d-]{{1,19}}{_GAP}(\d{{1,9}}){_GAP}\d{{1,9}}{_GAP}[A-Z]",
            _TextReader.row,
        ),
    )
)


def _read_text(body: str) -> RasStatus | None:
    reader = _TextReader()
    for line in body.splitlines():
        text = line.strip()
        for pattern, says in _LINES:
            if found := pattern.match(text):
                says(reader, found)
                break
    if not reader.is_status:
        return None
    told = tuple(draft.done() for draft in reader.drafts.values())
    return RasStatus(told, max(reader.total, len(told)))
