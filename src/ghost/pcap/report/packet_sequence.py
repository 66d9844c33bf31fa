"""The packets of one conversation around the evidence, for a sequence diagram: header facts only, no payload.

It looks at a capture a second time, and only at the parts of it that matter: where the conversation begins and where
the evidence lies. A compressed file cannot be entered in the middle and is read again up to there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array
from ghost.pcap.file.capture_reader import CaptureReader, FileFacts
from ghost.pcap.findings import Finding
from ghost.pcap.kernels import compilation
from ghost.pcap.kernels.decoder import Decoder
from ghost.pcap.model import Analysis, Stream
from ghost.pcap.report.packet_arrows import Ladder, Packet, drawn

_REACH = 4096
"""Frames looked at before and after a frame of evidence: a busy capture may hold none of the conversation in them."""
_BUFFER_BYTES = 1 << 18
"""Little is wanted of each part."""
_HEAD_BYTES = 160
"""Where addresses are looked for before a packet is decoded."""


def sequence(path: Path, analysis: Analysis, findings: Sequence[Finding]) -> Ladder | None:
    """Return the conversation of the most important finding; None if no finding has one."""
    if analysis.file is None:
        return None
    for finding in findings:
        if finding.kind == "none" or not finding.evidence:
            continue
        found = _CaptureScan(path, analysis.file).around(finding, _streams(analysis))
        if found is not None:
            return found
    return None


def _streams(analysis: Analysis) -> Iterable[Stream]:
    return () if analysis.tcp is None else (*analysis.tcp.streams_with_issues, *analysis.tcp.conversations)


class _CaptureScan:
    """Reads and decodes parts of a capture again."""

    def __init__(self, path: Path, facts: FileFacts) -> None:
        self._path, self._facts = path, facts
        self._vector, self._kernels = compilation.loaded()

    def around(self, finding: Finding, streams: Iterable[Stream]) -> Ladder | None:
        evidence = sorted(set(finding.evidence))
        there = self._read(evidence[0], evidence[0], None)
        if not there:
            return None
        anchor = there[0]
        first = anchor.frame
        for stream in streams:
            ends = {(d.endpoint.address, d.endpoint.port) for d in (stream.client, stream.server)}
            if anchor.ends == ends and stream.first_frame <= anchor.frame <= stream.last_frame:
                first = stream.first_frame
        for whole_hosts in (False, True):
            packets, unread = self._packets(anchor, first, evidence, whole_hosts=whole_hosts)
            if len(packets) >= 3:
                break
        return drawn(packets, unread, anchor, finding)

    def _packets(
        self, anchor: Packet, first: int, evidence: Sequence[int], *, whole_hosts: bool
    ) -> tuple[list[Packet], frozenset[int]]:
        """Return the conversation's packets at its beginning and around the evidence, and the frames before which a
        part of the capture was not read."""

        def belongs(packet: Packet) -> bool:
            if whole_hosts:
                return packet.hosts == anchor.hosts
            return packet.protocol == anchor.protocol and packet.ends == anchor.ends

        wanted = [(first, first + _REACH)] if first < anchor.frame else []
        wanted += [(max(first, frame - _REACH), frame + _REACH) for frame in evidence]
        spans: list[list[int]] = []
        for low, high in sorted(wanted):
            if spans and low <= spans[-1][1] + 1:
                spans[-1][1] = max(spans[-1][1], high)
            else:
                spans.append([low, high])
        packets: list[Packet] = []
        unread = set()
        for low, high in spans:
            found = [packet for packet in self._read(low, high, anchor.hosts) if belongs(packet)]
            if packets and found:
                unread.add(found[0].frame)
            packets += found
        return packets, frozenset(unread)

    def _read(self, first: int, last: int, hosts: frozenset[str] | None) -> list[Packet]:
        """Return IP packets of the frames `first` to `last`, only of these hosts if given."""
        reader = CaptureReader(self._path, self._vector, self._kernels, buffer_bytes=_BUFFER_BYTES, batch_packets=2048)
        decoder = Decoder(self._vector, self._kernels)
        wanted = None if hosts is None else [ipaddress.ip_address(host).packed for host in hosts]
        found: list[Packet] = []
        for batch in reader.batches_around(first, self._facts):
            columns = batch.rows[: batch.count * L.PACKET].reshape(-1, L.PACKET)
            inside = np.flatnonzero((columns[:, L.FRAME] >= first) & (columns[:, L.FRAME] <= last))
            if wanted is not None:
                whole = batch.buffer.data
                heads = columns[inside][:, (L.OFFSET, L.CAPTURED)].tolist()
                inside = inside[_holding(whole, heads, wanted)]
            rows = np.ascontiguousarray(columns[inside]).reshape(-1)
            decoder.decode(self._vector(batch.buffer), self._vector(rows), len(inside))
            found += _decoded(rows.reshape(-1, L.PACKET), decoder)
            if int(columns[-1, L.FRAME]) >= last:
                break
        return found


def _holding(whole: memoryview, heads: Iterable[Sequence[int]], addresses: Iterable[bytes]) -> Array:
    """Return indices of packets (offset and size) whose first bytes contain all these addresses."""
    found = []
    for place, (offset, size) in enumerate(heads):
        head = whole[offset : offset + min(size, _HEAD_BYTES)].tobytes()
        for address in addresses:
            if address not in head:
                break
        else:
            found.append(place)
    return np.array(found, np.int64)


def _decoded(columns: Array, decoder: Decoder) -> list[Packet]:
    found = []
    for row in columns.tolist():
        if row[L.NETWORK] not in (4, 6) or row[L.FRAGMENT] == 2:
            continue
        found.append(
            Packet(
                row[L.FRAME], row[L.TIME], row[L.PROTOCOL],
                (decoder.address(row[L.SOURCE]), row[L.SOURCE_PORT]),
                (decoder.address(row[L.DESTINATION]), row[L.DESTINATION_PORT]),
                row[L.CONTROL], row[L.SEQUENCE], row[L.ACKNOWLEDGED], row[L.LENGTH], row[L.WINDOW],
            )
        )  # fmt: skip
    return found
