"""Who moves the bytes. Engines are found by name and loaded only when they are used."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from commbench.errors import UsageError, unknown_name


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One row of the table of engines: where its factory is, and which package it needs beside ours."""

    factory: str
    needs: str = ""
    install: str = ""


ENGINES: dict[str, EngineEntry] = {
    "torch": EngineEntry("commbench.engines.torch_dist:open_engine", "torch", "pip install 'torch>=2.4'"),
    "cupy": EngineEntry("commbench.engines.cupy_nccl:open_engine", "cupy", "pip install cupy-cuda12x"),
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
    """The factory of the engine `name`. Raises UsageError as `check_engine` does."""
    module, _, factory = check_engine(name).factory.partition(":")
    loaded: Callable[..., Any] = getattr(import_module(module), factory)
    return loaded
