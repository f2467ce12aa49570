"""Nominal rates of links, in bytes per second and one direction, by generation and width.

PCIe: the signalling rate of a lane times its encoding, PCI Express Base Specification: 8b/10b up to 5 GT/s, 128b/130b
up to 32 GT/s; at 64 GT/s 242 of 256 bytes of a flit are packets. NVLink: NVIDIA's data sheets of P100 (160 GB/s both
ways over 4 links), V100 (300 over 6), A100 (600 over 12), H100 (900 over 18), B200 (1800 over 18).
"""

import re

_PCIE_LANE = {
    2.5: 0.25e9,
    5.0: 0.5e9,
    8.0: 8e9 / 8 * 128 / 130,
    16.0: 16e9 / 8 * 128 / 130,
    32.0: 32e9 / 8 * 128 / 130,
    64.0: 64e9 / 8 * 242 / 256,
}
_PCIE_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_NVLINK_LANE = {60: 20e9, 70: 25e9, 80: 25e9, 90: 25e9, 100: 50e9}  # by compute capability


def pcie_rate(speed: str, width: int | None) -> float | None:
    """Of a PCIe link, from a text like `16.0 GT/s PCIe` and its lanes; None where either is not said or is no PCIe."""
    match = re.match(r"\s{0,8}(\d{1,3}(?:\.\d{1,2})?) ?GT/s", speed)
    lane = _PCIE_LANE.get(float(match[1])) if match else None
    return lane * width if lane is not None and width in _PCIE_WIDTHS else None


def nvlink_rate(compute_capability: int | None, lanes: int) -> float | None:
    """Of NVLinks side by side; None where the GPU's generation is not said or has no NVLink that is known here."""
    lane = _NVLINK_LANE.get(compute_capability) if compute_capability is not None else None
    return lane * lanes if lane is not None else None
