"""Takes the luck out of glibc's heap.

gloo makes a copy of the data in all_gather, reduce_scatter and gather, at every call. Whether the copy's pages are
there already or are mapped and zeroed anew decides its time by a factor of two to three, and depends on thresholds that
glibc moves by what the process freed before, and on which thread frees last. Pinned is the state that a long-running
process comes to: blocks up to 32 MiB, the most that glibc's own threshold grows to, come from one heap that is not
trimmed.
"""

import ctypes

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MAX_INT = (1 << 31) - 1
_SETTINGS = ((_M_ARENA_MAX, 1), (_M_MMAP_THRESHOLD, 32 << 20), (_M_TRIM_THRESHOLD, _MAX_INT))


def steady_heap() -> bool:
    """Pin glibc's thresholds in this process; False where the C library is another. Call before threads are started."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(*setting) == 1 for setting in _SETTINGS)
