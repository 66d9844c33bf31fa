"""`analyse(path)`: one pass over a capture, batch by batch; state grows with flows, not with packets."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ghost.pcap import layout as L
from ghost.pcap.array_types import Kernel, Vector, interpreted_kernel, interpreted_vector
from ghost.pcap.file.capture_reader import BATCH_PACKETS, BUFFER_BYTES, Batch, CaptureReader, FileFacts
from ghost.pcap.garbage_collection import without_garbage_collection
from ghost.pcap.kernels import compilation
from ghost.pcap.kernels.background_thread import BackgroundCalls, short_switch_interval
from ghost.pcap.kernels.decoder import Decoder
from ghost.pcap.kernels.frame_clock import FrameClock
from ghost.pcap.kernels.packet_totals import Tally
from ghost.pcap.kernels.pipeline import Passes
from ghost.pcap.kernels.time_series import SeriesCollector
from ghost.pcap.model import Analysis
from ghost.pcap.protocols.parser_dispatch import Marked, Marker, Parsers
from ghost.pcap.protocols.udp_conversations import UdpConversations, udp_section
from ghost.pcap.protocols.udp_services import service_rows
from ghost.pcap.tcp.stream_tracker import Streams

_LARGE_PACKET = 1500
"""Bytes. A file that would be worth kernels were all its packets so large is worth them before its first batch."""


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str
    """`compiling` or `reading`."""
    packets: int
    bytes_read: int
    bytes_total: int
    """Of the file; a compressed one holds more than this."""


def analyse(
    path: Path,
    *,
    progress: Callable[[Progress], None] | None = None,
    compile_kernels: bool | None = None,
    buffer_bytes: int = BUFFER_BYTES,
    batch_packets: int = BATCH_PACKETS,
) -> Analysis:
    """Analyse one capture. Raises CaptureError where the file is none or cannot be read.

    `compile_kernels` None leaves it to the size of the capture. Buffer and batch sizes never change the result.
    """
    with without_garbage_collection(), short_switch_interval():
        vector, kernels = interpreted_vector, interpreted_kernel
        reader = CaptureReader(path, vector, kernels, buffer_bytes=buffer_bytes, batch_packets=batch_packets)
        with _Engine(vector, kernels) as engine:
            return _analyse(path, reader, engine, progress, compile_kernels)


def _analyse(
    path: Path,
    reader: CaptureReader,
    engine: _Engine,
    progress: Callable[[Progress], None] | None,
    compile_kernels: bool | None,
) -> Analysis:
    file_bytes = _size(path)
    if compile_kernels is None and compilation.worth_it(file_bytes / _LARGE_PACKET):
        compile_kernels = True
    if compile_kernels:
        _compile(reader, engine, progress, file_bytes)
    using_compiled, decided = bool(compile_kernels), compile_kernels is not None
    for batch in reader.batches():
        engine.take(batch)
        if progress is not None:
            progress(Progress("reading", engine.packets, min(engine.bytes_read, file_bytes), file_bytes))
        if not decided:
            decided = True
            estimate = engine.packets * file_bytes / max(engine.bytes_read, 1) * (4 if reader.facts.compressed else 1)
            if compilation.worth_it(estimate - engine.packets):
                _compile(reader, engine, progress, file_bytes)
                using_compiled = True
    analysis = engine.analysis(path, reader.facts)
    if using_compiled and engine.packets:
        compilation.mark_ready()
    return analysis


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # the reader says what is wrong


def _compile(
    reader: CaptureReader, engine: _Engine, progress: Callable[[Progress], None] | None, file_bytes: int
) -> None:
    if progress is not None and not compilation.ready():
        progress(Progress("compiling", engine.packets, 0, file_bytes))
    vector, kernels = compilation.load()
    reader.use(vector, kernels)
    engine.use(vector, kernels)


class _Engine:
    """The stages that a batch passes through. Once kernels are compiled, parsers run in a thread in parallel."""

    def __init__(self, vector: Vector, kernels: Kernel) -> None:
        seed = secrets.randbits(62)
        self._vector, self._kernels = vector, kernels
        self._decoder = Decoder(vector, kernels)
        self._tally, self._clock = Tally(), FrameClock()
        self._streams = Streams(vector, kernels, seed)
        self._udp = UdpConversations(vector, kernels, seed)
        self._series = SeriesCollector(vector, kernels, seed)
        self._passes = Passes(self._decoder, self._tally, self._streams, self._udp, self._series)
        self._marker = Marker()
        self._parsers = Parsers()
        self._behind: BackgroundCalls[Marked] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._behind is not None:
            self._behind.abandon()

    @property
    def packets(self) -> int:
        return self._tally.packets

    @property
    def bytes_read(self) -> int:
        """Of the file's records, as pcap has them."""
        return self._tally.captured + 16 * self._tally.packets

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels
        for stage in (self._decoder, self._streams, self._udp, self._series):
            stage.use(vector, kernels)
        self._behind = BackgroundCalls(self._parsers.take)

    def take(self, batch: Batch) -> None:
        vector, kernels = self._vector, self._kernels
        times = batch.packets()[:, L.TIME]
        self._clock.take(times)
        self._series.expect(times)
        self._passes.take(vector, kernels, vector(batch.buffer), vector(batch.rows), batch.count)
        marked = self._marker.marked(vector, kernels, batch)
        (self._behind or self._parsers.take)(marked)

    def analysis(self, path: Path, facts: FileFacts) -> Analysis:
        streams, udp = self._streams.state(), self._udp.table()
        if self._behind is not None:
            self._behind.finish()
        address, last = self._decoder.address, self._tally.last
        return Analysis(
            summary=self._tally.summary(
                path.name, facts, self._parsers.unreadable, udp, streams.copies(), self._decoder.looped()
            ),
            tcp=streams.section(self._parsers.server_names(), address, last),
            udp=udp_section(udp, address),
            services=service_rows(udp, address),
            **self._parsers.sections(address, streams.endings(), last),
            series=self._series.state().result(address),
            clock=self._clock,
            file=facts,
        )
