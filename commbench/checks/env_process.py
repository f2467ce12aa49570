"""ENV: what else each process takes from its environment: GPUs, threads, and how torch handles errors."""

import re
from collections.abc import Iterator
from functools import partial

from commbench.checks.env_settings import Settings, as_integer, env_rule
from commbench.checks.registry import Scene, Seen, fail, ok, skip, warn

_THREADS = re.compile(r"[0-9]{1,9}(?:,[0-9]{1,9}){0,9}")  # of each level of nesting
_rule = partial(env_rule, severity="fail")


@_rule(
    "ENV-VISIBLE-DEVICES",
    subject="visible devices",
    fine="not set: every GPU is visible",
    summary="CUDA_VISIBLE_DEVICES and its like list GPUs of this machine, each once",
    fix="list numbers from 0, or UUIDs, with commas and nothing else",
    source="CUDA's programming guide, CUDA environment variables; HIP's documentation",
)
def check_visible(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """CUDA shows the GPUs up to the first entry that it does not understand: `0,1,9,2` are two GPUs, `all` is none.

    An entry twice makes none visible. Words such as `all` are for NVIDIA_VISIBLE_DEVICES, which containers read.
    """
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        setting = settings.by_name.get(name)
        if setting is None or "$" in setting.value:
            continue
        entries = [entry.strip() for entry in setting.value.split(",")]
        gpus = scene.facts.gpus
        fault = _device_fault(entries, len(gpus) if gpus is not None else None) if setting.value else ""
        if not setting.value or setting.value == "-1":
            say = warn if gpus else ok
            yield say(name, f"{setting} hides every GPU", where=setting.where)
        elif fault:
            yield fail(name, f"{setting}: {fault}", where=setting.where)
        elif len(entries) < scene.facts.process.local_size and len(entries) > 1:
            observed = f"{setting} for {scene.facts.process.local_size} ranks on this node"
            yield fail(name, observed, "a GPU for each rank", setting.where)
        else:
            yield ok(name, str(setting), where=setting.where)


def _device_fault(entries: list[str], gpus: int | None) -> str:
    for entry in entries:
        is_number = entry.isascii() and entry.isdigit()
        if not is_number and not entry.startswith(("GPU-", "MIG-")):
            return f"{entry!r} is no number and no UUID, and hides what follows"
        if is_number and gpus and int(entry[:9]) >= gpus:
            return f"there is no GPU {entry}, of {gpus}, and it hides what follows"
    twice = next((entry for entry in entries if entries.count(entry) > 1), None)
    return f"{twice} is there twice" if twice else ""


@_rule(
    "ENV-OMP",
    severity="warn",
    subject="OMP_NUM_THREADS",
    fine="not set",
    summary="OMP_NUM_THREADS times the ranks of the node is at most its CPUs",
    fix="set it to CPUs over ranks of a node, at least 1",
    source="torchrun sets 1 where it is unset, for this reason",
)
def check_omp(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """Unset, every rank starts a thread for each CPU. Where threads outnumber CPUs they wait for each other, and so do
    gloo, NCCL's proxy and the loader of data. torchrun sets 1; srun and mpirun set nothing.
    """
    setting = settings.get("OMP_NUM_THREADS")
    ranks = max(1, scene.facts.process.local_size)
    cpus = _count(scene.facts.cpu.online)
    if setting and "$" in setting.value:
        return
    if not cpus:
        yield skip("OMP_NUM_THREADS", f"{setting or 'not set'}: {scene.facts.why_unseen('cpu.online')}")
    elif setting is None and ranks > 1:
        observed = f"not set: {ranks} ranks start {cpus} threads each on {cpus} CPUs"
        yield warn("OMP_NUM_THREADS", observed, f"{max(1, cpus // ranks)}")
    elif setting and not _THREADS.fullmatch(setting.value):
        yield warn("OMP_NUM_THREADS", f"{setting} is no number", where=setting.where)
    elif setting and (threads := int(setting.value.partition(",")[0])) * ranks > cpus:
        observed = f"{setting} on each of {ranks} ranks: {threads * ranks} threads on {cpus} CPUs"
        yield warn("OMP_NUM_THREADS", observed, f"at most {max(1, cpus // ranks)}", setting.where)
    else:
        yield ok("OMP_NUM_THREADS", f"{setting or 'not set'}; {ranks} ranks, {cpus} CPUs")


def _count(cpus: str) -> int:
    """How many CPUs are in `0-3,8-11`; 0 if the text is no such list."""
    total = 0
    for part in cpus.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            return 0
        total += int(high) - int(low) + 1 if dash else 1
    return total


@_rule(
    "ENV-TORCH-ERRORS",
    severity="warn",
    subject="torch",
    fine="torch ends a job whose collective hangs",
    summary="torch's watchdog ends a job whose collective fails or hangs",
    fix="unset it",
    source="torch's ProcessGroupNCCL environment variables",
)
def check_torch_errors(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """With TORCH_NCCL_ASYNC_ERROR_HANDLING=0 a failed collective hangs for ever: nobody aborts the others.

    Without monitoring a watchdog that is itself stuck goes unnoticed.
    """
    names = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING")
    for setting in filter(None, map(settings.get, names)):
        if setting.value == "0":
            yield warn(setting.name, f"{setting}: a hang never ends", where=setting.where)


@_rule(
    "ENV-TORCH-DUMP",
    severity="warn",
    subject="torch",
    fine="nothing is asked for in vain",
    summary="TORCH_NCCL_DUMP_ON_TIMEOUT has a buffer to dump",
    fix="set TORCH_NCCL_TRACE_BUFFER_SIZE=2000, or TORCH_FR_BUFFER_SIZE with newer torch",
    source="torch's documentation of the flight recorder",
)
def check_torch_dump(scene: Scene, settings: Settings) -> Iterator[Seen]:
    """The flight recorder's dump on a timeout is empty where its buffer has no room: its size must be above 0.

    Newer torch has 2000 by default, so that only a size of 0 is warned of.
    """
    dump = settings.get("TORCH_NCCL_DUMP_ON_TIMEOUT")
    sizes = filter(None, map(settings.get, ("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE")))
    for size in sizes:
        if dump and dump.value.lower() in ("1", "true", "y", "yes", "t") and as_integer(size.value) == (0, ""):
            yield warn(dump.name, f"{dump} with {size}", "a size above 0", dump.where)
