"""NCCL's files of settings under a root, and whether the files that variables name can be read.

NCCL reads the file of NCCL_CONF_FILE (since 2.23), else ~/.nccl.conf, and then /etc/nccl.conf, and takes each line's
text up to the first `=`, spaces and all, as a name. What is set already stays: the shell wins, then the first file.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from commbench.machine.facts import ConfFile
from commbench.machine.variables import is_checked

SYSTEM_FILE = "/etc/nccl.conf"
# Variables whose file must be there before the start.
FILE_VARIABLES = ("NCCL_CONF_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
_MAX_NCHARS, _MAX_LINES = 1 << 20, 1000


def read_conf_files(root: Path, environment: Mapping[str, str] = os.environ) -> tuple[ConfFile, ...]:
    """The files that NCCL would read below `root`, the one that wins first; only lines that the checks may see."""
    home = environment.get("HOME")
    named = environment.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else "")
    texts = {path: _text(root, path) for path in (named, SYSTEM_FILE) if path}
    return tuple(ConfFile(path, _settings(text)) for path, text in texts.items() if text is not None)


def read_named_files(root: Path, environment: Mapping[str, str] = os.environ) -> dict[str, bool]:
    """The files that variables and the files of settings name, and whether this process can read each."""
    pairs = [parse_line(line) for file in read_conf_files(root, environment) for line in file.lines]
    set_there = dict(pair for pair in reversed(pairs) if pair is not None)
    paths = (environment.get(name, set_there.get(name, "")) for name in FILE_VARIABLES)
    return {path: _text(root, path, nchars=1) is not None for path in paths if path}


def parse_line(line: str) -> tuple[str, str] | None:
    """The name and value that NCCL takes from a line, untouched; None for a comment and a line without `=`."""
    name, equals, value = line.partition("=")
    return (name, value) if equals and not line.startswith("#") else None


def _settings(text: str) -> tuple[str, ...]:
    lines = (line.removesuffix("\r") for line in text.split("\n")[:_MAX_LINES] if parse_line(line))
    return tuple(line for line in lines if is_checked(line.partition("=")[0].split("export ")[-1].strip()))


def _text(root: Path, path: str, nchars: int = _MAX_NCHARS) -> str | None:
    try:
        with _below(root, path).open(errors="replace") as file:
            return file.read(nchars)
    except (OSError, ValueError):
        return None


def _below(root: Path, path: str) -> Path:
    """An absolute path below `root`; a relative one is the process's own, and NCCL does not expand ~."""
    return root / path.lstrip("/") if path.startswith("/") else Path(path)
