"""How ranks become a communicator of NCCL's under CuPy, which has changed its mind about what an id is.

CuPy 13 gives the unique id as a tuple of signed numbers and takes nothing else; 14 gives and takes bytes.
"""

from typing import Any

import cupy
from cupy.cuda import nccl

_ID_IS_BYTES = int(cupy.__version__.partition(".")[0]) >= 14


def new_meeting_point() -> str:
    """A unique id of NCCL's, for one communicator, as a text for the others."""
    return bytes(number & 0xFF for number in nccl.get_unique_id()).hex()


def connect(size: int, meeting_point: str, me: int) -> Any:
    """The communicator of the `size` ranks that come to `meeting_point`, as the one with index `me`. Waits for all."""
    raw = bytes.fromhex(meeting_point)
    return nccl.NcclCommunicator(size, raw if _ID_IS_BYTES else tuple(memoryview(raw).cast("b")), me)
