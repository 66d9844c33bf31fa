"""From bytes to columns: link, network and transport headers of each packet. Keeps nothing but an address table.

RFC 791, 8200, 9293, 768, 826; IEEE 802.1Q; RFC 2516 (PPPoE), 2784 and 2637 (GRE), 7348 (VXLAN), 8926 (Geneve), 3032
(MPLS), 4385 and 4448 (Ethernet in MPLS); 3GPP TS 29.281 (GTP-U); the LINKTYPE_ registry of tcpdump.org. The innermost
IP packet that can be reached is the one decoded.
"""

from __future__ import annotations

import ipaddress
import secrets

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import (
    AddressTable,
    Array,
    Counters,
    FileBytes,
    HashSlots,
    Kernel,
    OpenHandshakes,
    PacketRows,
    RecentPackets,
    Vector,
)
from ghost.pcap.kernels.address_table import intern_address, place_addresses
from ghost.pcap.kernels.duplicates import LOOPED, RECENT_ROOM, mostly_duplicates, note_duplicate
from ghost.pcap.kernels.payload_signatures import datagram_mark
from ghost.pcap.kernels.tunnel_headers import ethernet_in_mpls, inside_gtp, plain_vxlan
from ghost.pcap.model import LoopedPackets, Occurrences
from ghost.pcap.protocols.tls_handshake_records import OPENED_ROOM
from ghost.pcap.tcp.tcp_header import decode_tcp

# What begins at the current offset: an EtherType, or one of these.
_STOP = -1
_FRAME = 0x10000
_ANY_IP = 0x10001
_PPP_FRAME = 0x10002
_PPP_PROTOCOL = 0x20000
_MOST_TEXTS = 100_000
"""Addresses whose text is kept; a flood comes from millions."""
_DEEPEST = 16
"""Layers followed before a packet is given up: nesting is finite, malice is not."""


def decode(
    buf: FileBytes, rows: PacketRows, begin: int, count: int, table: AddressTable, slots: HashSlots,
    counters: Counters, recent: RecentPackets, opened: OpenHandshakes,
) -> int:  # fmt: skip
    """Decode rows `begin` to `count`; return where it stopped, before `count` if the address table is full."""
    capacity = len(table) // L.ADDRESS
    for n in range(begin, count):
        # Each layer of a packet may bring two new addresses.
        if counters[0] + 2 * _DEEPEST > capacity:
            return n
        p = n * L.PACKET
        o = rows[p + L.OFFSET]
        wire_end = o + rows[p + L.WIRE]
        end = min(o + rows[p + L.CAPTURED], wire_end)
        rows[p + L.END] = end
        link = rows[p + L.LINK]
        kind = _STOP
        if link == L.LINK_ETHERNET:
            kind = _FRAME
        elif link in (L.LINK_RAW, L.LINK_IPV4, L.LINK_IPV6):
            kind = _ANY_IP
        elif link in (L.LINK_NULL, L.LINK_LOOP):
            o += 4
            kind = _ANY_IP
        elif link == L.LINK_SLL and end - o >= 16:
            kind = (buf[o + 14] << 8) | buf[o + 15]
            o += 16
        elif link == L.LINK_SLL2 and end - o >= 20:
            kind = (buf[o] << 8) | buf[o + 1]
            o += 20
        elif link == L.LINK_PPP:
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
                            rows[p + L.NETWORK] = L.NETWORK_OTHER
                            rows[p + L.ETHERTYPE] = 0xAA
                            break
                    else:
                        rows[p + L.NETWORK] = L.NETWORK_OTHER
                        rows[p + L.ETHERTYPE] = buf[o] if end > o else 0
                        break
            elif kind in (0x8100, 0x88A8, 0x9100):
                if end - o < 4:
                    break
                inside |= L.IN_QINQ if inside & L.IN_VLAN else L.IN_VLAN
                kind = (buf[o + 2] << 8) | buf[o + 3]
                o += 4
            elif kind == 0x8864:
                if end - o < 8:
                    break
                inside |= L.IN_PPPOE
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
                    rows[p + L.NETWORK] = L.NETWORK_OTHER
                    rows[p + L.ETHERTYPE] = _PPP_PROTOCOL | int(carried)
                    break
            elif kind in (0x8847, 0x8848):
                bottom = False
                while end - o >= 4 and not bottom:
                    bottom = (buf[o + 2] & 1) == 1
                    o += 4
                if not bottom:
                    break
                inside |= L.IN_MPLS
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
                rows[p + L.NETWORK] = L.NETWORK_ARP
                rows[p + L.MARK] = L.MARK_ARP
                rows[p + L.TRANSPORT] = o
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
                    rows[p + L.NETWORK] = 4
                    rows[p + L.TTL] = buf[o + 8]
                    rows[p + L.IP_ID] = (buf[o + 4] << 8) | buf[o + 5]
                    word = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
                    rows[p + L.SOURCE] = intern_address(4, 0, 0, 0, word, table, slots, counters)
                    word = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
                    rows[p + L.DESTINATION] = intern_address(4, 0, 0, 0, word, table, slots, counters)
                    place = (((buf[o + 6] & 0x1F) << 8) | buf[o + 7]) * 8
                    if place > 0:
                        rows[p + L.FRAGMENT] = 2
                    elif buf[o + 6] & 0x20:
                        rows[p + L.FRAGMENT] = 1
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
                    rows[p + L.NETWORK] = 6
                    rows[p + L.TTL] = buf[o + 7]
                    rows[p + L.IP_ID] = 0
                    w0 = (buf[o + 8] << 24) | (buf[o + 9] << 16) | (buf[o + 10] << 8) | buf[o + 11]
                    w1 = (buf[o + 12] << 24) | (buf[o + 13] << 16) | (buf[o + 14] << 8) | buf[o + 15]
                    w2 = (buf[o + 16] << 24) | (buf[o + 17] << 16) | (buf[o + 18] << 8) | buf[o + 19]
                    w3 = (buf[o + 20] << 24) | (buf[o + 21] << 16) | (buf[o + 22] << 8) | buf[o + 23]
                    rows[p + L.SOURCE] = intern_address(6, w0, w1, w2, w3, table, slots, counters)
                    w0 = (buf[o + 24] << 24) | (buf[o + 25] << 16) | (buf[o + 26] << 8) | buf[o + 27]
                    w1 = (buf[o + 28] << 24) | (buf[o + 29] << 16) | (buf[o + 30] << 8) | buf[o + 31]
                    w2 = (buf[o + 32] << 24) | (buf[o + 33] << 16) | (buf[o + 34] << 8) | buf[o + 35]
                    w3 = (buf[o + 36] << 24) | (buf[o + 37] << 16) | (buf[o + 38] << 8) | buf[o + 39]
                    rows[p + L.DESTINATION] = intern_address(6, w0, w1, w2, w3, table, slots, counters)
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
                                rows[p + L.FRAGMENT] = 2
                            elif buf[o + 3] & 1:
                                rows[p + L.FRAGMENT] = 1
                            o += 8
                        elif protocol == 51:
                            o += (buf[o + 1] + 2) * 4
                        else:
                            o += (buf[o + 1] + 1) * 8
                        protocol = following
                        if rows[p + L.FRAGMENT] == 2:
                            break
                rows[p + L.TRANSPORT] = o
                rows[p + L.PAYLOAD] = o
                rows[p + L.LENGTH] = max(stop - o, 0)
                kind = _STOP
                if stop < end:
                    end = stop
                    rows[p + L.END] = end
                if rows[p + L.FRAGMENT] == 2 or protocol < 0 or end < o:
                    break
                if protocol == 6:
                    decode_tcp(buf, rows, p, o, end, stop - o, opened)
                    if rows[p + L.SOURCE_PORT] == 53 or rows[p + L.DESTINATION_PORT] == 53:
                        rows[p + L.MARK] = L.MARK_DNS_TCP
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
                    vxlan = end - o >= 30 and (
                        (destination_port == 4789 and buf[o + 8] & 0x08 > 0)
                        or (destination_port in (8472, 10800, 10801) and plain_vxlan(buf, o + 8))
                    )
                    if vxlan:
                        inside |= L.IN_VXLAN
                        o += 16
                        kind = _FRAME
                    elif frame > 0:
                        inside |= L.IN_GTP
                        o = frame
                        kind = _ANY_IP
                    elif destination_port == 6081 and end - o >= 16 and buf[o + 8] >> 6 == 0:
                        inside |= L.IN_GENEVE
                        kind = (buf[o + 10] << 8) | buf[o + 11]
                        o += 16 + (buf[o + 8] & 0x3F) * 4
                        if kind == 0x6558:
                            kind = _FRAME
                    else:
                        rows[p + L.PROTOCOL] = 17
                        rows[p + L.SOURCE_PORT] = source_port
                        rows[p + L.DESTINATION_PORT] = destination_port
                        rows[p + L.PAYLOAD] = o + 8
                        rows[p + L.LENGTH] = max(stop - o - 8, 0)
                        rows[p + L.MARK] = datagram_mark(source_port, destination_port)
                elif protocol == 4:
                    inside |= L.IN_IPIP
                    kind = 0x0800
                elif protocol == 41:
                    inside |= L.IN_IPIP
                    kind = 0x86DD
                elif protocol == 47:
                    if end - o < 4:
                        break
                    options = (buf[o] << 8) | buf[o + 1]
                    carried = (buf[o + 2] << 8) | buf[o + 3]
                    if options & 0x4000 or options & 7 > 1:
                        rows[p + L.PROTOCOL] = 47
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
                    inside |= L.IN_GRE
                    if carried == 0x880B:
                        kind = _PPP_FRAME
                        if options & 0x1000 == 0:
                            # PPTP acknowledgement without payload.
                            rows[p + L.PROTOCOL] = 47
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
                    rows[p + L.PROTOCOL] = protocol
                    if protocol == 1 and rows[p + L.NETWORK] == 4:
                        rows[p + L.MARK] = L.MARK_ICMP
                    elif protocol == 58 and rows[p + L.NETWORK] == 6:
                        rows[p + L.MARK] = L.MARK_ICMP6
                if kind >= 0:
                    # What is inside decides the columns.
                    rows[p + L.FRAGMENT] = 0
            else:
                if rows[p + L.NETWORK] == 0:
                    rows[p + L.NETWORK] = L.NETWORK_OTHER
                # The Linux cooked header says 4 where LLC follows.
                rows[p + L.ETHERTYPE] = int(buf[o] if kind == 4 and end > o else kind)
                break
        rows[p + L.ENCAPSULATION] = inside
        if rows[p + L.FRAGMENT] != 0:
            continue
        if rows[p + L.IP_ID] != 0 or (
            rows[p + L.PROTOCOL] == 6
            and (rows[p + L.LENGTH] > 0 or rows[p + L.CONTROL] & 3 or mostly_duplicates(recent))
        ):
            note_duplicate(rows, p, recent)
    return count


class Decoder:
    """Decodes batches of rows; owns the address table."""

    def __init__(self, vector: Vector, kernels: Kernel, capacity: int = 1024) -> None:
        self._vector, self._kernels = vector, kernels
        self._table = np.zeros(capacity * L.ADDRESS, np.int64)
        self._slots = np.zeros(capacity * 2, np.int64)
        self._counters = np.array([0, *(secrets.randbits(62) | 1 for _ in range(4))], np.int64)
        self._recent = np.zeros(RECENT_ROOM, np.int64)
        self._opened = np.zeros(OPENED_ROOM, np.int64)
        self._texts: dict[int, str] = {}

    def use(self, vector: Vector, kernels: Kernel) -> None:
        """Run the next batches this way."""
        self._vector, self._kernels = vector, kernels

    def decode(self, buf: FileBytes, rows: PacketRows, count: int) -> None:
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
        """Double the address table."""
        self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._slots = np.zeros(len(self._slots) * 2, np.int64)
        self._kernels(place_addresses)(
            self._vector(self._table), self._vector(self._slots), self._vector(self._counters)
        )

    def looped(self) -> LoopedPackets | None:
        """Return the packets that came by again and again with fewer hops left; None where fewer than two did."""
        count, source, destination, *frames = self._recent[LOOPED:].tolist()
        if count < 2:
            return None
        shown = tuple(frame for frame in frames if frame)
        return LoopedPackets(self.address(source), self.address(destination), Occurrences(count, shown))

    def address(self, number: int) -> str:
        """Text of an address id."""
        text = self._texts.get(number)
        if text is None:
            version, w0, w1, w2, w3 = (int(word) for word in self._table[number * L.ADDRESS : (number + 1) * L.ADDRESS])
            if version == 4:
                text = str(ipaddress.IPv4Address(w3))
            else:
                text = str(ipaddress.IPv6Address((w0 << 96) | (w1 << 64) | (w2 << 32) | w3))
            if len(self._texts) < _MOST_TEXTS:
                self._texts[number] = text
        return text


KERNELS = (decode,)
