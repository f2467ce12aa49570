"""Numbers and names as foreign tools print them."""

import re

from commbench.results.importers.records import Printed
from commbench.results.schema import UNKNOWN

_NUMBER = re.compile(r"([-+]?)(\d{1,25})?(?:\.(\d{0,25}))?(?:[eE]([-+]?\d{1,3}))?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)
_MAX = 1e30  # nothing that was measured comes near: a damaged file

DTYPES_BY_NAME = {
    **dict.fromkeys(("float", "float32", "fp32", "mpi_float", "ncclfloat"), "float32"),
    **dict.fromkeys(("half", "float16", "fp16"), "float16"),
    **dict.fromkeys(("bfloat16", "bf16"), "bfloat16"),
    **dict.fromkeys(("double", "float64", "fp64", "mpi_double"), "float64"),
    **dict.fromkeys(("int8", "char", "mpi_char", "mpi_byte", "byte"), "int8"),
    **dict.fromkeys(("int32", "int", "mpi_int"), "int32"),
    **dict.fromkeys(("f8e4m3", "fp8_e4m3", "float8e4m3"), "float8_e4m3"),
    **dict.fromkeys(("f8e5m2", "fp8_e5m2", "float8e5m2"), "float8_e5m2"),
    **{name: name for name in ("uint8", "uint32", "int64", "uint64")},
}

REDOPS_BY_NAME = {name: name for name in ("sum", "prod", "min", "max", "avg", "mulsum", "none")}

COLLECTIVES_BY_NAME = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
    "sendrecv": "send_recv",
    "barrier": "barrier",
}


def read_printed(text: str, scale: float = 1.0) -> Printed | None:
    """The number in `text` times `scale`, with half a unit of its last digit; None for `N/A` and other words."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[2] is None and not match[3]):
        return None
    value = float(text)
    if abs(value) > _MAX:
        return None
    digit = 10.0 ** (int(match[4] or 0) - len(match[3] or ""))
    return Printed(value * scale, digit / 2 * scale)


def read_whole(text: str) -> int | None:
    """The whole number from 0 to 10^18 in `text`; None for anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def read_wrong(text: str) -> int | None:
    """A count of wrong elements such as `0`, `2528` or `2e+05`; None for `N/A`."""
    printed = read_printed(text)
    return round(printed.value) if printed is not None and printed.value >= 0 else None


def read_dtype(name: str) -> str:
    """Our name of an element type, `unknown` if it has none."""
    return DTYPES_BY_NAME.get(name.lower(), UNKNOWN)


def read_collective(name: str) -> str | None:
    """Our name of the collective in a word like `all_reduce_perf`, `AllReduce` or `ReduceScatter`; None if none."""
    bare = re.sub(r"[^a-z]", "", name[:80].lower().removesuffix("_perf").removesuffix(".exe"))
    return COLLECTIVES_BY_NAME.get(bare)


def read_collective_of_file(name: str) -> str | None:
    """The collective in a file's name like `nccl_all_gather-h100.log`: the longest words first; None if none."""
    words = re.split(r"[^a-z0-9]+", name[-200:].lower())
    for length in (3, 2, 1):
        for start in range(len(words) - length + 1):
            if found := read_collective("".join(words[start : start + length])):
                return found
    return None
