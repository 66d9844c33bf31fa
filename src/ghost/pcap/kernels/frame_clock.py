"""When a frame was captured: every n-th time is kept, and n doubles when a capture outgrows the table.

Rules name frames; people compare times. Up to `MOST` frames the answer is exact, beyond that it is the time of the
nearest kept frame before it. Memory does not grow with packets.
"""

from __future__ import annotations

import numpy as np

from ghost.pcap.array_types import Array

MOST = 1 << 17
"""Times kept: 1 MB."""


class FrameClock:
    """Times of frames, which count from 1."""

    def __init__(self) -> None:
        self._times: Array = np.zeros(1024, np.int64)
        self._kept = self._seen = 0
        self._every = 1

    def take(self, times: Array) -> None:
        """Keep what is wanted of the next frames' times, ns since 1970."""
        kept = times[-self._seen % self._every :: self._every]
        self._seen += len(times)
        if self._kept + len(kept) > len(self._times):
            room = np.zeros(max(2 * len(self._times), self._kept + len(kept)), np.int64)
            room[: self._kept] = self._times[: self._kept]
            self._times = room
        self._times[self._kept : self._kept + len(kept)] = kept
        self._kept += len(kept)
        while self._kept > MOST:
            half = self._times[: self._kept : 2].copy()
            self._times, self._kept, self._every = half, len(half), 2 * self._every

    def at(self, frame: int) -> int:
        """Return the time of a frame, ns since 1970. Raises ValueError for a frame that was not taken."""
        if not 1 <= frame <= self._seen:
            raise ValueError(f"frame {frame}: the capture has {self._seen}")
        return int(self._times[(frame - 1) // self._every])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FrameClock)
            and (self._seen, self._every) == (other._seen, other._every)
            and bool((self._times[: self._kept] == other._times[: other._kept]).all())
        )

    __hash__ = None  # type: ignore[assignment]
