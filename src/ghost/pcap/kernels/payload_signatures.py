"""What marks a packet for a reader: the first bytes of TCP payload, the ports of a datagram."""

from __future__ import annotations

from ghost.pcap import layout as L
from ghost.pcap.array_types import FileBytes


def first_bytes(buf: FileBytes, at: int, length: int) -> int:
    """Return the mark of a TCP segment with at least six captured payload bytes from `at`."""
    first, second, third = buf[at], buf[at + 1], buf[at + 2]
    if second == 3 and 0x14 <= first <= 0x17 and third <= 4:
        # Application data only where it has the length of an encrypted alert (RFC 8446, 5.2).
        if first < 0x17 or (buf[at + 3] == 0 and buf[at + 4] == 19):
            return L.MARK_TLS
    elif 65 <= first <= 90 and 65 <= second <= 90 and 65 <= third <= 90:
        if (
            # GET, PUT, POST, PATCH, PROPFIND, HEAD, DELETE, OPTIONS, CONNECT, TRACE, SEARCH
            (first == 71 and second == 69 and third == 84)
            or (first == 80 and (second == 85 or second == 79) and (third == 84 or third == 83))
            or (first == 80 and second == 65 and third == 84)
            or (first == 80 and second == 82 and third == 79)
            or (first == 72 and second == 69 and third == 65)
            or (first == 68 and second == 69 and third == 76)
            or (first == 79 and second == 80 and third == 84)
            or (first == 67 and second == 79 and third == 78)
            or (first == 84 and second == 82 and third == 65)
            or (first == 83 and second == 69 and third == 65)
            # HTTP/
            or (first == 72 and second == 84 and third == 84 and buf[at + 3] == 80 and buf[at + 4] == 47)
        ):
            return L.MARK_HTTP
    elif first >= 0x80 and third == 1 and ((first & 0x7F) << 8 | second) + 2 == length and buf[at + 3] in (0, 3):
        # The hello of SSL 2, which old clients also offer TLS with.
        return L.MARK_TLS
    return 0


def datagram_mark(source_port: int, destination_port: int) -> int:
    """Return the mark of a datagram with payload, by its ports."""
    low, high = min(source_port, destination_port), max(source_port, destination_port)
    if low == 53 or high == 53:
        return L.MARK_DNS
    if low == 5353 or high == 5353:
        return L.MARK_MDNS
    if low == 5355 or high == 5355:
        return L.MARK_LLMNR
    if low == 67 or high == 67:
        return L.MARK_DHCP
    if low == 123 or high == 123:
        return L.MARK_NTP
    if low == 546 or low == 547 or high == 546 or high == 547:
        return L.MARK_DHCP6
    if low == 443 or high == 443:
        return L.MARK_QUIC
    return 0


def ending_of(buf: FileBytes, control: int, end: int, wire_end: int) -> int:
    """Return how a pushed or final message ends: a chunked HTTP body ends in an empty line."""
    if not control & (L.PSH | L.FIN) or end != wire_end:
        return 0
    blank = buf[end - 1] == 10 and buf[end - 2] == 13 and buf[end - 3] == 10 and buf[end - 4] == 13
    return L.ENDS_BLANK if blank else L.ENDS_OTHERWISE


KERNELS = (
    first_bytes,
    datagram_mark,
    ending_of,
)
