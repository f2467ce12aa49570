"""Who moves the bytes. Engines are found by name and loaded only when they are used."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from commbench.errors import UsageError, unknown_name

# Before torch is loaded: its C++ part logs a stack for every connection that fails, which we say in a sentence.
os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One row of the table of engines: where its factory is, where its board is opened (none: there is one process
    only), and which package it needs beside ours."""

    factory: str
    board: str = ""
    needs: str = ""
    install: str = ""


ENGINES: dict[str, EngineEntry] = {
    "torch": EngineEntry(
        factory="commbench.engines.torch_dist:open_engine",
        board="commbench.engines.torch_store:open_board",
        needs="torch",
        install="pip install 'torch>=2.4'",
    ),
    "cupy": EngineEntry(
        factory="commbench.engines.cupy_nccl:open_engine",
        board="commbench.engines.tcp_store:open_board",
        needs="cupy",
        install="pip install 'commbench[cuda12]', or [cuda13]",
    ),
    "fake": EngineEntry("commbench.engines.fake:open_engine"),
}


def check_engine(name: str) -> EngineEntry:
    """The entry of `name`. Raises UsageError if it is unknown, lacks its package or is not in this version."""
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    entry = ENGINES[name]
    if entry.needs and find_spec(entry.needs) is None:
        raise UsageError(f"engine {name} needs the package {entry.needs}, which is not installed: {entry.install}.")
    if find_spec(entry.factory.partition(":")[0]) is None:
        raise UsageError(f"engine {name} is not in this version of commbench: use --engine torch.")
    return entry


def load_engine(name: str) -> Callable[..., Any]:
    """The factory of the engine `name`. Raises UsageError as `check_engine` does, and if its package does not load."""
    return _load(name, check_engine(name).factory)


def load_board(name: str) -> Callable[..., Any]:
    """What opens the board of the engine `name`. Raises UsageError as `load_engine` does."""
    return _load(name, check_engine(name).board)


def _load(name: str, place: str) -> Callable[..., Any]:
    module, _, function = place.partition(":")
    try:
        loaded: Callable[..., Any] = getattr(import_module(module), function)
    except ImportError as error:  # the package is there, and something that it needs is not
        install = ENGINES[name].install
        raise UsageError(f"engine {name} cannot be loaded: {error}; {install}, or repair it.") from error
    return loaded
