"""From bytes to columns: link, network and transport headers of each packet. Keeps nothing but an address table.

RFC 791, 8200, 9293, 768, 826; IEEE 802.1Q; RFC 2516 (PPPoE), 2784 and 2637 (GRE), 7348 (VXLAN), 8926 (Geneve), 3032
(MPLS), 4385 and 4448 (Ethernet in MPLS); 3GPP TS 29.281 (GTP-U); the LINKTYPE_ registry of tcpdump.org. The innermost
IP packet that can be reached is the one decoded.
"""

from __future__ import annotations

import ipaddress
import secrets

import numpy as np

from ghost.pcap.layout import (
    ACKNOWLEDGED,
    ADDRESS,
    CAPTURED,
    CONTROL,
    DESTINATION,
    DESTINATION_PORT,
    DSACK_END,
    DSACK_START,
    ECHO,
    ENCAPSULATION,
    END,
    ENDS_BLANK,
    ENDS_OTHERWISE,
    ETHERTYPE,
    FIN,
    FRAGMENT,
    IN_GENEVE,
    IN_GRE,
    IN_GTP,
    IN_IPIP,
    IN_MPLS,
    IN_PPPOE,
    IN_QINQ,
    IN_VLAN,
    IN_VXLAN,
    IP_ID,
    LENGTH,
    LINK,
    LINK_ETHERNET,
    LINK_IPV4,
    LINK_IPV6,
    LINK_LOOP,
    LINK_NULL,
    LINK_PPP,
    LINK_RAW,
    LINK_SLL,
    LINK_SLL2,
    MARK,
    MARK_ARP,
    MARK_DHCP,
    MARK_DHCP6,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_HTTP,
    MARK_ICMP,
    MARK_ICMP6,
    MARK_LLMNR,
    MARK_MDNS,
    MARK_NTP,
    MARK_QUIC,
    MARK_TLS,
    MSS,
    NETWORK,
    NETWORK_ARP,
    NETWORK_OTHER,
    OFFSET,
    PACKET,
    PAYLOAD,
    PROTOCOL,
    PSH,
    RECORDS,
    SACK_PERMITTED,
    SCALE,
    SEQUENCE,
    SOURCE,
    SOURCE_PORT,
    TIME,
    TIMESTAMP,
    TRANSPORT,
    TTL,
    TWIN,
    WINDOW,
    WIRE,
)
from ghost.pcap.tls_tickets import records_in
from ghost.pcap.vectors import Array, Ints, Kernel, Vector

# What begins at the current offset: an EtherType, or one of these.
_STOP = -1
_FRAME = 0x10000
_ANY_IP = 0x10001
_PPP_FRAME = 0x10002
_PPP_PROTOCOL = 0x20000
_DEEPEST = 16
"""Layers followed before a packet is given up: nesting is finite, malice is not."""

_RECENT = 4096
_TWIN_NS = 5_000_000
_TWIN_STAMPED_NS = 200_000_000
"""With the same time inside TCP, or the same IP id on the other side of a router, it is the same packet, however far
apart two capture points are."""
_TWIN_WITHOUT_ID_NS = 100_000
"""IPv6 has no IP id, and some stacks send 0. Data sent again needs a round trip at least; a copy follows at once."""
_UNNUMBERED, _REPEATED, _USUAL_NS = range(2 * _RECENT, 2 * _RECENT + 3)
"""Packets without IP id that would not come again for nothing, those that did, and after what time these usually do,
behind the rows of `recent`."""
_FEWEST_UNNUMBERED = 20

_OPENED = 4096
_OPENED_ROW = 3  # addresses + 1, ports, sequence number at which the next record begins
_LONGEST_RECORD = 16_640
_UNKNOWN_RECORD = 4_096
"""Bytes handed out where a record's header is itself cut by the end of a segment."""


def intern_address(version: int, w0: int, w1: int, w2: int, w3: int, table: Ints, slots: Ints, counters: Ints) -> int:
    """The address's id; a new one where it was not seen before."""
    mask = len(slots) - 1
    # A multiplier for each word, of each run its own, and the high bits of the sum: whatever two words have in common,
    # nobody can choose addresses that all fall into one slot (multiply-shift hashing, Dietzfelbinger 1996).
    mixed = ((w0 * counters[1] + w1 * counters[2] + w2 * counters[3] + w3 * counters[4]) >> 32) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
    slot = (mixed ^ (mixed >> 13)) & mask
    while True:
        held = slots[slot]
        if held == 0:
            number = counters[0]
            row = number * ADDRESS
            table[row] = version
            table[row + 1] = w0
            table[row + 2] = w1
            table[row + 3] = w2
            table[row + 4] = w3
            slots[slot] = number + 1
            counters[0] = number + 1
            return number
        row = (held - 1) * ADDRESS
        if (
            table[row + 4] == w3
            and table[row + 3] == w2
            and table[row + 2] == w1
            and table[row + 1] == w0
            and table[row] == version
        ):
            return held - 1
        slot = (slot + 1) & mask


def first_bytes(buf: Ints, at: int, length: int) -> int:
    """The mark of a segment whose six or more captured payload bytes begin at `at`."""
    first, second, third = buf[at], buf[at + 1], buf[at + 2]
    if second == 3 and 0x14 <= first <= 0x17 and third <= 4:
        # Application data only where it has the length of an encrypted alert (RFC 8446, 5.2).
        if first < 0x17 or (buf[at + 3] == 0 and buf[at + 4] == 19):
            return MARK_TLS
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
            return MARK_HTTP
    elif first >= 0x80 and third == 1 and ((first & 0x7F) << 8 | second) + 2 == length and buf[at + 3] in (0, 3):
        # The hello of SSL 2, which old clients also offer TLS with.
        return MARK_TLS
    return 0


def opened_slot(source: int, destination: int, ports: int) -> int:
    mixed = (source * 0x9E3779B1 ^ destination * 0x85EBCA6B ^ ports * 0xC2B2AE35) & 0xFFFFFFFF
    return ((mixed ^ (mixed >> 15)) & (_OPENED - 1)) * _OPENED_ROW


def expect_records(source: int, destination: int, ports: int, until: int, opened: Ints) -> None:
    """Note that records of this direction are wanted up to a sequence number, at which the next one begins."""
    slot = opened_slot(source, destination, ports)
    opened[slot] = (source << 31) + destination + 1
    opened[slot + 1] = ports
    opened[slot + 2] = until & 0xFFFFFFFF


def follow_handshake(buf: Ints, rows: Ints, p: int, at: int, end: int, opened: Ints) -> None:
    """Note where a handshake record ends that goes beyond this segment; mark the segment if it continues one.

    Of each direction only the place of the next record is kept, in a table that newer handshakes overwrite.
    """
    source, destination = rows[p + SOURCE], rows[p + DESTINATION]
    ports = (rows[p + SOURCE_PORT] << 16) | rows[p + DESTINATION_PORT]
    slot = opened_slot(source, destination, ports)
    known = opened[slot] == (source << 31) + destination + 1 and opened[slot + 1] == ports
    length = rows[p + LENGTH]
    place = 0
    if rows[p + MARK] != MARK_TLS:
        if not known:
            return
        place = (opened[slot + 2] - rows[p + SEQUENCE]) & 0xFFFFFFFF
        # A server may answer a hello in HTTP; further on, what looks like its head is a coincidence.
        if place == 0 or place > _LONGEST_RECORD or (rows[p + MARK] and place != _UNKNOWN_RECORD):
            return
        rows[p + MARK] = MARK_TLS
    elif buf[at] == 0x16 and buf[at + 5] == 1 and rows[p + ACKNOWLEDGED] != 0:
        # A client's hello: the answer's first segment may be late, and what follows it come before.
        answer = ((ports & 0xFFFF) << 16) | (ports >> 16)
        expect_records(destination, source, answer, rows[p + ACKNOWLEDGED] + _UNKNOWN_RECORD, opened)
    while place + 5 <= length and at + place + 5 <= end:
        record = at + place
        if buf[record] < 0x14 or buf[record] > 0x16 or buf[record + 1] != 3:
            if known:
                opened[slot] = 0
            return
        place += 5 + ((buf[record + 3] << 8) | buf[record + 4])
    if place < length:
        place = length + _UNKNOWN_RECORD
    if place > length:
        expect_records(source, destination, ports, rows[p + SEQUENCE] + place, opened)
    elif known:
        opened[slot] = 0


def datagram_mark(buf: Ints, at: int, end: int, source_port: int, destination_port: int) -> int:
    """The mark of a datagram whose captured payload lies between `at` and `end`."""
    low, high = min(source_port, destination_port), max(source_port, destination_port)
    if low == 53 or high == 53:
        return MARK_DNS
    if low == 5353 or high == 5353:
        return MARK_MDNS
    if low == 5355 or high == 5355:
        return MARK_LLMNR
    if low == 67 or high == 67:
        return MARK_DHCP
    if low == 123 or high == 123:
        return MARK_NTP
    if low == 546 or low == 547 or high == 546 or high == 547:
        return MARK_DHCP6
    # QUIC: a long header (RFC 8999, 5.1); Initial and Retry have other types in version 2 (RFC 9369, 3.2).
    if end - at >= 7 and buf[at] >= 0x80:
        version = (buf[at + 1] << 24) | (buf[at + 2] << 16) | (buf[at + 3] << 8) | buf[at + 4]
        kind = (buf[at] >> 4) & 3
        if version == 1 or version >> 8 == 0xFF0000:
            return MARK_QUIC if buf[at] & 0x40 and (kind == 0 or kind == 3) and buf[at + 5] <= 20 else 0
        if version == 0x6B3343CF:
            return MARK_QUIC if buf[at] & 0x40 and kind <= 1 and buf[at + 5] <= 20 else 0
        if (low == 443 or high == 443) and (version == 0 or buf[at] & 0x40):
            return MARK_QUIC
    return 0


def ethernet_in_mpls(buf: Ints, o: int, end: int) -> int:
    """Where the Ethernet frame of a pseudowire begins, whose labels end at `o`: behind a control word, or at once. 0
    where there is none: nothing but a known EtherType tells."""
    for skipped in (4, 0):
        at = o + skipped
        if end - at >= 14 and (skipped == 0 or buf[o] >> 4 == 0):
            kind = (buf[at + 12] << 8) | buf[at + 13]
            if kind in (0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8, 0x8847, 0x8863, 0x8864):
                return at
    return 0


def plain_vxlan(buf: Ints, o: int) -> bool:
    """Whether all that must be zero is: on Linux's own port, which is nobody's by right."""
    return buf[o] == 0x08 and buf[o + 1] | buf[o + 2] | buf[o + 3] | buf[o + 7] == 0


def inside_gtp(buf: Ints, o: int, end: int) -> int:
    """Where the IP packet begins that a GTP-U message at `o` carries; 0 where it carries none."""
    flags = buf[o]
    if flags >> 4 != 3 or buf[o + 1] != 255:
        return 0
    at = o + 8
    if flags & 7:
        at += 4
        following = buf[at - 1] if flags & 4 and at <= end else 0
        while following != 0 and end - at >= 4:
            size = buf[at] * 4
            if size == 0 or size > end - at:
                return 0
            at += size
            following = buf[at - 1]
    return at if end - at >= 20 and (buf[at] >> 4 == 4 or buf[at] >> 4 == 6) else 0


def ending_of(buf: Ints, control: int, end: int, wire_end: int) -> int:
    """How a message ends that a sender pushed, or closed behind: the body in chunks of HTTP ends in an empty line."""
    if not control & (PSH | FIN) or end != wire_end:
        return 0
    blank = buf[end - 1] == 10 and buf[end - 2] == 13 and buf[end - 3] == 10 and buf[end - 4] == 13
    return ENDS_BLANK if blank else ENDS_OTHERWISE


def decode_tcp(buf: Ints, rows: Ints, p: int, o: int, end: int, length: int, opened: Ints) -> None:
    """TCP header and the options the analysis needs; `length` is what the IP header leaves to TCP."""
    rows[p + TRANSPORT] = o
    if end - o < 20 or length < 20:
        return
    header = (buf[o + 12] >> 4) * 4
    if header < 20 or header > length:
        return
    rows[p + PROTOCOL] = 6
    rows[p + SOURCE_PORT] = (buf[o] << 8) | buf[o + 1]
    rows[p + DESTINATION_PORT] = (buf[o + 2] << 8) | buf[o + 3]
    rows[p + SEQUENCE] = (buf[o + 4] << 24) | (buf[o + 5] << 16) | (buf[o + 6] << 8) | buf[o + 7]
    acknowledged = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
    rows[p + ACKNOWLEDGED] = acknowledged
    rows[p + CONTROL] = buf[o + 13]
    rows[p + WINDOW] = (buf[o + 14] << 8) | buf[o + 15]
    rows[p + PAYLOAD] = min(o + header, end)
    rows[p + LENGTH] = length - header
    at = o + header
    if end - at >= 6:
        rows[p + MARK] = first_bytes(buf, at, length - header)
        follow_handshake(buf, rows, p, at, end, opened)
        rows[p + RECORDS] = records_in(buf, at, end, length - header) | ending_of(
            buf, rows[p + CONTROL], end, o + length
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
            rows[p + MSS] = (buf[at + 2] << 8) | buf[at + 3]
        elif kind == 3 and size == 3:
            rows[p + SCALE] = min(buf[at + 2], 14) + 1
        elif kind == 4 and size == 2:
            rows[p + SACK_PERMITTED] = 1
        elif kind == 8 and size == 10:
            value = (buf[at + 2] << 24) | (buf[at + 3] << 16) | (buf[at + 4] << 8) | buf[at + 5]
            rows[p + TIMESTAMP] = value + 1
            echo = (buf[at + 6] << 24) | (buf[at + 7] << 16) | (buf[at + 8] << 8) | buf[at + 9]
            rows[p + ECHO] = echo + 1
        elif kind == 5 and size >= 10:
            # RFC 2883: a first block at or below the acknowledgement reports data that arrived twice.
            left = (buf[at + 2] << 24) | (buf[at + 3] << 16) | (buf[at + 4] << 8) | buf[at + 5]
            right = (buf[at + 6] << 24) | (buf[at + 7] << 16) | (buf[at + 8] << 8) | buf[at + 9]
            if (acknowledged - right) & 0xFFFFFFFF < 0x40000000:
                rows[p + DSACK_START] = left
                rows[p + DSACK_END] = right
        at += size


def all_twice(recent: Ints) -> bool:
    """Whether more than a third of the packets without IP id came again at once: no loss repeats so many."""
    return recent[_UNNUMBERED] >= _FEWEST_UNNUMBERED and 3 * recent[_REPEATED] > recent[_UNNUMBERED]


def note_twin(rows: Ints, p: int, recent: Ints) -> None:
    """Mark a packet whose IP id, addresses, ports, sequence and TCP timestamp were seen just before.

    Where that may be a repeat as well, the mark is the time since then, by which the TCP kernel decides.
    """
    signature = (rows[p + IP_ID] * 0x9E3779B1) & 0x3FFFFFFF
    signature = (signature ^ (rows[p + SOURCE] * 0x85EBCA6B)) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + DESTINATION]) & 0x3FFFFFFF
    signature = (signature * 31 + ((rows[p + SOURCE_PORT] << 16) | rows[p + DESTINATION_PORT])) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + SEQUENCE]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + ACKNOWLEDGED]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + TIMESTAMP]) & 0x3FFFFFFF
    signature = (signature * 31 + rows[p + LENGTH] * 256 + rows[p + CONTROL] + rows[p + PROTOCOL]) & 0x3FFFFFFF
    slot = ((signature ^ (signature >> 12)) & (_RECENT - 1)) * 2
    now = rows[p + TIME]
    numbered = rows[p + IP_ID] != 0
    speaks = rows[p + LENGTH] > 0 or rows[p + CONTROL] & 3 > 0
    if speaks and not numbered:
        recent[_UNNUMBERED] = recent[_UNNUMBERED] + 1
    if recent[slot] & 0xFFFFFFFF == signature + 1:
        ago = now - recent[slot + 1]
        routed = (recent[slot] >> 32) & 0xFF != rows[p + TTL]
        longest = _TWIN_STAMPED_NS if rows[p + TIMESTAMP] or (numbered and routed) else _TWIN_NS
        if 0 <= ago <= longest:
            usual = recent[_USUAL_NS]
            alike = usual == 0 or ago <= 2 * usual + _TWIN_WITHOUT_ID_NS
            # Of ACKs that say the same several times, every second one is a copy.
            second = alike and recent[slot] >> 40 == 0 and all_twice(recent)
            at_once = ago <= _TWIN_WITHOUT_ID_NS if speaks else second
            if speaks and not numbered:
                recent[_REPEATED] = recent[_REPEATED] + 1
                # Their median, in small steps, which the few that were sent again do not move.
                recent[_USUAL_NS] = ago if usual == 0 else usual + usual // 8 + 1 if ago > usual else usual - usual // 8
            # Behind a router it has fewer hops left; what has more again was sent again.
            behind = rows[p + TTL] < (recent[slot] >> 32) & 0xFF
            if numbered or behind or at_once:
                rows[p + TWIN] = 1
            else:
                rows[p + TWIN] = ago if alike else -ago
        elif longest < ago <= _TWIN_STAMPED_NS:
            rows[p + TWIN] = ago if numbered else -ago
    twin = 1 if rows[p + TWIN] == 1 else 0
    recent[slot] = (signature + 1) | (rows[p + TTL] << 32) | (twin << 40)
    recent[slot + 1] = now


def decode(
    buf: Ints, rows: Ints, begin: int, count: int, table: Ints, slots: Ints, counters: Ints, recent: Ints,
    opened: Ints,
) -> int:  # fmt: skip
    """Decode rows `begin` to `count`; returns where it stopped, before `count` when the address table is full."""
    capacity = len(table) // ADDRESS
    for n in range(begin, count):
        # Each layer of a packet may bring two new addresses.
        if counters[0] + 2 * _DEEPEST > capacity:
            return n
        p = n * PACKET
        o = rows[p + OFFSET]
        wire_end = o + rows[p + WIRE]
        end = min(o + rows[p + CAPTURED], wire_end)
        rows[p + END] = end
        link = rows[p + LINK]
        kind = _STOP
        if link == LINK_ETHERNET:
            kind = _FRAME
        elif link in (LINK_RAW, LINK_IPV4, LINK_IPV6):
            kind = _ANY_IP
        elif link in (LINK_NULL, LINK_LOOP):
            o += 4
            kind = _ANY_IP
        elif link == LINK_SLL and end - o >= 16:
            kind = (buf[o + 14] << 8) | buf[o + 15]
            o += 16
        elif link == LINK_SLL2 and end - o >= 20:
            kind = (buf[o] << 8) | buf[o + 1]
            o += 20
        elif link == LINK_PPP:
            kind = _PPP_FRAME
        inside = 0
        layers = 0
        while kind >= 0 and layers < _DEEPEST:
            layers += 1
            if kind == _FRAME:
                if end - o < 14:
                    break
                kind = (buf[o + 12] << 8) | buf[o + 13]
                o += 14
                if kind < 0x600:
                    # IEEE 802.3: a length, then LLC; SNAP carries an EtherType.
                    if end - o >= 8 and buf[o] == 0xAA and buf[o + 1] == 0xAA:
                        kind = (buf[o + 6] << 8) | buf[o + 7]
                        o += 8
                        if kind < 0x600:
                            rows[p + NETWORK] = NETWORK_OTHER
                            rows[p + ETHERTYPE] = 0xAA
                            break
                    else:
                        rows[p + NETWORK] = NETWORK_OTHER
                        rows[p + ETHERTYPE] = buf[o] if end > o else 0
                        break
            elif kind in (0x8100, 0x88A8, 0x9100):
                if end - o < 4:
                    break
                inside |= IN_QINQ if inside & IN_VLAN else IN_VLAN
                kind = (buf[o + 2] << 8) | buf[o + 3]
                o += 4
            elif kind == 0x8864:
                if end - o < 8:
                    break
                inside |= IN_PPPOE
                o += 6
                wire_end = min(wire_end, o + ((buf[o - 2] << 8) | buf[o - 1]))
                end = min(end, wire_end)
                kind = _PPP_FRAME
            elif kind == _PPP_FRAME:
                if end - o >= 2 and buf[o] == 0xFF and buf[o + 1] == 0x03:
                    o += 2
                if end - o < 2:
                    break
                if buf[o] & 1:
                    carried = buf[o] + 0
                    o += 1
                else:
                    carried = (buf[o] << 8) | buf[o + 1]
                    o += 2
                if carried == 0x21:
                    kind = 0x0800
                elif carried == 0x57:
                    kind = 0x86DD
                else:
                    rows[p + NETWORK] = NETWORK_OTHER
                    rows[p + ETHERTYPE] = _PPP_PROTOCOL | int(carried)
                    break
            elif kind in (0x8847, 0x8848):
                bottom = False
                while end - o >= 4 and not bottom:
                    bottom = (buf[o + 2] & 1) == 1
                    o += 4
                if not bottom:
                    break
                inside |= IN_MPLS
                kind = _ANY_IP
                if end > o and buf[o] >> 4 != 4 and buf[o] >> 4 != 6:
                    frame = ethernet_in_mpls(buf, o, end)
                    if frame > 0:
                        o = frame
                        kind = _FRAME
            elif kind == _ANY_IP:
                if end - o < 1:
                    break
                version = buf[o] >> 4
                if version == 4:
                    kind = 0x0800
                elif version == 6:
                    kind = 0x86DD
                else:
                    break
            elif kind == 0x0806:
                rows[p + NETWORK] = NETWORK_ARP
                rows[p + MARK] = MARK_ARP
                rows[p + TRANSPORT] = o
                break
            elif kind in (0x0800, 0x86DD):
                protocol = -1
                if kind == 0x0800:
                    if end - o < 20 or buf[o] >> 4 != 4:
                        break
                    header = (buf[o] & 15) * 4
                    total = (buf[o + 2] << 8) | buf[o + 3]
                    if header < 20:
                        break
                    # Segmentation offload leaves the total length zero.
                    stop = wire_end if total == 0 else min(o + total, wire_end)
                    rows[p + NETWORK] = 4
                    rows[p + TTL] = buf[o + 8]
                    rows[p + IP_ID] = (buf[o + 4] << 8) | buf[o + 5]
                    word = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
                    rows[p + SOURCE] = intern_address(4, 0, 0, 0, word, table, slots, counters)
                    word = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
                    rows[p + DESTINATION] = intern_address(4, 0, 0, 0, word, table, slots, counters)
                    place = (((buf[o + 6] & 0x1F) << 8) | buf[o + 7]) * 8
                    if place > 0:
                        rows[p + FRAGMENT] = 2
                    elif buf[o + 6] & 0x20:
                        rows[p + FRAGMENT] = 1
                    protocol = buf[o + 9] + 0
                    o += header
                    if protocol == 51 and place == 0 and end - o >= 8:
                        protocol = buf[o] + 0
                        o += (buf[o + 1] + 2) * 4
                else:
                    if end - o < 40 or buf[o] >> 4 != 6:
                        break
                    total = (buf[o + 4] << 8) | buf[o + 5]
                    stop = wire_end if total == 0 else min(o + 40 + total, wire_end)
                    rows[p + NETWORK] = 6
                    rows[p + TTL] = buf[o + 7]
                    rows[p + IP_ID] = 0
                    w0 = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
                    w1 = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
                    w2 = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
                    w3 = (buf[o + 20] << 24) | (buf[o + 21] << 16) | (buf[o + 22] << 8) | buf[o + 23]
                    rows[p + SOURCE] = intern_address(6, w0, w1, w2, w3, table, slots, counters)
                    w0 = (buf[o + 24] << 24) | (buf[o + 25] << 16) | (buf[o + 26] << 8) | buf[o + 27]
                    w1 = (buf[o + 28] << 24) | (buf[o + 29] << 16) | (buf[o + 30] << 8) | buf[o + 31]
                    w2 = (buf[o + 32] << 24) | (buf[o + 33] << 16) | (buf[o + 34] << 8) | buf[o + 35]
                    w3 = (buf[o + 36] << 24) | (buf[o + 37] << 16) | (buf[o + 38] << 8) | buf[o + 39]
                    rows[p + DESTINATION] = intern_address(6, w0, w1, w2, w3, table, slots, counters)
                    protocol = buf[o + 6] + 0
                    o += 40
                    # Hop-by-hop, routing, destination options, mobility, AH, fragment.
                    while protocol in (0, 43, 60, 135, 51, 44):
                        if end - o < 8:
                            protocol = -1
                            break
                        following = buf[o] + 0
                        if protocol == 44:
                            place = ((buf[o + 2] << 8) | buf[o + 3]) & 0xFFF8
                            if place > 0:
                                rows[p + FRAGMENT] = 2
                            elif buf[o + 3] & 1:
                                rows[p + FRAGMENT] = 1
                            o += 8
                        elif protocol == 51:
                            o += (buf[o + 1] + 2) * 4
                        else:
                            o += (buf[o + 1] + 1) * 8
                        protocol = following
                        if rows[p + FRAGMENT] == 2:
                            break
                rows[p + TRANSPORT] = o
                rows[p + PAYLOAD] = o
                rows[p + LENGTH] = max(stop - o, 0)
                kind = _STOP
                if stop < end:
                    end = stop
                    rows[p + END] = end
                if rows[p + FRAGMENT] == 2 or protocol < 0 or end < o:
                    break
                if protocol == 6:
                    decode_tcp(buf, rows, p, o, end, stop - o, opened)
                    if rows[p + SOURCE_PORT] == 53 or rows[p + DESTINATION_PORT] == 53:
                        rows[p + MARK] = MARK_DNS_TCP
                elif protocol == 17:
                    if end - o < 8:
                        break
                    source_port = (buf[o] << 8) | buf[o + 1]
                    destination_port = (buf[o + 2] << 8) | buf[o + 3]
                    size = (buf[o + 4] << 8) | buf[o + 5]
                    stop = min(stop, o + size) if size >= 8 else stop
                    frame = 0
                    if destination_port == 2152 and end - o >= 36:
                        frame = inside_gtp(buf, o + 8, end)
                    linux = destination_port == 8472 and end - o >= 30 and plain_vxlan(buf, o + 8)
                    if linux or (destination_port == 4789 and end - o >= 30 and buf[o + 8] & 0x08):
                        inside |= IN_VXLAN
                        o += 16
                        kind = _FRAME
                    elif frame > 0:
                        inside |= IN_GTP
                        o = frame
                        kind = _ANY_IP
                    elif destination_port == 6081 and end - o >= 16 and buf[o + 8] >> 6 == 0:
                        inside |= IN_GENEVE
                        kind = (buf[o + 10] << 8) | buf[o + 11]
                        o += 16 + (buf[o + 8] & 0x3F) * 4
                        if kind == 0x6558:
                            kind = _FRAME
                    else:
                        rows[p + PROTOCOL] = 17
                        rows[p + SOURCE_PORT] = source_port
                        rows[p + DESTINATION_PORT] = destination_port
                        rows[p + PAYLOAD] = o + 8
                        rows[p + LENGTH] = max(stop - o - 8, 0)
                        rows[p + MARK] = datagram_mark(buf, o + 8, end, source_port, destination_port)
                elif protocol == 4:
                    inside |= IN_IPIP
                    kind = 0x0800
                elif protocol == 41:
                    inside |= IN_IPIP
                    kind = 0x86DD
                elif protocol == 47:
                    if end - o < 4:
                        break
                    options = (buf[o] << 8) | buf[o + 1]
                    carried = (buf[o + 2] << 8) | buf[o + 3]
                    if options & 0x4000 or options & 7 > 1:
                        rows[p + PROTOCOL] = 47
                        break
                    o += 4
                    if options & 0x8000:
                        o += 4
                    if options & 0x2000:
                        o += 4
                    if options & 0x1000:
                        o += 4
                    if options & 7 == 1 and options & 0x0080:
                        o += 4
                    inside |= IN_GRE
                    if carried == 0x880B:
                        kind = _PPP_FRAME
                        if options & 0x1000 == 0:
                            # PPTP acknowledgement without payload.
                            rows[p + PROTOCOL] = 47
                            break
                    elif carried == 0x6558:
                        kind = _FRAME
                    elif carried == 0x88BE:
                        kind = _FRAME
                        if options & 0x1000:
                            o += 8
                    elif carried == 0x22EB and end - o >= 12:
                        kind = _FRAME
                        o += 20 if buf[o + 11] & 1 else 12
                    else:
                        kind = carried
                else:
                    rows[p + PROTOCOL] = protocol
                    if protocol == 1 and rows[p + NETWORK] == 4:
                        rows[p + MARK] = MARK_ICMP
                    elif protocol == 58 and rows[p + NETWORK] == 6:
                        rows[p + MARK] = MARK_ICMP6
                if kind >= 0:
                    # What is inside decides the columns.
                    rows[p + FRAGMENT] = 0
            else:
                if rows[p + NETWORK] == 0:
                    rows[p + NETWORK] = NETWORK_OTHER
                # The Linux cooked header says 4 where LLC follows.
                rows[p + ETHERTYPE] = int(buf[o] if kind == 4 and end > o else kind)
                break
        rows[p + ENCAPSULATION] = inside
        if rows[p + FRAGMENT] != 0:
            continue
        if rows[p + IP_ID] != 0 or (
            rows[p + PROTOCOL] == 6 and (rows[p + LENGTH] > 0 or rows[p + CONTROL] & 3 or all_twice(recent))
        ):
            note_twin(rows, p, recent)
    return count


def place_addresses(table: Ints, slots: Ints, counters: Ints) -> None:
    """Fill an empty slot table with the addresses there are."""
    known = counters[0]
    counters[0] = 0
    for number in range(known):
        row = number * ADDRESS
        intern_address(
            table[row], table[row + 1], table[row + 2], table[row + 3], table[row + 4], table, slots, counters
        )


class Decoder:
    """Decodes batches of rows; owns the address table."""

    def __init__(self, vector: Vector, kernels: Kernel, capacity: int = 1024) -> None:
        self._vector, self._kernels = vector, kernels
        self._table = np.zeros(capacity * ADDRESS, np.int64)
        self._slots = np.zeros(capacity * 2, np.int64)
        self._counters = np.array([0, *(secrets.randbits(62) | 1 for _ in range(4))], np.int64)
        self._recent = np.zeros(_RECENT * 2 + 3, np.int64)
        self._opened = np.zeros(_OPENED * _OPENED_ROW, np.int64)
        self._texts: dict[int, str] = {}

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def decode(self, buf: Ints, rows: Ints, count: int) -> None:
        done = 0
        while True:
            done = self._kernels(decode)(buf, rows, done, count, *map(self._vector, self.arrays()))
            if done >= count:
                return
            self.make_room()

    def arrays(self) -> tuple[Array, ...]:
        """The state, in the order in which `decode` takes it."""
        return self._table, self._slots, self._counters, self._recent, self._opened

    def make_room(self) -> None:
        """For twice as many addresses."""
        self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._slots = np.zeros(len(self._slots) * 2, np.int64)
        self._kernels(place_addresses)(
            self._vector(self._table), self._vector(self._slots), self._vector(self._counters)
        )

    def address(self, number: int) -> str:
        """Text of an address id."""
        text = self._texts.get(number)
        if text is None:
            version, w0, w1, w2, w3 = (int(word) for word in self._table[number * ADDRESS : (number + 1) * ADDRESS])
            if version == 4:
                text = str(ipaddress.IPv4Address(w3))
            else:
                text = str(ipaddress.IPv6Address((w0 << 96) | (w1 << 64) | (w2 << 32) | w3))
            self._texts[number] = text
        return text


KERNELS = (
    intern_address,
    first_bytes,
    opened_slot,
    expect_records,
    follow_handshake,
    datagram_mark,
    ethernet_in_mpls,
    plain_vxlan,
    inside_gtp,
    ending_of,
    decode_tcp,
    all_twice,
    note_twin,
    decode,
    place_addresses,
)
