"""Which libraries move the bytes here, and their versions: read from files, not from loaded libraries."""

import re
import sys
from collections.abc import Mapping
from platform import python_version

from commbench.machine.facts import SoftwareFacts
from commbench.machine.nccl_loaded import NCCL_NAME, ask_nccl_version
from commbench.machine.nccl_names import names_in, read_only_data
from commbench.machine.tree import Tree, fields_of

_PACKAGES = (
    *("commbench", "torch", "numpy", "cupy-cuda12x", "cupy-cuda13x", "nvidia-ml-py", "deepspeed", "megatron-core"),
    *("mpi4py", "nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13"),
)
_WHEEL = "nvidia/nccl/lib"  # below site-packages; torch's run path leads there before any other
_LIBRARY_FOLDERS = (
    *("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"),
    *("usr/local/cuda/lib64", "usr/local/nccl/lib", "opt/nccl/build/lib", "opt/amazon/ofi-nccl/lib", "opt/rocm/lib"),
)
_PLUGIN = re.compile(r"lib(?:nccl|rccl)-(?:net|tuner|profiler|env)[\w-]{0,40}\.so(?:\.\d{1,3}){0,4}", re.ASCII)
_NCCL_VERSION = re.compile(rb"(?:NCCL|RCCL) version (\d{1,3}\.\d{1,3}\.\d{1,3}(?:\+(?:cuda|hip)[\d.]{1,12})?)")
_IN_CACHE = re.compile(rb"/[!-~]{1,300}/lib[nr]ccl[!-~]{0,80}")
_MAX_FILES = 64
_PKGCONFIG = (
    *("usr/lib/x86_64-linux-gnu/pkgconfig", "usr/lib/aarch64-linux-gnu/pkgconfig", "usr/lib64/pkgconfig"),
    *("usr/lib/pkgconfig", "usr/local/lib/pkgconfig", "opt/amazon/efa/lib64/pkgconfig", "opt/amazon/efa/lib/pkgconfig"),
    *("opt/ucx/lib/pkgconfig", "opt/hpcx/ucx/lib/pkgconfig", "opt/mellanox/ucx/lib/pkgconfig"),
)
_UNITS = ("usr/lib/systemd/system", "lib/systemd/system", "etc/systemd/system")
_SLICES = ("sys/fs/cgroup/system.slice", "sys/fs/cgroup/systemd/system.slice")


def read_software(tree: Tree, environment: Mapping[str, str], driver: str = "", *, has_gpus: bool) -> SoftwareFacts:
    """The versions. Packages and the wheel's libraries are this interpreter's, so a captured tree has none of them.

    `driver`: as the GPUs say; where `has_gpus`, the first libnccl is loaded.
    """
    libraries, plugins = _find_libraries(tree, environment)
    texts = {path: read_only_data(tree, path) for path in libraries}
    nccl = {path: found for path, text in texts.items() if (found := nccl_version(text))}
    if not tree.is_live:
        tree.say_unseen("software.packages", "a captured tree has no interpreter")
    can_load = tree.is_live and has_gpus and bool(nccl)
    if not can_load:
        tree.say_unseen("software.nccl_loadable", "not tried: it needs a GPU and a libnccl on this machine")
    devices = tree.names("dev/infiniband")
    return SoftwareFacts(
        python=python_version() if tree.is_live else "",
        packages=_packages(tree) if tree.is_live else {},
        driver=driver or _driver(tree),
        cuda=_cuda(tree),
        nccl={f"/{path}": found for path, found in nccl.items()},
        nccl_loadable=load_nccl(tree, next(iter(nccl))) if can_load else "",
        nccl_plugins=tuple(f"/{path}" for path in plugins),
        libfabric=_pkgconfig(tree, "libfabric"),
        ucx=_pkgconfig(tree, "ucx"),
        ofed=_ofed(tree),
        fabric_manager=_service(tree, "nvidia-fabricmanager"),
        imex=_service(tree, "nvidia-imex"),
        preload=environment.get("LD_PRELOAD", ""),
        # The library that is found first is the one that loads.
        nccl_names=next((tuple(sorted(names_in(texts[path]))) for path in nccl), None),
        infiniband_devices=sum(name.startswith("uverbs") for name in devices or ()),
    )


def _packages(tree: Tree) -> dict[str, str]:
    """Versions as the names of the folders of metadata have them, of each package the first on the path."""
    wanted = {name.replace("-", "_"): name for name in _PACKAGES}
    found: dict[str, str] = {}
    for folder in sys.path:
        for entry in tree.names(folder.lstrip("/")) or () if folder.startswith("/") else ():
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if entry.endswith(".dist-info") and name.lower() in wanted:
                found.setdefault(wanted[name.lower()], version)
    return found


def _find_libraries(tree: Tree, environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """NCCL's libraries and plugins, those that are found first in front, each file once."""
    wheels = [f"{folder.lstrip('/')}/{_WHEEL}" for folder in sys.path if tree.is_live and folder.startswith("/")]
    asked = [folder.lstrip("/") for folder in environment.get("LD_LIBRARY_PATH", "").split(":") if folder]
    paths = [
        f"{folder}/{name}"
        for folder in dict.fromkeys((*wheels, *asked[:64], *_LIBRARY_FOLDERS))
        for library in ("libnccl", "librccl")
        for name in tree.names(folder, library) or ()
    ]
    cache = tree.read_bytes("etc/ld.so.cache", limit=8 << 20) or b""
    paths += [path.decode().lstrip("/") for path in dict.fromkeys(_IN_CACHE.findall(cache))]
    seen: dict[str, str] = {}
    for path in paths:
        seen.setdefault(tree.link(path) or path, path)
    kept = list(seen)[:_MAX_FILES]
    return (
        [path for path in kept if NCCL_NAME.fullmatch(path.rpartition("/")[2]) and tree.exists(path)],
        [path for path in kept if _PLUGIN.fullmatch(path.rpartition("/")[2]) and tree.exists(path)],
    )


def nccl_version(rodata: bytes) -> str:
    """The version that a libnccl prints, such as 2.21.5+cuda12.4, from its read-only data; empty if it has none."""
    match = _NCCL_VERSION.search(rodata)
    return match[1].decode() if match else ""


def load_nccl(tree: Tree, path: str) -> str:
    """The version that the library at `path` says once it is loaded; empty, with the reason, if it does not load.

    Where it is the first one found, it is the one that torch loads too: two of one name are not loaded together.
    """
    version, reason = ask_nccl_version(f"/{path}")
    if reason:
        tree.say_unseen("software.nccl_loadable", reason)
    return version


def _driver(tree: Tree) -> str:
    match = re.search(
        r"Kernel Module(?: for \w{1,20})? {1,4}(\d[\d.]{2,20})", tree.text("proc/driver/nvidia/version") or ""
    )
    return match[1] if match else tree.word("sys/module/nvidia/version") or tree.word("sys/module/amdgpu/version")


def _cuda(tree: Tree) -> str:
    """The CUDA version that torch is made for, else that of the toolkit."""
    for folder in sys.path if tree.is_live else ():
        text = tree.text(f"{folder.lstrip('/')}/torch/version.py") if folder.startswith("/") else None
        if text is not None:
            match = re.search(r"^cuda\b[^=\n]{0,80}= *'([\d.]{1,12})'", text, re.MULTILINE)
            return match[1] if match else ""
    match = re.search(r'"cuda"\s{0,8}:\s{0,8}\{[^{}]{0,200}"version"\s{0,8}:\s{0,8}"([\d.]{1,16})"',
                      tree.text("usr/local/cuda/version.json") or "")  # fmt: skip
    return match[1] if match else ""


def _pkgconfig(tree: Tree, name: str) -> str:
    for folder in _PKGCONFIG:
        found = fields_of(tree.text(f"{folder}/{name}.pc")).get("Version", "")
        if found:
            return found[:40]
    return ""


def _ofed(tree: Tree) -> str:
    """The release of MLNX_OFED or DOCA, which ofed_info carries in its text; else of the mlx5 module that it brings."""
    match = re.search(r"(?:MLNX_OFED_LINUX|DOCA_OFED|OFED-internal)-[\w.-]{1,40}",
                      tree.text("usr/bin/ofed_info", limit=8192) or "")  # fmt: skip
    return match[0] if match else tree.word("sys/module/mlx5_core/version")


def _service(tree: Tree, name: str) -> str:
    """`running` where a process is in the service's control group, `stopped` where it is installed only."""
    if any(tree.text(f"{folder}/{name}.service/cgroup.procs") for folder in _SLICES):
        return "running"
    return "stopped" if any(tree.exists(f"{folder}/{name}.service") for folder in _UNITS) else ""
