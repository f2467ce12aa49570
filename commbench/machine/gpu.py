"""GPUs: through NVML where nvidia-ml-py is installed and a driver is loaded, else what the kernel says of them.

The only module that knows pynvml. What NVML refuses is unseen, with NVML's own reason.
"""

import os
from collections.abc import Callable
from ctypes import byref
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from commbench.machine.facts import GpuFacts, NvLinkFacts, PciDevice
from commbench.machine.node import hashed
from commbench.machine.tree import PCI_ADDRESS, Tree, fields_of

_INFORMATION = "proc/driver/nvidia/gpus"
_MAX_GPUS = 64
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# Of nvml.h: nvmlClocksEventReasons; those below are named as nvidia-smi names them.
_THROTTLE = {
    0x1: "gpu_idle", 0x2: "applications_clocks_setting", 0x4: "sw_power_cap", 0x8: "hw_slowdown", 0x10: "sync_boost",
    0x20: "sw_thermal_slowdown", 0x40: "hw_thermal_slowdown", 0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}  # fmt: skip
_FABRIC = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}
_PEERS = {0: "gpu", 1: "cpu", 2: "switch"}
_RECOVERY = {0: "none", 1: "gpu reset", 2: "node reboot", 3: "drain p2p", 4: "drain and reset",
             5: "recover imex domain", 6: "bus reset", 7: "system reboot"}  # fmt: skip
_LINK_ERRORS = 4  # replay, recovery, CRC of flits, CRC of data
_NO_SUCH_LINK = ("Not Supported", "Invalid Argument")


class Nvml:
    """pynvml's module, asked so that a refusal is a reason and not an exception."""

    def __init__(self, module: Any, tree: Tree) -> None:
        self.module = module
        self.tree = tree

    def attempt(self, name: str, *arguments: Any) -> tuple[Any, str]:
        """What the function `name` returns, and why it returned nothing; the one place that knows NVML's errors."""
        function: Callable[..., Any] | None = getattr(self.module, name, None)
        if function is None:
            return None, f"this nvidia-ml-py has no {name}"
        try:
            value = function(*arguments)
        except self.module.NVMLError as error:
            return None, f"NVML: {error}"
        return value.decode(errors="replace") if isinstance(value, bytes) else value, ""

    def ask(self, fact: str, name: str, *arguments: Any) -> Any:
        """As `attempt`; a reason is kept for `fact`."""
        value, reason = self.attempt(name, *arguments)
        if reason:
            self.tree.say_unseen(fact, reason)
        return value

    def constant(self, name: str, default: int) -> int:
        """A constant of pynvml."""
        return int(getattr(self.module, name, default))


def read_gpus(tree: Tree, pci: tuple[PciDevice, ...] | None, module: Any = None) -> tuple[GpuFacts, ...] | None:
    """The GPUs in the order of their addresses, which is NVML's. `module`: pynvml, or what stands for it in a test."""
    seen = [device for device in pci or () if device.kind == "gpu"][:_MAX_GPUS]
    if pci is None:
        tree.say_unseen("gpus", tree.unseen.get("pci", "PCI devices were not seen"))
    of_nvidia = any(device.vendor == "10de" for device in seen) or (tree.is_live and tree.exists("dev/nvidiactl"))
    if module is None and of_nvidia:
        module = load_nvml(tree)
    if module is not None:
        nvml = Nvml(module, tree)
        found = _through_nvml(nvml)
        if found is not None:
            others = [device for device in seen if device.vendor != "10de"]
            return (*found, *(_from_kernel(tree, len(found) + place, device) for place, device in enumerate(others)))
    if of_nvidia:
        tree.say_unseen("gpus.nvlinks", tree.unseen.get("gpus", "without NVML the kernel does not say it"))
    if pci is None:
        return None
    return tuple(_from_kernel(tree, index, device) for index, device in enumerate(seen))


def load_nvml(tree: Tree) -> Any:
    """pynvml's module; None, with the reason kept for `gpus`, where there is none."""
    if not tree.is_live:
        tree.say_unseen("gpus", "a captured tree has no NVML: what only the driver knows was not seen")
        return None
    if find_spec("pynvml") is None:
        tree.say_unseen("gpus", "nvidia-ml-py is not installed: pip install nvidia-ml-py")
        return None
    import pynvml  # optional, and slow enough to be loaded where there is a GPU only

    return pynvml


def _from_kernel(tree: Tree, index: int, device: PciDevice) -> GpuFacts:
    """What the kernel and the driver's folder in /proc say of a GPU."""
    said = fields_of(tree.text(f"{_INFORMATION}/{device.address}/information"))
    folder = f"sys/bus/pci/devices/{device.address}"
    return GpuFacts(
        index=index,
        address=device.address,
        name=said.get("Model", "")[:80],
        uuid_hash=hashed(said.get("GPU UUID", "")),
        memory_nbytes=tree.number(f"{folder}/mem_info_vram_total"),  # amdgpu
        memory_used_nbytes=tree.number(f"{folder}/mem_info_vram_used"),
        driver=tree.word(f"sys/module/{device.driver}/version") if device.driver else "",
        vbios=(said.get("Video BIOS") or tree.word(f"{folder}/vbios_version"))[:40],
        gsp=said.get("GPU Firmware", "")[:40],
    )


def _through_nvml(nvml: Nvml) -> tuple[GpuFacts, ...] | None:
    """All GPUs that NVML lists; None where it does not start. One that it lists and cannot open keeps its place."""
    _, reason = nvml.attempt("nvmlInit")
    if reason:
        nvml.tree.say_unseen("gpus", reason)
        return None
    try:
        count = nvml.ask("gpus", "nvmlDeviceGetCount") or 0
        driver = nvml.ask("gpus.driver", "nvmlSystemGetDriverVersion") or ""
        return tuple(replace(_gpu(nvml, index), driver=driver) for index in range(min(count, _MAX_GPUS)))
    finally:
        nvml.attempt("nvmlShutdown")


def _gpu(nvml: Nvml, index: int) -> GpuFacts:
    handle = nvml.ask(f"gpus.{index}", "nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return GpuFacts(index, "")

    def ask(fact: str, name: str, *arguments: Any) -> Any:
        return nvml.ask(f"gpus.{fact}", name, handle, *arguments)

    memory = ask("memory_nbytes", "nvmlDeviceGetMemoryInfo")
    mig = ask("mig", "nvmlDeviceGetMigMode")
    ecc = ask("ecc_enabled", "nvmlDeviceGetEccMode")
    rows = ask("remapped_pending", "nvmlDeviceGetRemappedRows")
    throttled = ask("throttle_reasons", throttle_function(nvml))
    retired = ask("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus")
    persistence = ask("persistence", "nvmlDeviceGetPersistenceMode")
    processes = ask("processes", "nvmlDeviceGetComputeRunningProcesses")
    bus = ask("address", "nvmlDeviceGetPciInfo")
    fabric_state, fabric_status = _fabric(nvml, handle)
    sm = nvml.constant("NVML_CLOCK_SM", 1)
    return GpuFacts(
        index=index,
        address=_address(bus.busId) if bus is not None else "",
        name=str(ask("name", "nvmlDeviceGetName") or ""),
        uuid_hash=hashed(str(ask("uuid_hash", "nvmlDeviceGetUUID") or "")),
        memory_nbytes=memory.total if memory else None,
        memory_used_nbytes=memory.used if memory else None,
        vbios=str(ask("vbios", "nvmlDeviceGetVbiosVersion") or ""),
        gsp=str(ask("gsp", "nvmlDeviceGetGspFirmwareVersion") or ""),
        persistence=_flag(persistence),
        mig=_flag(mig[0] if mig else None),
        compute_mode=_COMPUTE_MODES.get(ask("compute_mode", "nvmlDeviceGetComputeMode"), ""),
        temperature_celsius=ask("temperature_celsius", "nvmlDeviceGetTemperature", 0),
        sm_clock_hertz=_hertz(ask("sm_clock_hertz", "nvmlDeviceGetClockInfo", sm)),
        sm_clock_max_hertz=_hertz(ask("sm_clock_max_hertz", "nvmlDeviceGetMaxClockInfo", sm)),
        throttle_reasons=name_throttle_reasons(throttled),
        ecc_enabled=_flag(ecc[0] if ecc else None),
        ecc_uncorrected=ask("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", 1, 0),
        ecc_corrected=ask("ecc_corrected", "nvmlDeviceGetTotalEccErrors", 0, 0),
        remapped_pending=_flag(rows[2] if rows else None),
        remapped_failed=_flag(rows[3] if rows else None),
        retired_pages_pending=_flag(retired),
        nvlinks=_nvlinks(nvml, handle),
        fabric_state=fabric_state,
        fabric_status=fabric_status,
        processes=None if processes is None else sum(process.pid != os.getpid() for process in processes),
        recovery_action=_recovery(nvml, handle),
    )


def _flag(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def _hertz(megahertz: int | None) -> float | None:
    return None if megahertz is None else megahertz * 1e6


def throttle_function(nvml: Nvml) -> str:
    """What tells the reasons: NVML renamed it in 12.2."""
    new = "nvmlDeviceGetCurrentClocksEventReasons"
    return new if hasattr(nvml.module, new) else "nvmlDeviceGetCurrentClocksThrottleReasons"


def name_throttle_reasons(bits: int | None) -> tuple[str, ...] | None:
    """The reasons that are set, as nvidia-smi names them."""
    return None if bits is None else tuple(name for bit, name in _THROTTLE.items() if bits & bit)


def _address(bus_id: str | bytes) -> str:
    """The kernel's spelling of NVML's 00000000:3B:00.0."""
    text = (bus_id.decode(errors="replace") if isinstance(bus_id, bytes) else bus_id).lower()
    text = text[4:] if len(text) == 16 and text.startswith("0000") else text
    return text if PCI_ADDRESS.fullmatch(text) else ""


def _fabric(nvml: Nvml, handle: Any) -> tuple[str, str]:
    """State and status of the NVSwitch fabric's registration; empty where NVML does not know of one."""
    record = getattr(nvml.module, "c_nvmlGpuFabricInfo_v2_t", None)
    if record is None:
        nvml.tree.say_unseen("gpus.fabric_state", "this nvidia-ml-py is older than NVML's fabric state")
        return "", ""
    info = record()
    if nvml.ask("gpus.fabric_state", "nvmlDeviceGetGpuFabricInfoV", handle, byref(info)) is None:
        return "", ""
    state = _FABRIC.get(info.state, "")
    return state, "" if state != "completed" else "success" if info.status == 0 else f"error {info.status}"


def _recovery(nvml: Nvml, handle: Any) -> str:
    field = getattr(nvml.module, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    values = nvml.ask("gpus.recovery_action", "nvmlDeviceGetFieldValues", handle, [field]) if field else None
    if not values or values[0].nvmlReturn != 0:
        nvml.tree.say_unseen("gpus.recovery_action", "the driver is older than 570, or does not say it")
        return ""
    return _RECOVERY.get(values[0].value.uiVal, "")


def _nvlinks(nvml: Nvml, handle: Any) -> tuple[NvLinkFacts, ...] | None:
    """The links of a GPU; an empty tuple for one that has none."""
    states = []
    for number in range(nvml.constant("NVML_NVLINK_MAX_LINKS", 18)):
        state, reason = nvml.attempt("nvmlDeviceGetNvLinkState", handle, number)
        if reason and not any(word in reason for word in _NO_SUCH_LINK):
            nvml.tree.say_unseen("gpus.nvlinks", reason)
            return None
        if reason:
            break
        states.append(bool(state))
    rates = _link_rates(nvml, handle, len(states)) if states else []
    return tuple(
        _nvlink(nvml, handle, number, is_active, rates[number] if number < len(rates) else None)
        for number, is_active in enumerate(states)
    )


def _link_rates(nvml: Nvml, handle: Any, count: int) -> list[float | None]:
    """The signalling rate of each link in one direction; empty where this driver has no field for it."""
    field = getattr(nvml.module, "NVML_FI_DEV_NVLINK_GET_SPEED", None)
    if field is None:
        return []
    values, _ = nvml.attempt("nvmlDeviceGetFieldValues", handle, [(field, number) for number in range(count)])
    return [value.value.uiVal * 1e6 if value.nvmlReturn == 0 and value.value.uiVal else None for value in values or ()]


def _nvlink(nvml: Nvml, handle: Any, number: int, is_active: bool, rate: float | None) -> NvLinkFacts:
    # That one link does not say something is no reason for all.
    bus, _ = nvml.attempt("nvmlDeviceGetNvLinkRemotePciInfo", handle, number) if is_active else (None, "")
    peer, _ = nvml.attempt("nvmlDeviceGetNvLinkRemoteDeviceType", handle, number) if is_active else (None, "")
    version, _ = nvml.attempt("nvmlDeviceGetNvLinkVersion", handle, number)
    counted = [nvml.attempt("nvmlDeviceGetNvLinkErrorCounter", handle, number, kind)[0] for kind in range(_LINK_ERRORS)]
    errors = [count for count in counted if count is not None]
    return NvLinkFacts(
        number=number,
        is_active=is_active,
        version=version,
        peer=_address(bus.busId) if bus is not None else "",
        peer_kind=_PEERS.get(peer, "") if peer is not None else "",
        bytes_per_second=rate if is_active else None,
        errors=sum(errors) if errors else None,
    )
