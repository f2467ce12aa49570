"""The real CuPy against the stand-in, name by name: what the engine's tests prove is proven of calls that CuPy takes.

Needs CuPy with libnccl, and no GPU. `scripts/check_cupy` tries releases that are not installed here.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import commbench.engines
from commbench.plan.groups import Group
from tests.cupy_standin import make_cupy
from tests.unit.boards import MemoryBoard

pytestmark = pytest.mark.gpu  # or at least the library for one: where it is missing, a skip is no failure

_STREAM, _EVENT, _NCCL = "cuda.Stream", "cuda.Event", "cuda.nccl"
_COMMUNICATOR = f"{_NCCL}.NcclCommunicator"
# What the engine calls, by its name below the module cupy.
CALLS = (
    "zeros", "ndarray.get", "ndarray.set", "cuda.Device", "cuda.Device.use", "cuda.get_elapsed_time",
    "cuda.Graph.launch", *(f"{_STREAM}.{name}" for name in ("__init__", "__enter__", "__exit__", "synchronize")),
    *(f"{_STREAM}.{name}" for name in ("begin_capture", "end_capture")),
    *(f"{_EVENT}.{name}" for name in ("__init__", "record", "synchronize")),
    *(f"cuda.runtime.{name}" for name in ("memGetInfo", "getDeviceCount", "deviceGetPCIBusId", "deviceSynchronize")),
    *(f"{_NCCL}.{name}" for name in ("groupStart", "groupEnd", "get_version", "get_unique_id", "NcclCommunicator")),
    *(f"{_COMMUNICATOR}.{name}" for name in ("allReduce", "allGather", "reduceScatter", "broadcast", "reduce")),
    *(f"{_COMMUNICATOR}.{name}" for name in ("send", "recv", "destroy")),
)  # fmt: skip
# What else it uses; the tests below look at each.
VALUES = {
    "__version__", "matmul", "ndarray.data.ptr", f"{_STREAM}.ptr", f"{_NCCL}.available", f"{_NCCL}.NcclError",
    "cuda.runtime.CUDARuntimeError",
}  # fmt: skip
BY_NAME = {"non_blocking", "stream", "dtype"}  # arguments that the engine gives by their names, but to NCCL
OWNERS = {
    "cupy": "", "nccl": _NCCL, "communicator": _COMMUNICATOR, "stream": _STREAM, "_stream": _STREAM,
    "graph": "cuda.Graph", "_first": _EVENT, "_last": _EVENT, "memory": "ndarray",
}  # fmt: skip


@pytest.fixture(scope="module")
def cupy() -> ModuleType:
    if find_spec("cupy") is None:
        pytest.skip("CuPy is not installed: scripts/check_cupy tries it without")
    import cupy
    import cupy.cuda.nccl  # which is no part of cupy before somebody loads it

    return cupy


@pytest.fixture
def standin(cupy: ModuleType) -> ModuleType:
    return make_cupy(gpus=1, version=cupy.__version__)[0]["cupy"]


def test_every_name_that_the_engine_uses_is_held_here() -> None:
    used = set()
    for path in Path(commbench.engines.__path__[0]).glob("cupy_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            owner, _, name = ast.unparse(node).rpartition(".") if isinstance(node, ast.Attribute) else ("", "", "")
            used |= set(_below(f"{owner}.{name}"))
    longest = {name for name in used if not any(other.startswith(f"{name}.") for other in used)}
    assert longest - {"__version__.partition"} <= {*CALLS, *VALUES}
    assert len(longest) > 25


def _below(chain: str) -> Iterator[str]:
    """`self._stream.ptr` is `cuda.Stream.ptr`."""
    found = re.search(rf"(?:^|\.)({'|'.join(OWNERS)})\.([\w.]+)$", chain)
    if found:
        yield f"{OWNERS[found[1]]}.{found[2]}".lstrip(".")


@pytest.mark.parametrize("name", CALLS)
def test_cupy_takes_the_arguments_that_the_stand_in_takes(name: str, cupy: ModuleType, standin: ModuleType) -> None:
    ours = [one.name for one in inspect.signature(attrgetter(name)(standin)).parameters.values() if one.name != "self"]
    theirs = signature(attrgetter(name)(cupy))
    by_name = set() if name.startswith(_NCCL) else BY_NAME & set(ours)
    in_order = [each for each in ours if each not in by_name]
    theirs.bind(*in_order, **dict.fromkeys(by_name))
    for place, each in zip(theirs.parameters, in_order, strict=False):  # a root where an operator is expected, say
        assert each == place or each not in theirs.parameters


def signature(of: Any) -> inspect.Signature:
    """Of a call, without `self`. Cython writes it into the first line of a docstring, and inspect knows the others."""
    head = re.match(r"[\w.]+\((.*)\)", of.__doc__ or "")
    if head is None:
        return inspect.signature(of)
    parts = [part.strip() for part in head[1].split(",") if part.strip() not in ("", "self")]
    return inspect.Signature([_parameter(part) for part in parts])


def _parameter(part: str) -> inspect.Parameter:
    """Of `int peer`, `stream=None` or `*args`."""
    declared, _, default = part.partition("=")
    name = declared.split()[-1]
    if name.startswith("*"):
        return inspect.Parameter(name.lstrip("*"), inspect.Parameter.VAR_POSITIONAL)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default or inspect.Parameter.empty)


def test_a_unique_id_is_of_the_same_kind_and_no_other_is_taken(cupy: ModuleType, standin: ModuleType) -> None:
    real, ours = cupy.cuda.nccl, standin.cuda.nccl
    given = real.get_unique_id()
    assert (type(given), len(given)) == (type(ours.get_unique_id()), 128)
    for wrong in ([*given], tuple(given) if isinstance(given, bytes) else bytes(128), given[:127]):
        refusals = []
        for module in (real, ours):
            with pytest.raises((TypeError, ValueError, AssertionError)) as refused:
                module.NcclCommunicator(1, wrong, 0)
            refusals.append((refused.type, str(refused.value)))
        assert refusals[0] == refusals[1]


def test_values_and_errors_are_there(cupy: ModuleType) -> None:
    assert cupy.cuda.nccl.available
    assert int(cupy.cuda.nccl.get_version()) >= 20_000
    assert cupy.cuda.Stream.null.ptr == 0
    assert hasattr(cupy.ndarray, "data")
    assert hasattr(cupy.cuda.MemoryPointer, "ptr")
    assert callable(cupy.matmul)
    assert issubclass(cupy.cuda.nccl.NcclError, Exception)
    assert issubclass(cupy.cuda.runtime.CUDARuntimeError, Exception)


def test_without_a_gpu_a_group_ends_in_an_error_of_nccls_and_the_engine_in_a_sentence(cupy: ModuleType) -> None:
    from commbench.engines.cupy_nccl import CupyEngine, visible_gpus
    from commbench.engines.meetings import Meetings
    from commbench.errors import UsageError

    if _has_gpu(cupy):
        pytest.skip("there is a GPU: scripts/gpu_check runs the engine on it")
    with pytest.raises(UsageError, match="engine cupy needs a GPU"):
        visible_gpus()
    engine = object.__new__(CupyEngine)  # the rest of it needs a GPU
    engine.ranks, engine._communicators, engine._meetings = (0,), {}, Meetings(MemoryBoard(), 0, 1, None)
    with pytest.raises(cupy.cuda.nccl.NcclError, match="CUDA"):
        engine.create_group(Group("all", (0,)))


def _has_gpu(cupy: ModuleType) -> bool:
    try:
        return bool(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False
