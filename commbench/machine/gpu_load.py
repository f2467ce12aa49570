"""What one GPU is doing now, through NVML: clocks, what holds them back, and how many processes use it."""

from dataclasses import dataclass
from typing import Any

from commbench.machine.gpu import Nvml, load_nvml, name_throttle_reasons, throttle_function
from commbench.machine.host import ROOT
from commbench.machine.tree import Tree


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """One GPU at one moment. None: NVML does not say; `unseen`: why nothing is known at all."""

    sm_clock_hertz: float | None = None
    sm_clock_max_hertz: float | None = None
    throttle_reasons: tuple[str, ...] | None = None
    temperature_celsius: int | None = None
    processes: int | None = None  # this one included
    unseen: str = ""


def read_load(address: str, module: Any = None) -> GpuLoad:
    """The load of the GPU at a PCI address. `module`: pynvml, or what stands for it in a test. Raises nothing."""
    tree = Tree(ROOT)
    module = module or load_nvml(tree)
    if module is None:
        return GpuLoad(unseen=tree.unseen.get("gpus", ""))
    nvml = Nvml(module, tree)
    _, reason = nvml.attempt("nvmlInit")
    if reason:
        return GpuLoad(unseen=reason)
    try:
        handle, reason = nvml.attempt("nvmlDeviceGetHandleByPciBusId", address.encode())
        return GpuLoad(unseen=reason) if reason else _load(nvml, handle)
    finally:
        nvml.attempt("nvmlShutdown")


def _load(nvml: Nvml, handle: Any) -> GpuLoad:
    sm = nvml.constant("NVML_CLOCK_SM", 1)
    clock, _ = nvml.attempt("nvmlDeviceGetClockInfo", handle, sm)
    most, _ = nvml.attempt("nvmlDeviceGetMaxClockInfo", handle, sm)
    throttled, _ = nvml.attempt(throttle_function(nvml), handle)
    temperature, _ = nvml.attempt("nvmlDeviceGetTemperature", handle, 0)
    processes, _ = nvml.attempt("nvmlDeviceGetComputeRunningProcesses", handle)
    return GpuLoad(
        sm_clock_hertz=None if clock is None else clock * 1e6,
        sm_clock_max_hertz=None if most is None else most * 1e6,
        throttle_reasons=name_throttle_reasons(throttled),
        temperature_celsius=temperature,
        processes=None if processes is None else len(processes),
    )
