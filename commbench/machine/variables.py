"""Which variables of an environment the checks may see. Never the whole environment: it holds secrets."""

import os
import re
from collections.abc import Mapping

from commbench.machine.nccl_table import meant_name

_FAMILIES = (
    "NCCL_", "RCCL_", "TORCH_NCCL_", "TORCH_FR_", "TORCH_GLOO_", "GLOO_", "UCX_", "FI_", "OFI_NCCL_", "TP_SOCKET_",
    "OMP_", )  # fmt: skip
_NAMES = frozenset(
    (
        "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
        "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
        "TORCH_CPP_LOG_LEVEL", "TORCH_DISTRIBUTED_DEBUG", "TORCH_SHOW_CPP_STACKTRACES", "LD_PRELOAD",
        "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NNODES", "SLURM_STEP_NUM_TASKS", "SLURM_CPUS_PER_TASK",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMI_RANK", "PMI_SIZE",
    )
)  # fmt: skip
# A family could still carry one, such as a plugin's login.
_SECRET = re.compile(r"PASS|SECRET|TOKEN|CREDENTIAL|(?:API|ACCESS|PRIVATE)_?KEY", re.IGNORECASE)


def is_checked(name: str) -> bool:
    """Whether the checks may see the variable `name`."""
    if _SECRET.search(name):
        return False
    return name in _NAMES or name.startswith(_FAMILIES) or bool(meant_name(name))


def checked_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that the checks may see, sorted by name."""
    return {name: value for name, value in sorted(environment.items()) if is_checked(name)}
