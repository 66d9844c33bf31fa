"""Follows TCP streams: owns the state that the kernel updates batch by batch."""

from __future__ import annotations

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Kernel, PacketRows, Vector
from ghost.pcap.sample_statistics import Samples
from ghost.pcap.tcp import state_machine
from ghost.pcap.tcp.evidence_frames import Evidence
from ghost.pcap.tcp.stream_state import StreamState
from ghost.pcap.tcp.stream_table import place_streams

_EVENT_LOG = 4096
_SAMPLE_LOG = 65536


class Streams:
    """Follows batches of rows; `state` is the result."""

    def __init__(
        self, vector: Vector, kernels: Kernel, seed: int = 0, *, streams: int = 256, segments: int = 4096
    ) -> None:
        self._vector, self._kernels = vector, kernels
        self._slots = np.zeros(_slots_for(streams), np.int64)
        self._streams = np.zeros(streams * L.STREAM, np.int64)
        self._sides = np.zeros(streams * 2 * L.SIDE, np.int64)
        self._pool = np.zeros(segments * L.SEGMENT, np.int64)
        self._events = np.zeros(_EVENT_LOG * 3, np.int64)
        self._sample_log = np.zeros(_SAMPLE_LOG, np.int64)
        self._counts = np.zeros(L.COUNTERS, np.int64)
        self._counts[L.N_STREAM_CAPACITY] = streams
        self._counts[L.N_POOL_CAPACITY] = segments
        self._counts[L.N_EVENT_CAPACITY] = _EVENT_LOG
        self._counts[L.N_SAMPLE_CAPACITY] = _SAMPLE_LOG
        self._counts[L.N_FREE] = -1
        self._counts[L.N_SEED] = seed
        self._samples, self._evidence = Samples(), Evidence()

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def __len__(self) -> int:
        return int(self._counts[L.N_STREAMS])

    def follow(self, rows: PacketRows, count: int) -> None:
        done = 0
        while True:
            done = self._kernels(state_machine.track)(rows, done, count, *map(self._vector, self.arrays()))
            if done >= count:
                return
            self.make_room()

    def arrays(self) -> tuple[Array, ...]:
        """The state, in the order in which `track` takes it."""
        return (
            self._slots, self._streams, self._sides, self._pool, self._events, self._sample_log, self._counts,
        )  # fmt: skip

    def make_room(self) -> None:
        """Empty the logs that the kernel filled, and grow full tables."""
        self._drain()
        self._grow()

    def state(self) -> StreamState:
        """Return the final state; no packet may follow."""
        self._drain()
        done = 0
        while done < len(self) * 2:
            done = self._kernels(state_machine.finish)(
                *map(self._vector, (self._sides, self._pool, self._events, self._counts)), done
            )
            self._drain()
        count = len(self)
        return StreamState(
            self._streams[: count * L.STREAM].reshape(count, L.STREAM),
            self._sides[: count * 2 * L.SIDE].reshape(count, 2, L.SIDE),
            self._evidence,
            self._samples,
        )

    def _drain(self) -> None:
        logged = int(self._counts[L.N_EVENTS])
        if logged:
            self._evidence.add(*self._events[: logged * 3].reshape(-1, 3).T)
            self._counts[L.N_EVENTS] = 0
        sampled = int(self._counts[L.N_SAMPLES])
        if sampled:
            self._samples.take(self._sample_log[:sampled])
            self._counts[L.N_SAMPLES] = 0

    def _grow(self) -> None:
        if self._counts[L.N_STREAMS] >= self._counts[L.N_STREAM_CAPACITY]:
            self._counts[L.N_STREAM_CAPACITY] *= 2
            self._streams, self._sides = _doubled(self._streams), _doubled(self._sides)
            self._slots = np.zeros(_slots_for(int(self._counts[L.N_STREAM_CAPACITY])), np.int64)
            self._kernels(place_streams)(*map(self._vector, (self._slots, self._streams, self._counts)))
        free = self._counts[L.N_POOL_CAPACITY] - self._counts[L.N_POOL] + self._counts[L.N_FREE_COUNT]
        if free < 64:
            self._counts[L.N_POOL_CAPACITY] *= 2
            self._pool = _doubled(self._pool)


def _slots_for(streams: int) -> int:
    return 1 << (streams * 2 - 1).bit_length()


def _doubled(array: Array) -> Array:
    """Return an array of twice the length; unwritten memory is not allocated."""
    grown = np.zeros(2 * len(array), array.dtype)
    grown[: len(array)] = array
    return grown
