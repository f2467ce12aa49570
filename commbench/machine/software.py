"""Versions of what moves the bytes, and the part of the environment that a run may keep."""

import os
import platform
import re
import sys
from collections.abc import Mapping

import commbench
from commbench.machine.nccl_loaded import loaded_nccl
from commbench.machine.nccl_table import meant_name

# Never the whole environment: it holds secrets.
KEPT_PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_")
KEPT_NAMES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MASTER_ADDR")
# What the checks compare beyond that: places of ranks, counts of the launchers, debugging switches, mistyped NCCL_.
CHECKED_PREFIXES = (*KEPT_PREFIXES, "RCCL_", "OFI_NCCL_", "TORCH_DISTRIBUTED_", "TORCH_GLOO_", "TORCH_FR_", "OMP_")
# A family could still carry one, such as a plugin's login.
_SECRET = re.compile(r"PASS|SECRET|TOKEN|CREDENTIAL|(?:API|ACCESS|PRIVATE)_?KEY", re.IGNORECASE)
CHECKED_NAMES = (
    *KEPT_NAMES,
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "NNODES", "MASTER_PORT"),
    *("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NNODES", "SLURM_NODEID", "SLURM_JOB_NUM_NODES"),
    *("SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"),
    *("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_CPU_BIND_TYPE"),
    *("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", "SLURM_STEP_TASKS_PER_NODE"),
    *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    *("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    *("CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING"),
    *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "NVIDIA_VISIBLE_DEVICES"),
    *("HSA_NO_SCRATCH_RECLAIM", "RDMAV_FORK_SAFE", "IBV_FORK_SAFE", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_CPP_LOG_LEVEL"),
    *("MKL_NUM_THREADS", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES"),
    *("LD_PRELOAD", "LD_LIBRARY_PATH"),
)


def kept_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that decide how collectives run, sorted by name."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)
    }


def checked_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that the checks compare, sorted by name: those of `kept_environment` and some more."""
    return {name: value for name, value in sorted(environment.items()) if is_kept(name)}


def is_kept(name: str) -> bool:
    """Whether a variable, or a line of NCCL's files of settings, is one that the checks compare; no secret is."""
    is_ours = name in CHECKED_NAMES or name.startswith(CHECKED_PREFIXES) or bool(meant_name(name))
    return is_ours and not _SECRET.search(name)


def versions() -> dict[str, str]:
    """Versions by name; a package that is not installed is left out. Imports nothing."""
    from importlib.metadata import PackageNotFoundError, version  # slow to load, and the checks do without it

    found = {"commbench": commbench.__version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "cupy-cuda12x", "cupy-cuda13x"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    # What an engine has loaded already says more than its package's version; what it has not, is not loaded for this.
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda:
        found["cuda"] = str(torch.version.cuda)
        if torch.cuda.is_available() and torch.distributed.is_nccl_available():
            found["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    return found | loaded_nccl()
