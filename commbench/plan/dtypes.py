"""Element types and reduction operators: what each is called, how wide it is, and what it holds exactly."""

from dataclasses import dataclass
from typing import Literal

from commbench.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Dtype:
    """One element type. `exact_limit`: every whole number from 0 to it is represented exactly."""

    name: str
    itemsize: int
    kind: Literal["float", "signed", "unsigned"]
    exact_limit: int
    power_of_two_limit: int  # the largest e for which 2**e is exact


DTYPES: dict[str, Dtype] = {
    dtype.name: dtype
    for dtype in (
        Dtype("float32", 4, "float", 1 << 24, 127),
        Dtype("float16", 2, "float", 1 << 11, 15),
        Dtype("bfloat16", 2, "float", 1 << 8, 127),
        Dtype("float64", 8, "float", 1 << 53, 1023),
        Dtype("int8", 1, "signed", 127, 6),
        Dtype("uint8", 1, "unsigned", 255, 7),
        Dtype("int32", 4, "signed", (1 << 31) - 1, 30),
        Dtype("int64", 8, "signed", (1 << 63) - 1, 62),
    )
}

REDOPS = ("sum", "prod", "min", "max", "avg")
NO_REDOP = "none"  # what the table shows for a collective that reduces nothing


def find_dtype(name: str) -> Dtype:
    """The Dtype called `name`. Raises UsageError with the nearest name."""
    if name not in DTYPES:
        raise unknown_name("dtype", name, DTYPES)
    return DTYPES[name]


def find_redop(name: str) -> str:
    """`name` if it is a reduction operator. Raises UsageError with the nearest name."""
    if name not in REDOPS:
        raise unknown_name("redop", name, REDOPS)
    return name
