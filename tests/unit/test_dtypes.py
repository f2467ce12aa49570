"""commbench.plan.dtypes: widths and limits against numpy, and against the bits of a float32 for bfloat16."""

import numpy as np
import pytest

from commbench.errors import UsageError
from commbench.plan.dtypes import DTYPES, find_dtype, find_redop

FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int32", "int64")


def _kept_by_bfloat16(values: np.ndarray) -> np.ndarray:
    """Whether bfloat16, the upper half of a float32, holds each of `values` exactly."""
    narrow = values.astype(np.float32)
    return (narrow.astype(np.float64) == values) & (narrow.view(np.uint32) & 0xFFFF == 0)


def test_every_dtype_is_known_to_a_test() -> None:
    assert set(DTYPES) == {*FLOATS, *INTEGERS, "bfloat16"}


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_itemsize_and_kind(name: str) -> None:
    assert DTYPES[name].itemsize == np.dtype(name).itemsize
    assert DTYPES[name].kind == {"f": "float", "i": "signed", "u": "unsigned"}[np.dtype(name).kind]


@pytest.mark.parametrize("name", FLOATS)
def test_float_holds_every_whole_number_up_to_its_limit(name: str) -> None:
    limit = DTYPES[name].exact_limit
    ladder = {number for power in range(54) for number in (2**power - 1, 2**power, 2**power + 1) if number <= limit}
    for number in ladder | set(range(min(limit, 4096) + 1)):
        assert int(np.dtype(name).type(number)) == number
    assert int(np.dtype(name).type(limit + 1)) != limit + 1


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_limits(name: str) -> None:
    dtype = DTYPES[name]
    assert dtype.exact_limit == np.iinfo(name).max
    assert 2**dtype.power_of_two_limit <= dtype.exact_limit < 2 ** (dtype.power_of_two_limit + 1)


@pytest.mark.parametrize("name", FLOATS)
def test_largest_power_of_two_of_a_float(name: str) -> None:
    largest = int(np.finfo(name).max)
    assert 2 ** DTYPES[name].power_of_two_limit <= largest < 2 ** (DTYPES[name].power_of_two_limit + 1)


def test_bfloat16() -> None:
    dtype = DTYPES["bfloat16"]
    assert (dtype.itemsize, dtype.kind) == (2, "float")
    assert _kept_by_bfloat16(np.arange(dtype.exact_limit + 1)).all()
    assert not _kept_by_bfloat16(np.array([dtype.exact_limit + 1])).any()
    assert _kept_by_bfloat16(np.array([2.0**dtype.power_of_two_limit])).all()
    assert dtype.power_of_two_limit == np.finfo(np.float32).maxexp - 1


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (find_dtype, "flaot32", "unknown dtype 'flaot32': did you mean float32?"),
        (find_dtype, "BFLOAT16", "did you mean bfloat16?"),
        (find_redop, "summ", "unknown redop 'summ': did you mean sum?"),
        (find_redop, "none", "unknown redop 'none'"),
    ],
)
def test_unknown_name_gives_the_nearest(find, name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(name)
    assert message in str(caught.value)


def test_known_names() -> None:
    assert find_dtype("int8").name == "int8"
    assert [find_redop(name) for name in ("sum", "prod", "min", "max", "avg")] == ["sum", "prod", "min", "max", "avg"]
