"""One capture in several parts at once: packets are dealt out by flow, and what the parts found merges exactly.

A shard sees every packet of its flows, in the order of the file, so it needs nothing of the others. Its streams are
numbered by it alone; the number in the whole capture follows from the frames that open streams.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Counters, IntVector, Kernel, PacketArray, PacketRows, StreamArray, Vector
from ghost.pcap.file.capture_reader import Batch
from ghost.pcap.kernels.flow_hash import hash_endpoints
from ghost.pcap.kernels.parser_selection import C_ROW, C_STREAM
from ghost.pcap.kernels.pipeline import Passes, Stage
from ghost.pcap.kernels.time_series import SeriesCollector, SeriesState
from ghost.pcap.protocols import udp_conversations
from ghost.pcap.protocols.parser_dispatch import Marked, Marker
from ghost.pcap.protocols.udp_conversations import UdpConversations
from ghost.pcap.tcp import stream_state
from ghost.pcap.tcp.stream_state import StreamState
from ghost.pcap.tcp.stream_tracker import Streams

_AHEAD = 3
"""Batches that may wait for a shard: a bound on memory."""


def assign_shards(rows: PacketRows, count: int, shards: int, shard_of: IntVector, counts: Counters) -> None:
    """Write the shard of each packet, by its endpoints in either order, and the number of packets per shard."""
    for n in range(count):
        p = n * L.PACKET
        low = (rows[p + L.SOURCE] << 16) | rows[p + L.SOURCE_PORT]
        high = (rows[p + L.DESTINATION] << 16) | rows[p + L.DESTINATION_PORT]
        if low > high:
            low, high = high, low
        shard = hash_endpoints(low, high, 0) % shards
        shard_of[n] = shard
        counts[shard] = counts[shard] + 1


KERNELS = (assign_shards,)


class BatchResult(NamedTuple):
    """Result of a shard for one batch."""

    streams: StreamArray
    """Of its marked packets, in their order: the streams they belong to, by the shard's own numbers."""
    opened: Array
    """First frames of the streams that the batch opened."""


class ShardResult(NamedTuple):
    """Result of a shard at the end."""

    streams: StreamState
    udp: Array
    series: SeriesState


class Shard:
    """Follows the flows it is given."""

    def __init__(self, vector: Vector, kernels: Kernel, seed: int) -> None:
        self._vector = vector
        self._streams, self._udp = Streams(vector, kernels, seed), UdpConversations(vector, kernels, seed)
        self._series = SeriesCollector(vector, kernels, seed)
        self._kernels = kernels
        self._passes = Passes(None, None, *self.stages())

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels
        self._streams.use(vector, kernels)
        self._udp.use(vector, kernels)
        self._series.use(vector, kernels)

    def stages(self) -> tuple[Stage, Stage, Stage]:
        """The stages that follow packets."""
        return self._streams, self._udp, self._series

    def expect(self, rows: PacketArray) -> None:
        """Prepare for these packets, which go through the stages next."""
        self._series.expect(rows[:, L.TIME])

    def follow(self, rows: PacketArray) -> BatchResult:
        """Follow a batch (one row per packet) and write the results to its columns."""
        known = len(self._streams)
        self.expect(rows)
        buffer = np.zeros(1, np.uint8)  # nothing but decoding reads it
        self._passes.take(self._vector, self._kernels, self._vector(buffer), self._vector(rows.reshape(-1)), len(rows))
        return BatchResult(rows[rows[:, L.MARK] > 0, L.STREAM_NUMBER], self._streams.first_frames(known))

    def found(self) -> ShardResult:
        return ShardResult(self._streams.state(), self._udp.table(), self._series.state())


def merged(parts: Sequence[ShardResult]) -> ShardResult:
    """Return the result that one shard would have had."""
    series = parts[0].series
    for part in parts[1:]:
        series.merge(part.series)
    return ShardResult(
        stream_state.merged([part.streams for part in parts]),
        udp_conversations.merged([part.udp for part in parts]),
        series,
    )


class Follower(Protocol):
    """A shard in this process or elsewhere; calls are synchronous."""

    def use(self, vector: Vector, kernels: Kernel) -> None: ...
    def follow(self, rows: PacketArray) -> BatchResult: ...
    def found(self) -> ShardResult: ...


Parse = Callable[[Marked], None]
"""Takes the marked packets of one batch after the other."""
Heads = tuple[Stage, Stage]
"""What decodes packets and counts them."""


class Followers(Protocol):
    """Decodes batches and follows their flows, here, in threads, or elsewhere."""

    def use(self, vector: Vector, kernels: Kernel) -> None: ...
    def follow(self, batch: Batch) -> None: ...
    def found(self) -> ShardResult: ...
    def abandon(self) -> None: ...


class SingleShard:
    """One shard, which follows each batch at once and in place."""

    def __init__(self, vector: Vector, kernels: Kernel, heads: Heads, shard: Shard, parse: Parse) -> None:
        self._vector, self._kernels, self._shard, self._parse = vector, kernels, shard, parse
        self._passes = Passes(*heads, *shard.stages())
        self._marker = Marker()

    def use(self, vector: Vector, kernels: Kernel) -> None:
        self._vector, self._kernels = vector, kernels
        self._shard.use(vector, kernels)

    def follow(self, batch: Batch) -> None:
        vector, kernels = self._vector, self._kernels
        self._shard.expect(batch.packets())
        self._passes.take(vector, kernels, vector(batch.buffer), vector(batch.rows), batch.count)
        self._parse(self._marker.marked(vector, kernels, batch))

    def found(self) -> ShardResult:
        return self._shard.found()

    def abandon(self) -> None:
        pass


class _InThread:
    """A shard in a thread; calls run in order. Compiled kernels of several shards run in parallel."""

    def __init__(self, shard: Follower) -> None:
        self._shard = shard
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="shard")

    def use(self, vector: Vector, kernels: Kernel) -> Future[None]:
        return self._thread.submit(self._shard.use, vector, kernels)

    def follow(self, rows: PacketArray) -> Future[BatchResult]:
        return self._thread.submit(self._shard.follow, rows)

    def found(self) -> Future[ShardResult]:
        future = self._thread.submit(self._shard.found)
        self._thread.shutdown(wait=False)
        return future

    def abandon(self) -> None:
        """Forget the batches that have not begun; what has begun, perhaps on a worker that hangs, is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class _PendingBatch(NamedTuple):
    """A batch that the shards have received and that is not parsed yet."""

    marked: Marked
    shard_of: Array
    """Of the marked packets, in the order of their rows."""
    parts: list[Future[BatchResult]]


class ShardedFlows:
    """Several shards. Marked packets wait until every shard has followed their batch, and are parsed in order."""

    def __init__(self, vector: Vector, kernels: Kernel, heads: Heads, shards: Sequence[Follower], parse: Parse) -> None:
        self._vector, self._kernels, self._parse = vector, kernels, parse
        self._passes, self._marker = Passes(*heads, None, None, None), Marker()
        self._shards = [_InThread(shard) for shard in shards]
        self._waiting: list[_PendingBatch] = []
        self._streams = 0
        self._numbers = [np.zeros(0, np.int64) for _ in shards]

    def use(self, vector: Vector, kernels: Kernel) -> None:
        self._vector, self._kernels = vector, kernels
        for done in [shard.use(vector, kernels) for shard in self._shards]:
            done.result()

    def follow(self, batch: Batch) -> None:
        vector, kernels = self._vector, self._kernels
        self._passes.take(vector, kernels, vector(batch.buffer), vector(batch.rows), batch.count)
        rows, marked = batch.packets(), self._marker.marked(vector, kernels, batch)
        shard_of, counts = np.zeros(len(rows), np.int64), np.zeros(len(self._shards), np.int64)
        kernels(assign_shards)(vector(batch.rows), batch.count, len(self._shards), vector(shard_of), vector(counts))
        parts = [shard.follow(rows[shard_of == number]) for number, shard in enumerate(self._shards)]
        self._waiting.append(_PendingBatch(marked, shard_of[np.sort(marked.columns[C_ROW])], parts))
        if len(self._waiting) > _AHEAD:
            self._finish_one()

    def _finish_one(self) -> None:
        batch = self._waiting.pop(0)
        followed = [part.result() for part in batch.parts]
        self._number([part.opened for part in followed])
        streams = np.empty(len(batch.shard_of), np.int64)
        for number, part in enumerate(followed):
            streams[batch.shard_of == number] = self._number_of(number, part.streams)
        rows = batch.marked.columns[C_ROW]
        batch.marked.columns[C_STREAM] = streams[np.searchsorted(np.sort(rows), rows)]
        self._parse(batch.marked)

    def _number(self, opened: Sequence[Array]) -> None:
        """Number the streams that a batch opened as a single shard would."""
        frames = np.concatenate(opened)
        numbers = np.empty(len(frames), np.int64)
        numbers[np.argsort(frames)] = self._streams + np.arange(len(frames))
        self._streams += len(frames)
        begin = 0
        for shard, mine in enumerate(opened):
            self._numbers[shard] = np.concatenate([self._numbers[shard], numbers[begin : begin + len(mine)]])
            begin += len(mine)

    def _number_of(self, shard: int, own: Array) -> Array:
        known = self._numbers[shard]
        return known[own] if len(known) else own

    def found(self) -> ShardResult:
        while self._waiting:
            self._finish_one()
        return merged([future.result() for future in [shard.found() for shard in self._shards]])

    def abandon(self) -> None:
        for shard in self._shards:
            shard.abandon()
