"""From text to messages: heads found anywhere in a line, and what was torn put together where it is certain.

Ranks that share a pipe cut each other's lines: a message may end in the head of another, and its rest may come later at
the beginning of a line. A torn message is believed when its own end shows that nothing is missing, or when exactly one
torn beginning and one rest make a message that is known; all else is lost, and told with its line.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from commbench.results.importers.lines import MAX_LINE, strip_prefixes, without_colours
from commbench.results.importers.records import LostLine
from commbench.results.nccl_log.records import Message, Process
from commbench.texts import shown

_MARK = re.compile(r"(?:[NR]CCL |(?<=\] ))(INFO|WARN|ATTN|TRACE|CALL) ?")  # ATTN: from 2.32
_HEAD = re.compile(
    r"(?:((?!\d{1,64}:)[A-Za-z0-9][\w.-]{0,63}):(\d{1,10})(?::(\d{1,10}))? \[(-?\d{1,5})\] )?"
    r"(?:\d{1,12}\.\d{1,9} )?(?:([\w./-]{1,80}(?::|, )\d{1,6}) (?:\(\w{1,80}\) )?)?$"
)
_BROKEN_HEAD = re.compile(
    r"([A-Za-z0-9][\w.-]{0,63}):\d{0,10}(?::(?:\d{0,10}(?: (?:\[(?:\d{0,5}(?:\] ?[NR]?C{0,2}L?)?)?)?)?)?)?"
)
_DIAGNOSIS = re.compile(r"([A-Za-z0-9][\w.-]{0,63}):(\d{1,10}) NCCL DIAG (.{0,1024})")  # from 2.31; has no device
_HALF_WARNING = re.compile(r"Call to \w{1,64} failed with(?: error)? \d{1,4}$")
_LEVELS = ("INFO", "WARN", "ATTN", "TRACE")
_HEAD_LENGTH = 260
_MAX_PENDING = 32
_MAX_LOST = 10_000


@dataclass(slots=True)
class _Piece:
    """A part of a line: a message, or what stands before the first. `cut`: its end may be missing."""

    line: int
    raw: str
    head: tuple[str, str, str, str, str] | None = None  # host, pid, tid, device, place
    level: str = ""
    text: str = ""
    cut: bool = False
    starts_line: bool = True


def _parts(head: re.Match[str] | None) -> tuple[str, str, str, str, str]:
    if head is None:
        return "", "", "", "", ""
    host, pid, tid, device, place = (part or "" for part in head.groups())
    return host, pid, tid, device, place


@dataclass(slots=True)
class Found:
    """The messages of a text, and what was lost. `foreign`: lines that are of others, with their numbers."""

    messages: list[Message] = field(default_factory=list)
    foreign: list[tuple[int, str]] = field(default_factory=list)
    lost: list[LostLine] = field(default_factory=list)
    lost_count: int = 0
    joined: int = 0
    lines: int = 0

    def lose(self, line: int, text: str, reason: str) -> None:
        """One more line that says something that cannot be told for certain."""
        self.lost_count += 1
        if len(self.lost) < _MAX_LOST:
            self.lost.append(LostLine(line, shown(text), reason))


@dataclass(frozen=True, slots=True)
class Grammar:
    """What this module has to know of bodies: is one NCCL's, may one begin so, and is the end of one not missing."""

    knows: Callable[[str], bool]
    may_begin: Callable[[str], bool]
    is_closed: Callable[[str], bool]


def find_messages(text: str, name: str, grammar: Grammar) -> Found:
    """All messages of `text`, in their order."""
    lines = _numbered(text)
    pieces = [piece for number, raw in lines for piece in _pieces(raw, number)]
    last = lines[-1][0] if lines else 0
    if pieces and not text.endswith(("\n", "\r")) and pieces[-1].line == last:
        pieces[-1].cut = True
    return _Joiner(name, grammar, pieces, last).join()


def _numbered(text: str) -> list[tuple[int, str]]:
    """Lines with the numbers that editors and grep give them; a progress bar's carriage returns make several of one."""
    text = text.replace("\r\n", "\n")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [(number, part[:MAX_LINE]) for number, line in enumerate(lines, start=1) for part in line.split("\r")]


def _pieces(raw: str, number: int) -> Iterator[_Piece]:
    if not raw or raw.isspace():
        return
    line = without_colours(raw).replace("\xa0", " ")
    if "NCCL DIAG " in line and (found := _DIAGNOSIS.search(line)) is not None:
        yield _Piece(number, line, (found[1], found[2], "", "", ""), "DIAG", found[3])
        return
    marks = list(_MARK.finditer(line)) if any(level in line for level in _LEVELS) else []
    starts, heads = [], []
    begin = 0
    for mark in marks:
        window = line[max(begin, mark.start() - _HEAD_LENGTH) : mark.start()]
        head = _HEAD.search(window)
        named = head is not None and head[1] is not None
        if not named and not mark[0].startswith(("NCCL", "RCCL")):
            continue  # INFO of another program
        starts.append(mark.start() - (len(window) - head.start() if head else 0))
        heads.append((mark, _parts(head)))
        begin = mark.end()
    if not starts:
        yield _Piece(number, line)
        return
    if not heads[0][1][0]:
        starts[0] = 0  # what stands before it may be the rest of its head
    elif line[: starts[0]].strip():
        yield _Piece(number, line[: starts[0]], cut=True)
    for place, (mark, parts) in enumerate(heads):
        end = starts[place + 1] if place + 1 < len(starts) else len(line)
        alone = not line[: starts[0]].strip() and place == 0
        cut = end < len(line) or len(raw) == MAX_LINE
        yield _Piece(number, line[starts[place] : end], parts, mark[1], line[mark.end() : end], cut, alone)


class _Joiner:
    def __init__(self, name: str, grammar: Grammar, pieces: list[_Piece], lines: int) -> None:
        self.name, self.grammar, self.pieces = name, grammar, pieces
        self.found = Found(lines=lines)
        whole = [piece for piece in pieces if piece.head and piece.head[0]]
        self.hosts = {piece.head[0] for piece in whole if piece.starts_line and piece.head}
        self.bodies = {piece.text for piece in whole if not piece.cut}
        self.threads: dict[str, set[tuple[str, str, str]]] = {}
        for piece in whole:
            if piece.head:
                host, pid, tid, device, _ = piece.head
                self.threads.setdefault(tid, set()).add((self._host(host), pid, device))
        self.pending: deque[_Piece] = deque()
        self.half: Message | None = None  # a warning whose second half is on the next line

    def join(self) -> Found:
        """Go through all pieces in their order."""
        for piece in self.pieces:
            if piece.level:
                self._end_warning()
                self._take_message(piece)
            else:
                self._take_other(piece)
        self._end_warning()
        for piece in self.pending:
            self._drop(piece)
        return self.found

    def _take_message(self, piece: _Piece) -> None:
        assert piece.head is not None
        if not piece.head[0]:
            if joined := self._joined(piece):
                piece = joined
            else:
                self._await_broken_head(piece)
        if piece.cut and piece.text not in self.bodies and not self.grammar.is_closed(piece.text):
            self._wait(piece)
        else:
            self._emit(piece)

    def _take_other(self, piece: _Piece) -> None:
        """A line, or the beginning of one, without a message: a broken head, a rest, or another program's."""
        if self.half is not None:
            half, self.half = self.half, None
            if not piece.cut and " on dev " in piece.raw:
                self.found.messages.append(
                    Message(half.process, half.level, f"{half.text} {piece.raw.strip()}", half.where, half.place)
                )
                return
            self.found.messages.append(half)
        joined = self._joined(piece)
        if joined is not None:
            self._emit(joined)
            return
        text = piece.raw[self._await_broken_head(piece) :]
        if text == piece.raw:
            text = strip_prefixes(text).strip()
        if not piece.cut and self.grammar.may_begin(text) and self.grammar.knows(text):
            self.found.messages.append(Message(Process(), "INFO", text, self._where(piece)))
        else:
            self.found.foreign.append((piece.line, text))

    def _await_broken_head(self, piece: _Piece) -> int:
        """Keep a head of a known host that breaks off, until its rest comes; where it ends, 0 if there is none."""
        broken = _BROKEN_HEAD.match(piece.raw)
        if broken is None or broken[1] not in self.hosts:
            return 0
        is_all = not piece.raw[broken.end() :].strip()
        self._wait(_Piece(piece.line, piece.raw if is_all and piece.cut else broken[0]))
        return broken.end()

    def _wait(self, piece: _Piece) -> None:
        if len(self.pending) >= _MAX_PENDING:
            self._drop(self.pending.popleft())
        self.pending.append(piece)

    def _drop(self, piece: _Piece) -> None:
        self.found.lose(piece.line, piece.raw, "it is broken off, and its rest is not there for certain")

    def _joined(self, rest: _Piece) -> _Piece | None:
        """The message that one torn beginning makes with `rest`; None where none or several do."""
        if rest.cut and not rest.level:
            return None
        fitting = [(piece, whole) for piece in self.pending if (whole := self._whole(piece, rest)) is not None]
        if len(fitting) != 1:
            return None
        piece, joined = fitting[0]
        self.pending.remove(piece)
        self.found.joined += 1
        joined.cut = rest.cut
        return joined

    def _whole(self, piece: _Piece, rest: _Piece) -> _Piece | None:
        """`piece` and `rest` as one message; None if its thread is not known from others, or its body is not NCCL's."""
        if piece.level:  # the body is torn
            if rest.level:
                return None
            text = piece.text + rest.raw
            is_real = text in self.bodies or (self.grammar.may_begin(piece.text) and self.grammar.knows(text))
            return _Piece(piece.line, piece.raw, piece.head, piece.level, text) if is_real else None
        if not any(level in rest.raw for level in _LEVELS[:3]):
            return None
        parts = list(_pieces(piece.raw + rest.raw, piece.line))
        if len(parts) != 1 or parts[0].head is None:
            return None
        host, pid, tid, device, _ = parts[0].head
        is_real = (host, pid, device) in self.threads.get(tid, ())
        return parts[0] if is_real and (parts[0].text in self.bodies or self.grammar.knows(parts[0].text)) else None

    def _emit(self, piece: _Piece) -> None:
        assert piece.head is not None
        host, pid, tid, device, place = piece.head
        process = Process(self._host(host) if not piece.starts_line else host, _int(pid), _int(tid), _int(device))
        message = Message(process, piece.level, piece.text.strip(), self._where(piece), place)
        if piece.level == "WARN" and _HALF_WARNING.match(message.text):
            self.half = message
        else:
            self.found.messages.append(message)

    def _end_warning(self) -> None:
        if self.half is not None:
            self.found.messages.append(self.half)
            self.half = None

    def _host(self, name: str) -> str:
        """A host's name, without the end of another message that is stuck to it."""
        if name in self.hosts:
            return name
        return max((host for host in self.hosts if name.endswith(host)), key=len, default=name)

    def _where(self, piece: _Piece) -> str:
        return f"{self.name}:{piece.line}"


def _int(digits: str) -> int | None:
    return int(digits) if digits else None
