"""What becomes of memory that is no longer used.

The engine makes no cycles, and looking for them among millions of objects would take a good part of its time. And its
large arrays come and go, between which lie small objects that stay.
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
    """No cycles are looked for in this block; blocks may lie in each other."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def tune_process() -> None:
    """For a process that does nothing else: large arrays go back to the system when they are freed, and nothing is
    looked through once more at its end.

    glibc alone keeps arrays of up to 32 MB in its heap after the first was freed, where what lies above them keeps
    them from the system (mallopt(3), M_MMAP_THRESHOLD): a tenth of the engine's memory.
    """
    atexit.register(gc.freeze)
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, _LARGE)
