"""`nvidia-smi -L`: the GPUs, and the MIG devices that some of them are cut into. It names no link."""

import re
from collections import Counter

from commbench.errors import CommbenchError
from commbench.results.importers.lines import shown
from commbench.results.schema import Finding
from commbench.topology.graph import MAX_DEVICES, Device, Topology, enumerate_keys
from commbench.topology.matrix import plain_lines

FORMAT = "nvidia-smi-list"
_GPU = re.compile(r"\s{0,8}GPU (\d{1,4}): (\S.{0,80}?) \(UUID: GPU-[0-9a-fA-F-]{1,40}\)\s{0,8}")
_MIG = re.compile(r"\s{1,16}MIG (\S{1,16})\s{1,16}Device\s{1,8}\d{1,4}: \(UUID: MIG-\S{1,80}\)\s{0,8}")


def recognises(text: str) -> bool:
    """Whether `text` lists a GPU as nvidia-smi does."""
    return any(_GPU.fullmatch(line) for line in plain_lines(text))


def read(text: str, source: str) -> Topology:
    """The GPUs. Raises CommbenchError if there is none, one twice, or more than a machine has."""
    devices: list[Device] = []
    slices: dict[str, Counter[str]] = {}
    for line in plain_lines(text):
        if match := _GPU.fullmatch(line):
            devices.append(Device(f"GPU{int(match[1])}", "gpu", shown(match[2])))
        elif devices and (match := _MIG.fullmatch(line)):
            slices.setdefault(devices[-1].key, Counter())[shown(match[1])] += 1
    if not devices:
        raise CommbenchError(f"{source} lists no GPU: give the whole output of nvidia-smi -L.")
    if len(devices) > MAX_DEVICES or len({device.key for device in devices}) < len(devices):
        raise CommbenchError(f"{source} lists a GPU twice, or too many: give the output of one machine, printed once.")
    return Topology(FORMAT, source, tuple(devices), findings=tuple(_findings(devices, slices, source)))


def _findings(devices: list[Device], slices: dict[str, Counter[str]], source: str) -> list[Finding]:
    findings = [
        Finding(
            "TOPO-LINKS",
            "GPUs",
            "skip",
            "nvidia-smi -L says nothing of links",
            where=source,
            action="give nvidia-smi topo -m",
        )
    ]
    alike: dict[str, list[str]] = {}
    for key, counted in slices.items():
        alike.setdefault(", ".join(f"{times} of {profile}" for profile, times in counted.items()), []).append(key)
    findings += [
        Finding(
            "TOPO-MIG",
            enumerate_keys(keys),
            "warn",
            f"cut into MIG devices: {text}",
            "whole GPUs",
            source,
            "MIG devices have neither NVLink nor peer access: take the other GPUs for collectives, or switch MIG off",
        )
        for text, keys in alike.items()
    ]
    return findings
