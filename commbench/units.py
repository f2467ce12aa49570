"""Bytes, seconds and rates, to and from text: the one place that knows 1024 and 1e9.

Inside the program everything is in bytes, seconds and bytes per second. K, M, G and T are binary on the command line,
as in nccl-tests; GB/s is 1e9 bytes per second.
"""

import math
import re
from fractions import Fraction

from commbench.errors import UsageError

GB = 1e9
MAX_NBYTES = 1 << 50  # a size beyond 1 PiB is a typing error
_MAX_CHARACTERS = 200  # so is a longer text

_BINARY = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}
_RATES = {"B/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12}
_FLOPS = {f"{prefix}{unit}": scale
          for prefix, scale in (("G", 1e9), ("T", 1e12), ("P", 1e15))
          for unit in ("", "FLOP/s", "FLOPS")}  # fmt: skip
_RATES |= {f"{prefix}bit{per}": scale / 8  # tc's spelling is small and without /s
           for prefixes, scale in (("kK", 1e3), ("mM", 1e6), ("gG", 1e9), ("tT", 1e12))
           for prefix in prefixes for per in ("", "/s")}  # fmt: skip


def parse_nbytes(text: str) -> int:
    """Bytes in a text like `64K`, `1.5M`, `2GiB` or `512`. Raises UsageError unless it is from 1 byte to 1 PiB."""
    match = _match(r"\s*([+-]?\d+(?:\.\d+)?|[+-]?\.\d+)\s*(?i:([KMGT]?)(?:i?B)?)\s*", text)
    if match is None:
        raise UsageError(f"cannot read the size {text!r}: write bytes with K, M, G or T (binary), like 64K or 1.5M.")
    # Exact arithmetic: 0.3M must not depend on how a float rounds.
    nbytes = math.floor(Fraction(match[1]) * _BINARY[match[2].upper()])
    if nbytes <= 0:
        raise UsageError(f"the size {text!r} is {nbytes} bytes: a size is at least 1 byte.")
    if nbytes > MAX_NBYTES:
        raise UsageError(f"the size {text!r} is beyond {format_nbytes(MAX_NBYTES)}: is it a typing error?")
    return nbytes


def format_nbytes(nbytes: float) -> str:
    """`1 KiB`, `1.5 MiB`, `512 B`: the largest binary unit that leaves a number of at least 1."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{_short(nbytes / scale)} {unit}"
    return f"{_short(nbytes)} B"


def parse_seconds(text: str) -> float:
    """Seconds in a text like `30s`, `2m`, `500ms` or `12`. Raises UsageError unless above 0 and finite."""
    return _parse_scaled(text, _SECONDS, "duration", "30s, 2m or 500ms")


def format_seconds(seconds: float) -> str:
    """`12.3 us`, `4.56 ms`, `7.89 s`: three significant digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= scale:
            return f"{_digits(seconds / scale)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def parse_rate(text: str) -> float:
    """Bytes per second in a text like `25GB/s` (1e9), `400Mbit/s` or tc's `400mbit`.

    Raises UsageError unless above 0 and finite.
    """
    return _parse_scaled(text, _RATES, "rate", "25GB/s or 400Mbit/s")


def parse_flops(text: str) -> float:
    """Floating-point operations per second in a text like `400T` or `1.2 PFLOP/s`: prefixes are of 1000.

    Raises UsageError unless above 0 and finite.
    """
    return _parse_scaled(text, _FLOPS, "speed", "400T or 400TFLOP/s")


def parse_fraction(text: str) -> float:
    """A fraction in a text like `5%` or `0.05`. Raises UsageError unless it is at least 0 and below 1."""
    match = _match(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*", text)
    value = float(match[1]) / (100.0 if match[2] else 1.0) if match else -1.0
    if not 0.0 <= value < 1.0:
        raise UsageError(f"cannot read {text!r} as a fraction: write 5% or 0.05.")
    return value


def _match(pattern: str, text: str) -> re.Match[str] | None:
    # Python reads no whole number of more than 4300 digits, and long blanks make a pattern slow.
    return re.fullmatch(pattern, text, re.ASCII) if len(text) <= _MAX_CHARACTERS else None


def _parse_scaled(text: str, scales: dict[str, float], kind: str, example: str) -> float:
    match = _match(r"\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+)\s*(\S*)\s*", text)
    scale = scales.get(match[2]) if match else None
    if match is None or scale is None:
        raise UsageError(f"cannot read the {kind} {text!r}: write it like {example}.")
    value = float(match[1]) * scale
    if not 0.0 < value < math.inf:
        raise UsageError(f"the {kind} {text!r} is not above zero and finite: write it like {example}.")
    return value


def _short(value: float) -> str:
    return f"{value:.4g}" if value < 1000 else f"{value:.0f}"


def _digits(value: float) -> str:
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{decimals}f}"
