"""Versions of what moves the bytes, and the part of the environment that a run may keep."""

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import commbench

# Never the whole environment: it holds secrets.
KEPT_PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "UCX_", "FI_")
KEPT_NAMES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MASTER_ADDR")


def kept_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that decide how collectives run, sorted by name."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)
    }


def versions() -> dict[str, str]:
    """Versions by name; a package that is not installed is left out. Imports nothing."""
    found = {"commbench": commbench.__version__, "python": platform.python_version()}
    for package in ("torch", "numpy"):
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
    return found
