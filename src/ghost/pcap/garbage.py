"""Python's collector of cycles held for a while: what the engine makes has none, and looking for them among millions
of objects would take a good part of its time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing is looked for in this block; blocks may lie in each other."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
