"""Follows TCP streams: owns the state that the kernel updates batch by batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_queries import distinct
from ghost.pcap.array_types import Array, Kernel, PacketRows, RowIndices, SideArray, Vector, interpreted_vector
from ghost.pcap.sample_statistics import Samples
from ghost.pcap.tcp import state_machine
from ghost.pcap.tcp.evidence_frames import Evidence
from ghost.pcap.tcp.packed_rows import BLOCK, PackedRows
from ghost.pcap.tcp.scoreboard import take_segment
from ghost.pcap.tcp.stream_state import StreamState
from ghost.pcap.tcp.stream_table import place_streams

_EVENT_LOG = 4096
_SAMPLE_LOG = 65536
MOST_ROWS = 65_536
"""Streams whose rows lie open, 1.5 KB each: more than a busy link has at once. Beyond, idle ones are packed."""
_MOST_HELD = 8
"""Segments that a side of a packed stream may hold: a SYN that nobody answers, and its repeats."""
_SEGMENTS = L.STREAM + 2 * L.SIDE
"""Where in a packed row, behind the stream and its sides, these segments begin."""


class Streams:
    """Follows batches of rows; `state` is the result."""

    def __init__(
        self, vector: Vector, kernels: Kernel, seed: int = 0, *, streams: int = 256, segments: int = 4096
    ) -> None:
        self._vector, self._kernels = vector, kernels
        self._slots = np.zeros(_slots_for(streams), np.int64)
        self._keys = np.zeros(streams * L.KEY, np.int64)
        self._streams = np.zeros(streams * L.STREAM, np.int64)
        self._sides = np.zeros(streams * 2 * L.SIDE, np.int64)
        self._pool = np.zeros(segments * L.SEGMENT, np.int64)
        self._events = np.zeros(_EVENT_LOG * 3, np.int64)
        self._sample_log = np.zeros(_SAMPLE_LOG, np.int64)
        self._counts = np.zeros(L.COUNTERS + L.MOST_WANTED, np.int64)
        self._counts[L.N_ROW_CAPACITY] = self._counts[L.N_KEY_CAPACITY] = streams
        self._counts[L.N_POOL_CAPACITY] = segments
        self._counts[L.N_EVENT_CAPACITY] = _EVENT_LOG
        self._counts[L.N_SAMPLE_CAPACITY] = _SAMPLE_LOG
        self._counts[L.N_FREE] = -1
        self._counts[L.N_SEED] = seed
        self._samples, self._evidence, self._packed = Samples(), Evidence(), PackedRows()

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
            self._slots, self._keys, self._streams, self._sides, self._pool, self._events, self._sample_log,
            self._counts,
        )  # fmt: skip

    def make_room(self) -> None:
        """Empty the logs that the kernel filled, unpack the streams it wants, and grow full tables."""
        self._drain()
        self._grow()
        self._unpack()

    def state(self) -> StreamState:
        """Return the final state; no packet may follow."""
        self._drain()
        done = 0
        while done < self._counts[L.N_ROWS] * 2:
            done = self._kernels(state_machine.finish)(
                *map(self._vector, (self._sides, self._pool, self._events, self._counts)), done
            )
            self._drain()
        self._pack(np.arange(self._counts[L.N_ROWS]))
        places = -1 - self._known()[:, L.K_ROW]
        self._slots = self._keys = self._streams = self._sides = self._pool = np.zeros(0, np.int64)
        return StreamState(self._packed, places, self._evidence, self._samples)

    def _known(self) -> Array:
        return self._keys[: len(self) * L.KEY].reshape(-1, L.KEY)

    def _drain(self) -> None:
        numbers = self._streams.reshape(-1, L.STREAM)[:, L.S_NUMBER]
        logged = int(self._counts[L.N_EVENTS])
        if logged:
            sides, kinds, frames = self._events[: logged * 3].reshape(-1, 3).T
            self._evidence.add(numbers[sides // 2] * 2 + sides % 2, kinds, frames)
            self._counts[L.N_EVENTS] = 0
        sampled = int(self._counts[L.N_SAMPLES])
        if sampled:
            self._samples.take(self._sample_log[:sampled], 2 * L.SAMPLES, numbers)
            self._counts[L.N_SAMPLES] = 0

    def _grow(self) -> None:
        counts = self._counts
        if counts[L.N_STREAMS] >= counts[L.N_KEY_CAPACITY]:
            counts[L.N_KEY_CAPACITY] *= 2
            self._keys = _doubled(self._keys)
            self._slots = np.zeros(_slots_for(int(counts[L.N_KEY_CAPACITY])), np.int64)
            self._kernels(place_streams)(*map(self._vector, (self._slots, self._keys, counts)))
        while counts[L.N_ROWS] + counts[L.N_WANTED] >= counts[L.N_ROW_CAPACITY]:
            idle = self._idle() if counts[L.N_ROW_CAPACITY] >= MOST_ROWS else None
            if idle is not None and 4 * len(idle) > counts[L.N_ROWS]:
                self._pack(idle)
            else:
                counts[L.N_ROW_CAPACITY] *= 2
                self._streams, self._sides = _doubled(self._streams), _doubled(self._sides)
        free = counts[L.N_POOL_CAPACITY] - counts[L.N_POOL] + counts[L.N_FREE_COUNT]
        if free < 64 + 2 * _MOST_HELD * counts[L.N_WANTED]:
            counts[L.N_POOL_CAPACITY] *= 2
            self._pool = _doubled(self._pool)

    # ---------------------------------------------------------------------------------------------- packed streams

    def _tables(self) -> tuple[Array, Array]:
        """The rows in use of streams, and of their sides by stream."""
        count = int(self._counts[L.N_ROWS])
        return self._streams.reshape(-1, L.STREAM)[:count], self._sides.reshape(-1, 2, L.SIDE)[:count]

    def _idle(self) -> RowIndices:
        """Return rows of the half of the streams heard least lately, but of none that has anything to be judged at the
        end: it holds nothing but a few segments without data."""
        streams, sides = self._tables()
        busy = (sides[:, :, (L.D_HOLE_COUNT, L.D_DOUBTED_COUNT)] > 0).any(axis=2) | (sides[:, :, L.D_HELD] > _MOST_HELD)
        for segments in self._held(sides):
            busy |= (segments >= 0) & (self._segments()[segments, L.G_SIZE] > 0)
        lately = streams[:, L.S_LAST_FRAME]
        return np.flatnonzero((lately <= np.median(lately)) & ~busy.any(axis=1))

    def _segments(self) -> Array:
        return self._pool.reshape(-1, L.SEGMENT)

    def _held(self, sides: SideArray) -> Iterator[Array]:
        """Yield int64[n, 2], the first segment that each side holds, the second and so on; -1 where there is none."""
        at = sides[:, :, L.D_HEAD]
        for _ in range(_MOST_HELD):
            yield at
            at = np.where(at >= 0, self._segments()[at, L.G_NEXT], -1)

    def _pack(self, packed: RowIndices) -> None:
        """Move these rows out of the table, each with the segments it holds; the others move up."""
        (streams, sides), keys = self._tables(), self._known()
        for start in range(0, len(packed), BLOCK):
            rows = packed[start : start + BLOCK]
            part = sides[rows]
            held = np.stack([*self._held(part)], axis=2)
            segments = np.where(held[..., None] >= 0, self._segments()[held], 0)
            self._free(held[held >= 0])
            part[:, :, (L.D_HEAD, L.D_TAIL)] = segments[..., (L.G_NEXT, L.G_PREVIOUS)] = -1
            whole = np.concatenate([streams[rows], *(each.reshape(len(rows), -1) for each in (part, segments))], axis=1)
            keys[streams[rows, L.S_NUMBER], L.K_ROW] = -1 - self._packed.add(whole)
        kept = np.delete(np.arange(len(streams)), packed)
        for table in (streams, sides):
            table[: len(kept)] = table[kept]
            table[len(kept) :] = 0
        keys[streams[: len(kept), L.S_NUMBER], L.K_ROW] = np.arange(len(kept))
        self._counts[L.N_ROWS] = len(kept)
        if len(self._packed) > 2 * (len(self) - len(kept)) + MOST_ROWS:  # most were unpacked since
            fresh, rest = PackedRows(), np.flatnonzero(keys[:, L.K_ROW] < 0)
            for start in range(0, len(rest), BLOCK):
                some = rest[start : start + BLOCK]
                keys[some, L.K_ROW] = -1 - fresh.add(self._packed.take(-1 - keys[some, L.K_ROW]))
            self._packed = fresh

    def _free(self, segments: RowIndices) -> None:
        if len(segments):
            self._segments()[segments, L.G_NEXT] = np.append(segments[1:], self._counts[L.N_FREE])
            self._counts[L.N_FREE] = segments[0]
            self._counts[L.N_FREE_COUNT] += len(segments)

    def _unpack(self) -> None:
        """Move the streams that the kernel wants back into the table, which has room."""
        counts = self._counts
        wanted = distinct(counts[L.COUNTERS : L.COUNTERS + counts[L.N_WANTED]])
        if not len(wanted):
            return
        known = self._known()
        rows, begin = self._packed.take(-1 - known[wanted, L.K_ROW]), counts[L.N_ROWS]
        counts[L.N_ROWS], counts[L.N_WANTED] = begin + len(wanted), 0
        streams, sides = (table[begin:] for table in self._tables())
        streams[:] = rows[:, : L.STREAM]
        sides[:] = rows[:, L.STREAM : _SEGMENTS].reshape(sides.shape)
        self._take(sides, rows[:, _SEGMENTS:].reshape(-1, 2, _MOST_HELD, L.SEGMENT))
        known[wanted, L.K_ROW] = np.arange(begin, counts[L.N_ROWS])

    def _take(self, sides: SideArray, segments: Array) -> None:
        """Put the segments that these sides hold back into the pool."""
        held = np.full((*segments.shape[:2], _MOST_HELD + 2), -1)  # of each side in order, between two that are none
        mine = held[:, :, 1:-1]
        there = np.arange(_MOST_HELD) < sides[:, :, L.D_HELD, None]
        pool, counts = interpreted_vector(self._pool), interpreted_vector(self._counts)
        mine[there] = taken = [take_segment(pool, counts) for _ in range(int(there.sum()))]
        self._segments()[taken] = segments[there]
        self._segments()[taken, L.G_PREVIOUS] = held[:, :, :-2][there]
        self._segments()[taken, L.G_NEXT] = held[:, :, 2:][there]
        last = np.take_along_axis(held, sides[:, :, L.D_HELD, None], axis=2)
        sides[:, :, L.D_HEAD], sides[:, :, L.D_TAIL] = held[:, :, 1], last[:, :, 0]


def _slots_for(streams: int) -> int:
    return 1 << (streams * 2 - 1).bit_length()


def _doubled(array: Array) -> Array:
    """Return an array of twice the length; unwritten memory is not allocated."""
    grown = np.zeros(2 * len(array), array.dtype)
    grown[: len(array)] = array
    return grown
