"""Not a test: the command line with engine cupy, in real ranks, on the stand-in for CuPy; what they send lies in files.

RANK=0 WORLD_SIZE=2 … python -m tests.dist.on_cupy_standin sweep --engine cupy …

COMMBENCH_STANDIN_HUB names a directory that all ranks see; COMMBENCH_STANDIN_SPOILS the rank whose all_gather has a
wrong element. A rank that another launcher has started and that has loaded torch at its end says so, with exit code 77.
"""

import ctypes
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from commbench.cli import main
from commbench.launch.environment import find_place
from tests.cupy_standin import Communicator, NcclError, make_cupy

GPUS = int(os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") or "2")
SPOILS, INDEX = int(os.environ.get("COMMBENCH_STANDIN_SPOILS", "-1")), 7
LOADED_TORCH = 77
_LOOK_SECONDS = 0.0002


class FileHub:
    """Where the ranks of one communicator meet, operation by operation: each leaves a file, and reads all.

    As with NCCL nothing ends the wait for a rank that has died.
    """

    def __init__(self, size: int, raw_id: bytes) -> None:
        self.size = size
        self._folder = Path(os.environ["COMMBENCH_STANDIN_HUB"]) / raw_id.hex()[:32]
        self._folder.mkdir(exist_ok=True)

    def exchange(self, number: int, rank: int, what: tuple[str, Any]) -> list[Any]:
        unfinished = self._folder / f"{rank}.unfinished"
        with unfinished.open("wb") as file:
            np.savez(file, what=np.array(what[0]), **_to_arrays(what[1]))
        unfinished.rename(self._path(number, rank))
        given = [self._read(number, other) for other in range(self.size)]
        self._path(number - 1, rank).unlink(missing_ok=True)  # all have come here, so all have read it
        if len({name for name, _ in given}) > 1:
            raise NcclError(f"ranks call different things: {[name for name, _ in given]}")
        return [data for _, data in given]

    def _read(self, number: int, rank: int) -> tuple[str, Any]:
        path = self._path(number, rank)
        while not path.exists():
            time.sleep(_LOOK_SECONDS)
        with np.load(path, allow_pickle=False) as arrays:
            return str(arrays["what"]), _from_arrays({name: arrays[name] for name in arrays.files if name != "what"})

    def _path(self, number: int, rank: int) -> Path:
        return self._folder / f"{number}-{rank}.npz"


def _to_arrays(data: Any) -> dict[str, Any]:
    """By name: one array is `all`, what goes to a peer is `PEER.NUMBER`."""
    if isinstance(data, dict):
        return {f"{peer}.{n}": array for peer, sent in data.items() for n, array in enumerate(sent)}
    return {} if data is None else {"all": data}


def _from_arrays(arrays: dict[str, Any]) -> Any:
    if "all" in arrays:
        return arrays["all"]
    found: dict[int, list[Any]] = {}
    for name in sorted(arrays, key=lambda name: tuple(map(int, name.split(".")))):
        found.setdefault(int(name.split(".")[0]), []).append(arrays[name])
    return found


class Spoiling(Communicator):
    """Right in everything but element INDEX of what rank SPOILS gathers, which is a float32."""

    def allGather(self, sent: int, got: int, n: int, dtype: int, stream: int) -> None:
        super().allGather(sent, got, n, dtype, stream)
        if self._rank == SPOILS:
            self._nccl.gpu().put("spoil", lambda: _spoil(got), self._stream(stream))


def _spoil(address: int) -> None:
    (ctypes.c_float * (INDEX + 1)).from_address(address)[INDEX] += 1


# In the workers too, which import this module.
sys.modules.update(make_cupy(gpus=GPUS, make_hub=FileHub, communicator=Spoiling)[0])

if __name__ == "__main__":
    is_rank = find_place(os.environ) is not None  # else the launcher is ours, which is torch's
    try:
        main()
    finally:
        if is_rank and "torch" in sys.modules:
            print("torch was loaded", file=sys.stderr, flush=True)
            os._exit(LOADED_TORCH)
