"""GPU: are they all there: on the bus, with their driver, in the driver's list."""

from collections.abc import Iterator

from commbench.checks.devices import NO_GPU, judge_each, pci_of, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip
from commbench.machine.facts import PciDevice

_FALLEN = "ff"  # all bits set is what a read of a device that does not answer gives
_DRIVERS = ("nvidia", "amdgpu")


@rule(
    "GPU-SEEN",
    "fail",
    summary="the driver lists every GPU that the PCI bus has",
    fix="look at dmesg | grep -i nvrm for why it did not start; reset or reboot, then reseat or replace it",
    source="every health check that was read compares the number of GPUs",
)
def check_seen(scene: Scene) -> Iterator[Seen]:
    """A GPU that the bus has and the driver does not list failed to start, or was taken out of service.

    The ranks behind it shift by one: what was GPU 5 becomes GPU 4. A container sees the GPUs that it was given, and the
    whole bus.
    """
    facts, where = scene.facts, "PCI devices, against NVML"
    if facts.gpus is None or facts.pci is None:
        yield unseen(scene, "pci" if facts.pci is None else "gpus", "GPUs", where)
        return
    if facts.gpus and "gpus" in facts.unseen:  # the list is the bus's own
        yield unseen(scene, "gpus", "GPUs", where)
        return
    listed = {gpu.address for gpu in facts.gpus}
    on_bus = [device.address for device in facts.pci if device.kind == "gpu" and device.driver in (*_DRIVERS, "")]
    missing = [address for address in on_bus if address not in listed]
    if not on_bus and not listed:
        yield skip("GPUs", NO_GPU, where)
    elif missing and facts.host.container not in ("", "none"):
        yield skip("GPUs", f"{len(listed)} of {len(on_bus)}: a container sees those that it was given", where)
    elif missing:
        yield fail(", ".join(missing), "on the bus, but the driver does not list it", f"{len(on_bus)} GPUs", where)
    else:
        yield ok("GPUs", f"{len(listed)} of {len(on_bus)}", where=where)


@rule(
    "GPU-BUS",
    "fail",
    summary="no GPU has fallen off the bus",
    fix="power-cycle the node (a warm reboot is often not enough); if it comes again, have the GPU replaced",
    source="oci-hpc's check of lspci's `(rev ff)`; Azure's node health checks",
)
def check_bus(scene: Scene) -> Iterator[Seen]:
    """A device that no longer answers reads as all ones, so that its revision is ff.

    Every program that uses it, and every collective with it, hangs or fails.
    """

    def judge(name: str, device: PciDevice) -> Seen | None:
        where = "/sys/bus/pci/devices/*/revision"
        if not device.revision:
            return None
        if device.revision.removeprefix("0x").lower() == _FALLEN:
            return fail(name, "revision ff: does not answer", "a revision", where)
        return ok(name, "answers", where=where)

    yield from judge_each(scene, "pci.revision", pci_of(scene.facts, "gpu"), NO_GPU, judge)


@rule(
    "GPU-DRIVER",
    "fail",
    summary="every GPU is bound to its maker's driver",
    fix="load the nvidia (or amdgpu) module; blacklist nouveau; unbind it from vfio-pci unless a VM is to have it",
    source="oci-hpc's check of the GPU's set-up; NVIDIA's installation guide",
)
def check_driver(scene: Scene) -> Iterator[Seen]:
    """A GPU that is bound to nouveau or vfio-pci, or to nothing, cannot be used by CUDA.

    After an update of the kernel, the module that was built for the old one is not loaded.
    """

    def judge(name: str, device: PciDevice) -> Seen:
        where = "/sys/bus/pci/devices/*/driver"
        if device.driver in _DRIVERS:
            return ok(name, device.driver, where=where)
        return fail(name, device.driver or "none", " or ".join(_DRIVERS), where)

    yield from judge_each(scene, "pci.driver", pci_of(scene.facts, "gpu"), NO_GPU, judge)
