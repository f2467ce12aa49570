"""Nominal rates of links, in bytes per second and one direction, by generation and width: data/link_rates.toml."""

import re
import tomllib
from functools import cache
from typing import Any

from commbench.paths import DATA

_PCIE_WIDTHS = (1, 2, 4, 8, 12, 16, 32)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((DATA / "link_rates.toml").read_text(encoding="utf-8"))


def pcie_rate(speed: str, width: int | None) -> float | None:
    """Of a PCIe link, from a text like `16.0 GT/s PCIe` and its lanes; None where either is not said or is no PCIe."""
    match = re.match(r"\s{0,8}(\d{1,3}(?:\.\d{1,2})?) ?GT/s", speed)
    return lanes_rate(float(match[1]), width) if match else None


def lanes_rate(gigatransfers: float | None, width: int | None) -> float | None:
    """Of a PCIe link, from GT/s and its lanes; None where either is not said or is no PCIe."""
    encoding = _table()["pcie_encoding"].get(str(gigatransfers))
    if gigatransfers is None or encoding is None or width not in _PCIE_WIDTHS:
        return None
    data, sent = encoding
    lane: float = gigatransfers * 1e9 / 8 * data / sent
    return lane * width


def nvlink_rate(compute_capability: int | None, lanes: int) -> float | None:
    """Of NVLinks side by side; None where the GPU's generation is not said or has no NVLink that is known here."""
    return _nvlinks("compute_capability", compute_capability, lanes)


def nvml_nvlink_rate(version: int | None, lanes: int) -> float | None:
    """Of NVLinks side by side, by the version that NVML gives them; None where that is not known here."""
    return _nvlinks("nvml_version", version, lanes)


def _nvlinks(key: str, value: int | None, lanes: int) -> float | None:
    generation = _table()["nvlink_generation"][key].get(str(value))
    return None if generation is None else _table()["nvlink"][generation] * lanes


def nic_gigabits() -> frozenset[float]:
    """The line rates in Gbit/s that NICs have."""
    return frozenset(_table()["nic"]["gigabits"])
