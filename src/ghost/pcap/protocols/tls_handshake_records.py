"""TLS handshake records longer than one segment: marks the segments that continue them."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import FileBytes, OpenHandshakes, PacketRows

_OPENED = 4096
_OPENED_ROW = 3  # addresses + 1, ports, sequence number at which the next record begins
_LONGEST_RECORD = 16_640
_UNKNOWN_RECORD = 4_096
"""Bytes handed out where a record's header is itself cut by the end of a segment."""

OPENED_ROOM = _OPENED * _OPENED_ROW
"""What `opened` takes."""


def opened_slot(source: int, destination: int, ports: int) -> int:
    mixed = (source * 0x9E3779B1 ^ destination * 0x85EBCA6B ^ ports * 0xC2B2AE35) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) & (_OPENED - 1)) * _OPENED_ROW


def expect_records(source: int, destination: int, ports: int, until: int, opened: OpenHandshakes) -> None:
    """Note that this direction's records are read up to a sequence number, at which the next one begins."""
    slot = opened_slot(source, destination, ports)
    opened[slot] = (source << 31) + destination + 1
    opened[slot + 1] = ports
    opened[slot + 2] = until & 0xFFFFFFFF


def follow_handshake(buf: FileBytes, rows: PacketRows, p: int, at: int, end: int, opened: OpenHandshakes) -> None:
    """Note where a handshake record ends that extends beyond this segment; mark the segment if it continues one.

    Per direction only the place of the next record is kept, in a table that newer handshakes overwrite.
    """
    source, destination = rows[p + L.SOURCE], rows[p + L.DESTINATION]
    ports = (rows[p + L.SOURCE_PORT] << 16) | rows[p + L.DESTINATION_PORT]
    slot = opened_slot(source, destination, ports)
    known = opened[slot] == (source << 31) + destination + 1 and opened[slot + 1] == ports
    length = rows[p + L.LENGTH]
    place = 0
    if rows[p + L.MARK] != L.MARK_TLS:
        if not known:
            return
        place = (opened[slot + 2] - rows[p + L.SEQUENCE]) & 0xFFFFFFFF
        # A server may answer a hello in HTTP; further on, what looks like its head is a coincidence.
        if place == 0 or place > _LONGEST_RECORD or (rows[p + L.MARK] and place != _UNKNOWN_RECORD):
            return
        rows[p + L.MARK] = L.MARK_TLS
    elif buf[at] == 0x16 and buf[at + 5] == 1 and rows[p + L.ACKNOWLEDGED] != 0:
        # A client's hello: the answer's first segment may be late, and what follows it come before.
        answer = ((ports & 0xFFFF) << 16) | (ports >> 16)
        expect_records(destination, source, answer, rows[p + L.ACKNOWLEDGED] + _UNKNOWN_RECORD, opened)
    while place + 5 <= length and at + place + 5 <= end:
        record = at + place
        if buf[record] < 0x14 or buf[record] > 0x16 or buf[record + 1] != 3:
            if known:
                opened[slot] = 0
            return
        place += 5 + ((buf[record + 3] << 8) | buf[record + 4])
    if place < length:
        place = length + _UNKNOWN_RECORD
    # Also of a record that ends here: a segment from within it may have been overtaken.
    if place > length or known:
        expect_records(source, destination, ports, rows[p + L.SEQUENCE] + place, opened)


KERNELS = (
    opened_slot,
    expect_records,
    follow_handshake,
)
