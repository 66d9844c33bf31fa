"""Owns the state of all TCP streams, which a kernel advances batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ghost.pcap import tcp
from ghost.pcap.endings import End, Ending
from ghost.pcap.evidence import Evidence
from ghost.pcap.layout import (
    COUNTERS,
    D_LAST_TIME,
    D_NEXT,
    D_PAYLOAD,
    E_FIN,
    E_RST,
    N_EVENT_CAPACITY,
    N_EVENTS,
    N_FREE,
    N_FREE_COUNT,
    N_POOL,
    N_POOL_CAPACITY,
    N_SAMPLE_CAPACITY,
    N_SAMPLES,
    N_STREAM_CAPACITY,
    N_STREAMS,
    S_HIGH,
    S_LAST_TIME,
    S_LOW,
    S_WIRE_BYTES,
    SAMPLE_RTT,
    SAMPLES,
    SEGMENT,
    SIDE,
    STREAM,
)
from ghost.pcap.model import TcpSection
from ghost.pcap.samples import Samples
from ghost.pcap.stream_view import StreamView
from ghost.pcap.vectors import Array, Ints, Kernel, Vector

__all__ = ["StreamView", "Streams"]

_ISSUES = 200
_EVENT_LOG = 4096
_SAMPLE_LOG = 65536


class Streams:
    """State of every TCP stream. `follow` takes batches of rows; `section` says what they came to."""

    def __init__(self, vector: Vector, kernels: Kernel, *, streams: int = 256, segments: int = 4096) -> None:
        self._vector, self._kernels = vector, kernels
        self._slots = np.zeros(_slots_for(streams), np.int64)
        self._streams = np.zeros(streams * STREAM, np.int64)
        self._sides = np.zeros(streams * 2 * SIDE, np.int64)
        self._pool = np.zeros(segments * SEGMENT, np.int64)
        self._events = np.zeros(_EVENT_LOG * 3, np.int64)
        self._sample_log = np.zeros(_SAMPLE_LOG * 2, np.int64)
        self._counts = np.zeros(COUNTERS, np.int64)
        self._counts[N_STREAM_CAPACITY] = streams
        self._counts[N_POOL_CAPACITY] = segments
        self._counts[N_EVENT_CAPACITY] = _EVENT_LOG
        self._counts[N_SAMPLE_CAPACITY] = _SAMPLE_LOG
        self._counts[N_FREE] = -1
        self._samples = Samples()
        self._evidence = Evidence()
        self._names: dict[int, str] = {}

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def __len__(self) -> int:
        return int(self._counts[N_STREAMS])

    def follow(self, rows: Ints, count: int) -> None:
        done = 0
        while True:
            done = self._kernels(tcp.track)(
                rows, done, count,
                *map(self._vector, (self._slots, self._streams, self._sides, self._pool, self._events,
                                    self._sample_log, self._counts)),
            )  # fmt: skip
            self._drain()
            if done >= count:
                return
            self._grow()

    def name(self, stream: int, name: str | None) -> None:
        """What the client called the server; the first name stays."""
        if name is not None:
            self._names.setdefault(stream, name)

    def finish(self) -> None:
        done = 0
        while done < len(self) * 2:
            done = self._kernels(tcp.finish)(
                *map(self._vector, (self._sides, self._pool, self._events, self._counts)), done
            )
            self._drain()

    def ending(self, stream: int) -> Ending:
        row = self._streams[stream * STREAM : (stream + 1) * STREAM].tolist()
        sides = self._sides[stream * 2 * SIDE : (stream + 1) * 2 * SIDE].reshape(2, SIDE).tolist()

        def end(side: int, endpoint: int) -> End:
            mine = sides[side]
            fins = self._evidence.of(stream * 2 + side, E_FIN)
            resets = self._evidence.of(stream * 2 + side, E_RST)
            following = mine[D_NEXT]
            return End(
                endpoint=endpoint,
                next_sequence=(following - 1) & 0xFFFFFFFF if fins and following >= 0 else following,
                fin_frame=fins[0] if fins else 0,
                rst_frame=resets[0] if resets else 0,
                last_ns=mine[D_LAST_TIME],
                payload_bytes=mine[D_PAYLOAD],
            )

        return Ending((end(0, row[S_LOW]), end(1, row[S_HIGH])), row[S_LAST_TIME])

    def _drain(self) -> None:
        """Empty the logs that the kernel filled."""
        logged = int(self._counts[N_EVENTS])
        if logged:
            self._evidence.add(*self._events[: logged * 3].reshape(-1, 3).T)
            self._counts[N_EVENTS] = 0
        sampled = int(self._counts[N_SAMPLES])
        if sampled:
            columns = self._sample_log[: sampled * 2].reshape(-1, 2)
            self._samples.add(columns[:, 0], columns[:, 1])
            self._counts[N_SAMPLES] = 0

    def _grow(self) -> None:
        if self._counts[N_STREAMS] >= self._counts[N_STREAM_CAPACITY]:
            self._counts[N_STREAM_CAPACITY] *= 2
            self._streams, self._sides = _doubled(self._streams), _doubled(self._sides)
            self._slots = np.zeros(_slots_for(int(self._counts[N_STREAM_CAPACITY])), np.int64)
            self._kernels(tcp.place_streams)(*map(self._vector, (self._slots, self._streams, self._counts)))
        free = self._counts[N_POOL_CAPACITY] - self._counts[N_POOL] + self._counts[N_FREE_COUNT]
        if free < 64:
            self._counts[N_POOL_CAPACITY] *= 2
            self._pool = _doubled(self._pool)

    # -------------------------------------------------------------------------------------------------- results

    def section(self, address: Callable[[int], str], capture_end_ns: int) -> TcpSection | None:
        count = len(self)
        if not count:
            return None
        streams = self._streams[: count * STREAM].reshape(count, STREAM)
        sides = self._sides[: count * 2 * SIDE].reshape(count, 2, SIDE)
        view = StreamView(streams, sides, self._evidence, self._samples, self._names, address, capture_end_ns)
        worst = view.worst()
        return TcpSection(
            totals=view.totals(),
            connections=view.connections(),
            handshake_rtt_ms=view.handshake_rtt(),
            ack_rtt_ms=self._samples.of_all(SAMPLE_RTT, SAMPLES),
            streams=view,
            streams_with_issues=view.select(worst[:_ISSUES]),
            conversations=view.select(np.argsort(-streams[:, S_WIRE_BYTES], kind="stable")[:10]),
        )


def _slots_for(streams: int) -> int:
    return 1 << (streams * 2 - 1).bit_length()


def _doubled(array: Array) -> Array:
    """Twice as long; memory that is not written to stays the system's."""
    grown = np.zeros(2 * len(array), array.dtype)
    grown[: len(array)] = array
    return grown
