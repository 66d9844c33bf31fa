"""Counts over all packets of a capture, for its summary. Columns only: it knows no protocol's state."""

from __future__ import annotations

import numpy as np

from ghost.pcap.layout import (
    CAPTURED,
    ENCAPSULATION,
    ENCAPSULATIONS,
    FRAGMENT,
    FRAME,
    LENGTH,
    MARK,
    MARK_DHCP,
    MARK_DHCP6,
    MARK_DNS,
    MARK_DNS_TCP,
    MARK_LLMNR,
    MARK_MDNS,
    MARK_NTP,
    MARK_QUIC,
    NETWORK,
    NETWORK_ARP,
    NETWORK_OTHER,
    PROTOCOL,
    SAMPLE_FRAMES,
    TIME,
    TWIN,
    WIRE,
)
from ghost.pcap.model import CaptureSummary, Occurrences
from ghost.pcap.read import LINK_NAMES, FileFacts
from ghost.pcap.vectors import Array

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


class Tally:
    def __init__(self) -> None:
        self.packets = 0
        self.undecoded = 0
        self.last = 0
        """The latest timestamp."""
        self._wire = self._captured = 0
        self._first, self._previous = 1 << 62, 0
        self._cut = self._fragments = self._backward = self._twins = 0
        self._twin_frames: list[int] = []
        self._protocols: dict[str, int] = {}

    def count(self, columns: Array) -> None:
        """Count a batch of decoded packets, in the order of the file."""
        times = columns[:, TIME]
        self.packets += len(columns)
        self._wire += int(columns[:, WIRE].sum())
        self._captured += int(columns[:, CAPTURED].sum())
        self._first, self.last = min(self._first, int(times.min())), max(self.last, int(times.max()))
        self._backward += int((np.diff(times) < 0).sum()) + (int(times[0]) < self._previous)
        self._previous = int(times[-1])
        self._cut += int((columns[:, WIRE] > columns[:, CAPTURED]).sum())
        self._fragments += int((columns[:, FRAGMENT] == 2).sum())
        twins = columns[columns[:, TWIN] > 0, FRAME]
        self._twins += len(twins)
        self._twin_frames += twins[: SAMPLE_FRAMES - len(self._twin_frames)].tolist()
        network = columns[:, NETWORK]
        self.undecoded += int((network == 0).sum())
        self._present({"ipv4": network == 4, "ipv6": network == 6, "arp": network == NETWORK_ARP})
        self._present({"other": network == NETWORK_OTHER})
        # A protocol is one byte of the header.
        transports = np.bincount(columns[network >= 4, PROTOCOL])
        for number in np.flatnonzero(transports).tolist():
            if number:
                self._add(_TRANSPORTS.get(number, f"ip_{number}"), int(transports[number]))
        marks = np.bincount(columns[columns[:, LENGTH] > 0, MARK])
        for mark in np.flatnonzero(marks).tolist():
            if mark in _MARK_NAMES:
                self._add(_MARK_NAMES[mark], int(marks[mark]))
        inside = columns[:, ENCAPSULATION]
        if inside.any():
            self._present({name: inside >> bit & 1 > 0 for bit, name in enumerate(ENCAPSULATIONS)})

    def _present(self, which: dict[str, np.ndarray]) -> None:
        for name, mask in which.items():
            self._add(name, int(np.count_nonzero(mask)))

    def _add(self, name: str, count: int) -> None:
        if count:
            self._protocols[name] = self._protocols.get(name, 0) + count

    def summary(self, name: str, facts: FileFacts) -> CaptureSummary:
        """Of the file `name`, which said these facts about itself."""
        present = self.packets > 0
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
            wire_bytes=self._wire,
            captured_bytes=self._captured,
            first_ns=self._first if present else None,
            last_ns=self.last if present else None,
            protocols_present=dict(sorted(self._protocols.items(), key=lambda item: (-item[1], item[0]))),
            snap_length=facts.snap_length,
            cut_packets=self._cut,
            dropped_by_capturer=sum(facts.dropped.values()) if facts.dropped else None,
            truncated_record=facts.truncated,
            undecoded_packets=self.undecoded,
            fragments=self._fragments,
            backward_timestamps=self._backward,
            duplicate_packets=Occurrences(self._twins, tuple(self._twin_frames)),
            notes=notes,
        )
