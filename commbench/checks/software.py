"""SW: versions that do not fit each other, and more than one of what there should be one."""

import re
from collections.abc import Iterator

from commbench.checks.devices import NO_GPU, unseen
from commbench.checks.registry import Scene, Seen, fail, ok, rule, skip, warn
from commbench.machine.facts import Facts

# CUDA's compatibility guide: the oldest driver of each major version; newer drivers run older programs.
_OLDEST_DRIVER = {11: 450, 12: 525, 13: 580}
_EFA = "efa"
_WHERE_PACKAGES = "the metadata of Python packages"


@rule(
    "SW-NCCL",
    "warn",
    summary="there is one version of libnccl",
    fix="take the others out of LD_LIBRARY_PATH and LD_PRELOAD, or uninstall them; torch brings its own",
    source="NCCL issues 626, 354 and 394",
)
def check_one_nccl(scene: Scene) -> Iterator[Seen]:
    """Which of several a program loads depends on LD_LIBRARY_PATH, and so on the node and on how it was started.

    Compared are the libraries that can be found, the one that really loads, and the Python package that torch uses.
    """
    software, where = scene.facts.software, "libnccl.so.2 where loaders look, and Python packages"
    if software.nccl is None:
        yield unseen(scene, "software.nccl", "libnccl", where)
        return
    found = {path: version for path, version in software.nccl.items() if version}
    package = {name: version for name, version in software.packages.items() if _is_nccl(name)}
    loadable = {"what loads": software.nccl_loadable} if software.nccl_loadable[:1].isdigit() else {}
    versions = {_release(version) for version in (*found.values(), *package.values(), *loadable.values())}
    observed = ", ".join(f"{version} ({source})" for source, version in (found | package | loadable).items())
    if not software.nccl and not versions:
        yield skip("libnccl", "not installed", where)
    elif not versions:
        yield unseen(scene, "software.nccl", "libnccl", where)
    elif len(versions) > 1:
        yield warn("libnccl", observed, "one version", where)
    else:
        yield ok("libnccl", observed, where=where)


def _is_nccl(package: str) -> bool:
    return re.fullmatch(r"nvidia[-_]nccl[-_]cu\d{2}", package) is not None


def _release(version: str) -> str:
    """2.21.5 of `2.21.5`, `2.21.5+cuda12.4` or `2.21.5-1`."""
    match = re.match(r"\d{1,4}(?:\.\d{1,4}){1,2}", version)
    return match[0] if match else version


@rule(
    "SW-NCCL-LOADS",
    "fail",
    summary="libnccl loads",
    fix="ldd on the file says what it misses; reinstall it, or repair LD_LIBRARY_PATH",
    source="dlopen's manual",
)
def check_nccl_loads(scene: Scene) -> Iterator[Seen]:
    """A file that is there and does not load: another architecture, a cut-off download, a missing dependency."""
    software, where = scene.facts.software, "libnccl.so.2"
    if software.nccl is None:
        yield unseen(scene, "software.nccl", "libnccl", where)
    elif not software.nccl:
        missing = bool(scene.facts.gpus) and not any(name == "torch" for name in software.packages)
        yield skip("libnccl", "not installed" + (", nor is torch" if missing else ""), where)
    elif not software.nccl_loadable:
        yield unseen(scene, "software.nccl_loadable", "libnccl", where)
    elif software.nccl_loadable[0].isdigit():
        yield ok("libnccl", f"{software.nccl_loadable} loads", where=where)
    else:
        yield fail("libnccl", software.nccl_loadable, "a library that loads", where)


@rule(
    "SW-NCCL-PACKAGES",
    "fail",
    summary="Python has one package of NCCL",
    fix="pip uninstall both, then reinstall the one that torch requires",
    source="the wheels of nvidia-nccl-cu11, -cu12 and -cu13: all of them write nvidia/nccl/lib/libnccl.so.2",
)
def check_nccl_packages(scene: Scene) -> Iterator[Seen]:
    """The packages for different CUDA versions write the same file: the one that came last wins.

    torch then finds a libnccl of another CUDA version than its own.
    """
    packages = {name: version for name, version in scene.facts.software.packages.items() if _is_nccl(name)}
    observed = ", ".join(f"{name} {version}" for name, version in sorted(packages.items()))
    if not scene.facts.software.packages:
        yield unseen(scene, "software.packages", "Python packages", _WHERE_PACKAGES)
    elif len(packages) > 1:
        yield fail("Python packages", observed, "one", _WHERE_PACKAGES)
    elif packages:
        yield ok("Python packages", observed, where=_WHERE_PACKAGES)
    else:
        yield skip("Python packages", "none of NCCL", _WHERE_PACKAGES)


@rule(
    "SW-PRELOAD",
    "warn",
    summary="LD_PRELOAD is not set",
    fix="unset LD_PRELOAD, unless it is meant",
    source="NCCL issue 354; ld.so's manual",
)
def check_preload(scene: Scene) -> Iterator[Seen]:
    """A library that is preloaded replaces functions of every program, libnccl's among them.

    Profilers, memory allocators and images of clouds set it, and it is easily forgotten.
    """
    preload, where = scene.facts.software.preload, "LD_PRELOAD"
    if preload:
        yield warn("LD_PRELOAD", preload, "not set", where)
    elif scene.facts.source != "/" and not scene.facts.variables:
        yield skip("LD_PRELOAD", "a captured tree has no environment", where)
    else:
        yield ok("LD_PRELOAD", "not set", where=where)


def _torch_cuda(facts: Facts) -> int | None:
    """The CUDA major version that torch was built for, else that of the toolkit; None if it is not said."""
    match = re.match(r"\d{2}", facts.software.cuda) or re.search(
        r"(?<=\+cu)\d{2}", facts.software.packages.get("torch", "")
    )
    return int(match[0]) if match else None


@rule(
    "SW-DRIVER",
    "fail",
    summary="the driver is new enough for the CUDA version of torch",
    fix="update the driver, or install a torch that was built for an older CUDA",
    source="NVIDIA's CUDA compatibility guide",
)
def check_driver_version(scene: Scene) -> Iterator[Seen]:
    """`CUDA driver version is insufficient for CUDA runtime version`: torch then says that there is no GPU."""
    software, where = scene.facts.software, f"NVML, {_WHERE_PACKAGES}"
    cuda = _torch_cuda(scene.facts)
    driver = re.match(r"\d{3}", software.driver)
    if not scene.facts.gpus:
        yield skip("driver", NO_GPU, where) if scene.facts.gpus == () else unseen(scene, "gpus", "driver", where)
    elif driver is None:
        yield unseen(scene, "software.driver", where=where)
    elif cuda not in _OLDEST_DRIVER:
        yield skip("driver", f"{software.driver}; which CUDA version torch was built for is not known", where)
    elif int(driver[0]) < _OLDEST_DRIVER[cuda]:
        yield fail("driver", f"{software.driver}, for CUDA {cuda}", f"{_OLDEST_DRIVER[cuda]} or newer", where)
    else:
        yield ok("driver", f"{software.driver}, for CUDA {cuda}", where=where)


@rule(
    "SW-TORCH",
    "fail",
    summary="torch was built for GPUs where there are GPUs",
    fix="pip install torch from the index of the right CUDA version",
    source="PyTorch's installation guide",
)
def check_torch(scene: Scene) -> Iterator[Seen]:
    """A torch of the `+cpu` kind sees no GPU and has no NCCL. It is what some mirrors and lock files give."""
    version = scene.facts.software.packages.get("torch", "")
    if not scene.facts.gpus:
        reason = skip("torch", NO_GPU, _WHERE_PACKAGES)
        yield reason if scene.facts.gpus == () else unseen(scene, "gpus", "torch", _WHERE_PACKAGES)
    elif not version:
        yield skip("torch", "not installed, or not seen", _WHERE_PACKAGES)
    elif version.endswith("+cpu"):
        yield fail("torch", version, "a build for CUDA or ROCm", _WHERE_PACKAGES)
    else:
        yield ok("torch", version, where=_WHERE_PACKAGES)


@rule(
    "SW-EFA",
    "fail",
    summary="NCCL has its plugin for EFA where there are EFA devices",
    fix="install aws-ofi-nccl and libfabric (the EFA installer), and put libnccl-net.so into LD_LIBRARY_PATH",
    source="AWS's health check (fi_info -p efa); aws-ofi-nccl's guide",
)
def check_efa(scene: Scene) -> Iterator[Seen]:
    """NCCL itself knows InfiniBand and sockets. EFA needs the plugin libnccl-net.so, which needs libfabric.

    Without it NCCL goes over sockets, at a twentieth of the rate, and says so only in its log.
    """
    facts, where = scene.facts, "libnccl-net*.so, libfabric"
    if facts.rdma is None:
        yield unseen(scene, "rdma", "EFA", where)
    elif not any(device.driver == _EFA for device in facts.rdma):
        yield skip("EFA", "no EFA device here", where)
    elif facts.software.nccl_plugins is None:
        yield unseen(scene, "software.nccl_plugins", "EFA", where)
    elif not facts.software.nccl_plugins:
        yield fail("EFA", "no plugin of NCCL", "libnccl-net.so of aws-ofi-nccl", where)
    elif not facts.software.libfabric:
        yield fail("EFA", "a plugin, but no libfabric", "libfabric", where)
    else:
        observed = f"{', '.join(facts.software.nccl_plugins)}, libfabric {facts.software.libfabric}"
        yield ok("EFA", observed, where=where)
