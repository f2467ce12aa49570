"""GPU: NVLink, the fabric behind it, and the way from a NIC into a GPU's memory."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from commbench.checks.devices import NO_GPU, NO_RDMA, gpus_of, judge_each, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import GpuFacts, NvLinkFacts
from commbench.units import GB

_MANY_LINK_ERRORS = 5  # imbue-ai/cluster-health warns from here on
_DMA_BUF_KERNEL = (5, 12)  # the first kernel in which a NIC's driver takes a GPU's memory as a DMA buffer
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_NVML = "NVML"
_MULTI_NODE = ("GB200", "GB300")  # their NVLink joins nodes, and IMEX lets processes of several nodes share memory


def _judge_links(scene: Scene, judge: Callable[[str, GpuFacts], Seen | None]) -> Iterator[Seen]:
    return judge_each(scene, "gpus.nvlinks", gpus_of(scene.facts), NO_GPU, judge)


def _active(gpu: GpuFacts) -> list[NvLinkFacts]:
    return [link for link in gpu.nvlinks or () if link.is_active]


@rule(
    "GPU-NVLINK",
    "fail",
    summary="all NVLinks of a GPU are active, as many as its siblings have",
    fix="nvidia-smi nvlink -s shows which; restart the fabric manager, reset the GPUs, then have the board looked at",
    source="oci-hpc (18 links on H100); imbue-ai/cluster-health; Azure's node health checks",
)
def check_nvlink(scene: Scene) -> Iterator[Seen]:
    """One link that is down takes its share of the bandwidth, and NCCL builds its rings for the GPU with the fewest.

    Cards that could have a bridge and have none show all links inactive, which is no fault as long as all do.
    """
    most = max((len(_active(gpu)) for gpu in scene.facts.gpus or ()), default=0)

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.nvlinks is None:
            return None
        if not most:
            return skip(name, "no NVLink is in use on this node", _NVML)
        active, links = len(_active(gpu)), max(most, len(gpu.nvlinks))
        down = [str(link.number) for link in gpu.nvlinks if not link.is_active]
        if active == links:
            return ok(name, f"{active} links", where=_NVML)
        which = f" ({'link' if len(down) == 1 else 'links'} {', '.join(down)} inactive)" if down else ""
        return fail(name, f"{active} of {links} links{which}", f"{links} links", _NVML)

    yield from _judge_links(scene, judge)


@rule(
    "GPU-NVLINK-SPEED",
    "fail",
    summary="NVLinks run at the speed of their siblings",
    fix="reset the GPUs; if it stays, have the board looked at",
    source="oci-hpc (18 links of 25 GB/s on H100)",
)
def check_nvlink_speed(scene: Scene) -> Iterator[Seen]:
    """A link that came up at a lower speed carries less, and slows every ring and tree that passes it."""
    rates = [link.bytes_per_second for gpu in scene.facts.gpus or () for link in _active(gpu)]
    best = max((rate for rate in rates if rate is not None), default=None)

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        active = _active(gpu)
        if gpu.nvlinks is not None and not active:
            return skip(name, "no NVLink is in use", _NVML)
        if best is None or any(link.bytes_per_second is None for link in active) or not active:
            return None
        slow = [link for link in active if (link.bytes_per_second or 0.0) < best]
        if slow:
            observed = ", ".join(f"link {link.number}: {(link.bytes_per_second or 0) / GB:g} GB/s" for link in slow)
            return fail(name, observed, f"{best / GB:g} GB/s", _NVML)
        return ok(name, f"{best / GB:g} GB/s a link", where=_NVML)

    yield from _judge_links(scene, judge)


@rule(
    "GPU-NVLINK-ERRORS",
    "warn",
    summary="NVLinks have fewer than five errors",
    fix="nvidia-smi nvlink -e shows of what kind; reset the GPUs and watch whether they come again",
    source="imbue-ai/cluster-health",
)
def check_nvlink_errors(scene: Scene) -> Iterator[Seen]:
    """Replays and recoveries since the driver was loaded: such a link is slower, and may go down next."""

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.nvlinks is not None and not _active(gpu):
            return skip(name, "no NVLink is in use", _NVML)
        counts = {link.number: link.errors for link in gpu.nvlinks or () if link.errors is not None}
        if not counts:
            return None
        many = {number: errors for number, errors in counts.items() if errors >= _MANY_LINK_ERRORS}
        if many:
            observed = ", ".join(f"link {number}: {errors} errors" for number, errors in many.items())
            return warn(name, observed, f"fewer than {_MANY_LINK_ERRORS}", _NVML)
        return ok(name, f"fewer than {_MANY_LINK_ERRORS} errors a link", where=_NVML)

    yield from _judge_links(scene, judge)


@rule(
    "GPU-FABRIC",
    "fail",
    summary="the GPUs have joined the NVSwitch fabric",
    fix="systemctl restart nvidia-fabricmanager (its version must be the driver's), then look at fabricmanager.log",
    source="oci-hpc (state Completed, status Success); NVIDIA's Fabric Manager guide",
)
def check_fabric(scene: Scene) -> Iterator[Seen]:
    """On machines with NVSwitch a GPU that has not joined cannot be used: cudaErrorSystemNotReady.

    Other machines have no such fabric and say so.
    """

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        state, status = gpu.fabric_state.lower(), gpu.fabric_status.lower()
        if not state:
            return None
        if "not_supported" in state or "not supported" in state or state == "n/a":
            return skip(name, "this GPU has no fabric to join", _NVML)
        if state == "completed" and status in ("", "success"):
            return ok(name, "completed", where=_NVML)
        return fail(name, f"{gpu.fabric_state}{f', {gpu.fabric_status}' if status else ''}", "completed", _NVML)

    yield from judge_each(scene, "gpus.fabric_state", gpus_of(scene.facts), NO_GPU, judge)


def _has_switch(gpu: GpuFacts) -> bool:
    return any(link.peer_kind == "switch" for link in gpu.nvlinks or ())


@rule(
    "GPU-FABRIC-MANAGER",
    "fail",
    summary="the fabric manager runs where there are NVSwitches",
    fix="systemctl enable --now nvidia-fabricmanager, in the version of the driver",
    source="imbue-ai/cluster-health; NVIDIA's Fabric Manager guide",
)
def check_fabric_manager(scene: Scene) -> Iterator[Seen]:
    """It programs the NVSwitches at start. GPUs that have joined go on without it, but not after the next reset."""
    facts, where = scene.facts, "systemd, /proc"
    if facts.gpus is None:
        yield unseen(scene, "gpus", where=where)
    elif not facts.gpus:
        yield skip("fabric manager", NO_GPU, where)
    elif not any(_has_switch(gpu) for gpu in facts.gpus):
        yield skip("fabric manager", "no NVLink leads to a switch, as far as can be seen", where)
    elif not facts.software.fabric_manager:
        yield unseen(scene, "software.fabric_manager", where=where)
    elif facts.software.fabric_manager != "running":
        yield fail("fabric manager", facts.software.fabric_manager, "running", where)
    else:
        yield ok("fabric manager", "running", where=where)


@rule(
    "GPU-IMEX",
    "fail",
    summary="the IMEX daemon runs where NVLink joins nodes",
    fix="systemctl enable --now nvidia-imex, with the same /etc/nvidia-imex/nodes_config.cfg on all nodes",
    source="NVIDIA's IMEX guide; NCCL's troubleshooting guide (multi-node NVLink)",
)
def check_imex(scene: Scene) -> Iterator[Seen]:
    """Processes of several nodes share memory over NVLink through IMEX; without it NCCL takes the network, or fails."""
    facts, where = scene.facts, "systemd, /proc"
    if not facts.gpus:
        yield skip("IMEX", NO_GPU, where) if facts.gpus == () else unseen(scene, "gpus", "IMEX", where)
    elif not any(model in gpu.name for gpu in facts.gpus for model in _MULTI_NODE):
        yield skip("IMEX", f"no {' or '.join(_MULTI_NODE)} here", where)
    elif not facts.software.imex:
        yield unseen(scene, "software.imex", where=where)
    elif facts.software.imex != "running":
        yield fail("IMEX", facts.software.imex, "running", where)
    else:
        yield ok("IMEX", "running", where=where)


@rule(
    "GPU-DIRECT",
    "warn",
    summary="NICs can read and write the GPUs' memory: nvidia_peermem is loaded, or the kernel has DMA buffers",
    fix="modprobe nvidia_peermem, and load it at start; or the open kernel modules on Linux 5.12 and newer",
    source="NCCL's troubleshooting guide: GPUDirect RDMA; imbue-ai/cluster-health; gpud",
)
def check_direct(scene: Scene) -> Iterator[Seen]:
    """Without GPUDirect RDMA everything that leaves the node is copied through the host's memory first.

    It needs the module nvidia_peermem, or a kernel from 5.12 on with a driver whose open modules offer DMA buffers;
    whether the driver does is not seen here.
    """
    facts, where = scene.facts, "/proc/modules"
    if facts.gpus is None or facts.rdma is None:
        yield unseen(scene, "gpus" if facts.gpus is None else "rdma", "GPUDirect RDMA", where)
    elif not facts.gpus or not facts.rdma:
        yield skip("GPUDirect RDMA", NO_RDMA if facts.gpus else NO_GPU, where)
    elif facts.kernel.modules is None:
        yield unseen(scene, "kernel.modules", "GPUDirect RDMA", where)
    elif loaded := [name for name in _PEER_MODULES if name in facts.kernel.modules]:
        yield ok("GPUDirect RDMA", f"{loaded[0]} is loaded", where=where)
    elif (version := _kernel_version(facts.host.kernel)) is None or version >= _DMA_BUF_KERNEL:
        reason = f"nvidia_peermem is not loaded; Linux {facts.host.kernel} has DMA buffers, if the driver offers them"
        yield skip("GPUDirect RDMA", reason, where)
    else:
        yield warn("GPUDirect RDMA", f"no nvidia_peermem, Linux {facts.host.kernel}", "nvidia_peermem loaded", where)


def _kernel_version(release: str) -> tuple[int, int] | None:
    match = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    return (int(match[1]), int(match[2])) if match else None


@rule(
    "GPU-NVLINK-PEERS",
    "warn",
    summary="GPUs have NVLinks to the same kinds of neighbours",
    fix="nvidia-smi topo -m shows the wiring: look for a bridge or a cable that is missing or in the wrong place",
    source="ml-engineering; AWS's health check (topology)",
)
def check_nvlink_peers(scene: Scene) -> Iterator[Seen]:
    """How many of a GPU's active links go to switches, and how many to how many other GPUs, against its siblings."""
    shapes = {name: _shape(gpu) for name, gpu in (gpus_of(scene.facts) or {}).items() if _active(gpu)}
    usual = Counter(shape for shape in shapes.values() if shape).most_common(1)

    def judge(name: str, gpu: GpuFacts) -> Seen | None:
        if gpu.nvlinks is not None and not _active(gpu):
            return skip(name, "no NVLink is in use", _NVML)
        if not usual or not shapes.get(name):
            return None
        if shapes[name] == usual[0][0]:
            return ok(name, shapes[name], where=_NVML)
        return warn(name, shapes[name], f"{usual[0][0]}, as most", _NVML)

    yield from _judge_links(scene, judge)


def _shape(gpu: GpuFacts) -> str:
    """Such as `to switches` or `to 3 GPUs`; empty where the ends are not said. The number of links has its own rule."""
    active = _active(gpu)
    if any(not link.peer_kind for link in active):
        return ""
    gpus = {link.peer for link in active if link.peer_kind == "gpu"}
    parts = [f"to {len(gpus)} GPUs"] if gpus else []
    parts += [f"to {kind}es" if kind == "switch" else f"to {kind}s" for kind in ("switch", "cpu")
              if any(link.peer_kind == kind for link in active)]  # fmt: skip
    return ", ".join(parts)
