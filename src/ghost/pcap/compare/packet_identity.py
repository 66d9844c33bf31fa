"""Packets of a capture as columns that can be matched with another capture.

Only header values and a digest of a few bytes; no payload is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, Vector
from ghost.pcap.file.capture_reader import Batch, CaptureReader
from ghost.pcap.kernels import compilation
from ghost.pcap.kernels.decoder import Decoder

Ids = NDArray[np.uint64]
Table = NDArray[Any]

_FIELDS: tuple[tuple[str, int, type], ...] = (
    ("time", L.TIME, np.int64), ("frame", L.FRAME, np.int64), ("source", L.SOURCE, np.int32),
    ("destination", L.DESTINATION, np.int32), ("source_port", L.SOURCE_PORT, np.uint16),
    ("destination_port", L.DESTINATION_PORT, np.uint16), ("protocol", L.PROTOCOL, np.uint8),
    ("ip_id", L.IP_ID, np.uint16), ("seq", L.SEQUENCE, np.uint32), ("ack", L.ACKNOWLEDGED, np.uint32),
    ("length", L.LENGTH, np.int32), ("control", L.CONTROL, np.uint8), ("ttl", L.TTL, np.uint8),
    ("mss", L.MSS, np.uint16), ("scale", L.SCALE, np.uint8), ("sack", L.SACK_PERMITTED, np.uint8),
    ("stamp", L.TIMESTAMP, np.int64),
)  # fmt: skip
_DERIVED = [("size", np.int32), ("tos", np.int16), ("digest", np.uint64)]
_DTYPE = np.dtype([(name, kind) for name, _, kind in _FIELDS] + _DERIVED)
_ICMP = (1, 58)
_TCP, _UDP = 6, 17


@dataclass(frozen=True)
class Packets:
    """IP packets of one capture, one row per packet; 74 bytes each."""

    table: Table
    decoder: Decoder
    """Whose address ids these are; both captures of a pair share it."""

    def __len__(self) -> int:
        return len(self.table)

    def address(self, number: int) -> str:
        return self.decoder.address(int(number))


def two_captures(a: Path, b: Path) -> tuple[Packets, Packets]:
    """Return both captures with common address ids."""
    vector, kernels = compilation.loaded()
    decoder = Decoder(vector, kernels)
    left, right = (_table(CaptureReader(path, vector, kernels), decoder, vector) for path in (a, b))
    return Packets(left, decoder), Packets(right, decoder)


def _table(reader: CaptureReader, decoder: Decoder, vector: Vector) -> Table:
    pieces = list(_pieces(reader, decoder, vector))
    return np.concatenate(pieces) if pieces else np.zeros(0, _DTYPE)


def _pieces(reader: CaptureReader, decoder: Decoder, vector: Vector) -> Iterator[Table]:
    for batch in reader.batches():
        decoder.decode(vector(batch.buffer), vector(batch.rows), batch.count)
        columns = batch.rows[: batch.count * L.PACKET].reshape(-1, L.PACKET)
        columns = columns[(columns[:, L.NETWORK] >= 4) & (columns[:, L.FRAGMENT] != 2)]
        piece = np.zeros(len(columns), _DTYPE)
        for name, column, _ in _FIELDS:
            piece[name] = columns[:, column]
        piece["size"] = _size(columns)
        piece["tos"] = _traffic_class(batch, columns)
        piece["digest"] = _digest(batch, columns)
        yield piece


def _size(columns: Array) -> Array:
    """Return the bytes of TCP and UDP packets from their IP header (without options) on."""
    network = np.where(columns[:, L.NETWORK] == 4, 20, 40)
    result: Array = network + columns[:, L.PAYLOAD] - columns[:, L.TRANSPORT] + columns[:, L.LENGTH]
    return np.where(np.isin(columns[:, L.PROTOCOL], (_TCP, _UDP)), result, 0)


def _traffic_class(batch: Batch, columns: Array) -> NDArray[np.int16]:
    """Return DSCP and ECN; -1 if the IP header has options or extensions, so that their place is unknown."""
    found = np.full(len(columns), -1, np.int16)
    for version, header in ((4, 20), (6, 40)):
        mine = np.flatnonzero((columns[:, L.NETWORK] == version) & (columns[:, L.TRANSPORT] >= header))
        start = columns[mine, L.TRANSPORT] - header
        first, second = batch.buffer[start].astype(np.int16), batch.buffer[start + 1].astype(np.int16)
        plain = first == 0x45 if version == 4 else first >> 4 == 6
        value = second if version == 4 else (first & 15) << 4 | second >> 4
        found[mine] = np.where(plain, value, -1)
    return found


def _digest(batch: Batch, columns: Array) -> Ids:
    """Return a digest of the first eight bytes after a UDP header, or of an ICMP message with type and checksum: it
    identifies packets without a sequence number."""
    digest = np.zeros(len(columns), np.uint64)
    for protocols, begins in (((_UDP,), L.PAYLOAD), (_ICMP, L.TRANSPORT)):
        mine = np.flatnonzero(
            np.isin(columns[:, L.PROTOCOL], protocols) & (columns[:, L.END] - columns[:, begins] >= 8)
        )
        start = columns[mine, begins]
        for n in range(8):
            digest[mine] = digest[mine] << np.uint64(8) | batch.buffer[start + n].astype(np.uint64)
    return digest


def hash_columns(*columns: NDArray[Any]) -> Ids:
    """Return int64[n], a hash of each row of the columns."""
    value = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        value = (value ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
    return value


def flows(table: Table) -> Ids:
    """Return int64[n], a hash of addresses, ports and protocol of one direction."""
    return hash_columns(
        *(table[name] for name in ("source", "destination", "source_port", "destination_port", "protocol"))
    )


def identities(table: Table, flow: Ids) -> Ids:
    """Return int64[n], a hash of each packet that routers and NAT do not change, and its flow."""
    # A sender without IP ids (IPv6, or DF set) is told by its clock instead. CWR and ECE are routers' business.
    stamp = np.where(table["ip_id"] == 0, table["stamp"], 0)
    return hash_columns(
        flow, table["ip_id"], table["seq"], table["ack"], table["length"], table["control"] & 0x3F, stamp,
        table["digest"], table["protocol"],
    )  # fmt: skip


def is_tcp(table: Table) -> NDArray[np.bool_]:
    return np.asarray(table["protocol"] == _TCP, bool)


def repeated(table: Table, flow: Ids) -> NDArray[np.bool_]:
    """Return which packets TCP sent more than once because nobody answered: data, SYN and FIN."""
    signs = table["control"] & (L.SYN | L.FIN)
    _, which, counts = np.unique(
        hash_columns(flow, table["seq"], table["length"], signs), return_inverse=True, return_counts=True
    )
    result: NDArray[np.bool_] = is_tcp(table) & ((signs > 0) | (table["length"] > 0)) & (counts[which] > 1)
    return result
