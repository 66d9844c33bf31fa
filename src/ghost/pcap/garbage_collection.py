"""Settings of the garbage collector and of malloc.

The engine makes no reference cycles, and searching for them among millions of objects costs time. Its large arrays are
freed between small objects that stay.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_MMAP_THRESHOLD = -3
"""Of mallopt(3)."""
_LARGE = 1 << 20


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable cyclic garbage collection in this block; blocks may be nested."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def tune_process() -> None:
    """Tune a process that runs only the engine: large arrays return to the system when freed, and the exit skips a last
    collection. Otherwise glibc keeps arrays of up to 32 MB in its heap once one was freed (mallopt(3),
    M_MMAP_THRESHOLD): a tenth of the engine's memory."""
    atexit.register(gc.freeze)
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _LARGE)
