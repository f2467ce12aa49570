"""From bytes to clean lines: encodings, colours, markdown, and the prefixes that launchers put before a line.

Every pattern here has bounded repetitions, and a line is cut at `MAX_LINE`, so that time grows with the file only.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from commbench.texts import shown as shown

MAX_FILE_NBYTES = 64 << 20  # a sweep of a thousand sizes is 200 KB; debug logs are larger
MAX_LINES = 1_000_000
MAX_LINE = 4096  # nccl-tests caps its own lines at 2048 a process

_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\-_])")
_TAG = re.compile(
    r"\[(?:[\w.@-]{1,64}[,@])?\d{1,6},\d{1,6}\](?:<stdout>|<stdout>:|:)?:? ?|\[\d{1,6},\d{1,6}\]<stdout>:?"
)
_STDERR_TAG = re.compile(r"\[[^\]\n]{1,80}\]<stderr>")
_RANK_TAG = re.compile(r"\[\d{1,6}\] ")
_PREFIX = re.compile(
    r"\s{0,8}(?:"
    r"\d{1,6}:(?=\s|#|$) ?"  # srun --label
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: stdout F)?[:,]? ?"
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]? "
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w./-]{1,64}(?:\[\d{1,8}\])?: "  # syslog
    r"|(?:\[(?:pod/)?[A-Za-z][\w./-]{0,128}\]:?|[A-Za-z][\w.-]{0,63}:) \|? ?(?=#|\s{0,20}\d)"  # pods, pdsh
    r"|> ?)"  # a quotation in markdown
)
_NCCL_LOG = re.compile(r"(?:[A-Za-z][\w.-]{0,63}:\d{1,10}:\d{1,10} )?\[-?\d{1,5}\] (?:\S{1,64}, ?\d{1,5} )?$")
_FENCE = re.compile(r"\s{0,12}(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Line:
    """One cleaned line; `raw` is what it was. `cut`: a log message stood in the rest of it."""

    number: int
    text: str
    raw: str
    cut: bool = False


def decode(data: bytes) -> str:
    """The text of `data`: UTF-8, or UTF-16 where a byte order mark says so. Bytes that are neither become U+FFFD."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace")


def split_lines(text: str) -> list[str]:
    """Lines, whatever ends them; a long one is cut at `MAX_LINE`."""
    return [line[:MAX_LINE] for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def without_colours(line: str) -> str:
    """`line` without the sequences that colour or underline it on a terminal."""
    return _ANSI.sub("", line) if "\x1b" in line else line


def clean_lines(text: str) -> Iterator[Line]:
    """Lines without colours, tags, prefixes, markdown and log messages; blank ones and standard error are left out."""
    for number, raw in enumerate(split_lines(text), start=1):
        if not raw or raw.isspace():
            continue
        line = without_colours(raw)
        if "<stderr>" in line and _STDERR_TAG.search(line):
            continue
        line = strip_prefixes(line)
        if _FENCE.match(line):
            continue
        line = line.replace("\\#", "#").replace("\xa0", " ").replace("\ufeff", "")
        line, cut = _without_log_message(line)
        yield Line(number, line.rstrip(), raw, cut)


def columns(line: str) -> list[str]:
    """The cells of a row: words between blanks, or between the bars of a markdown table."""
    return (line.replace("|", " ") if "|" in line else line).split()


def strip_prefixes(line: str) -> str:
    """`line` without what a launcher, a time stamp or a quotation puts before it."""
    if "[" in line:
        line = _TAG.sub("", line)
        if _RANK_TAG.match(line.lstrip()):  # MPICH's and srun's rank in brackets, also in the middle of a torn line
            line = _RANK_TAG.sub(" ", line)
    for _ in range(3):  # a timestamp before a label before a quotation
        match = _PREFIX.match(line)
        if match is None:
            break
        line = line[match.end() :]
    return line


def _without_log_message(line: str) -> tuple[str, bool]:
    """What stands before a message of NCCL's log: the row that it broke into, or nothing."""
    if "CCL " not in line:
        return line, False
    at = min((place for level in _LEVELS if (place := line.find(level)) >= 0), default=-1)
    if at < 0:
        return line, False
    head = line[max(0, at - 220) : at]
    match = _NCCL_LOG.search(head)
    start = at - len(head) + match.start() if match else at
    return line[:start], True


_LEVELS = ("NCCL INFO", "NCCL WARN", "NCCL TRACE", "RCCL INFO")
