"""Damage for files: what disks, launchers, editors and attackers do to them."""

import random
from collections.abc import Callable, Sequence

INTERESTING = (
    *(b"\n", b"\r\n", b"\0", b"\xff\xfe", b"\x1b[31m", b"\xe2\x80\xa8", b"|", b",", b'"', b"#", b"N/A", b"nan", b"-1"),
    *(b"1e999", b"1e-999", b"0", b"0.00", b"9" * 40, b"-" * 50, b"[1,0]<stdout>:", b" 0: ", b"{", b"}", b"[", b"]"),
    *(
        b"null",
        b"true",
        b"1.5",
        b"host:1:2 [0] NCCL INFO x\n",
        b"# nThread 1 nGpus 1 minBytes 8 maxBytes 64 step: 0(factor)",
    ),
    *(b"float", b"sum", b"# Avg bus bandwidth : 1\n", b"\\u0000", b"\t" * 60, b" " * 3000, b"1" * 5000, b"a" * 5000),
)


def _cut(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _flip(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _insert(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(INTERESTING) + data[at:]


def _replace_word(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    words = data.split(b" ")
    words[rng.randrange(len(words))] = rng.choice(INTERESTING)
    return b" ".join(words)


def _delete(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.randrange(1, 60) :]


def _lines(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """Lines doubled, dropped or exchanged."""
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(3)
    if what == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif what == 1:
        lines.insert(one, lines[other])
    else:
        del lines[one]
    return b"\n".join(lines)


def _splice(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """The head of one file on the tail of another."""
    other = rng.choice(others)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


DAMAGES: tuple[Callable[[bytes, random.Random, Sequence[bytes]], bytes], ...] = (
    *(_cut, _flip, _flip, _insert, _insert, _replace_word, _replace_word, _delete, _lines, _lines, _splice),
)


def mutate(data: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    """`data` with one to six damages."""
    for _ in range(rng.randrange(1, 7)):
        data = rng.choice(DAMAGES)(data, rng, others)
    return data
