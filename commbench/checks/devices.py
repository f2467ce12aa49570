"""What rules share: a fact that could not be seen, a verdict for each device, devices by the names that people know."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from commbench.checks.registry import Scene, Seen, skip
from commbench.machine.facts import Facts, GpuFacts, PciDevice, RdmaPort
from commbench.topology.graph import enumerate_keys

Device = TypeVar("Device")
_MAX_NAMED = 8
NO_GPU = "no GPU here"
NO_RDMA = "no RDMA device here"
_KINDS = {"gpus": "GPUs", "rdma": "RDMA devices", "pci": "PCI devices"}


def unseen(scene: Scene, path: str, subject: str = "", where: str = "") -> Seen:
    """The skip for the fact at `path`, with the reason why nobody could see it."""
    subject = subject or _KINDS.get(path) or path.rpartition(".")[2].replace("_", " ")
    return skip(subject, scene.facts.why_unseen(path), where)


def judge_each(
    scene: Scene,
    path: str,
    devices: Mapping[str, Device] | None,
    absent: str,
    judge: Callable[[str, Device], Seen | None],
) -> Iterator[Seen]:
    """What `judge` says of each device, those that are alike drawn together.

    One skip where the devices cannot be seen (None), or there are none (`absent` says so in words), and one for those
    of which `judge` says None: their fact at `path` could not be seen.
    """
    kind = path.partition(".")[0]
    if devices is None:
        yield unseen(scene, kind)
        return
    if not devices:
        yield skip(_KINDS.get(kind, kind), absent)
        return
    judged = {name: judge(name, device) for name, device in devices.items()}
    silent = [name for name, seen in judged.items() if seen is None]
    if silent:
        yield unseen(scene, path, enumerate_keys(silent))
    yield from draw_together(seen for seen in judged.values() if seen)


def draw_together(seen: Iterable[Seen]) -> list[Seen]:
    """One for all subjects of which the same is said, the first first; of many subjects some are named."""
    alike: dict[Seen, list[str]] = {}
    for one in seen:
        alike.setdefault(replace(one, subject=""), []).append(one.subject)
    return [replace(one, subject=_named(subjects)) for one, subjects in alike.items()]


def _named(subjects: list[str]) -> str:
    """Sorted, with runs of numbers drawn together: `GPU0-7, mlx5_0-7`."""
    if len(subjects) == 1:
        return subjects[0]
    runs = enumerate_keys(sorted(subjects, key=_in_order)).split(", ")
    more = len(runs) - _MAX_NAMED
    return ", ".join(runs if more < 1 else [*runs[:_MAX_NAMED], f"{more} more"])


def _in_order(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def gpus_of(facts: Facts) -> dict[str, GpuFacts] | None:
    """The GPUs as GPU0, GPU1, …; None if they cannot be seen."""
    return None if facts.gpus is None else {f"GPU{gpu.index}": gpu for gpu in facts.gpus}


def ports_of(facts: Facts) -> dict[str, RdmaPort] | None:
    """The ports of RDMA devices as mlx5_0, or as mlx5_0:2 where a device has several; None if they cannot be seen."""
    if facts.rdma is None:
        return None
    return {
        device.name if len(device.ports) == 1 else f"{device.name}:{port.number}": port
        for device in facts.rdma
        for port in device.ports
    }


def pci_names(facts: Facts) -> dict[str, str]:
    """What people call the PCI device at an address: GPU0, mlx5_0, an interface's name; only of those that have one."""
    names = {interface.pci_address: interface.name for interface in facts.interfaces or () if interface.pci_address}
    names |= {device.address: device.name for device in facts.rdma or () if device.address}
    return names | {gpu.address: f"GPU{gpu.index}" for gpu in facts.gpus or ()}


def pci_of(facts: Facts, *kinds: str) -> dict[str, PciDevice] | None:
    """The PCI devices of these kinds by name, else by address; None if they cannot be seen."""
    if facts.pci is None:
        return None
    names = pci_names(facts)
    return {names.get(device.address, device.address): device for device in facts.pci if device.kind in kinds}


def is_virtual(facts: Facts) -> bool:
    """Whether this is a virtual machine, as far as is known."""
    return facts.host.virtual not in ("", "none")


def is_cluster_node(scene: Scene) -> bool:
    """Whether the settings of a cluster's node matter: a GPU, an RDMA device, or another node in the job."""
    return bool(scene.facts.gpus or scene.facts.rdma or scene.nodes > 1)
