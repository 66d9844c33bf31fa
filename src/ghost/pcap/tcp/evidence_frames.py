"""The first frames of each kind of event of each side of a stream, as evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, SideArray

_SHIFT = np.uint64(32)


class Evidence:
    """A log of (side, kind, frame), sorted on access. An entry is one number: side and kind, then frame."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint64]] = []
        self._ordered = True

    def add(self, sides: SideArray, kinds: Array, frames: Array) -> None:
        self._parts.append(((sides * L.EVENTS + kinds).astype(np.uint64) << _SHIFT) | frames.astype(np.uint64))
        self._ordered = False

    def of(self, side: int, kind: int) -> tuple[int, ...]:
        """Return the frames, ascending."""
        log = self._log()
        key = side * L.EVENTS + kind
        start, stop = np.searchsorted(log, np.array([key << 32, (key + 1) << 32], np.uint64))
        return tuple((log[start:stop] & np.uint64(0xFFFFFFFF)).tolist())

    def first(self, kind: int, sides: int) -> Array:
        """Return int64[sides], the first frame of a kind per side; 0 if none."""
        log = self._log()
        keys = (log >> _SHIFT).astype(np.int64)
        mine = np.flatnonzero(keys % L.EVENTS == kind)[::-1]  # backwards, so that the first of a side stays
        found = np.zeros(sides, np.int64)
        found[keys[mine] // L.EVENTS] = (log[mine] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return found

    def earliest(self, kind: int, most: int) -> tuple[int, ...]:
        """Return the first frames of a kind, of any side."""
        log = self._log()
        mine = log[(log >> _SHIFT).astype(np.int64) % L.EVENTS == kind] & np.uint64(0xFFFFFFFF)
        return tuple(np.sort(mine)[:most].tolist())

    def _log(self) -> NDArray[np.uint64]:
        if not self._ordered or not self._parts:
            log = np.sort(np.concatenate([*self._parts, np.zeros(0, np.uint64)]))
            self._parts, self._ordered = [log], True
        return self._parts[0]
