"""GPU: how they are set and what they do now: clocks, heat, modes, other programs, firmware."""

from collections import Counter
from collections.abc import Callable, Iterator

from commbench.checks.devices import NO_GPU, gpus_of, judge_each, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import GpuFacts
from commbench.units import format_nbytes

_HOT_CELSIUS = 85.0  # below the slow-down of data-centre GPUs (87 to 95); GCM's documentation has 80 and 85
_IN_USE_NBYTES = 2 << 30  # ours: driver and GSP keep some hundred MiB for themselves
# What NVML calls the reasons of lower clocks; idle, none and power cap are daily life.
_SLOWED_BY_HARDWARE = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_SLOWED_BY_DRIVER = ("sw_thermal_slowdown", "board_limit", "reliability")
_NVML = "NVML"


def _judge(scene: Scene, fact: str, judge: Callable[[str, GpuFacts], Seen | None]) -> Iterator[Seen]:
    return judge_each(scene, f"gpus.{fact}", gpus_of(scene.facts), NO_GPU, judge)


@rule(
    "GPU-THROTTLE",
    "fail",
    summary="no GPU is slowed down by heat or by its power supply",
    fix="look at fans, inlet temperature and power supplies (ipmitool sensor); reseat the GPU",
    source="NVML's clocks event reasons; gpud; Azure's node health checks",
)
def check_throttle(scene: Scene) -> Iterator[Seen]:
    """Hardware slow-down (heat, power brake) halves the clock or worse, and the whole job follows its slowest GPU.

    Idle clocks and the power cap are no fault. What the driver itself slows for heat is a warning.
    """

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.throttle_reasons is None:
            return None
        hard = [reason for reason in gpu.throttle_reasons if reason in _SLOWED_BY_HARDWARE]
        soft = [reason for reason in gpu.throttle_reasons if reason in _SLOWED_BY_DRIVER]
        if hard or soft:
            return (fail if hard else warn)(name, ", ".join(hard + soft), "no slow-down", _NVML)
        return ok(name, "no slow-down", where=_NVML)

    yield from _judge(scene, "throttle_reasons", judge)


@rule(
    "GPU-HOT",
    "warn",
    summary="GPUs are below 85 °C",
    fix="look at fans, dust and inlet temperature, and at what runs on the GPU",
    source="GCM's check of temperatures",
)
def check_temperature(scene: Scene) -> Iterator[Seen]:
    """A GPU that is this hot before the job starts will slow down under load."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.temperature_celsius is None:
            return None
        if gpu.temperature_celsius >= _HOT_CELSIUS:
            return warn(name, f"{gpu.temperature_celsius:g} °C", f"below {_HOT_CELSIUS:g} °C", _NVML)
        return ok(name, f"below {_HOT_CELSIUS:g} °C", where=_NVML)

    yield from _judge(scene, "temperature_celsius", judge)


@rule(
    "GPU-CLOCK",
    "warn",
    summary="GPUs of one model may reach the same clock",
    fix="nvidia-smi -rgc and -rac take locked clocks back",
    source="GCM's check of the SM clock",
)
def check_clock(scene: Scene) -> Iterator[Seen]:
    """The highest clock of the multiprocessors, against the other GPUs of the same model on this node.

    The clock of the moment says nothing: idle GPUs lower it. A locked clock is left behind by who profiled last.
    """
    yield from _alike(scene, "sm_clock_max_hertz", _highest_clock)


@rule(
    "GPU-VBIOS",
    "warn",
    summary="GPUs of one model have the same VBIOS",
    fix="update the VBIOS of those that differ, with the maker's firmware bundle",
    source="imbue-ai/cluster-health; GCM",
)
def check_vbios(scene: Scene) -> Iterator[Seen]:
    """A GPU that was replaced often comes with another VBIOS: other power limits, other NVLink training."""
    yield from _alike(scene, "vbios", lambda gpu: gpu.vbios)


@rule(
    "GPU-GSP",
    "warn",
    summary="the GPUs' system processors run the same firmware",
    fix="reload the driver; look at NVreg_EnableGpuFirmware in /proc/driver/nvidia/params",
    source="imbue-ai/cluster-health",
)
def check_gsp(scene: Scene) -> Iterator[Seen]:
    """The firmware comes with the driver; a GPU without it, or with another, did not start as its siblings did."""
    yield from _alike(scene, "gsp", lambda gpu: gpu.gsp)


@rule(
    "GPU-MODEL",
    "warn",
    summary="the GPUs of the node are of one model",
    fix="keep jobs to GPUs of one model with CUDA_VISIBLE_DEVICES",
    source="every health check that was read expects one model a node",
)
def check_model(scene: Scene) -> Iterator[Seen]:
    """Collectives run at the pace of the slowest GPU, and NCCL's tuning assumes that all are alike."""
    yield from _alike(scene, "name", _model, among=lambda gpu: "")


def _highest_clock(gpu: GpuFacts) -> str:
    return "" if gpu.sm_clock_max_hertz is None else f"{gpu.sm_clock_max_hertz / 1e6:.0f} MHz at most"


def _model(gpu: GpuFacts) -> str:
    memory = f", {format_nbytes(gpu.memory_nbytes)}" if gpu.memory_nbytes else ""
    return f"{gpu.name}{memory}" if gpu.name else ""


def _of_one_model(gpu: GpuFacts) -> str:
    return gpu.name


def _alike(
    scene: Scene, fact: str, show: Callable[[GpuFacts], str], among: Callable[[GpuFacts], str] = _of_one_model
) -> Iterator[Seen]:
    """Whether GPUs of one kind, as `among` says, agree in a fact, as `show` writes it (empty: not seen)."""
    counts: dict[str, Counter[str]] = {}
    for gpu in scene.facts.gpus or ():
        if shown := show(gpu):
            counts.setdefault(among(gpu), Counter())[shown] += 1

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        shown = show(gpu)
        if not shown:
            return None
        usual = counts[among(gpu)].most_common(1)[0][0]
        return ok(name, shown, where=_NVML) if shown == usual else warn(name, shown, f"{usual}, as most", _NVML)

    yield from _judge(scene, fact, judge)


@rule(
    "GPU-PERSISTENCE",
    "warn",
    summary="persistence mode is on",
    fix="systemctl enable --now nvidia-persistenced (or nvidia-smi -pm 1)",
    source="GCM; NVIDIA's driver persistence guide",
)
def check_persistence(scene: Scene) -> Iterator[Seen]:
    """Without it the driver takes the GPU down when the last program leaves: the next start takes seconds longer.

    Counters and settings, such as locked clocks, are lost each time.
    """

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.persistence is None:
            return None
        return ok(name, "on", where=_NVML) if gpu.persistence else warn(name, "off", "on", _NVML)

    yield from _judge(scene, "persistence", judge)


@rule(
    "GPU-MIG",
    "warn",
    summary="the GPUs are whole: MIG is off",
    fix="nvidia-smi -mig 0, unless the node is meant to be shared",
    source="AWS's and GCM's health checks; NVIDIA's MIG guide: no peer-to-peer between instances",
)
def check_mig(scene: Scene) -> Iterator[Seen]:
    """Instances of a divided GPU have no peer-to-peer and no NVLink, and NCCL sees one instance a process at most."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.mig is None:
            return None
        return warn(name, "on", "off", _NVML) if gpu.mig else ok(name, "off", where=_NVML)

    yield from _judge(scene, "mig", judge)


@rule(
    "GPU-COMPUTE-MODE",
    "fail",
    summary="no GPU prohibits compute",
    fix="nvidia-smi -c DEFAULT",
    source="nvidia-smi's manual: compute mode",
)
def check_compute_mode(scene: Scene) -> Iterator[Seen]:
    """In the mode `prohibited` no CUDA program can use the GPU; in `exclusive` one process can, which suits ranks."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if not gpu.compute_mode:
            return None
        prohibited = "prohibited" in gpu.compute_mode.lower()
        return (fail if prohibited else ok)(name, gpu.compute_mode, "default" if prohibited else "", _NVML)

    yield from _judge(scene, "compute_mode", judge)


@rule(
    "GPU-PROCESSES",
    "warn",
    summary="nobody else uses the GPUs",
    fix="nvidia-smi shows who: wait, or end what a dead job left",
    source="awsome-distributed-training's --exclusive; GCM",
)
def check_processes(scene: Scene) -> Iterator[Seen]:
    """Other processes on a GPU take time and memory from the job, and make every measurement worthless."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.processes is None:
            return None
        if gpu.processes:
            return warn(name, f"{gpu.processes} other processes", "none", _NVML)
        return ok(name, "none", where=_NVML)

    yield from _judge(scene, "processes", judge)


@rule(
    "GPU-MEMORY",
    "warn",
    summary="the GPUs' memory is free",
    fix="look for processes that nvidia-smi cannot show (of other containers): fuser -v /dev/nvidia*; reset it",
    source="AWS's health check (memory in use about 0); the number is ours",
)
def check_memory(scene: Scene) -> Iterator[Seen]:
    """Memory in use although no process is seen: a process of another container, or one that died within the driver."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.memory_used_nbytes is None:
            return None
        if gpu.processes:
            return skip(name, "in use by the processes that GPU-PROCESSES tells of", _NVML)
        if gpu.memory_used_nbytes > _IN_USE_NBYTES:
            return warn(name, f"{format_nbytes(gpu.memory_used_nbytes)} in use", "2 GiB at most", _NVML)
        return ok(name, "less than 2 GiB in use", where=_NVML)

    yield from _judge(scene, "memory_used_nbytes", judge)


@rule(
    "GPU-LIBRARY",
    "fail",
    summary="the driver's library fits the driver that is loaded",
    fix="reboot, or unload and load the nvidia modules: the packages were updated under a running driver",
    source="NVML: Driver/library version mismatch",
)
def check_library(scene: Scene) -> Iterator[Seen]:
    """After an update of the packages the old driver is still loaded, and its new library refuses to talk to it.

    No CUDA program starts until the modules are loaded again.
    """
    reason = scene.facts.unseen.get("gpus", "")
    if "mismatch" in reason.lower():
        yield fail("NVML", reason, "one version", _NVML)
    elif reason or scene.facts.gpus is None:
        yield unseen(scene, "gpus", "NVML", _NVML)
    elif not scene.facts.gpus:
        yield skip("NVML", NO_GPU, _NVML)
    else:
        yield ok("NVML", "answers", where=_NVML)
