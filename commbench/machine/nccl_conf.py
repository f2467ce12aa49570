"""NCCL's files of settings under a root, and whether the files that variables name can be read.

NCCL reads the file of NCCL_CONF_FILE (since 2.23), else ~/.nccl.conf, and then /etc/nccl.conf, and takes each line's
text up to the first `=`, spaces and all, as a name. What is set already stays: the shell wins, then the first file.
"""

import os
from collections.abc import Mapping

from commbench.machine.facts import ConfFile
from commbench.machine.software import is_kept
from commbench.machine.tree import Tree

SYSTEM_FILE = "/etc/nccl.conf"
# Variables whose file must be there before the start.
FILE_VARIABLES = ("NCCL_CONF_FILE", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE")
_MAX_LINES, _MAX_LINE = 1000, 400


def read_conf_files(tree: Tree, environment: Mapping[str, str]) -> tuple[ConfFile, ...]:
    """The files that NCCL would read, the one that wins first; only lines that the checks may see."""
    home = environment.get("HOME")
    named = environment.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else "")
    texts = {path: tree.text(_below(tree, path)) for path in (named, SYSTEM_FILE) if path}
    return tuple(ConfFile(path, _settings(text)) for path, text in texts.items() if text is not None)


def read_named_files(tree: Tree, environment: Mapping[str, str], conf_files: tuple[ConfFile, ...]) -> dict[str, bool]:
    """The files that variables and the files of settings name, and whether this process can read each."""
    pairs = [pair for file in conf_files for line in file.lines if (pair := parse_line(line))]
    in_files = dict(reversed(pairs))  # the first one wins
    paths = (environment.get(name, in_files.get(name, "")) for name in FILE_VARIABLES)
    return {path: tree.read_bytes(_below(tree, path), limit=1) is not None for path in paths if path}


def parse_line(line: str) -> tuple[str, str] | None:
    """The name and value that NCCL takes from a line, untouched; None for a comment and a line without `=`."""
    name, equals, value = line.partition("=")
    return (name, value) if equals and not line.startswith("#") else None


def _settings(text: str) -> tuple[str, ...]:
    lines = [line.removesuffix("\r") for line in text.split("\n")[:_MAX_LINES]]
    return tuple(line[:_MAX_LINE] for line in lines if parse_line(line) and _is_seen(line))


def _is_seen(line: str) -> bool:
    """Whether the checks may see a line: it prints, and sets one of their variables, as it was meant."""
    meant = line.partition("=")[0].split("export ")[-1].strip()
    return line.replace("\t", " ").isprintable() and is_kept(meant)


def _below(tree: Tree, path: str) -> str:
    """A path from the root on. A relative one is the process's own; NCCL does not expand ~."""
    return (os.path.abspath(path) if tree.is_live and "\0" not in path else path).lstrip("/")
