"""The NCCL (or RCCL) library itself: what its file is called, which one is loaded, what version it says."""

import ctypes
import re
from pathlib import Path

NCCL_NAME = re.compile(r"lib(?:nccl|rccl)\.so(?:\.\d{1,3}){0,4}", re.ASCII)


def loaded_nccl(maps: Path = Path("/proc/self/maps")) -> dict[str, str]:
    """`nccl` and `nccl_library`: version and path of the library that this process has loaded, whoever did it.

    Empty where it has none. It need not be the one that torch was installed with: LD_LIBRARY_PATH or LD_PRELOAD may
    have brought another.
    """
    try:
        lines = maps.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    mapped = (line.split(maxsplit=5) for line in lines if "ccl" in line)
    paths = (words[5] for words in mapped if len(words) == 6)
    path = next((path for path in paths if NCCL_NAME.fullmatch(path.rpartition("/")[2])), None)
    if path is None:
        return {}
    version, _ = ask_nccl_version(path)
    return {"nccl": version, "nccl_library": path} if version else {"nccl_library": path}


def ask_nccl_version(path: str) -> tuple[str, str]:
    """The version that the library at `path` says, which this loads, and why it said none; one of them is empty."""
    number = ctypes.c_int()
    try:
        status = ctypes.CDLL(path).ncclGetVersion(ctypes.byref(number))
    except (OSError, AttributeError) as error:
        return "", str(error)
    if status != 0:
        return "", f"ncclGetVersion of {path} returned {status}"
    return format_nccl_version(number.value), ""


def format_nccl_version(code: int) -> str:
    """`2.21.5` of NCCL's number: 2.8.4 is 2804, from 2.9 on 2.21.5 is 22105."""
    major, rest = divmod(code, 1000 if code < 10_000 else 10_000)
    return f"{major}.{rest // 100}.{rest % 100}"
