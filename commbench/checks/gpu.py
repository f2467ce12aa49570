"""GPU: are they sound: the driver's messages, memory errors, recovery."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from commbench.checks.devices import NO_GPU, gpus_of, judge_each, pci_names, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import GpuFacts

_MANY_CORRECTED = 10_000  # Azure's node health checks: its limit of corrected errors in SRAM
_LOG = "the kernel's log"

# Xids after which a GPU is not trusted: the list of Azure's node health checks, in the words of NVIDIA's catalogue.
_BAD_XIDS = {
    48: "double-bit memory error",
    56: "display engine error",
    57: "memory interface error",
    58: "memory interface error",
    62: "internal micro-controller halted",
    63: "memory row remapped or page retired",
    64: "remapping of a memory row failed",
    65: "video processor error",
    68: "video processor error",
    69: "graphics engine class error",
    73: "encoder error",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    80: "corrupted data sent to the GPU",
    81: "VGA subsystem error",
    92: "high rate of corrected memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    119: "the GPU's system processor does not answer",
    120: "the GPU's system processor failed",
}
_PROGRAM_XIDS = {13: "exception in a program", 31: "a program's memory fault", 43: "a program stopped", 45: "clean-up"}
_XID = re.compile(r"(?<!S)Xid \(PCI:([0-9a-fA-F:.]{7,20})\): (\d{1,4})")
_SXID = re.compile(r"SXid \(PCI:([0-9a-fA-F:.]{7,20})\): (\d{1,6}), (Non-fatal|Fatal)?", re.IGNORECASE)


@rule(
    "GPU-XID",
    "fail",
    summary="the driver reported no hardware error (Xid)",
    fix="drain the node, look the number up in NVIDIA's Xid catalogue, reset the GPU or reboot, run dcgmi diag -r 3",
    source="NVIDIA's Xid catalogue; the list of Azure's node health checks",
)
def check_xid(scene: Scene) -> Iterator[Seen]:
    """Lines `NVRM: Xid` of the kernel's log, since it started.

    Some numbers come from programs (13, 31, 43, 45) and are no fault of the GPU. Numbers that are in neither list are a
    warning.
    """
    facts = scene.facts
    if facts.kernel.messages is None:
        yield unseen(scene, "kernel.messages", "Xid", _LOG)
        return
    names, found = pci_names(facts), Counter[tuple[str, int]]()
    for line in facts.kernel.messages:
        if match := _XID.search(line):
            found[_gpu_at(match[1], names), int(match[2])] += 1
    if not found:
        yield skip("Xid", NO_GPU, _LOG) if facts.gpus == () else ok("Xid", "no such line", where=_LOG)
    for (name, number), times in sorted(found.items()):
        means = _BAD_XIDS.get(number) or _PROGRAM_XIDS.get(number) or "not in the list"
        observed = f"Xid {number} ({means}), {times} time{'s' if times > 1 else ''}"
        if number in _PROGRAM_XIDS:
            yield ok(name, observed, where=_LOG)
        else:
            yield (fail if number in _BAD_XIDS else warn)(name, observed, "none", _LOG)


def _gpu_at(address: str, names: dict[str, str]) -> str:
    """The name of the GPU at an address as the log has it, mostly without a function."""
    return next((name for at, name in names.items() if at.startswith(address.lower())), address)


@rule(
    "GPU-SXID",
    "fail",
    summary="no NVSwitch reported an error (SXid)",
    fix="look at fabricmanager.log; after a fatal one reset all GPUs and switches, or reboot the node",
    source="imbue-ai/cluster-health; NVIDIA's Fabric Manager guide",
)
def check_sxid(scene: Scene) -> Iterator[Seen]:
    """Lines `SXid` of the kernel's log: errors of NVSwitches, which all GPUs of the machine share.

    A fatal one breaks NVLink for every job on the node; the others point to a link that is going bad.
    """
    facts = scene.facts
    if facts.kernel.messages is None:
        yield unseen(scene, "kernel.messages", "SXid", _LOG)
        return
    found = Counter(match.groups() for line in facts.kernel.messages if (match := _SXID.search(line)))
    if not found:
        yield skip("SXid", NO_GPU, _LOG) if facts.gpus == () else ok("SXid", "no such line", where=_LOG)
    for (address, number, kind), times in sorted(found.items(), key=str):
        fatal = (kind or "").lower() == "fatal"
        observed = f"SXid {number} ({kind or 'severity not said'}), {times} time{'s' if times > 1 else ''}"
        yield (fail if fatal else warn)(f"NVSwitch {address}", observed, "none", _LOG)


def _judge_gpus(scene: Scene, fact: str, judge: Callable[[str, GpuFacts], Seen | None]) -> Iterator[Seen]:
    return judge_each(scene, f"gpus.{fact}", gpus_of(scene.facts), NO_GPU, judge)


@rule(
    "GPU-ECC",
    "warn",
    summary="error correction (ECC) is on",
    fix="nvidia-smi -e 1, then reset the GPU or reboot",
    source="imbue-ai/cluster-health",
)
def check_ecc(scene: Scene) -> Iterator[Seen]:
    """Without ECC a flipped bit in the GPU's memory becomes a wrong gradient, on all ranks after the next all_reduce.

    GPUs for desktops have none and do not say.
    """

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.ecc_enabled is None:
            return None
        return ok(name, "on", where="NVML") if gpu.ecc_enabled else warn(name, "off", "on", "NVML")

    yield from _judge_gpus(scene, "ecc_enabled", judge)


@rule(
    "GPU-ECC-UNCORRECTED",
    "fail",
    summary="no uncorrected memory error since the driver was loaded",
    fix="drain the node, reset the GPU or reboot so that the row is remapped; if it comes again, have it replaced",
    source="every health check that was read; NVIDIA's GPU memory error management guide",
)
def check_uncorrected(scene: Scene) -> Iterator[Seen]:
    """An uncorrected error ends the program that touched the memory; the GPU takes no new work until it is reset."""
    yield from _judge_gpus(scene, "ecc_uncorrected", _counted("ecc_uncorrected", "uncorrected errors", 0, fail))


@rule(
    "GPU-ECC-CORRECTED",
    "warn",
    summary="corrected memory errors since the driver was loaded are below 10,000",
    fix="watch whether it grows; reset the GPU at the next occasion, and run dcgmi diag -r 3",
    source="Azure's node health checks: the limit of corrected errors in SRAM",
)
def check_corrected(scene: Scene) -> Iterator[Seen]:
    """Corrected errors cost next to nothing; many of them come before one that cannot be corrected."""
    yield from _judge_gpus(scene, "ecc_corrected", _counted("ecc_corrected", "corrected errors", _MANY_CORRECTED, warn))


def _counted(
    fact: str, what: str, limit: int, worse: Callable[[str, str, str, str], Seen]
) -> Callable[[str, GpuFacts], Seen | None]:
    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        count = getattr(gpu, fact)
        if count is None:
            return None
        expected = f"{limit:,} at most" if limit else "0"
        return worse(name, f"{count} {what}", expected, "NVML") if count > limit else ok(name, f"{count} {what}")

    return judge


def _flag(fact: str, bad: str, good: str, worse: Callable[[str, str, str, str], Seen]) -> Callable[..., Seen | None]:
    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        flag = getattr(gpu, fact)
        if flag is None:
            return None
        return worse(name, bad, good, "NVML") if flag else ok(name, good, where="NVML")

    return judge


@rule(
    "GPU-REMAP-PENDING",
    "fail",
    summary="no memory row waits for its remapping",
    fix="drain the node and reset the GPU (nvidia-smi -r) or reboot",
    source="NVIDIA's GPU memory error management guide; every health check that was read",
)
def check_remap_pending(scene: Scene) -> Iterator[Seen]:
    """A row that failed is replaced by a spare one when the GPU is reset; until then it can fail again."""
    judge = _flag("remapped_pending", "a row waits for its remapping", "none waits", fail)
    yield from _judge_gpus(scene, "remapped_pending", judge)


@rule(
    "GPU-REMAP-FAILED",
    "fail",
    summary="no remapping of a memory row has failed",
    fix="have the GPU replaced: NVIDIA takes it back for this",
    source="NVIDIA's GPU memory error management guide; every health check that was read",
)
def check_remap_failed(scene: Scene) -> Iterator[Seen]:
    """The spare rows are used up, and memory that fails stays in use."""
    yield from _judge_gpus(
        scene, "remapped_failed", _flag("remapped_failed", "a remapping failed", "none failed", fail)
    )


@rule(
    "GPU-RETIRED-PENDING",
    "fail",
    summary="no memory page waits to be retired",
    fix="drain the node and reset the GPU (nvidia-smi -r) or reboot",
    source="NVIDIA's page retirement guide (GPUs before Ampere)",
)
def check_retired_pending(scene: Scene) -> Iterator[Seen]:
    """Older GPUs take a page that failed out of use when the driver is loaded again; until then it can fail again."""
    judge = _flag("retired_pages_pending", "a page waits to be retired", "none waits", fail)
    yield from _judge_gpus(scene, "retired_pages_pending", judge)


@rule(
    "GPU-RECOVERY",
    "fail",
    summary="the driver asks for no recovery",
    fix="do what it asks for: drain, reset the GPU, or reboot the node",
    source="nvidia-resiliency-ext's health check (NVML's recovery action, driver 570 and newer)",
)
def check_recovery(scene: Scene) -> Iterator[Seen]:
    """What the driver itself thinks must be done before the GPU is used again."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if not gpu.recovery_action:
            return None
        if gpu.recovery_action.lower() == "none":
            return ok(name, "none asked for", where="NVML")
        return fail(name, gpu.recovery_action, "none", "NVML")

    yield from _judge_gpus(scene, "recovery_action", judge)
