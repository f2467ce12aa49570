"""The size grammar: `64K`, `1K,1M,1.5M`, `1K:64M:x4` (factor), `1K:64K:+4K` (step), and lists of all these."""

import math
import re
from fractions import Fraction

from commbench.errors import UsageError
from commbench.units import format_nbytes, parse_nbytes

MAX_SIZES = 4096  # more sizes than this is a step in the wrong unit


def parse_sizes(text: str) -> tuple[int, ...]:
    """The sizes in bytes that `text` names, in its order, each once.

    Raises UsageError for a size that cannot be read, a range that runs backwards, a step that does not grow.
    """
    sizes: dict[int, None] = {}
    for part in text.split(","):
        sizes |= dict.fromkeys(_parse_part(part.strip()))
        if len(sizes) > MAX_SIZES:
            raise UsageError(f"{part!r} makes more than {MAX_SIZES} sizes: take a larger step.")
    return tuple(sizes)


def _parse_part(part: str) -> list[int]:
    if ":" not in part:
        return [parse_nbytes(part)]
    fields = part.split(":")
    if len(fields) > 3:
        raise UsageError(f"cannot read the sizes {part!r}: write FIRST:LAST:xFACTOR or FIRST:LAST:+STEP.")
    first, last = parse_nbytes(fields[0]), parse_nbytes(fields[1])
    if first > last:
        raise UsageError(
            f"the sizes {part!r} run backwards: {format_nbytes(first)} is above {format_nbytes(last)}; "
            f"write {fields[1]}:{fields[0]}."
        )
    step = fields[2].strip() if len(fields) == 3 else "x2"
    return _additive(part, first, last, step) if step.startswith("+") else _geometric(part, first, last, step)


def _additive(part: str, first: int, last: int, step: str) -> list[int]:
    stride = parse_nbytes(step[1:])
    if (last - first) // stride >= MAX_SIZES:
        raise UsageError(f"{part!r} makes more than {MAX_SIZES} sizes: take a larger step.")
    return list(range(first, last + 1, stride))


def _geometric(part: str, first: int, last: int, step: str) -> list[int]:
    match = re.fullmatch(r"x(\d{1,9}(?:\.\d{1,9})?)", step, re.ASCII)
    factor = Fraction(match[1]) if match else Fraction(0)
    if factor <= 1:
        raise UsageError(
            f"cannot read the step {step!r} of {part!r}: write a factor above 1 like x2, or a step like +4K."
        )
    if factor < Fraction(1001, 1000):
        raise UsageError(f"the factor {step!r} of {part!r} is below 1.001: take a larger one.")
    sizes: list[int] = []
    size = Fraction(first)
    while size <= last and len(sizes) <= MAX_SIZES:
        if not sizes or sizes[-1] != math.floor(size):
            sizes.append(math.floor(size))
        # Rounded each time: an exact fraction grows by the digits of the factor at every step.
        size = Fraction(math.floor(size * factor * 1024), 1024)
    return sizes
