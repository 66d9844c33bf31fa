"""`analyse(path)`: one pass over a capture, batch by batch; state grows with flows, not with packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghost.pcap import compiled
from ghost.pcap.applications import Applications
from ghost.pcap.arp import ArpTracker
from ghost.pcap.decode import Decoder
from ghost.pcap.icmp import IcmpTracker
from ghost.pcap.layout import (
    CAPTURED,
    DESTINATION,
    ENCAPSULATION,
    ENCAPSULATIONS,
    END,
    FRAGMENT,
    FRAME,
    LENGTH,
    MARK,
    MARK_ARP,
    MARK_DHCP,
    MARK_DHCP6,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_ICMP,
    MARK_ICMP6,
    MARK_LLMNR,
    MARK_MDNS,
    MARK_NTP,
    MARK_QUIC,
    NETWORK,
    NETWORK_ARP,
    NETWORK_OTHER,
    PACKET,
    PAYLOAD,
    PROTOCOL,
    SAMPLE_FRAMES,
    SOURCE,
    TIME,
    TRANSPORT,
    TWIN,
    WIRE,
)
from ghost.pcap.model import Analysis, CaptureSummary, Occurrences
from ghost.pcap.read import BATCH_PACKETS, BUFFER_BYTES, LINK_NAMES, Batch, CaptureReader, FileFacts
from ghost.pcap.series import SeriesCollector
from ghost.pcap.streams import Streams
from ghost.pcap.udp import UdpConversations
from ghost.pcap.vectors import Array, Kernel, Vector, interpreted_kernel, interpreted_vector

_TRANSPORTS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 51: "ah", 58: "icmpv6", 132: "sctp"}
_MARK_NAMES = {
    MARK_DNS: "dns",
    MARK_DNS_TCP: "dns",
    MARK_MDNS: "mdns",
    MARK_LLMNR: "llmnr",
    MARK_DHCP: "dhcp",
    MARK_DHCP6: "dhcpv6",
    MARK_NTP: "ntp",
    MARK_QUIC: "quic",
}


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
    file_bytes = _size(path)
    vector, kernels = interpreted_vector, interpreted_kernel
    reader = CaptureReader(path, vector, kernels, buffer_bytes=buffer_bytes, batch_packets=batch_packets)
    engine = _Engine(vector, kernels)
    if compile_kernels:
        _compile(reader, engine, progress, file_bytes)
    using_compiled, decided = bool(compile_kernels), compile_kernels is not None
    wire = 0
    for batch in reader.batches():
        engine.take(batch)
        wire += int(batch.rows[: batch.count * PACKET].reshape(-1, PACKET)[:, CAPTURED].sum()) + 16 * batch.count
        if progress is not None:
            progress(Progress("reading", engine.counts.packets, min(wire, file_bytes), file_bytes))
        if not decided:
            decided = True
            estimate = engine.counts.packets * file_bytes / max(wire, 1) * (4 if reader.facts.compressed else 1)
            if compiled.worth_it(estimate - engine.counts.packets):
                _compile(reader, engine, progress, file_bytes)
                using_compiled = True
    analysis = engine.analysis(path, reader.facts)
    if using_compiled and engine.counts.packets:
        compiled.mark_ready()
    return analysis


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # the reader says what is wrong


def _compile(
    reader: CaptureReader, engine: _Engine, progress: Callable[[Progress], None] | None, file_bytes: int
) -> None:
    if progress is not None:
        progress(Progress("compiling", engine.counts.packets, 0, file_bytes))
    vector, kernels = compiled.load()
    reader.use(vector, kernels)
    engine.use(vector, kernels)


@dataclass(slots=True)
class _Counts:
    """Totals of the capture."""

    packets: int = 0
    wire: int = 0
    captured: int = 0
    first: int = 1 << 62
    last: int = 0
    previous: int = 0
    cut: int = 0
    undecoded: int = 0
    fragments: int = 0
    backward: int = 0
    twins: int = 0


class _Engine:
    """Everything that a batch passes through."""

    def __init__(self, vector: Vector, kernels: Kernel) -> None:
        self._vector = vector
        self.counts = _Counts()
        self._decoder = Decoder(vector, kernels)
        self._streams = Streams(vector, kernels)
        self._udp = UdpConversations(vector, kernels)
        self._arp, self._icmp, self._applications = ArpTracker(), IcmpTracker(), Applications()
        self._series = SeriesCollector()
        self._protocols: dict[str, int] = {}
        self._twin_frames: list[int] = []

    def use(self, vector: Vector, kernels: Kernel) -> None:
        self._vector = vector
        for part in (self._decoder, self._streams, self._udp):
            part.use(vector, kernels)

    def take(self, batch: Batch) -> None:
        buffer, rows = self._vector(batch.buffer), self._vector(batch.rows)
        self._decoder.decode(buffer, rows, batch.count)
        self._streams.follow(rows, batch.count)
        self._udp.follow(rows, batch.count)
        columns = batch.rows[: batch.count * PACKET].reshape(batch.count, PACKET)
        self._hand_out(batch, columns)
        self._series.follow(columns)
        self._count(columns)

    def _hand_out(self, batch: Batch, columns: Array) -> None:
        """Packets that a parser reads in full."""
        whole = memoryview(batch.buffer)  # type: ignore[arg-type]  # an array is a buffer
        for row in columns[columns[:, MARK] > 0].tolist():
            mark, frame, now, end = row[MARK], row[FRAME], row[TIME], row[END]
            if mark == MARK_ARP:
                if not self._arp.packet(bytes(whole[row[TRANSPORT] : end]), frame, now):
                    self.counts.undecoded += 1
            elif mark in (MARK_ICMP, MARK_ICMP6):
                version = 4 if mark == MARK_ICMP else 6
                message = bytes(whole[row[TRANSPORT] : min(end, row[TRANSPORT] + 576)])
                self._icmp.packet(
                    4 if version == 4 else 6, message, row[LENGTH], row[SOURCE], row[DESTINATION], frame, now
                )
            elif row[LENGTH]:
                payload = bytes(whole[row[PAYLOAD] : min(end, row[PAYLOAD] + row[LENGTH])])
                self._applications.packet(row, payload)

    def _count(self, columns: Array) -> None:
        counts = self.counts
        times = columns[:, TIME]
        counts.packets += len(columns)
        counts.wire += int(columns[:, WIRE].sum())
        counts.captured += int(columns[:, CAPTURED].sum())
        counts.first, counts.last = min(counts.first, int(times.min())), max(counts.last, int(times.max()))
        counts.backward += int((np.diff(times) < 0).sum()) + (int(times[0]) < counts.previous)
        counts.previous = int(times[-1])
        counts.cut += int((columns[:, WIRE] > columns[:, CAPTURED]).sum())
        counts.fragments += int((columns[:, FRAGMENT] == 2).sum())
        twins = columns[columns[:, TWIN] > 0, FRAME]
        counts.twins += len(twins)
        self._twin_frames += twins[: SAMPLE_FRAMES - len(self._twin_frames)].tolist()
        network = columns[:, NETWORK]
        counts.undecoded += int((network == 0).sum())
        self._present({"ipv4": network == 4, "ipv6": network == 6, "arp": network == NETWORK_ARP})
        self._present({"other": network == NETWORK_OTHER})
        protocols, found = np.unique(columns[network >= 4, PROTOCOL], return_counts=True)
        for number, count in zip(protocols.tolist(), found.tolist(), strict=True):
            if number:
                self._add(_TRANSPORTS.get(number, f"ip_{number}"), count)
        marks, found = np.unique(columns[columns[:, LENGTH] > 0, MARK], return_counts=True)
        for mark, count in zip(marks.tolist(), found.tolist(), strict=True):
            if mark in _MARK_NAMES:
                self._add(_MARK_NAMES[mark], count)
        inside = columns[:, ENCAPSULATION]
        if inside.any():
            self._present({name: inside >> bit & 1 > 0 for bit, name in enumerate(ENCAPSULATIONS)})

    def _present(self, which: dict[str, np.ndarray]) -> None:
        for name, mask in which.items():
            self._add(name, int(mask.sum()))

    def _add(self, name: str, count: int) -> None:
        if count:
            self._protocols[name] = self._protocols.get(name, 0) + count

    def analysis(self, path: Path, facts: FileFacts) -> Analysis:
        self._streams.finish()
        counts, address = self.counts, self._decoder.address
        for number, name in self._applications.server_names().items():
            self._streams.name(number, name)
        present = counts.packets > 0
        if not present:
            facts.notes.append("The capture holds no packets.")
        summary = CaptureSummary(
            file=path.name,
            sha256=facts.sha256,
            file_bytes=facts.file_bytes,
            format=facts.format,
            compressed=facts.compressed,
            link_types=tuple(dict.fromkeys(LINK_NAMES.get(link, f"LINKTYPE_{link}") for link, *_ in facts.interfaces)),
            interfaces=len(facts.interfaces),
            total_packets=counts.packets,
            wire_bytes=counts.wire,
            captured_bytes=counts.captured,
            first_ns=counts.first if present else None,
            last_ns=counts.last if present else None,
            protocols_present=dict(sorted(self._protocols.items(), key=lambda item: (-item[1], item[0]))),
            snap_length=facts.snap_length,
            cut_packets=counts.cut,
            dropped_by_capturer=sum(facts.dropped.values()) if facts.dropped else None,
            truncated_record=facts.truncated,
            undecoded_packets=counts.undecoded,
            fragments=counts.fragments,
            backward_timestamps=counts.backward,
            duplicate_packets=Occurrences(counts.twins, tuple(self._twin_frames)),
            notes=tuple(facts.notes),
        )
        return Analysis(
            summary=summary,
            tcp=self._streams.section(address, counts.last),
            udp=self._udp.section(address),
            arp=self._arp.section(),
            icmp=self._icmp.section(address),
            **self._applications.sections(address, self._streams.ending, counts.last),
            series=self._series.result(address),
            file=facts,
        )
