"""The TCP header and its options. RFC 9293, 7323, 2018 and 2883."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import FileBytes, OpenHandshakes, PacketRows
from ghost.pcap.kernels.payload_signatures import ending_of, first_bytes
from ghost.pcap.protocols.tls_handshake_records import follow_handshake
from ghost.pcap.protocols.tls_session_tickets import records_in


def decode_tcp(buf: FileBytes, rows: PacketRows, p: int, o: int, end: int, length: int, opened: OpenHandshakes) -> None:
    """TCP header and the options the analysis needs; `length` is what the IP header leaves to TCP."""
    rows[p + L.TRANSPORT] = o
    if end - o < 20 or length < 20:
        return
    header = (buf[o + 12] >> 4) * 4
    if header < 20 or header > length:
        return
    rows[p + L.PROTOCOL] = 6
    rows[p + L.SOURCE_PORT] = (buf[o] << 8) | buf[o + 1]
    rows[p + L.DESTINATION_PORT] = (buf[o + 2] << 8) | buf[o + 3]
    rows[p + L.SEQUENCE] = (buf[o + 4] << 24) | (buf[o + 5] << 16) | (buf[o + 6] << 8) | buf[o + 7]
    acknowledged = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
    rows[p + L.ACKNOWLEDGED] = acknowledged
    rows[p + L.CONTROL] = buf[o + 13]
    rows[p + L.WINDOW] = (buf[o + 14] << 8) | buf[o + 15]
    rows[p + L.PAYLOAD] = min(o + header, end)
    rows[p + L.LENGTH] = length - header
    at = o + header
    if end - at >= 6:
        rows[p + L.MARK] = first_bytes(buf, at, length - header)
        follow_handshake(buf, rows, p, at, end, opened)
        rows[p + L.RECORDS] = records_in(buf, at, end, length - header) | ending_of(
            buf, rows[p + L.CONTROL], end, o + length
        )
    at = o + 20
    stop = min(o + header, end)
    while at < stop:
        kind = buf[at]
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        if at + 1 >= stop:
            break
        size = buf[at + 1]
        if size < 2 or at + size > stop:
            break
        if kind == 2 and size == 4:
            rows[p + L.MSS] = (buf[at + 2] << 8) | buf[at + 3]
        elif kind == 3 and size == 3:
            rows[p + L.SCALE] = min(buf[at + 2], 14) + 1
        elif kind == 4 and size == 2:
            rows[p + L.SACK_PERMITTED] = 1
        elif kind == 8 and size == 10:
            value = (buf[at + 2] << 24) | (buf[at + 3] << 16) | (buf[at + 4] << 8) | buf[at + 5]
            rows[p + L.TIMESTAMP] = value + 1
            echo = (buf[at + 6] << 24) | (buf[at + 7] << 16) | (buf[at + 8] << 8) | buf[at + 9]
            rows[p + L.ECHO] = echo + 1
        elif kind == 5 and size >= 10:
            # RFC 2883: a first block at or below the acknowledgement reports data that arrived twice.
            left = (buf[at + 2] << 24) | (buf[at + 3] << 16) | (buf[at + 4] << 8) | buf[at + 5]
            right = (buf[at + 6] << 24) | (buf[at + 7] << 16) | (buf[at + 8] << 8) | buf[at + 9]
            if (acknowledged - right) & 0xFFFFFFFF < 0x40000000:
                rows[p + L.DSACK_START] = left
                rows[p + L.DSACK_END] = right
        at += size


KERNELS = (decode_tcp,)
