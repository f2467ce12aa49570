"""All facts of one machine, as one process of it sees them. Read this first: the other modules read one part each."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from commbench.machine.cpu import read_cpus, read_memory
from commbench.machine.facts import Facts, GpuFacts, ProcessFacts
from commbench.machine.gpu import read_gpus
from commbench.machine.host import ROOT
from commbench.machine.interfaces import Addresses, read_interfaces
from commbench.machine.kernel import read_kernel
from commbench.machine.libraries import read_software
from commbench.machine.limits import read_limits
from commbench.machine.nccl_conf import read_conf_files, read_named_files
from commbench.machine.node import hashed, read_node
from commbench.machine.pci import read_pci
from commbench.machine.rdma import read_rdma
from commbench.machine.software import checked_environment
from commbench.machine.tree import Tree, cpu_list, read_number


def read_facts(
    root: Path = ROOT,
    *,
    environment: Mapping[str, str] | None = None,
    process: ProcessFacts | None = None,
    nvml: Any = None,
    addresses: Addresses | None = None,
) -> Facts:
    """The facts of the machine whose files are below `root`: `/`, or a captured tree.

    What belongs to this process (limits, CPUs, environment, /dev/shm, packages) is read where `root` is `/` alone.
    `process`: its place as the launcher says; `nvml`: a module in place of pynvml, `addresses`: of each interface, for
    trees, which have neither. Raises nothing: what cannot be read is in `unseen`, with the reason.
    """
    tree = Tree(root)
    if environment is None and not tree.is_live:
        tree.say_unseen("variables", "a captured tree has no environment")
    if environment is None:
        environment = os.environ if tree.is_live else {}
    host = read_node(tree, environment)
    pci = read_pci(tree)
    gpus = read_gpus(tree, pci, nvml)
    driver = next((gpu.driver for gpu in gpus or () if gpu.driver), "")
    variables = checked_environment(environment)
    conf_files = read_conf_files(tree, environment)
    facts = Facts(
        taken_utc=datetime.now(UTC).isoformat(timespec="seconds") if tree.is_live else "",
        source=str(root),
        host=host,
        cpu=read_cpus(tree),
        memory=read_memory(tree),
        limits=read_limits(tree),
        kernel=read_kernel(tree),
        pci=pci,
        gpus=gpus,
        rdma=read_rdma(tree),
        interfaces=read_interfaces(tree, addresses),
        software=read_software(tree, environment, driver, has_gpus=bool(gpus)),
        process=_place(tree, process or ProcessFacts(), gpus, variables),
        variables=variables,
        conf_files=conf_files,
        readable_files=read_named_files(tree, environment, conf_files),
    )
    return replace(facts, unseen=dict(sorted(tree.unseen.items())))


def _place(
    tree: Tree, process: ProcessFacts, gpus: tuple[GpuFacts, ...] | None, variables: Mapping[str, str]
) -> ProcessFacts:
    """The process with its CPUs, where this one is it, and with the GPU that its local rank takes."""
    cpus = process.cpus or (cpu_list(os.sched_getaffinity(0)) if tree.is_live else "")
    return replace(process, cpus=cpus, gpu_address=process.gpu_address or _gpu_of(process.local_rank, gpus, variables))


def _gpu_of(local_rank: int, gpus: tuple[GpuFacts, ...] | None, variables: Mapping[str, str]) -> str:
    """The address of a local rank's GPU: that of its number among those that are visible; empty if there is none.

    CUDA and HIP end the list at the first entry that names no GPU.
    """
    visible = list(gpus or ())
    chosen = next((variables[name] for name in _VISIBLE if name in variables), None)
    if chosen is not None:
        entries = [_named(entry.strip(), visible) for entry in chosen.split(",")]
        end = entries.index(None) if None in entries else len(entries)
        visible = [gpu for gpu in entries[:end] if gpu is not None]
    return visible[local_rank].address if 0 <= local_rank < len(visible) else ""


_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def _named(entry: str, gpus: list[GpuFacts]) -> GpuFacts | None:
    """The GPU of an entry of CUDA_VISIBLE_DEVICES: a number, or a whole UUID."""
    number = read_number(entry, 0, len(gpus) - 1)
    if number is not None:
        return gpus[number]
    return next((gpu for gpu in gpus if entry and gpu.uuid_hash == hashed(entry)), None)
