"""Numbers, CPU lists and CPU masks of foreign texts, within bounds: a damaged digit is not an error of ours."""

import re

_CPU_LIST = re.compile(r"\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?){0,255}")
_MASK_WORDS = 256  # 8192 CPUs, the most of Linux


def read_whole(text: str, limit: int = 1 << 31) -> int | None:
    """A whole number from 0 to `limit`; None for anything else."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
        return None
    return int(digits) if int(digits) <= limit else None


def is_cpu_list(text: str) -> bool:
    """Whether `text` is a list such as `0-3,8-11`."""
    return _CPU_LIST.fullmatch(text) is not None


def count_cpus(cpus: str) -> int:
    """How many CPUs are in a list such as `0-3,8-11`; 0 where it is none."""
    if not is_cpu_list(cpus):
        return 0
    total = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        total += max(0, int(last or first) - int(first) + 1)
    return total


def read_mask(mask: str) -> tuple[int, ...] | None:
    """The bits that are set in a mask such as `000000ff,ffff0000`: words of 32, the lowest last. None where it is none.

    hwloc writes `0x` before each word, and leaves out words that are 0 between commas.
    """
    words = [word or "0" for word in mask.strip().split(",")] if mask.strip() else [""]
    if len(words) > _MASK_WORDS or not all(re.fullmatch(r"(?:0x)?[0-9a-fA-F]{1,8}", word) for word in words):
        return None
    value = 0
    for word in words:
        value = value << 32 | int(word, 16)
    return tuple(bit for bit, digit in enumerate(reversed(f"{value:b}")) if digit == "1")


def read_cpu_mask(mask: str) -> str:
    """The CPU list of a mask; empty where it is none."""
    runs: list[list[int]] = []
    for cpu in read_mask(mask) or ():
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)
