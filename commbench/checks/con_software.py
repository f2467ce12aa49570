"""CON: versions, environment and files that all ranks must have alike."""

import re
from collections.abc import Mapping

from commbench.checks.consistency import Agreement, declare
from commbench.machine.facts import Facts

_PACKAGES = "the metadata of Python packages"
# Names that are each rank's own: its place, its GPU, its files. Sizes of worlds and nodes have rules of their own.
_OF_A_RANK = re.compile(
    r"(?:.*_)?(?:RANK|PROCID|LOCALID|NODEID|LOCALRANKID|DEBUG_FILE|DUMP_FILE|NET_DEVICES|VISIBLE_DEVICES|DEVICE_ORDINAL"
    r"|WORLD_SIZE|LOCAL_SIZE|LOCALNRANKS)"
    r"|GOMP_CPU_AFFINITY|KMP_AFFINITY|OMP_PLACES|SLURM_CPU_BIND_TYPE|SLURM_CPUS_ON_NODE|SLURM_GPUS_ON_NODE"
)
# What decides how ranks meet and which way they take: all must have it alike, or hang.
_OF_NCCL = ("NCCL_", "RCCL_", "TORCH_NCCL_", "GLOO_", "MASTER_")
_PROBLEMS = "NCCL issues 626, 354 and 394; cluster-health-scanner's configcheck"


def _nccl(facts: Facts) -> str:
    """The version that loads, else those that are found, else that of the Python package; without what follows a +."""
    software = facts.software
    found = sorted({version.partition("+")[0] for version in (software.nccl or {}).values() if version})
    packages = (version for name, version in software.packages.items() if name.startswith("nvidia-nccl-"))
    if software.nccl_loadable[:1].isdigit():
        return software.nccl_loadable
    return ", ".join(found) or next(packages, "")


def _torch(facts: Facts) -> str:
    version, cuda = facts.software.packages.get("torch", ""), facts.software.cuda
    return ", ".join(text for text in (version, f"CUDA {cuda}" if cuda else "") if text)


def _packages(facts: Facts) -> Mapping[str, str] | None:
    """The other packages: those of torch and NCCL have rules of their own."""
    packages = facts.software.packages
    own = {
        name: version for name, version in packages.items() if name != "torch" and not name.startswith("nvidia-nccl-")
    }
    return own or None


def _plugins(facts: Facts) -> Mapping[str, str] | None:
    plugins = facts.software.nccl_plugins
    return None if plugins is None else {path.rpartition("/")[2]: "there" for path in plugins}


def _transports(facts: Facts) -> Mapping[str, str]:
    return {"libfabric": facts.software.libfabric or "not found", "UCX": facts.software.ucx or "not found"}


def _environment(facts: Facts, of_nccl: bool) -> Mapping[str, str] | None:
    if "variables" in facts.unseen:
        return None
    return {
        name: f"`{value}`"
        for name, value in facts.variables.items()
        if name.startswith(_OF_NCCL) == of_nccl and not _OF_A_RANK.fullmatch(name)
    }


def _conf(facts: Facts) -> Mapping[str, str] | None:
    if facts.conf_files is None:
        return None
    return {file.path: "; ".join(file.lines) or "empty" for file in facts.conf_files}


_AGREEMENTS = (
    Agreement(
        "CON-NCCL",
        "fail",
        "NCCL",
        lambda facts: _nccl(facts),
        fix="give all nodes the same container or environment; look for another libnccl in LD_LIBRARY_PATH",
        source=_PROBLEMS,
        explanation="NCCL's ranks speak a protocol that changes between versions: they hang, or fail in bootstrap.",
        where="libnccl.so.2",
        of="rank",
    ),
    Agreement(
        "CON-TORCH",
        "fail",
        "torch",
        _torch,
        fix="give all nodes the same container or environment",
        source="cluster-health-scanner's configcheck; imbue-ai/cluster-health",
        explanation="Another torch brings another NCCL, another order of collectives, and other numbers. Its CUDA "
        "counts.",
        where=_PACKAGES,
        of="rank",
    ),
    Agreement(
        "CON-PYTHON",
        "warn",
        "Python",
        lambda facts: facts.software.python,
        fix="give all nodes the same container or environment",
        source="cluster-health-scanner's configcheck",
        explanation="Another Python on some node means another environment there, of which this is the first thing "
        "seen.",
        where="the interpreter",
        of="rank",
    ),
    Agreement(
        "CON-PACKAGES",
        "warn",
        "Python packages",
        _packages,
        fix="install from one lock file on all nodes",
        source="cluster-health-scanner's configcheck",
        explanation="Packages that decide how a training program communicates, such as deepspeed and mpi4py.",
        where=_PACKAGES,
        of="rank",
        missing_counts=True,
    ),
    Agreement(
        "CON-DRIVER",
        "warn",
        "GPU driver",
        lambda facts: facts.software.driver,
        fix="update the driver of those that differ, and reboot them",
        source="imbue-ai/cluster-health; GCM; NCCL issue 1328",
        explanation="Another driver has other clocks, other faults, and another version of the fabric manager.",
        where="NVML, /proc/driver/nvidia/version",
    ),
    Agreement(
        "CON-PLUGINS",
        "fail",
        "NCCL's plugins",
        _plugins,
        fix="install the plugin on all nodes, or take it away from all (NCCL_NET_PLUGIN=none)",
        source="NCCL issue 1634",
        explanation="With a network plugin on some nodes only, ranks choose different networks and wait for each "
        "other.",
        where="libnccl-net*.so and the like where loaders look",
        missing_counts=True,
    ),
    Agreement(
        "CON-TRANSPORTS",
        "warn",
        "libfabric and UCX",
        _transports,
        fix="install the same release on all nodes",
        source="AWS's health check (fi_info); cluster-health-scanner's configcheck",
        explanation="Libraries below MPI and NCCL's plugins; releases differ in defaults and in what they negotiate.",
        where="pkg-config's files",
    ),
    Agreement(
        "CON-OFED",
        "warn",
        "OFED",
        lambda facts: facts.software.ofed,
        fix="install the same release on all nodes, and reboot them",
        source="imbue-ai/cluster-health",
        explanation="The drivers of InfiniBand and RoCE NICs; releases differ in congestion control and in firmware "
        "needs.",
        where="ofed_info",
    ),
    Agreement(
        "CON-ENV-NCCL",
        "fail",
        "environment",
        lambda facts: _environment(facts, of_nccl=True),
        fix="export it for all ranks: mpirun -x NAME, srun --export=ALL, the launcher's own option",
        source="NCCL issues 1328 and 876; cluster-health-scanner's configcheck",
        explanation="Ranks must meet at one place and choose alike: algorithm, protocol, channels, transports, "
        "interfaces. Set on some ranks only, a variable of NCCL, gloo or the rendezvous makes the job hang or "
        "crawl. Variables that differ on the same ranks are told in one finding. Names that are each rank's own, "
        "such as NCCL_DEBUG_FILE, are left out.",
        where="environment",
        of="rank",
        missing_counts=True,
        by_minority=True,
    ),
    Agreement(
        "CON-ENV",
        "warn",
        "environment",
        lambda facts: _environment(facts, of_nccl=False),
        fix="export it for all ranks: mpirun -x NAME, srun --export=ALL, the launcher's own option",
        source="cluster-health-scanner's configcheck",
        explanation="The same for variables of torch, UCX, libfabric, OpenMP and the loader. Names that are "
        "each rank's own, such as LOCAL_RANK and CUDA_VISIBLE_DEVICES, are left out.",
        where="environment",
        of="rank",
        missing_counts=True,
        by_minority=True,
    ),
    Agreement(
        "CON-CONF",
        "fail",
        "NCCL's conf files",
        _conf,
        fix="copy the file to all nodes, or remove it from all",
        source="NCCL's environment guide: /etc/nccl.conf, ~/.nccl.conf, NCCL_CONF_FILE",
        explanation="Lines in these files are as good as variables, and nobody sees them in the environment.",
        where="nccl.conf",
        of="rank",
        missing_counts=True,
    ),
    Agreement(
        "CON-SAME",
        "fail",
        "file",
        lambda facts: facts.hashes or None,
        fix="copy the file again, or put it on a file system that all nodes share",
        source="--same PATH: a training script, a lock file, a container's image",
        explanation="Hashes of the files that --same names. A script that differs on one node hangs in a collective "
        "that the others do not call.",
        where="SHA-256",
        missing_counts=True,
        by_minority=True,
    ),
)
for _agreement in _AGREEMENTS:
    declare(_agreement)
