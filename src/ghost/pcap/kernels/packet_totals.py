"""Counts over all packets of a capture, for its summary. Columns only: it knows no protocol's state."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ghost.pcap import layout as L
from ghost.pcap.array_types import Array, PacketRows, PacketTotals
from ghost.pcap.file.capture_reader import LINK_NAMES, FileFacts
from ghost.pcap.kernels.undecoded_packets import REASON_ROW, REASONS, note_unread, unread
from ghost.pcap.model import CaptureSummary, LoopedPackets, Occurrences

_TRANSPORTS = {1: "icmp", 2: "igmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 51: "ah", 58: "icmpv6", 132: "sctp"}
_MARK_NAMES = {
    L.MARK_DNS: "dns",
    L.MARK_DNS_TCP: "dns",
    L.MARK_MDNS: "mdns",
    L.MARK_LLMNR: "llmnr",
    L.MARK_DHCP: "dhcp",
    L.MARK_DHCP6: "dhcpv6",
    L.MARK_NTP: "ntp",
    L.MARK_QUIC: "quic",
}


# Counters of all packets.
T_PACKETS, T_WIRE, T_CAPTURED, T_FIRST, T_LAST, T_PREVIOUS, T_CUT, T_FRAGMENTS, T_BACKWARD, T_DUPLICATES = range(10)
_DUPLICATE_FRAMES = 10
_NETWORKS = _DUPLICATE_FRAMES + L.SAMPLE_FRAMES
_PROTOCOLS = _NETWORKS + 8
_MARKS = _PROTOCOLS + 256
_ENCAPSULATED = _MARKS + 32
_UNREAD = _ENCAPSULATED + len(L.ENCAPSULATIONS)
_COUNTERS = _UNREAD + REASONS * REASON_ROW


def count_packets(rows: PacketRows, begin: int, count: int, totals: PacketTotals) -> None:
    """Count the decoded packets of rows `begin` to `count`, in file order."""
    for n in range(begin, count):
        p = n * L.PACKET
        now = rows[p + L.TIME]
        totals[T_PACKETS] = totals[T_PACKETS] + 1
        totals[T_WIRE] = totals[T_WIRE] + rows[p + L.WIRE]
        totals[T_CAPTURED] = totals[T_CAPTURED] + rows[p + L.CAPTURED]
        if now < totals[T_FIRST]:
            totals[T_FIRST] = now
        if now > totals[T_LAST]:
            totals[T_LAST] = now
        if now < totals[T_PREVIOUS]:
            totals[T_BACKWARD] = totals[T_BACKWARD] + 1
        totals[T_PREVIOUS] = now
        if rows[p + L.WIRE] > rows[p + L.CAPTURED]:
            totals[T_CUT] = totals[T_CUT] + 1
        if rows[p + L.FRAGMENT] == 2:
            totals[T_FRAGMENTS] = totals[T_FRAGMENTS] + 1
        if rows[p + L.DUPLICATE] == 1 and not (rows[p + L.PROTOCOL] == 6 and rows[p + L.LENGTH]):
            # Copies of TCP data are counted by stream, where more of them are told from repeats.
            if totals[T_DUPLICATES] < L.SAMPLE_FRAMES:
                totals[_DUPLICATE_FRAMES + totals[T_DUPLICATES]] = rows[p + L.FRAME]
            totals[T_DUPLICATES] = totals[T_DUPLICATES] + 1
        network = rows[p + L.NETWORK]
        totals[_NETWORKS + network] = totals[_NETWORKS + network] + 1
        if network >= 4:
            protocol = rows[p + L.PROTOCOL]
            at = _PROTOCOLS + protocol
            totals[at] = totals[at] + 1
            if protocol != 6 and protocol != 17 and protocol != 1 and protocol != 58 and rows[p + L.FRAGMENT] != 2:
                note_unread(rows, p, totals, _UNREAD)
        elif network != L.NETWORK_ARP:
            note_unread(rows, p, totals, _UNREAD)
        if rows[p + L.MARK] and rows[p + L.LENGTH]:
            at = _MARKS + rows[p + L.MARK]
            totals[at] = totals[at] + 1
        inside = rows[p + L.ENCAPSULATION]
        at = _ENCAPSULATED
        while inside:
            totals[at] = totals[at] + (inside & 1)
            inside >>= 1
            at += 1


KERNELS = (count_packets,)


class Tally:
    def __init__(self) -> None:
        self._totals = np.zeros(_COUNTERS, np.int64)
        self._totals[T_FIRST] = 1 << 62

    @property
    def packets(self) -> int:
        return int(self._totals[T_PACKETS])

    @property
    def last(self) -> int:
        """The latest timestamp."""
        return int(self._totals[T_LAST])

    @property
    def captured(self) -> int:
        """Bytes of all packets."""
        return int(self._totals[T_CAPTURED])

    def arrays(self) -> tuple[Array, ...]:
        """The state, as `count_packets` takes it."""
        return (self._totals,)

    def make_room(self) -> None:
        """Never needed: the tables have a fixed size."""

    def _protocols(self) -> dict[str, int]:
        """Return packets by protocol, most first."""
        totals = self._totals.tolist()
        networks = {"ipv4": 4, "ipv6": 6, "arp": L.NETWORK_ARP, "other": L.NETWORK_OTHER}
        present = [(name, _NETWORKS + number) for name, number in networks.items()]
        present += [(_TRANSPORTS.get(number, f"ip_{number}"), _PROTOCOLS + number) for number in range(1, 256)]
        present += [(name, _ENCAPSULATED + bit) for bit, name in enumerate(L.ENCAPSULATIONS)]
        present += [(name, _MARKS + mark) for mark, name in _MARK_NAMES.items()]
        named: Counter[str] = Counter()
        for name, at in present:
            named[name] += totals[at]
        found = ((name, count) for name, count in named.items() if count)
        return dict(sorted(found, key=lambda item: (-item[1], item[0])))

    def summary(
        self,
        name: str,
        facts: FileFacts,
        unreadable: int,
        conversations: Array,
        copies: Occurrences,
        looped: LoopedPackets | None,
    ) -> CaptureSummary:
        """Return the summary of the file `name`.

        `unreadable`: packets that a parser rejected; `conversations`: of UDP; `copies`: duplicate TCP data segments.
        """
        totals = self._totals.tolist()
        present, twins = self.packets > 0, totals[T_DUPLICATES]
        twin_frames = sorted([*totals[_DUPLICATE_FRAMES:][: min(twins, L.SAMPLE_FRAMES)], *copies.frames])
        notes = tuple(facts.notes) if present else (*facts.notes, "The capture holds no packets.")
        return CaptureSummary(
            file=name,
            sha256=facts.sha256,
            file_bytes=facts.file_bytes,
            format=facts.format,
            compressed=facts.compressed,
            link_types=tuple(dict.fromkeys(LINK_NAMES.get(link, f"LINKTYPE_{link}") for link, *_ in facts.interfaces)),
            interfaces=len(facts.interfaces),
            total_packets=self.packets,
            wire_bytes=totals[T_WIRE],
            captured_bytes=totals[T_CAPTURED],
            first_ns=totals[T_FIRST] if present else None,
            last_ns=self.last if present else None,
            protocols_present=self._protocols(),
            snap_length=facts.snap_length,
            cut_packets=totals[T_CUT],
            dropped_by_capturer=sum(facts.dropped.values()) if facts.dropped else None,
            truncated_record=facts.truncated,
            undecoded_packets=totals[_NETWORKS] + unreadable,
            fragments=totals[T_FRAGMENTS],
            backward_timestamps=totals[T_BACKWARD],
            duplicate_packets=Occurrences(twins + copies.count, tuple(twin_frames[: L.SAMPLE_FRAMES])),
            looped=looped,
            unread=unread(self._totals[_UNREAD:], conversations, unreadable),
            notes=notes,
        )
