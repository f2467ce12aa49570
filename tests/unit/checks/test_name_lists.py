"""NCCL's lists of interfaces and devices."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commbench.checks.name_lists import fault_in_list, parse_names


@pytest.mark.parametrize(
    ("value", "selected"),
    [  # of mlx5_0 and mlx5_1 with ports 1 and 2, and mlx5_10 with port 1
        ("mlx5_1", "mlx5_1:1 mlx5_1:2 mlx5_10:1"),
        ("=mlx5_1", "mlx5_1:1 mlx5_1:2"),
        ("=mlx5_1:2", "mlx5_1:2"),
        ("^mlx5_1", "mlx5_0:1 mlx5_0:2"),
        ("^=mlx5_1", "mlx5_0:1 mlx5_0:2 mlx5_10:1"),
        ("^mlx5_0:1", "mlx5_0:2 mlx5_1:1 mlx5_1:2 mlx5_10:1"),
        ("mlx5_0::0:1", "mlx5_0:1 mlx5_0:2"),
        ("mlx4", ""),
        ("", "mlx5_0:1 mlx5_0:2 mlx5_1:1 mlx5_1:2 mlx5_10:1"),
    ],
)
def test_a_list_selects_as_nccl_does(value, selected):
    ports = [("mlx5_0", 1), ("mlx5_0", 2), ("mlx5_1", 1), ("mlx5_1", 2), ("mlx5_10", 1)]
    names = parse_names(value)
    assert " ".join(f"{name}:{port}" for name, port in ports if names.selects(name, port)) == selected


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ("=mlx5_0,=mlx5_1", "=mlx5_1"),
        ("^=mlx5_8,^=mlx5_14", "^=mlx5_14"),
        ("=^mlx5_0", "^mlx5_0"),
        ("mlx5_0, mlx5_1", "blank"),
        ("mlx5_0:0", "ports"),
        ("mlx5_0:x", "ports"),
        (",", "no name"),
        ("^", "no name"),
        (",".join(f"mlx5_{number}" for number in range(33)), "32"),
        ("=mlx5_0:1,mlx5_1:2:0:1", ""),
        ("^docker,lo", ""),
    ],
)
def test_what_is_no_list_is_said(value, word):
    fault = fault_in_list(value, has_ports=True)
    assert word in fault
    assert bool(word) == bool(fault)


def test_interfaces_have_no_ports():
    assert "no ports" in fault_in_list("eth0:1", has_ports=False)


@given(st.text(alphabet="ab=^,: 01", max_size=30), st.text(alphabet="ab01", max_size=5))
def test_any_text_is_a_list_or_a_fault(value, name):
    fault_in_list(value, has_ports=True)
    parse_names(value).selects(name, 1)
