"""Numbers, CPU lists and masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.topology.numbers import count_cpus, read_cpu_mask, read_mask, read_whole


@pytest.mark.parametrize(
    ("mask", "cpus"),
    [
        ("f", "0-3"),
        ("00000001,80000000", "31-32"),
        ("0x00000001,,0x00000005", "0,2,64"),  # hwloc leaves words out that are 0
        ("0000,00ffffff", "0-23"),
        ("0", ""),
        ("", ""),
        ("xyz", ""),
        ("123456789", ""),  # more than a word
        (",".join(["ffffffff"] * 257), ""),
    ],
)
def test_masks(mask, cpus):
    assert read_cpu_mask(mask) == cpus


@given(st.sets(st.integers(min_value=0, max_value=500), min_size=1))
def test_a_mask_reads_back(cpus):
    value = sum(1 << cpu for cpu in cpus)
    words = [f"{value >> 32 * place & 0xFFFFFFFF:08x}" for place in reversed(range(16))]
    assert read_mask(",".join(words)) == tuple(sorted(cpus))
    assert count_cpus(read_cpu_mask(",".join(words))) == len(cpus)


@pytest.mark.parametrize(
    ("cpus", "count"), [("0-3,8", 5), ("7", 1), ("", 0), ("0-", 0), ("3-1", 0), ("N/A", 0), ("0-3,4", 5)]
)
def test_cpus_are_counted(cpus, count):
    assert count_cpus(cpus) == count


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), (" 7 ", 7), ("-1", None), ("٣", None), ("9" * 5000, None), ("", None), ("1.5", None)]
)
def test_whole_numbers(text, value):
    assert read_whole(text) == value
